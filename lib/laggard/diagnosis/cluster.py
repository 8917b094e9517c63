"""What no group can tell by itself: blindness, blocked sources, one broker, one coordinator, one sink."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from laggard.diagnosis.frames import Row
from laggard.diagnosis.observation import CAUSE, EVENT, META, PAGE, WARN, Observation, Rule
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.patterns_coordinators import find_correlated
from laggard.diagnosis.patterns_rebalances import live_generations, now_of
from laggard.diagnosis.view import View

_BLIND = ("no_end_offset", "stale")
_BLIND_SHARE = 0.5  # of the committed partitions of a group
_LONG_BLOCKED_WINDOWS = 15
_SINK_GROUPS = 3
_RECENT_WINDOWS = 2
TOLD_WINDOWS = 10  # in which a change of the offsets topic is news


@dataclass(frozen=True, slots=True)
class ClusterFrame:
    """The window that all groups are judged in, and the cluster's own events of it."""

    name: str
    window_ms: int
    window_seconds: int
    events: Sequence[Row] = ()  # of group_events up to its end, without a group
    quarantined: Mapping[str, str] = field(default_factory=dict)  # group to exception, after the tick that closed it
    quarantined_groups: int = 0  # of which `quarantined` names some

    @property
    def now_ms(self) -> int:
        return self.window_ms + 1000 * self.window_seconds


def cluster_signal(view: View, observations: Sequence[Observation]) -> Row:
    """What the cluster's rules have to know of a group, as plain values."""
    status = np.concatenate([each.frame.named("status")[:, -1] for each in view.topics] or [np.array([], object)])
    committed = [each for each in status.tolist() if each not in ("no_commit", "")]
    begin = now_of(view.frame) - timedelta(seconds=_RECENT_WINDOWS * view.frame.window_seconds)
    worst = view.worst
    return {
        "group": view.frame.group,
        "coordinator": view.frame.fact.get("coordinator"),
        "offsets_partition": view.frame.fact.get("offsets_partition"),
        "client_ids": sorted({each.client_id for each in view.members.values()}),
        "is_active": bool(view.member_count),
        "blind": sum(each in _BLIND for each in committed) / len(committed) if committed else 0.0,
        "blocked": "source_blocked" in committed,
        "blocked_windows": _blocked_windows(view),
        "rebalanced_at": _rebalanced(view, begin),
        "spread_down": bool(
            worst is not None and worst.shape.name == "spread" and view.sub_cause in ("capacity_down", "both")
        ),
        "brokers": {
            int(one.subject): one.explained for one in observations if one.code == "BROKER_CORRELATED" and one.subject
        },
        "material_lag": view.material_lag,
    }


def no_signal(group: str) -> Row:
    """The signal of a group that could not be judged: it says nothing either way."""
    return {
        "group": group, "coordinator": None, "offsets_partition": None, "client_ids": [], "is_active": False,
        "blind": 0.0, "blocked": False, "blocked_windows": 0, "rebalanced_at": [], "spread_down": False,
        "brokers": {}, "material_lag": 0.0,
    }  # fmt: skip


def _blocked_windows(view: View) -> int:
    """For how many windows up to this one the group's commits have been hidden."""
    if not any("source_blocked" in each.frame.named("status")[:, -1].tolist() for each in view.topics):
        return 0
    hidden = [(each.frame.named("status") == "source_blocked").any(axis=0) for each in view.topics]
    together = np.any(hidden, axis=0)[::-1]
    return int(len(together) if together.all() else np.argmin(together))


def _rebalanced(view: View, begin: datetime) -> list[datetime]:
    """Ends of rebalances since then; those by which a new group comes together are none of its coordinator."""
    rows = [row for row in live_generations(view.frame) if row["kind"] != "tombstone"]  # which has no generation
    if rows and rows[0]["generation"] <= 1:
        together = timedelta(seconds=view.parameters.coordinator_seconds)
        begin = max(begin, rows[0]["record_timestamp"] + together)
    return [row["record_timestamp"] for row in rows if row["record_timestamp"] >= begin]


def cluster_observations(cluster: ClusterFrame, signals: Sequence[Row], parameters: Parameters) -> list[Observation]:
    """What the rules of the cluster say; each names its groups in `evidence_text`."""
    return [
        *_blind(signals),
        *_quarantined(cluster),
        *_blocked(signals),
        *_coordinators(signals, parameters),
        *_brokers(signals),
        *_sinks(signals),
        *_offsets_topic(cluster),
    ]


def _named(groups: Sequence[str]) -> dict[str, str]:
    return {"groups": ", ".join(sorted(groups))}


def _blind(signals: Sequence[Row]) -> list[Observation]:
    blind = [each["group"] for each in signals if each["blind"] >= _BLIND_SHARE]
    if not blind:
        return []
    evidence = {"groups": float(len(blind)), "share": len(blind) / len(signals)}
    return [Observation("MONITOR_BLIND", severity=PAGE, evidence=evidence, evidence_text=_named(blind))]


def _quarantined(cluster: ClusterFrame) -> list[Observation]:
    if not cluster.quarantined_groups:
        return []
    exceptions = ", ".join(sorted(set(cluster.quarantined.values())))
    text = _named(list(cluster.quarantined)) | {"exceptions": exceptions}
    evidence = {"groups": float(cluster.quarantined_groups)}
    return [Observation("GROUP_QUARANTINED", severity=WARN, evidence=evidence, evidence_text=text)]


