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
    "tests/e2e/test_refusals.py": "history",
    "tests/e2e/live/test_kinds_of_groups.py": "life",
    "tests/e2e/live/test_changes_of_groups.py": "life",
}
APART = {"tests/scenarios/test_frozen.py"}  # minutes of tests that share nothing
# What takes longest starts first, or one worker ends long after the other: seconds on two idle
# cores, if more than ten. An error of some seconds costs nothing.
SECONDS = {
    "history": 240,
    "life": 90,
    "tests/e2e/test_object_store.py": 200,
    "tests/deploy/test_images.py": 700,
    "tests/calibration/test_calibration.py": 75,
    "tests/demo/test_demo.py": 80,
    "tests/demo/test_drills.py": 180,
    "tests/diagnosis/test_rebalance_workloads.py": 20,
    "tests/e2e/test_clocks.py": 240,
    "tests/e2e/live/test_fail_over.py": 70,
    "tests/e2e/test_doctor_on_a_broker.py": 60,
    "tests/e2e/test_race.py": 110,
    "tests/e2e/test_recreated_offsets_topic.py": 80,
    "tests/e2e/test_rotation.py": 250,
    "tests/e2e/test_admin_source.py": 110,
    "tests/e2e/test_elsewhere.py": 80,
    "tests/rules/test_promtool.py": 100,
    "tests/e2e/test_security.py": 400,
    "tests/e2e/test_service_levels.py": 60,
    "tests/e2e/test_repair.py": 300,
    "tests/e2e/test_standalone_cluster.py": 230,
    "tests/e2e/test_stopped_broker.py": 200,
    "tests/e2e/test_stops.py": 250,
    "tests/exporter/test_stops.py": 200,
    "tests/lag/test_extreme_offsets.py": 20,
    "tests/lag/test_windows.py": 20,
    "tests/rebalance/test_cuts.py": 60,
    "tests/scenarios/test_scenarios.py": 12,
    "tests/stream/test_clock.py": 12,
    "tests/stream/test_whole_batch.py": 20,
    "tests/cli/test_odd_rows.py": 90,
    "tests/simulator/test_against_laggard.py": 40,
    "tests/sources/test_odd_records.py": 40,
    "tests/simulator/test_rebalances.py": 20,
    "tests/tables/test_maintenance.py": 40,
    "tests/tables/test_spark_on_a_bucket.py": 40,
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
