"""What is tried again, how often, how long, and with which exit code a job ends."""

import pytest

from laggard.errors import (
    CONFIGURATION,
    DAMAGED,
    DENIED,
    INTERNAL,
    REFUSED,
    TEMPORARY,
    UNREACHABLE,
    LaggardError,
)
from laggard.failures import SlowStartError
from laggard.stream.job.starting import INTERNAL_TRIES, Retries


class Failing:
    """A query that fails each time it is started, by a clock of its own."""

    def __init__(self, *, is_running: bool = True) -> None:
        self.now = 1000.0
        self.retries = Retries(lambda: self.now)
        if is_running:
            self.retries.published()

    def fail(self, exit_code: int, each_takes: float = 5.0) -> tuple[list[float], LaggardError]:
        """The waits until it is given up, and the failure it ends with."""
        waits: list[float] = []
        try:
            while len(waits) < 1000:
                waits.append(
                    self.retries.next_wait(LaggardError("broken", cause="why", exit_code=exit_code))
                )
                self.now += waits[-1] + each_takes
        except LaggardError as failure:
            return waits, failure
        pytest.fail("never given up")


@pytest.mark.parametrize("exit_code", [TEMPORARY, UNREACHABLE])
def test_what_passes_is_tried_for_ten_minutes_and_then_ends_with_75(exit_code: int) -> None:
    failing = Failing(is_running=False)
    waits, failure = failing.fail(exit_code)
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert 600 <= failing.now - 1000 < 670
    assert failure.exit_code == TEMPORARY
    assert "10 minutes" in failure.cause


def test_a_published_batch_begins_the_ten_minutes_and_the_back_off_again() -> None:
    failing = Failing()
    slow = SlowStartError()
    for _ in range(200):
        assert failing.retries.next_wait(slow) == 1
        failing.now += 500
        failing.retries.published()


@pytest.mark.parametrize("exit_code", [CONFIGURATION, REFUSED, DAMAGED])
def test_what_does_not_pass_ends_at_once_with_its_own_code(exit_code: int) -> None:
    waits, failure = Failing().fail(exit_code)
    assert (waits, failure.exit_code) == ([], exit_code)


def test_a_denied_principal_ends_a_start_at_once_and_a_running_job_after_ten_minutes() -> None:
    assert Failing(is_running=False).fail(DENIED)[0] == []
    running = Failing()
    waits, failure = running.fail(DENIED)
    assert running.now - 1000 >= 600
    assert len(waits) > 8
    assert failure.exit_code == DENIED


def test_an_internal_error_that_repeats_is_not_tried_for_ever() -> None:
    waits, failure = Failing().fail(INTERNAL)
    assert (waits, failure.exit_code) == ([1, 2, 4], INTERNAL)
    assert len(waits) == INTERNAL_TRIES