def _blocked(signals: Sequence[Row]) -> list[Observation]:
    of_partition: dict[Any, list[Row]] = defaultdict(list)
    for each in signals:
        if each["blocked"]:
            of_partition[each["offsets_partition"]].append(each)
    return [
        Observation(
            "SOURCE_BLOCKED",
            severity=PAGE if max(each["blocked_windows"] for each in hit) > _LONG_BLOCKED_WINDOWS else WARN,
            subject=str(partition),
            evidence={"groups": float(len(hit)), "windows": float(max(each["blocked_windows"] for each in hit))},
            evidence_text=_named([each["group"] for each in hit]),
        )
        for partition, hit in sorted(of_partition.items(), key=lambda each: str(each[0]))
    ]


def _coordinators(signals: Sequence[Row], parameters: Parameters) -> list[Observation]:
    """Most groups of one coordinator rebalance within a minute, and hardly any other."""
    active = [each for each in signals if each["is_active"] and each["coordinator"] is not None]
    coordinators = {each["group"]: each["coordinator"] for each in active}
    ends = {each["group"]: each["rebalanced_at"] for each in active}
    return [
        Observation(
            "COORDINATOR_CORRELATED",
            subject=str(each.broker),
            evidence={"groups": float(len(each.groups)), "groups_of_broker": float(each.active)},
            evidence_text=_named(each.groups),
        )
        for each in find_correlated(coordinators, ends, parameters)
    ]


def _brokers(signals: Sequence[Row]) -> list[Observation]:
    """Partitions that one broker leads lag in several groups of different clients."""
    found = []
    for broker in sorted({number for each in signals for number in each["brokers"]}):
        hit = [each for each in signals if broker in each["brokers"]]
        clients = {tuple(each["client_ids"]) for each in hit}
        if len(hit) >= 2 and len(clients) >= 2:
            found.append(
                Observation(
                    "BROKER_CORRELATED",
                    subject=str(broker),
                    evidence={"groups": float(len(hit))},
                    evidence_text=_named([each["group"] for each in hit]),
                    explained=min(each["brokers"][broker] for each in hit),
                )
            )
    return found


def _sinks(signals: Sequence[Row]) -> list[Observation]:
    """Several groups do less on all their partitions at once: they may share what they write to."""
    hit = [each for each in signals if each["spread_down"]]
    if len(hit) < _SINK_GROUPS or len({each["coordinator"] for each in hit if each["brokers"]}) == 1:
        return []
    return [
        Observation(
            "SHARED_SINK",
            confidence=0.6,
            evidence={"groups": float(len(hit))},
            evidence_text=_named([each["group"] for each in hit]),
        )
    ]


def _offsets_topic(cluster: ClusterFrame) -> list[Observation]:
    """Told in each window that ends soon after: while the job reads the new records no window closes."""
    begin_ms = cluster.now_ms - 1000 * TOLD_WINDOWS * cluster.window_seconds
    rows = [
        row
        for row in cluster.events
        if row["kind"] == "offsets_topic_changed" and begin_ms <= row["event_at"].timestamp() * 1000 < cluster.now_ms
    ]
    newest = max(rows, key=lambda row: float(row["event_at"].timestamp()), default=None)
    if newest is None:
        return []
    detail = dict(newest.get("detail") or {})
    counts = {name: float(detail.pop(name)) for name in ("partitions_from", "partitions_to") if name in detail}
    return [Observation("OFFSETS_TOPIC_CHANGED", evidence=counts, evidence_text=detail)]


def _elsewhere(_: View) -> list[Observation]:
    return []  # these rules look at all groups together


RULES = (
    Rule(
        "D01", "MONITOR_BLIND", META, _elsewhere,
        "We do not see the log ends or the commits of these groups: nothing else about them can be trusted.",
        ("look at the errors of the poll: laggard doctor, table batches", "repair the monitor first"), open_after=1,
        close_after=1,
    ),
    Rule(
        "D79", "GROUP_QUARANTINED", META, _elsewhere,
        "The ticks of these groups fail: their rows are stale, and all other groups are published.",
        (
            "report the exception, which the job's log and the event quarantined name, as a bug of laggard",
            "read committed offsets and lag of these groups with kafka-consumer-groups.sh meanwhile",
        ),
        open_after=1, close_after=1,
    ),
    Rule(
        "D02", "SOURCE_BLOCKED", META, _elsewhere,
        "A transaction that hangs hides the newest commits of these groups.",
        ("find it on the coordinator: kafka-transactions.sh find-hanging",), open_after=1, close_after=1,
    ),
    Rule(
        "D19", "SHARED_SINK", CAUSE, _elsewhere,
        "Several groups became slower on all partitions at the same time.",
        ("look for a database or an API that they share",), ("do not add consumers: they would share it too",),
        "one of the groups recovers alone",
    ),
    Rule(
        "D61", "COORDINATOR_CORRELATED", CAUSE, _elsewhere,
        "Most groups of one coordinator rebalanced within a minute.",
        ("look for a restart or trouble of that broker",), (), "groups of other coordinators rebalance as well",
        ("coordinator_share", "coordinator_seconds"), open_after=1,
    ),
    Rule(
        "D78", "OFFSETS_TOPIC_CHANGED", EVENT, _elsewhere,
        "The offsets topic has another number of partitions, or is another one: groups are looked for elsewhere.",
        (
            "expect stale states of groups until they commit again",
            "a group that its broker finds nothing of begins where auto.offset.reset says: compare committed offsets",
        ),
        ("do not change the number of partitions of the offsets topic of a cluster with groups",),
        open_after=1, close_after=1,
    ),
)  # fmt: skip


def reaches(observation: Observation, group: str) -> bool:
    """Whether a group is among those that an observation of the cluster names."""
    return group in observation.evidence_text.get("groups", "").split(", ")
