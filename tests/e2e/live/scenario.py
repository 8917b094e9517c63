"""The groups' life: it goes on in steps, and after each one nothing moves until all that can be
seen is kept.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import Any

import pytest

from e2e.kit import LISTING_SECONDS, Place, Row, Run, View, at, now, produce, wait_until
from e2e.live.clients import Clients
from e2e.live.members import TOPICS, Member
from e2e.live.newest import Newest
from e2e.live.tools import Described, Line, ask_tools, places, share_members
from laggard.tables.published import Batch

REST_LIMIT, FEW_TICKS = 60, 3


@dataclass(frozen=True)
class Look:
    """Who has what, by everybody but the job."""

    groups: dict[str, list[str]]  # ListGroups: type, state, protocol type
    clients: dict[str, dict[str, Any]]  # what each client says of itself, by its name
    shares: list[Line]  # members of share groups: their clients do not tell


@dataclass(frozen=True)
class Moment:
    """What the tables and the oracles say of one moment at which nothing moves."""

    view: View
    members: dict[str, Member]
    look: Look
    described: Described
    # what each client has committed: topic, partition, offset
    positions: dict[str, list[list[Any]]]
    seconds: float
    tail: str

    @cached_property
    def newest(self) -> Newest:
        return Newest(self.view)


def differences(before: Look, after: Look) -> list[tuple[Any, Any]]:
    pairs = zip(before.shares, after.shares, strict=False)
    named = [(before.groups, after.groups), (before.clients, after.clients)]
    found = [
        (old.get(name), new.get(name))
        for old, new in named
        for name in sorted(old.keys() | new.keys())
    ]
    return [(old, new) for old, new in (*found, *pairs) if old != new]


@dataclass
class Scenario:
    """The running parts, who is where, and the moments so far."""

    clients: Clients
    place: Place
    run: Run
    servers: str
    topics: dict[str, int] = field(default_factory=lambda: dict(TOPICS))
    members: dict[str, Member] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)  # groups that are there with nobody in them
    moments: dict[str, Moment] = field(default_factory=dict)
    last: Look | None = None
    listed: frozenset[str] = frozenset()  # the topics of the last moment
    started: float = field(default_factory=time.monotonic)

    def join(self, *members: Member) -> None:
        for each in members:
            self.clients.ask(
                "join", each.kind, each.name, each.group, each.wanted, each.instance or "-"
            )
            self.members[each.name] = each
            self.empty.discard(each.group)

    def stop(self, *names: str) -> None:
        self.clients.ask("stop", *names)
        gone = {self.members.pop(name).group for name in names}
        self.empty |= gone - {each.group for each in self.members.values()}

    def restart(self, name: str) -> None:
        member = self.members[name]
        self.stop(name)
        self.join(member)

    def replace(self, name: str, member: Member) -> None:
        """The new member is in before the old one goes, so the group is never empty."""
        self.join(member)
        wait_until(
            lambda: self._look().clients[member.name].get("generation", -1) > 0,
            20,
            f"{member} is in",
        )
        self.stop(name)

    def rest(self, name: str) -> None:
        """Wait until nothing moves, and keep the moment."""
        look: Look = wait_until(self._steady, REST_LIMIT, f"nothing moves: {name}", self._says)
        positions = self.clients.ask("commit")
        produce(self.servers, {at(topic, number): 1 for topic, number in self._places(self.topics)})
        since = now()
        if self.listed != (topics := frozenset(self.topics)):
            self.listed = topics
            since += timedelta(seconds=LISTING_SECONDS)
        described = ask_tools(self.clients)
        view = self.place.view(self._agreeing(since, look))
        after = self._look()
        assert after == look, f"{name}: a group moved meanwhile: {differences(look, after)}"
        seconds = time.monotonic() - self.started
        self.moments[name] = Moment(
            view, dict(self.members), look, described, positions, seconds, self.place.tail()
        )

    def ticks(self) -> list[View]:
        """The tables as each tick published them."""
        rows: list[Row] = [row for row in self.place.rows("batches") if row["kind"] != "gap"]
        return [
            View(str(self.place.tables), row)
            for row in sorted(rows, key=lambda row: row["batch_id"])
        ]

    def _agreeing(self, since: datetime, look: Look) -> Batch:
        """The first tick that gives every group its state; after a few ticks the next best, for the
        tests to check.
        """
        wanted = {group: state for group, (_, state, _) in look.groups.items()}
        seen: set[int] = set()

        def agrees(batch: Batch) -> bool:
            if batch.kind != "tick" or batch.polled_at <= since:
                return False
            seen.add(batch.batch_id)
            states = {
                group: row["group_state"] for group, row in self.place.view(batch).groups.items()
            }
            return states == wanted or len(seen) >= FEW_TICKS

        return self.run.wait_for(agrees, f"a tick after {since}")

    def _look(self) -> Look:
        found = Look(
            self.clients.ask("groups"), self.clients.ask("own"), share_members(self.clients)
        )
        broken = {name: own for name, own in found.clients.items() if "error" in own}
        if broken:
            pytest.fail(f"{broken}\n{self.clients.said()}", pytrace=False)
        # a streams client believes that every topic has its tasks' partitions
        for own in found.clients.values():
            own["owned"] = sorted(
                place for place in own.get("owned", ()) if place[1] < self.topics.get(place[0], 0)
            )
        return found

    def _steady(self) -> Look | None:
        before, self.last = self.last, self._look()
        return self.last if self.last == before and self._is_at_rest(self.last) else None

    def _is_at_rest(self, look: Look) -> bool:
        """Every group has the state and every partition the owner that they come to in the end."""
        by_group = sorted(self.members.values(), key=lambda each: each.group)
        groups = {
            group: list(members)
            for group, members in groupby(by_group, key=lambda each: each.group)
        }
        wanted = dict.fromkeys(self.empty, "Empty") | {
            group: "Stable" if self._places(members[0].topics) else "NotReady"
            for group, members in groups.items()
        }
        states = {group: state for group, (_, state, _) in look.groups.items()}
        return states == wanted and all(
            self._is_whole(members, look) for members in groups.values()
        )

    def _is_whole(self, members: list[Member], look: Look) -> bool:
        wanted = self._places({topic for each in members for topic in each.topics})
        if members[0].kind == "share":
            lines = [line for line in look.shares if line["GROUP"] == members[0].group]
            held = {place for line in lines for place in places(line["ASSIGNMENT"])}
            return len(lines) == len(members) and held == set(wanted)
        clients = [look.clients[each.name] for each in members]
        owned = sorted(
            (topic, number) for each in clients for topic, number in each.get("owned", ())
        )
        return owned == wanted and len({each.get("generation", -1) for each in clients} | {-1}) == 2

    def _places(self, topics: Iterable[str]) -> list[tuple[str, int]]:
        return [
            (topic, number)
            for topic in sorted(topics)
            for number in range(self.topics.get(topic, 0))
        ]

    def _says(self) -> str:
        return f"{self.last}\n{self.clients.said()}\n{self.place.tail()}"
