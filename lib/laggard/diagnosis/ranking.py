"""Which of a group's open findings is the cause to act on: the inhibition graph and the order of strength."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from laggard.diagnosis.observation import CAUSE, META, SYMPTOM
from laggard.diagnosis.view import UNKNOWN_KIND

PRIMARY, CONTRIBUTING, SUPPRESSED, SYMPTOM_ROLE, NOTE = "primary", "contributing", "suppressed", "symptom", "note"

# Names that are conditions of a group, not findings: they inhibit as a finding does.
DEPLOY, NEW_GROUP, LONG_REBALANCE, LARGE_REWIND = "(deploy)", "(new group)", "(long rebalance)", "(large rewind)"

_CAPACITY = ("CAPACITY_SHORTAGE", "CAPACITY_BURST", "AT_PARTITION_CEILING")
_SLOW = ("SLOW_MEMBER", "SLOW_HOST")
_HOT = ("HOT_PARTITION_ARRIVAL",)
_SHAPE_CAUSES = (*_CAPACITY, *_SLOW, *_HOT, "ARRIVAL_SKEW", "COSTLY_PARTITION", "BROKER_CORRELATED", "SHARED_SINK")
_REBALANCE_SYMPTOMS = ("REBALANCE_STORM", "REBALANCE_STRAGGLER", "REBALANCE_INCOMPLETE")
_REBALANCE_CAUSES = (
    "STATIC_DUPLICATE",
    "STATIC_ID_UNSTABLE",
    "ASSIGNOR_FLAP",
    "POLL_TIMEOUT_EVICTION",
    "SESSION_EVICTION",
    "CRASH_LOOP",
    "SCALE_OSCILLATION",
)


@dataclass(frozen=True, slots=True)
class Edge:
    """While `by` is open, `codes` are suppressed, or only contribute."""

    by: str
    codes: tuple[str, ...]
    suppresses: bool
    kinds: tuple[str, ...] = ()  # stall kinds it is limited to
    needs: str = ""  # another condition that must hold too
    same_partitions: bool = False


EDGES: tuple[Edge, ...] = (
    Edge(
        "SOURCE_BLOCKED",
        ("PARTITION_STALLED", "COMMITS_STOPPED", "EMPTY_WITH_LAG", *_SHAPE_CAUSES),
        suppresses=True,
    ),
    Edge("COORDINATOR_CORRELATED", ("SESSION_EVICTION", *_REBALANCE_SYMPTOMS), suppresses=True),
    Edge("OFFSET_BEYOND_END", ("PARTITION_STALLED", "OFFSET_REWIND", "DATA_LOST"), suppresses=True),
    Edge("TOPIC_RECREATED", ("PARTITION_STALLED", "OFFSET_REWIND", "DATA_LOST"), suppresses=True),
    Edge(
        "EMPTY_WITH_LAG",
        (*_SHAPE_CAUSES, "PARTITION_STALLED", "COMMITS_STOPPED", "PARTITION_UNOWNED"),
        suppresses=True,
    ),
    Edge("COMMITS_STOPPED", ("PARTITION_STALLED", *_SHAPE_CAUSES), suppresses=True),
    Edge(
        DEPLOY,
        (
            "REBALANCE_STORM",
            "SESSION_EVICTION",
            "CRASH_LOOP",
            "PING_PONG",
            *_CAPACITY,
            *_SLOW,
            "SCALE_OUT_FUTILE",
            "SCALE_OSCILLATION",
        ),
        suppresses=True,
    ),
    Edge(DEPLOY, ("PARTITION_STALLED",), suppresses=True, kinds=("silent", UNKNOWN_KIND)),
    Edge(
        "POISON_PILL_SUSPECT",
        ("PARTITION_STALLED", "POLL_TIMEOUT_EVICTION", "REBALANCE_STORM", "CRASH_LOOP", "DEPLOY_LAG_SPIKE"),
        suppresses=False,
    ),
    Edge("STATIC_DUPLICATE", ("CRASH_LOOP", "SESSION_EVICTION", "STATIC_EXPIRED"), suppresses=True),
    Edge("REBALANCE_INCOMPLETE", ("DEPLOY_LAG_SPIKE",), suppresses=True),
    *(Edge(code, _REBALANCE_SYMPTOMS, suppresses=False) for code in _REBALANCE_CAUSES),
    *(
        Edge(
            code,
            (*_CAPACITY, "SCALE_OUT_FUTILE", *_SLOW, *_HOT),
            suppresses=True,
            needs=LONG_REBALANCE,
        )
        for code in (*_REBALANCE_CAUSES, "REBALANCE_STORM")
    ),
    # KIP-848 groups take seconds to rebalance, and lose as much of the time of members that are put out
    *(
        Edge(code, ("CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"), suppresses=False)
        for code in ("POISON_PILL_SUSPECT", "POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP")
    ),
    Edge("PARTITION_STALLED", ("HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION"), suppresses=True, same_partitions=True),
    Edge("BROKER_CORRELATED", (*_SLOW, "COSTLY_PARTITION", "CAPACITY_SHORTAGE"), suppresses=False),
    Edge("SHARED_SINK", (*_SLOW, "COSTLY_PARTITION", "CAPACITY_SHORTAGE"), suppresses=False),
    Edge("SLOW_HOST", ("SLOW_MEMBER",), suppresses=False),
    Edge("SLOW_MEMBER", ("COSTLY_PARTITION", "ASSIGNMENT_IMBALANCE"), suppresses=False),
    Edge("HOT_PARTITION_ARRIVAL", ("CAPACITY_SHORTAGE",), suppresses=True),
    Edge("HOT_PARTITION_ARRIVAL", ("SCALE_OUT_FUTILE",), suppresses=False),
    Edge("AT_PARTITION_CEILING", ("CAPACITY_SHORTAGE",), suppresses=False),
    Edge("SCALE_ZERO_COLD_START", (*_CAPACITY, *_HOT), suppresses=True),
    Edge(LARGE_REWIND, (*_CAPACITY, *_HOT), suppresses=True),
    Edge(NEW_GROUP, (*_CAPACITY, *_HOT), suppresses=True),
)

# strongest first; what is not named comes last
RANK = (
    "MONITOR_BLIND", "GROUP_QUARANTINED",
    "SOURCE_BLOCKED", "OFFSET_BEYOND_END", "COORDINATOR_CORRELATED", "EMPTY_WITH_LAG",
    "COMMITS_STOPPED", "POISON_PILL_SUSPECT", "STATIC_DUPLICATE", "STATIC_ID_UNSTABLE", "POLL_TIMEOUT_EVICTION",
    "CRASH_LOOP", "SESSION_EVICTION", "ASSIGNOR_FLAP", "RECONCILE_STUCK", "REBALANCE_STRAGGLER",
    "REBALANCE_INCOMPLETE", "STATIC_EXPIRED", "SCALE_OSCILLATION", "DEPLOY_LAG_SPIKE", "REBALANCE_STORM",
    "PARTITION_STALLED", "PARTITION_UNOWNED", "BROKER_CORRELATED", "LSO_STUCK", "SHARED_SINK", "SLOW_HOST",
    "SLOW_MEMBER", "HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION", "AT_PARTITION_CEILING", "SCALE_OUT_FUTILE",
    "CAPACITY_SHORTAGE", "CAPACITY_BURST",
)  # fmt: skip
_STRENGTH = {code: place for place, code in enumerate(RANK)}
_SEVERITY = {"page": 0, "warn": 1, "info": 2}
_CLEARLY_MORE = 0.2  # of the lag: so much more explained decides before the order of strength
NOTHING_SHARED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Open:
    """What the ranking has to know of an open finding."""

    finding_id: str
    code: str
    kind: str  # class
    severity: str
    topic: str
    partitions: frozenset[int]
    stall_kind: str
    explained: float
    confidence: float


def roles(
    findings: Sequence[Open], conditions: Collection[str], shared: Mapping[str, str] = NOTHING_SHARED
) -> tuple[dict[str, str], str | None]:
    """Role of each finding by id, and the id of the primary one.

    `shared` are open findings of the cluster that reach the group, code to id: where one of them explains all that is
    open, it is the primary one.
    """
    found: dict[str, str] = {}
    reaching = set()
    for each in findings:
        edges = list(_against(each, findings, conditions))
        reaching |= {edge.by for edge in edges} & shared.keys()
        if each.kind in (CAUSE, META):
            found[each.finding_id] = (
                SUPPRESSED if any(edge.suppresses for edge in edges) else CONTRIBUTING if edges else PRIMARY
            )
        else:
            found[each.finding_id] = SYMPTOM_ROLE if each.kind == SYMPTOM else NOTE
            if any(edge.suppresses for edge in edges):
                found[each.finding_id] = SUPPRESSED
    causes = [each for each in findings if found[each.finding_id] == PRIMARY]
    if not causes and reaching:
        return found, shared[min(reaching, key=_STRENGTH.__getitem__)]
    if not causes:
        causes = [each for each in findings if found[each.finding_id] == CONTRIBUTING]
    if not causes:
        causes = sorted(
            (each for each in findings if found[each.finding_id] == SYMPTOM_ROLE),
            key=lambda each: (_SEVERITY[each.severity], each.finding_id),
        )[:1]
    if not causes:
        return found, None
    first = strongest(causes)
    for each in causes:
        if each.kind in (CAUSE, META):
            found[each.finding_id] = CONTRIBUTING
    found[first.finding_id] = PRIMARY
    return found, first.finding_id


def strongest(causes: Sequence[Open]) -> Open:
    """The one that explains clearly more of the lag, else the first in the order, else the most certain."""
    most = max(each.explained for each in causes)
    clear = [each for each in causes if not each.explained or each.explained > most - _CLEARLY_MORE]
    return min(clear, key=lambda each: (_STRENGTH.get(each.code, len(RANK)), -each.confidence, each.finding_id))


def _against(finding: Open, others: Sequence[Open], conditions: Collection[str]) -> Iterator[Edge]:
    for edge in EDGES:
        if finding.code not in edge.codes or (edge.needs and edge.needs not in conditions):
            continue
        if edge.kinds and finding.stall_kind not in edge.kinds:
            continue
        if edge.by in conditions or any(_reaches(edge, other, finding) for other in others):
            yield edge


def _reaches(edge: Edge, other: Open, finding: Open) -> bool:
    if other.code != edge.by or other.finding_id == finding.finding_id:
        return False
    if not edge.same_partitions:
        return True
    return other.topic == finding.topic and bool(other.partitions & finding.partitions)
