"""Role of each open finding, and the one to act on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.registry import BY_CODE, EDGES, Edge
from laggard.diagnosis.rules.rule import CAUSE, INFO, META, PAGE, SYMPTOM, WARN

PRIMARY, CONTRIBUTING, SUPPRESSED, SYMPTOM_ROLE, NOTE = (
    "primary",
    "contributing",
    "suppressed",
    "symptom",
    "note",
)

_SEVERITY = {name: place for place, name in enumerate((PAGE, WARN, INFO))}
# so much more explained decides before the order of strength
_CLEARLY_MORE = fixed("clearly_more", 0.2, "share of the lag")
NOTHING_SHARED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Open:
    """Open finding as the ranking sees it."""

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
    findings: Sequence[Open],
    conditions: Collection[str],
    shared: Mapping[str, str] = NOTHING_SHARED,
) -> tuple[dict[str, str], str | None]:
    """Return the role of each finding by id, and the id of the primary one.

    `shared` are open findings of the cluster that reach the group, code to id: where one of them
    explains all that is open, it is the primary one.
    """
    found: dict[str, str] = {}
    of_role = defaultdict[str, list[Open]](list)
    reaching: set[str] = set()
    for each in findings:
        edges = list(_against(each, findings, conditions))
        reaching |= shared.keys() & {edge.by for edge in edges}
        role = found[each.finding_id] = _role(each, edges)
        of_role[role].append(each)
    if not of_role[PRIMARY] and reaching:
        return found, shared[min(reaching, key=_weakness)]
    symptoms = sorted(
        of_role[SYMPTOM_ROLE], key=lambda each: (_SEVERITY[each.severity], each.finding_id)
    )
    causes = of_role[PRIMARY] or of_role[CONTRIBUTING] or symptoms[:1]
    if not causes:
        return found, None
    first = strongest(causes)
    found |= {each.finding_id: CONTRIBUTING for each in causes if each.kind in (CAUSE, META)}
    found[first.finding_id] = PRIMARY
    return found, first.finding_id


def _role(finding: Open, edges: Sequence[Edge]) -> str:
    """Return the role of a finding by the edges that apply to it.

    The primary finding is chosen among the causes only later.
    """
    if any(edge.inhibition.hides for edge in edges):
        return SUPPRESSED
    if finding.kind in (CAUSE, META):
        return CONTRIBUTING if edges else PRIMARY
    return SYMPTOM_ROLE if finding.kind == SYMPTOM else NOTE


def strongest(causes: Sequence[Open]) -> Open:
    """Return the cause that explains clearly more of the lag.

    If there is none, return the first in the order, else the most certain.
    """
    most = max(each.explained for each in causes)
    clear = [each for each in causes if not each.explained or each.explained > most - _CLEARLY_MORE]
    return min(clear, key=lambda each: (_weakness(each.code), -each.confidence, each.finding_id))


def _weakness(code: str) -> float:
    """Return the rank of a code's rule, lowest for the strongest; infinity if it has none."""
    rule = BY_CODE.get(code)
    return inf if rule is None or rule.rank is None else rule.rank


def _against(finding: Open, others: Sequence[Open], conditions: Collection[str]) -> Iterator[Edge]:
    """Yield the edges that apply to a finding."""
    for edge in EDGES:
        needs, kinds = edge.inhibition.needs, edge.inhibition.stall_kinds
        if finding.code not in edge.codes or (needs and needs not in conditions):
            continue
        if kinds and finding.stall_kind not in kinds:
            continue
        if edge.by in conditions or any(_reaches(edge, other, finding) for other in others):
            yield edge


def _reaches(edge: Edge, other: Open, finding: Open) -> bool:
    if other.code != edge.by or other.finding_id == finding.finding_id:
        return False
    if not edge.inhibition.same_partitions:
        return True
    return other.topic == finding.topic and bool(other.partitions & finding.partitions)
