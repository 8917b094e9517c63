"""The ground every test stands on: this interpreter for Spark's workers, no settings from outside."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# before anything starts a JVM: workers otherwise take the python3 of the path
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = str(Path(__file__).parent.parent / "lib")  # for commands started in other folders
for _name in [
    name for name in os.environ if name == "LAGGARD_CONFIG" or (name.startswith("LAGGARD_") and "__" in name)
]:
    del os.environ[_name]

# a shared or slow machine must not fail a property; a failure prints how to repeat it
settings.register_profile("laggard", deadline=None, print_blob=True)
settings.load_profile("laggard")


@pytest.fixture(autouse=True)
def _own_log_handlers() -> Iterator[None]:
    """A handler that a test installs writes to a captured stream, which is closed when the test is over."""
    before, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = before
    logging.root.setLevel(level)


HISTORIES = {"paused": "history", "resumed": "history", "lived": "life"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side by file; tests that look at one shared history stay together, as it takes two minutes to make."""
    for item in items:
        names = (HISTORIES[name] for name in getattr(item, "fixturenames", ()) if name in HISTORIES)
        item.add_marker(pytest.mark.xdist_group(next(names, item.path.as_posix())))
