"""A cluster whose coordinators are polled: what they answer goes in tick by tick, the rows of every
table come out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.rebalance.groups import Listing
from laggard.sources.groups.ended_groups import GROUP_GONE
from laggard.sources.snapshot import ANSWERS, COMMITTED, GROUPS, POSITIONS, Snapshot
from laggard.stream.job.ticks import next_tick
from laggard.stream.tick.advance import Poll
from laggard.stream.tick.advance_stage import advance_groups
from laggard.stream.tick.decoded import polled_batch
from laggard.stream.tick.quarantine import Inputs
from stream.simulation import Row, Simulation

Place = tuple[str, str, int]  # group, topic, partition


def description(*members: str, topics: Iterable[str] = ("t",), more: Any = None) -> str:
    """The text that the poller makes of a classic group's members."""
    rows = [
        {
            "member_id": name,
            "group_instance_id": None,
            "client_id": "client",
            "client_host": "/10.0.0.1",
        }
        | {"assigned": [{"topic": topic, "partition": number} for topic in topics]}
        for number, name in enumerate(members)
    ]
    found = {
        "group_type": "classic",
        "protocol_type": "consumer",
        "assignor": "range",
        "rebalance_mode": "eager",
        "topics": sorted(topics) if members else [],
        "members": rows,
    }
    return json.dumps(found | (more or {}))


@dataclass
class PolledSimulation(Simulation):
    """Ticks of a job with `cluster.source = "admin"`."""

    # groups of the first complete listing, and of those before it
    old: set[str] = field(default_factory=set)
    is_listed: bool = False
    failing: set[str] = field(default_factory=set)  # groups whose tick is expected to raise

    def poll(
        self,
        ends: Iterable[Row],
        committed: Mapping[Place, int | None],
        *,
        asked: Collection[str] | None = None,
        errors: Mapping[str, str] | None = None,
        described: Mapping[str, str] | None = None,
        lists_topics: bool = True,
        pending: int = 0,
        seconds: float = 10,
        unlisted: tuple[int, ...] = (),
        listed: Collection[str] | None = None,
        is_live: bool = True,
        protocol_type: str | None = "consumer",
    ) -> dict[str, pa.Table]:
        """One tick. `asked`: groups that answer in it, all by default; `listed`: those that exist,
        by default so.
        """
        groups = (
            sorted({place[0] for place in committed} | (described or {}).keys())
            if listed is None
            else listed
        )
        answering = set(groups if asked is None else asked)
        rows = [
            {"group": group, "topic": topic, "partition": part, "committed_offset": offset}
            | {"error": None if offset is not None else "UNKNOWN_SERVER_ERROR"}
            for (group, topic, part), offset in committed.items()
            if group in answering
        ]
        answers = [
            {
                "group": group,
                "is_asked": group in answering or group in (errors or {}),
                "error": (errors or {}).get(group),
                "description": (described or {}).get(group),
                "is_new": self.is_listed and group not in self.old,
            }
            for group in sorted({*groups, *(errors or {})})
        ]
        if not self.is_listed:
            self.old.update(groups)
            self.is_listed = not unlisted
        self.old -= {group for group, error in (errors or {}).items() if error == GROUP_GONE}
        states = [
            {
                "group": group,
                "group_state": "Stable",
                "protocol_type": protocol_type,
                "group_type": "classic",
            }
            | {"coordinator": 1}
            for group in groups
        ]
        self.now += timedelta(seconds=seconds)
        self.boot_ms += round(1000 * seconds)
        self.batch_id += 1
        self.poll_id += 1
        self.snapshot = Snapshot(
            poll_id=self.poll_id,
            polled_at_ms=round(self.now.timestamp() * 1000),
            boot_id=self.boot_id,
            boot_ms=self.boot_ms,
            awake_ms=self.boot_ms,
            metadata_poll_id=self.poll_id,
            positions=pa.Table.from_pylist(list(ends), schema=POSITIONS),
            groups=pa.Table.from_pylist(states, schema=GROUPS),
            answers=pa.Table.from_pylist(answers, schema=ANSWERS),
            committed=pa.Table.from_pylist(rows, schema=COMMITTED),
            pending_groups=pending,
            lists_all_topics=lists_topics,
            unlisted_brokers=list(unlisted),
        )
        return self._run(is_live=is_live)

    def _run(self, *, is_live: bool) -> dict[str, pa.Table]:
        poll = self.snapshot
        tick: Tick = next_tick(
            self.last,
            poll,
            {},
            cluster="c",
            batch_id=self.batch_id,
            window_seconds=self.window_seconds,
            has_history=self.has_history,
        )
        assert tick.is_caught_up == is_live
        before = (self.tables["partition_status"], self.tables["group_status"])
        batch = polled_batch(
            poll,
            before[0],
            NameFilter(),
            tick,
            lambda groups: pa.array([True] * len(groups), pa.bool_()),
        )
        listing = Listing(
            {row["group"]: row for row in poll.groups.to_pylist()},
            {},
            is_fresh=poll.groups.num_rows > 0,
            unlisted=frozenset([None, *poll.unlisted_brokers]),
            errors={row["group"]: row["error"] for row in poll.answers.to_pylist()},
        )
        self.tables, failed = advance_groups(
            Inputs(*before, batch), Poll(poll.positions, listing), tick, self.policies
        )
        assert {each.group for each in failed} == self.failing, failed
        for name in self.history.keys() & self.tables.keys():
            self.history[name] += self.tables[name].to_pylist()
        self.last = {
            "kind": "tick" if is_live else "backfill",
            "polled_at": tick.now,
            "poll_id": self.poll_id,
            "source_to": {},
            "clock": None,
            "windows_closed_to": None,
        }
        self.has_history = self.has_history or is_live
        return self.tables
