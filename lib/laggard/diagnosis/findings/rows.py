"""Rows of `findings`: what opened, changed or ended in a window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

from laggard.diagnosis.findings.ranking import NOTHING_SHARED, Open, roles
from laggard.diagnosis.findings.tracks import Step
from laggard.diagnosis.history.frames import Row, Track, digest
from laggard.diagnosis.parameters import Parameters, fixed, hash_of, thresholds_hash
from laggard.diagnosis.rules.rule import Observation, Rule

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
) -> tuple[list[Row], list[Track], Row]:
    """Return the rows to append, the tracks after the window, and columns of `group_windows`.

    These columns are about findings.

    `shared` are open findings of the cluster that reach the group, code to id.
    """
    named = [(step.track.finding_id(evaluation.cluster, evaluation.group), step) for step in steps]
    still = [
        _open(*each, rules)
        for each in named
        if each[1].track.opened_ms is not None and not each[1].closed
    ]
    role_of, primary = roles(still, conditions, shared)
    codes: dict[str | None, str] = {each.finding_id: each.code for each in still}
    codes |= {finding_id: code for code, finding_id in shared.items()}
    rows, tracks = [], []
    for finding_id, step in named:
        track = step.track
        if track.opened_ms is not None:
            role = role_of.get(finding_id, track.role)
            found, track = _reported(evaluation, step, finding_id, role, primary, rules[track.code])
            rows += found
        if not step.closed:
            tracks.append(track)
    seen = next((step.observed for finding_id, step in named if finding_id == primary), None)
    columns = {
        "primary_code": codes.get(primary),
        "primary_evidence": None if seen is None else dict(seen.evidence),
        "unseen_findings": {
            finding_id: step.unseen
            for finding_id, step in named
            if step.unseen and step.track.opened_ms is not None
        },
    }
    return rows, tracks, columns


def _reported(
    evaluation: Evaluation, step: Step, finding_id: str, role: str, primary: str | None, rule: Rule
) -> tuple[list[Row], Track]:
    """Return the row of a finding and its track after that; no row without news."""
    track, observed = step.track, step.observed
    above = primary if primary != finding_id and role not in ("note", "primary") else None
    severity = track.severity if observed is None else observed.severity
    if observed is not None:
        track = replace(track, confidence=round(observed.confidence, 4))
    event = _event(step, role, above or "", severity, evaluation.now_ms)
    if not event:
        return [], track
    row = _row(
        evaluation, replace(step, track=track), finding_id, event, role, above, severity, rule
    )
    told_ms = evaluation.now_ms
    return [row], replace(
        track, seq=track.seq + 1, told_ms=told_ms, role=role, primary=above or "", severity=severity
    )


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
        "episode_id": _episode_id(evaluation, role),
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
        "params": params_of(rule, evaluation.parameters),
    }


def params_of(rule: Rule, parameters: Parameters) -> dict[str, float]:
    """Return the thresholds that a rule names, with their values, and the hash of all."""
    params = {name: float(getattr(parameters, name)) for name in rule.thresholds}
    params["open_after"] = float(rule.open_after or parameters.open_after)
    params["close_after"] = float(rule.close_after or parameters.close_after)
    params["abstain_after"] = float(parameters.abstain_after)
    params["thresholds_hash"] = float(thresholds_hash(parameters))
    return params


def version_of(rule: Rule, parameters: Parameters) -> int:
    """Hash a rule's declaration without its prose, and all thresholds."""
    declared = (
        rule.number,
        rule.code,
        rule.kind,
        [asdict(each) for each in rule.inhibits],
        rule.groups,
        rule.rank,
        rule.blocks_scaling,
        rule.version,
        params_of(rule, parameters),
    )
    return hash_of(declared)


def _episode_id(evaluation: Evaluation, role: str) -> str | None:
    """Return hash of the group and the begin of its period of trouble.

    Return None outside a period of trouble, and for a note.
    """
    if evaluation.episode_ms is None or role == "note":
        return None
    return digest(evaluation.cluster, evaluation.group, "episode", str(evaluation.episode_ms))


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
