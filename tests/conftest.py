"""The ground every test stands on: this interpreter for Spark's workers, no
settings from outside.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from time_table import TimeTable

# before anything starts a JVM: workers otherwise take the python3 of the path
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# for commands started in other folders
os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent / "lib")
for _name in [
    name
    for name in os.environ
    if name == "LAGGARD_CONFIG" or (name.startswith("LAGGARD_") and "__" in name)
]:
    del os.environ[_name]

# a shell that starts the tests in its background lets them ignore Ctrl-C, and so the commands that
# they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A shared or slow machine must not fail a property; a failure prints how to repeat it.
settings.register_profile(
    "laggard",
    deadline=None,
    print_blob=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],  # seconds to make up examples
    # a gate gives the same answer twice; at a desk examples are new each time
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("laggard")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("xmlpath", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(TimeTable(), "time_table")


@pytest.fixture(autouse=True)
def _own_log_handlers() -> Iterator[None]:
    """A handler that a test installs writes to a captured stream, which is closed when the test is
    over.
    """
    before, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


# files whose tests read one shared history, a fixture that takes a minute or two to make
HISTORIES = {
    "tests/e2e/test_first_run.py": "history",
    "tests/e2e/test_restart.py": "history",
    "tests/e2e/live/test_kinds_of_groups.py": "life",
    "tests/e2e/live/test_changes_of_groups.py": "life",
}
APART = {"tests/scenarios/test_frozen.py"}  # minutes of tests that share nothing
# What takes longest starts first, or one worker ends long after the other: seconds on two idle
# cores, if more than ten. An error of some seconds costs nothing.
SECONDS = {
    "history": 150,
    "life": 70,
    "tests/dashboards/test_dashboards.py": 120,
    "tests/calibration/test_calibration.py": 75,
    "tests/cli/test_interrupted.py": 16,
    "tests/cli/test_odd_rows.py": 50,
    "tests/cli/test_pages_of_scenarios.py": 115,
    "tests/demo/test_broker.py": 60,
    "tests/demo/test_demo.py": 85,
    "tests/demo/test_drills.py": 90,
    "tests/deploy/test_images.py": 700,
    "tests/docs/test_read_elsewhere.py": 23,
    "tests/e2e/live/test_fail_over.py": 45,
    "tests/e2e/test_admin_source.py": 80,
    "tests/e2e/test_clocks.py": 240,
    "tests/e2e/test_doctor_on_a_broker.py": 85,
    "tests/e2e/test_elsewhere.py": 80,
    "tests/e2e/test_object_store.py": 110,
    "tests/e2e/test_race.py": 110,
    "tests/e2e/test_raw_oddities.py": 45,
    "tests/e2e/test_recreated_offsets_topic.py": 60,
    "tests/e2e/test_refusals.py": 40,
    "tests/e2e/test_repair.py": 110,
    "tests/e2e/test_rotation.py": 250,
    "tests/e2e/test_security.py": 70,
    "tests/e2e/test_service_levels.py": 55,
    "tests/e2e/test_standalone_cluster.py": 230,
    "tests/e2e/test_stopped_broker.py": 200,
    "tests/e2e/test_stops.py": 75,
    "tests/exporter/test_ui_answers.py": 33,
    "tests/exporter/test_ui_browser.py": 50,
    "tests/lag/test_windows.py": 30,
    "tests/questions/test_views.py": 30,
    "tests/rebalance/test_cuts.py": 23,
    "tests/rules/test_promtool.py": 95,
    "tests/scenarios/test_drawn.py": 30,
    "tests/scenarios/test_scenarios.py": 12,
    "tests/simulator/test_against_laggard.py": 75,
    "tests/simulator/test_rebalances.py": 17,
    "tests/sources/test_odd_records.py": 27,
    "tests/sources/test_poll_with_a_stopped_broker.py": 75,
    "tests/sources/test_silent_brokers.py": 23,
    "tests/stream/test_lives_audited.py": 115,
    "tests/stream/test_polled.py": 11,
    "tests/stream/test_whole_batch.py": 30,
    "tests/tables/test_spark_on_a_bucket.py": 30,
}


@pytest.hookimpl(trylast=True)  # after the order has been shuffled
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = [place for place, item in enumerate(items) if item.get_closest_marker("in_order")]
    ordered = sorted(
        (items[place] for place in places),
        key=lambda item: (item.location[0], item.location[1] or 0),
    )
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
    for item in items:
        is_shared = {"paused", "resumed", "lived"} & set(getattr(item, "fixturenames", ()))
        if is_shared and item.nodeid.partition("::")[0] not in HISTORIES:
            raise pytest.UsageError(
                f"{item.nodeid} looks at a shared history: name its file in HISTORIES"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail what is skipped in CI: there a missing tool is an error, and `make
    tools` installs it.
    """
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        *_, reason = report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped, which fails in CI: {reason}"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Side by side by file, longest first; files of one history together, as pytest 9.2 hides xdist
    3.8's own marks.
    """
    from xdist.scheduler import LoadScopeScheduling

    class LongestFirst(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return nodeid if path in APART else HISTORIES.get(path, path)

        def _assign_work_unit(self, node: Any) -> None:
            longest = max(
                self.workqueue,
                key=lambda scope: SECONDS.get(scope, len(self.workqueue[scope]) / 100),
            )
            self.workqueue.move_to_end(longest, last=False)
            super()._assign_work_unit(node)

    return LongestFirst(config, log)
