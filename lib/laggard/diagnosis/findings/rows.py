"""Rows of `findings`: what opened, changed or ended in a window; the role of each finding, and the one to act on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from math import inf
from types import MappingProxyType
from typing import Any

from laggard.diagnosis.history.frames import Row, Track, digest
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules.registry import BY_CODE, EDGES, Edge, params_of, version_of
from laggard.diagnosis.rules.rule import ABSTAINS, CAUSE, HOLDS, INFO, META, PAGE, SYMPTOM, WARN, Observation, Rule

CLEARED, FALSIFIED, RETIRED, UNKNOWN = "cleared", "falsified", "retired", "unknown"
_FALSIFIED_WINDOWS = fixed("falsified_windows", 2, "windows in a row in which the falsifier was true")


@dataclass(frozen=True, slots=True)
class Step:
    """Change of a track in a window: the track after it, what was observed, and why it closed, if it did."""

    track: Track
    observed: Observation | None
    closed: str = ""


def advance_tracks(
    tracks: Sequence[Track],
    observations: Sequence[Observation],
    rules: Mapping[str, Rule],
    window_ms: int,
    end_ms: int,
    parameters: Parameters,
) -> list[Step]:
    """All tracks after a window that began at `window_ms` and ended at `end_ms`, those that ended in it included."""
    holding = sorted((each for each in observations if each.state == HOLDS), key=_scope_of)
    abstaining = {each.code for each in observations if each.state == ABSTAINS}
    steps = []
    for track in tracks:
        if track.code not in rules:  # of a newer version, before this one was put back
            continue
        found = next((each for each in holding if _is_of(track, each)), None)
        if found is not None:
            holding.remove(found)
        step = _step(track, found, rules[track.code], parameters, end_ms, is_abstaining=track.code in abstaining)
        if step is not None:
            steps.append(step)
    for each in holding:
        track = Track(each.code, each.topic, tuple(sorted(each.partitions)), each.subject, window_ms)
        step = _step(track, each, rules[each.code], parameters, end_ms, is_abstaining=False)
        if step is not None:
            steps.append(step)
    return steps


def _step(
    track: Track,
    found: Observation | None,
    rule: Rule,
    parameters: Parameters,
    end_ms: int,
    *,
    is_abstaining: bool,
) -> Step | None:
    """The track after the window; None when a condition that never became a finding is forgotten."""
    if found is not None:
        falsified = track.falsified + 1 if found.is_falsified else 0
        track = replace(track, held=track.held + 1, missed=0, abstained=0, falsified=falsified)
        is_false = falsified >= _FALSIFIED_WINDOWS
        if track.opened_ms is None and track.held >= (rule.open_after or parameters.open_after) and not is_false:
            track = replace(track, opened_ms=end_ms)
        if is_false:
            return Step(track, found, FALSIFIED) if track.opened_ms is not None else None
        return Step(track, found)
    if is_abstaining:
        track = replace(track, abstained=track.abstained + 1)
        if track.abstained < parameters.abstain_after:
            return Step(track, None)
        return Step(track, None, UNKNOWN) if track.opened_ms is not None else None
    if track.opened_ms is None:
        return None
    track = replace(track, missed=track.missed + 1, held=0)
    is_over = track.missed >= (rule.close_after or parameters.close_after)
    return Step(track, None, CLEARED if is_over else "")


def _is_of(track: Track, each: Observation) -> bool:
    """The same condition: partitions may change as long as one stays."""
    if (track.code, track.topic, track.subject) != (each.code, each.topic, each.subject):
        return False
    if bool(track.partitions) != bool(each.partitions):
        return False
    return not track.partitions or not set(track.partitions).isdisjoint(each.partitions)


def _scope_of(each: Observation) -> tuple[Any, ...]:
    return each.code, each.topic, each.subject, tuple(sorted(each.partitions))


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
    reaching: set[str] = set()
    for each in findings:
        edges = list(_against(each, findings, conditions))
        reaching |= {edge.by for edge in edges} & shared.keys()
        found[each.finding_id] = _role(each, edges)

    def of(role: str) -> list[Open]:
        return [each for each in findings if found[each.finding_id] == role]

    causes = of(PRIMARY)
    if not causes and reaching:
        return found, shared[min(reaching, key=_weakness)]
    symptoms = sorted(of(SYMPTOM_ROLE), key=lambda each: (_SEVERITY[each.severity], each.finding_id))
    causes = causes or of(CONTRIBUTING) or symptoms[:1]
    if not causes:
        return found, None
    first = strongest(causes)
    found |= {each.finding_id: CONTRIBUTING for each in causes if each.kind in (CAUSE, META)}
    found[first.finding_id] = PRIMARY
    return found, first.finding_id


def _role(finding: Open, edges: Sequence[Edge]) -> str:
    """Role of a finding by the edges that bear on it, before the primary one is chosen among the causes."""
    if any(edge.inhibition.hides for edge in edges):
        return SUPPRESSED
    if finding.kind in (CAUSE, META):
        return CONTRIBUTING if edges else PRIMARY
    return SYMPTOM_ROLE if finding.kind == SYMPTOM else NOTE


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
class Evaluation:
    """Values that all rows of a group's window share; group "" is the cluster."""

    cluster: str
    group: str
    now_ms: int
    coordinator: int | None
    episode_ms: int | None
    parameters: Parameters  # of a group: with the values that its policy declares


