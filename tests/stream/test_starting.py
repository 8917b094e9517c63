"""What a job does before its query when the cluster is away."""

import socket
from threading import Event

import pytest

from laggard.config import load_config
from laggard.errors import TEMPORARY, LaggardError
from laggard.sources.log_ends import reconcile_seconds
from laggard.stream.job import starting
from laggard.stream.job.starting import wait_for_offsets_topic


@pytest.mark.full
def test_one_run_gives_up_on_a_cluster_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "ONE_RUN_SECONDS", 0.1)
    with pytest.raises(LaggardError) as raised:
        wait_for_offsets_topic(
            load_config(None, [away()], {}).cluster, Event(), lambda _: None, once=True
        )
    assert raised.value.exit_code == TEMPORARY
    assert raised.value.cause.startswith("broker_unreachable")
    assert "without --once" in raised.value.fix


@pytest.mark.full
def test_a_job_that_stays_waits_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "ONE_RUN_SECONDS", 0.1)
    stopping, beats = Event(), []

    def beat(text: str) -> None:
        beats.append(text)
        if len(beats) == 3:
            stopping.set()

    assert wait_for_offsets_topic(load_config(None, [away()], {}).cluster, stopping, beat) is None
    assert len(beats) == 3


@pytest.mark.parametrize(
    ("topic", "expected"), [("__consumer_offsets", 6 * 3600), ("copied_offsets", 0)]
)
def test_coordinators_are_not_asked_for_the_groups_of_a_copied_topic(
    topic: str, expected: int
) -> None:
    assert (
        reconcile_seconds(load_config(None, [f"cluster.offsets_topic={topic}"], {}).cluster)
        == expected
    )


def away() -> str:
    """The address of a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f'cluster.bootstrap_servers=["127.0.0.1:{free.getsockname()[1]}"]'
