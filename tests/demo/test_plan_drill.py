"""A plan for a group with too few members, on a real broker: the drain time that it forecasts is
the one that comes.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from laggard.demo.broker import Broker
from laggard.demo.children import Child, stop_children
from laggard.demo.config_text import config_text
from laggard.demo.flag import Flag
from laggard.demo.load import Load, Member, create_topics
from laggard.demo.scenarios import Part, Scenario
from patience import patient

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.nightly]
GROUP, TOPIC, PARTITIONS = "billing", "orders", 8
EACH, WANTED = 45, 4  # records/s of a member; members
ARRIVES = 112  # records/s: two members do 90, four do 180
BILLING = Part(GROUP, TOPIC, rate=EACH)
SHORT = Scenario("too few members", {TOPIC: (ARRIVES // PARTITIONS,) * PARTITIONS}, (), group=GROUP)
UNREAD = 1500  # records of which the plan is made, at least: 22 s of what four do more than arrives
# six ticks in a window as in production: with the drills' three a rate of one window is off by a
# third
TIMINGS = ("tick_seconds = 4", "tick_seconds = 2")
# as scenarios/planned.py: drained is no more unread than arrives between commits
FRESH_SECONDS = 2.0
LOOK_SECONDS = 0.5
Row = dict[str, Any]


@dataclass(frozen=True)
class Drill:
    """The plan that was made, its page, and how long the group then took."""

    plan: Row
    page: str
    seconds: float  # from the first of the new members on
    unread: int  # records, then
    late: float  # seconds from the plan to them


class Group:
    """The group as the broker sees it: Kafka's own offsets, nothing of laggard."""

    def __init__(self, bootstrap: str) -> None:
        self._ends = KafkaConsumer(bootstrap_servers=bootstrap, metrics_enabled=False)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self._places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        self._seen: deque[tuple[float, dict[TopicPartition, int]]] = deque(maxlen=60)

    def unread(self) -> int:
        """Records of all partitions, counted now."""
        ends, done = self._look()
        return sum(ends[place] - done[place] for place in self._places)

    def has_drained(self) -> bool:
        """True if every partition is committed up to where its log ended a moment ago."""
        _, done = self._look()
        before = [ends for at, ends in self._seen if at <= time.monotonic() - FRESH_SECONDS]
        return bool(before) and all(done[place] >= before[-1][place] for place in self._places)

    def close(self) -> None:
        self._ends.close()
        self._admin.close()

    def _look(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        offsets = self._admin.list_group_offsets(GROUP)[GROUP]
        ends = dict(self._ends.end_offsets(self._places))
        self._seen.append((time.monotonic(), ends))
        return ends, {
            place: offsets[place].offset if place in offsets else 0 for place in self._places
        }


def wait(
    seconds: float,
    condition: Callable[[], Any],
    children: dict[str, Child],
    pause: float = LOOK_SECONDS,
) -> Any:
    """The first true answer; fails when a child ends or the time is over."""
    deadline = time.monotonic() + patient(seconds)
    while time.monotonic() < deadline:
        for child in children.values():
            child.check()
        if found := condition():
            return found
        time.sleep(pause)
    raise AssertionError(f"not within {patient(seconds)} s")


def is_watched(folder: Path) -> bool:
    """True once a tick has lag of the group."""
    done = laggard(folder, "status", "--json")
    rows = json.loads(done.stdout)["data"]["groups"] if done.returncode == 0 else []
    return any(row["lag"] is not None for row in rows)


def laggard(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laggard", "--config", str(folder / "laggard.toml"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def planned(folder: Path) -> tuple[float, Row] | None:
    """When it was asked for and the plan, once capacity and the pause of a
    rebalance are recorded.
    """
    asked_at = time.monotonic()
    done = laggard(folder, "plan", GROUP, "--members", f"{WANTED}", "--json")
    if done.returncode != 0:
        return None
    data: Row = json.loads(done.stdout)["data"]
    is_known = (
        data["then"]["drain_seconds"]["p90"] is not None and data["cost"]["rebalances_recorded"]
    )
    is_behind = sum(each["lag"] for each in data["then"]["loads"]) >= UNREAD
    return (asked_at, data) if is_known and is_behind else None


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    folder, numbers, members = tmp_path_factory.mktemp("plan"), itertools.count(1), list[Member]()
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(properties={"group.initial.rebalance.delay.ms": "0"}))
        bootstrap = broker.bootstrap_servers

        def join() -> None:
            members.append(Member(bootstrap, BILLING, next(numbers)))

        def leave(member: Member) -> None:
            members.remove(member)
            member.leave()
            member.await_end()

        (folder / "laggard.toml").write_text(
            config_text(folder, bootstrap, SHORT, slower=2).replace(*TIMINGS)
        )
        children = dict[str, Child]()
        stack.callback(stop_children, children, 0.0)
        children["job"] = Child(
            "job", ["laggard", "run", "--config", str(folder / "laggard.toml")], folder, None
        )
        create_topics(bootstrap, SHORT)
        stop, cue = Flag(), Flag()
        load = Thread(target=Load(bootstrap, SHORT, stop, cue).run, daemon=True)
        load.start()
        stack.callback(load.join, 20)
        stack.callback(stop.set)
        group = Group(bootstrap)
        stack.callback(group.close)
        stack.callback(lambda: [leave(each) for each in list(members)])
        join()
        join()
        wait(90, lambda: is_watched(folder), children)
        leave(members[0])  # a member is replaced: from that the plan knows what a rebalance costs
        join()
        asked_at, plan = wait(200, lambda: planned(folder), children, 3)
        page = laggard(folder, "plan", GROUP, "--members", f"{WANTED}").stdout
        unread, joined = group.unread(), time.monotonic()
        while len(members) < WANTED:
            join()
        wait(120, group.has_drained, children)
        yield Drill(plan, page, time.monotonic() - joined, unread, joined - asked_at)


def test_it_took_as_long_as_the_plan_said(drill: Drill) -> None:
    span = drill.plan["then"]["drain_seconds"]
    print(drill.page)
    print(
        f"forecast {span}, took {drill.seconds:.1f} s; unread {drill.unread}, {drill.late:.1f} s "
        "after the plan"
    )
    # what came too much until the members did is none of the plan's
    seconds = drill.seconds - drill.late * (ARRIVES - 2 * EACH) / (WANTED * EACH - ARRIVES)
    assert span["p10"] <= seconds <= span["p90"]
    assert span["p90"] < 2 * span["p10"]
