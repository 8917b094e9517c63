"""Stories played by Java consumers on a real broker, all at the same time, and what they left behind."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from calibration.cast import PARTITIONS, RATE, Performance, Story
from calibration.stories import STORIES, WARM_UPS
from calibration.troupe import Real, Troupe
from laggard.demo.broker import Broker
from laggard.sources.poll import Poller, PollOptions
from patience import patient
from simulator.offsets_log import Record, Written
from simulator.play import Played, Polled
from simulator.truth import Truth

TICK_SECONDS, STEP_SECONDS = 2.0, 0.05
READ_SECONDS = 30
OFFSETS_TOPIC = "__consumer_offsets"


def play_for_real(broker: Broker, folder: Path) -> Played:
    """All stories at the same time, with one poll series."""
    with ExitStack() as stack:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        stack.callback(admin.close)
        admin.create_topics([NewTopic(story.name, PARTITIONS, 1) for story in (*WARM_UPS, *STORIES)])
        troupe, doomed = (Troupe(broker, folder / f"{name}.log") for name in ("troupe", "doomed"))
        stack.callback(troupe.kill)
        stack.callback(doomed.kill)
        poller = Poller(PollOptions((broker.bootstrap_servers,), metadata_seconds=1, state_poll_seconds=0))
        stack.callback(poller.close)
        theatre = Real(troupe, doomed, admin)
        _perform(WARM_UPS, theatre, None)
        troupe.tell("produce", PARTITIONS, RATE, *(story.name for story in STORIES))
        polls = _perform(STORIES, theatre, poller)
    return Played("real", 0, _read(broker, polls[-1].offsets_partitions), polls, Truth())


def _perform(stories: Collection[Story], theatre: Real, poller: Poller | None) -> list[Polled]:
    """Play them to the end, side by side; what was polled meanwhile."""
    polls = [] if poller is None else [_poll(poller, 1)]  # what the first one finds is history and no event
    due = time.monotonic() + TICK_SECONDS
    performances = [Performance(story, theatre, time.monotonic()) for story in stories]
    while True:
        theatre.check()
        now = time.monotonic()
        performances = [each for each in performances if not each.is_over(now)]
        if poller is not None and (now >= due or not performances):
            polls.append(_poll(poller, len(polls) + 1))
            due += TICK_SECONDS
        if not performances:
            return polls
        time.sleep(STEP_SECONDS)


def _poll(poller: Poller, number: int) -> Polled:
    found = poller.poll(number)
    assert not found.failures
    ends = {row["offsets_partition"]: row for row in found.offsets_partitions.to_pylist()}
    return Polled(found.polled_at_ms, found.positions.to_pylist(), ends)


def _read(broker: Broker, ends: Mapping[int, Mapping[str, int]]) -> list[Written]:
    """The offsets topic up to the last poll."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed")
    until = {TopicPartition(OFFSETS_TOPIC, part): row["last_stable_offset"] for part, row in ends.items()}
    consumer.assign(list(until))
    consumer.seek_to_beginning()
    found: list[Written] = []
    limit = time.monotonic() + patient(READ_SECONDS)
    while any(consumer.position(place) < end for place, end in until.items()):
        assert time.monotonic() < limit, "the offsets topic could not be read in time"
        for records in consumer.poll(timeout_ms=500).values():
            found += [
                Written(each.partition, each.offset, each.timestamp, Record(each.key, each.value)) for each in records
            ]
    consumer.close()
    return found
