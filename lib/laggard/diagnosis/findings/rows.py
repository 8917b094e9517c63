"""Rows of `findings`: what opened, changed or ended in a window; the role of each finding, and the one to act on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from math import inf
from types import MappingProxyType

from laggard.diagnosis.findings.tracks import Step
from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.history.memory import Track, digest
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules.reach import params_of, version_of
from laggard.diagnosis.rules.registry import BY_CODE, EDGES, Edge
from laggard.diagnosis.rules.rule import CAUSE, INFO, META, PAGE, SYMPTOM, WARN, Observation, Rule

PRIMARY, CONTRIBUTING, SUPPRESSED, SYMPTOM_ROLE, NOTE = "primary", "contributing", "suppressed", "symptom", "note"

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
                SUPPRESSED if any(edge.inhibition.hides for edge in edges) else CONTRIBUTING if edges else PRIMARY
            )
        else:
            found[each.finding_id] = SYMPTOM_ROLE if each.kind == SYMPTOM else NOTE
            if any(edge.inhibition.hides for edge in edges):
                found[each.finding_id] = SUPPRESSED
    causes = [each for each in findings if found[each.finding_id] == PRIMARY]
    if not causes and reaching:
        return found, shared[min(reaching, key=_weakness)]
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
    return min(clear, key=lambda each: (_weakness(each.code), -each.confidence, each.finding_id))


def _weakness(code: str) -> float:
    """Place in the order of strength, the strongest lowest; after all others without one."""
    rule = BY_CODE.get(code)
    return inf if rule is None or rule.rank is None else rule.rank


def _against(finding: Open, others: Sequence[Open], conditions: Collection[str]) -> Iterator[Edge]:
    """Edges that bear on a finding."""
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


OPENED, UPDATED, CLOSED = "opened", "updated", "closed"
# an open finding says so once an hour
_UPDATE_MS = fixed("update_ms", 3_600_000, "ms")
NONE = Observation("")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Values that all rows of a group's window share; group "" is the cluster."""

    cluster: str
    group: str
    now_ms: int
    coordinator: int | None
    episode_ms: int | None
    parameters: Parameters  # of a group: with the values that its policy declares


def finding_rows(
    judgement: Judgement,
    steps: Sequence[Step],
    conditions: Collection[str],
    rules: Mapping[str, Rule],
    shared: Mapping[str, str] = NOTHING_SHARED,
) -> tuple[list[Row], list[Track], str | None]:
    """Rows to append, the tracks to go on with, and the code of the primary finding.

    `shared` are open findings of the cluster that reach the group, code to id.
    """
    named = [(step.track.finding_id(judgement.cluster, judgement.group), step) for step in steps]
    still = [(name, step) for name, step in named if step.track.opened_ms is not None and not step.closed]
    role_of, primary = roles([_open(name, step, rules) for name, step in still], conditions, shared)
    codes = {name: step.track.code for name, step in still} | {shared[code]: code for code in shared}
    code = codes.get(primary or "")
    rows, tracks = [], []
    for finding_id, step in named:
        track = step.track
        if track.opened_ms is None:
            tracks.append(track)
            continue
        role = role_of.get(finding_id, track.role)
        above = primary if primary != finding_id and role not in ("note", "primary") else None
        severity = step.observed.severity if step.observed is not None else track.severity
        if step.observed is not None:
            track = replace(track, confidence=round(step.observed.confidence, 4))
        event = _event(step, role, above or "", severity, judgement.now_ms)
        if event:
            rows.append(
                _row(judgement, replace(step, track=track), finding_id, event, role, above, severity, rules[track.code])
            )
            track = replace(
                track, seq=track.seq + 1, told_ms=judgement.now_ms, role=role, primary=above or "", severity=severity
            )
        if not step.closed:
            tracks.append(track)
    return rows, tracks, code


def _open(finding_id: str, step: Step, rules: Mapping[str, Rule]) -> Open:
    track, seen = step.track, step.observed or NONE
    return Open(
        finding_id,
        track.code,
        rules[track.code].kind,
        seen.severity if step.observed is not None else track.severity,
        track.topic,
        frozenset(track.partitions),
        seen.evidence_text.get("kind", ""),
        seen.explained,
        seen.confidence,
    )


def _event(step: Step, role: str, primary: str, severity: str, now_ms: int) -> str:
    track = step.track
    if track.seq == 0:
        return OPENED
    if step.closed:
        return CLOSED
    is_other = (role, primary, severity) != (track.role, track.primary, track.severity)
    return UPDATED if is_other or now_ms - track.told_ms >= _UPDATE_MS else ""


def _row(
    judgement: Judgement,
    step: Step,
    finding_id: str,
    event: str,
    role: str,
    primary: str | None,
    severity: str,
    rule: Rule,
) -> Row:
    track, seen = step.track, step.observed or NONE
    at, cluster, group = _time(judgement.now_ms), judgement.cluster, judgement.group
    has_episode = judgement.episode_ms is not None and role != "note"
    return {
        "date": at.date(),
        "cluster": cluster,
        "group": group or None,
        "finding_id": finding_id,
        "seq": track.seq,
        "at": at,
        "event": event,
        "status": "ok",
        "rule": rule.number,
        "rule_version": version_of(rule, judgement.parameters),
        "code": track.code,
        "class": rule.kind,
        "severity": severity,
        "role": role,
        "primary_finding_id": primary,
        "episode_id": digest(cluster, group, "episode", str(judgement.episode_ms)) if has_episode else None,
        "topic": track.topic or None,
        "partitions": list(seen.partitions or track.partitions),
        "subject": track.subject or None,
        "scope": _scope(track, group),
        "started_at": _time(track.since_ms),
        "opened_at": _time(track.opened_ms or judgement.now_ms),
        "closed_at": at if event == CLOSED else None,
        "close_reason": step.closed or None,
        "confidence": track.confidence,
        "evidence": dict(seen.evidence),
        "evidence_text": dict(seen.evidence_text),
        "guards": dict(seen.guards),
        "falsifier": rule.falsifier,
        "coordinator": judgement.coordinator,
        "params": dict(params_of(rule, judgement.parameters)),
    }


def _scope(track: Track, group: str) -> str:
    if track.partitions:
        return "partition"
    if track.subject:
        return "member" if group else "broker"
    if track.topic:
        return "topic"
    return "group" if group else "cluster"


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)