def finding_rows(
    evaluation: Evaluation,
    steps: Sequence[Step],
    conditions: Collection[str],
    rules: Mapping[str, Rule],
    shared: Mapping[str, str] = NOTHING_SHARED,
) -> tuple[list[Row], list[Track], str | None]:
    """Rows to append, the tracks to go on with, and the code of the primary finding.

    `shared` are open findings of the cluster that reach the group, code to id.
    """
    named = [(step.track.finding_id(evaluation.cluster, evaluation.group), step) for step in steps]
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
        event = _event(step, role, above or "", severity, evaluation.now_ms)
        if event:
            rows.append(
                _row(
                    evaluation, replace(step, track=track), finding_id, event, role, above, severity, rules[track.code]
                )
            )
            track = replace(
                track,
                seq=track.seq + 1,
                reported_ms=evaluation.now_ms,
                role=role,
                primary=above or "",
                severity=severity,
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
    return UPDATED if is_other or now_ms - track.reported_ms >= _UPDATE_MS else ""


def _row(
    evaluation: Evaluation,
    step: Step,
    finding_id: str,
    event: str,
    role: str,
    primary: str | None,
    severity: str,
    rule: Rule,
) -> Row:
    track, seen = step.track, step.observed or NONE
    at, cluster, group = _time(evaluation.now_ms), evaluation.cluster, evaluation.group
    has_episode = evaluation.episode_ms is not None and role != "note"
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
        "rule_version": version_of(rule, evaluation.parameters),
        "code": track.code,
        "class": rule.kind,
        "severity": severity,
        "role": role,
        "primary_finding_id": primary,
        "episode_id": digest(cluster, group, "episode", str(evaluation.episode_ms)) if has_episode else None,
        "topic": track.topic or None,
        "partitions": list(seen.partitions or track.partitions),
        "subject": track.subject or None,
        "scope": _scope(track, group),
        "started_at": _time(track.since_ms),
        "opened_at": _time(track.opened_ms or evaluation.now_ms),
        "closed_at": at if event == CLOSED else None,
        "close_reason": step.closed or None,
        "confidence": track.confidence,
        "evidence": dict(seen.evidence),
        "evidence_text": dict(seen.evidence_text),
        "guards": dict(seen.guards),
        "falsifier": rule.falsifier,
        "coordinator": evaluation.coordinator,
        "params": dict(params_of(rule, evaluation.parameters)),
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
