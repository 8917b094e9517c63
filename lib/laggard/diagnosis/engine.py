"""Evaluate a window: every group, then the cluster over all groups, then the findings.

The last step decides which findings open, change and end.

Nothing in here reads a clock or a table: the stream, a replay over the past and a test call the
same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from laggard.diagnosis.findings.rows import Evaluation, finding_rows
from laggard.diagnosis.findings.tracks import Step, advance_tracks
from laggard.diagnosis.findings.windows import completed, group_rows
from laggard.diagnosis.history.frames import GroupFrame, Memory, Row, Track
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.diagnosis.rules.cluster import reaches
from laggard.diagnosis.rules.registry import BY_CODE, RULES, cluster_observations, group_conditions
from laggard.diagnosis.rules.rule import CAUSE, FAILS, HOLDS, SYMPTOM, Observation
from laggard.diagnosis.rules.skew import proven_costly
from laggard.diagnosis.signals.cluster import ClusterFrame, cluster_signal, no_signal
from laggard.diagnosis.signals.compute import signals_of
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.slow import is_at_pace_again
from laggard.diagnosis.verdict.decisions import scale_verdict
from laggard.diagnosis.verdict.reasons import INPUT_UNKNOWN, Verdict, verdict_columns, with_cluster
from laggard.diagnosis.verdict.sizing import Sizing, size

RULE_FAILED = "RULE_FAILED"
# stages, beside rules by code
LAYOUT, EVALUATION, FINDINGS, MEMORY = "layout", "evaluation", "findings", "memory"
_ERROR_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Evaluation of one group in one window, before the cluster is looked at."""

    group: str
    coordinator: int | None
    policy: Policy
    observations: Sequence[Observation]
    conditions: frozenset[str]  # such as a deploy: they inhibit like a finding
    rows: Sequence[Row]  # of group_windows
    verdict: Verdict
    sizing: Sizing
    # rows of deploys and scale_events that are complete with this window
    completed: Mapping[str, Sequence[Row]]
    signal: Row  # what the cluster's rules look at
    memory: Memory


def evaluate_group(frame: GroupFrame, memory: Memory, parameters: Parameters) -> Evaluated:
    """Evaluate one group's window; report a failure as a finding.

    The other groups are still evaluated.
    """
    try:
        return _evaluate(frame, memory, parameters)
    except Exception as error:  # noqa: BLE001 - its report is the finding
        return failed(frame.group, EVALUATION, error, memory, frame.policy)


def failed(
    group: str, stage: str, error: Exception, memory: Memory, policy: Policy | None = None
) -> Evaluated:
    """Return the result of a group that could not be evaluated.

    A finding reports it, and open findings become unknown.
    """
    unknown = [
        Observation(code, abstains=True) for code in sorted({each.code for each in memory.tracks})
    ]
    return Evaluated(
        group,
        None,
        policy or Policy(),
        [failure(stage, error), *(each for each in unknown if each.code != RULE_FAILED)],
        frozenset(),
        (),
        Verdict(INPUT_UNKNOWN, {}, None),
        Sizing(),
        {},
        no_signal(group),
        replace(memory, lost=""),
    )


def failure(stage: str, error: Exception | str) -> Observation:
    """Return the finding that a step, or a rule named by its code, raised an error."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return Observation(
        RULE_FAILED, subject=stage, evidence_text={"error": text[:_ERROR_CHARACTERS]}
    )


def _evaluate(frame: GroupFrame, memory: Memory, parameters: Parameters) -> Evaluated:
    signals, after = signals_of(frame, memory, parameters)
    conditions = group_conditions(signals)
    observations = list(_observe(signals))
    if memory.lost:
        observations.append(failure(MEMORY, memory.lost))
    sizing = size(signals)
    holds = [each for each in observations if each.state == HOLDS]
    # the first one of each code
    holding = _still_slow(memory.tracks, signals) | {each.code: each for each in reversed(holds)}
    suspected = [each for each in observations if each.code == "BROKER_CORRELATED" and each.subject]
    verdict = scale_verdict(
        signals,
        holding,
        sizing,
        elasticity=math.nan if signals.scaled is None else signals.scaled.elasticity,
    )
    return Evaluated(
        frame.group,
        frame.fact.get("coordinator"),
        frame.policy,
        observations,
        conditions,
        group_rows(signals),
        verdict,
        sizing,
        completed(signals),
        cluster_signal(signals, {int(each.subject): each.explained for each in suspected}),
        replace(after, costly=proven_costly(signals), sizes=sizing.sizes, lost=""),
    )


def settle(
    evaluated: Sequence[Evaluated],
    cluster: ClusterFrame,
    memories: Mapping[str, Memory],
    parameters: Parameters,
) -> tuple[list[Row], list[Row], dict[str, Memory]]:
    """Return rows of `group_windows` and `findings` for a window of all groups, with memories.

    The memories are those of each group.

    `memories` are those before the window, of groups that are gone too; "" is the cluster's.
    """
    shared = cluster_observations(cluster, [each.signal for each in evaluated], parameters)
    findings, after, unseen = _settle_cluster(
        shared, cluster, memories.get("", Memory()), parameters
    )
    windows: list[Row] = []
    remembered = {"": after}
    open_ids = {
        (t.code, t.subject): t.finding_id(cluster.name, "")
        for t in after.tracks
        if t.opened_ms is not None
    }
    for each in evaluated:
        reaching = [one for one in shared if reaches(one, each.group)]
        rows, own, remembered[each.group] = _settle_group(
            each, reaching, open_ids, unseen, cluster, parameters
        )
        windows += rows
        findings += own
    for group in sorted(memories.keys() - remembered.keys()):  # gone
        findings += _retired(group, memories[group], cluster, parameters)
    return windows, findings, remembered


Check = Callable[[Sequence[Row], Sequence[Row], Mapping[str, Memory]], object]


def settle_apart(
    evaluated: Sequence[Evaluated],
    cluster: ClusterFrame,
    memories: Mapping[str, Memory],
    parameters: Parameters,
    check: Check = lambda *_: None,
) -> tuple[list[Row], list[Row], dict[str, Memory]]:
    """Do `settle` and set aside a group for which it raises, or `check` of its rows.

    A finding reports that.

    `check` gets rows of `group_windows`, of `findings`, and the memories.
    """

    def run(
        some: Sequence[Evaluated], known: Mapping[str, Memory]
    ) -> tuple[list[Row], list[Row], dict[str, Memory]]:
        found = settle(some, cluster, known, parameters)
        check(*found)
        return found

    def error_of(some: Sequence[Evaluated], known: Mapping[str, Memory]) -> Exception | None:
        try:
            run(some, known)
        except Exception as error:  # noqa: BLE001 - its report is the finding
            return error
        return None

    try:
        return run(evaluated, memories)
    except Exception:  # noqa: BLE001 - looked for below
        return run(*_sound(evaluated, memories, error_of))


def _sound(
    evaluated: Sequence[Evaluated],
    memories: Mapping[str, Memory],
    error_of: Callable[[Sequence[Evaluated], Mapping[str, Memory]], Exception | None],
) -> tuple[list[Evaluated], dict[str, Memory]]:
    """Return evaluations and memories; a group that raises by itself has its failure instead."""
    own = {"": memories[""]} if "" in memories else {}
    if error_of([], own) is not None:
        own = {}
    sound, known = [], dict(own)
    for each in evaluated:
        before = memories.get(each.group, Memory())
        error = error_of([each], {**own, each.group: before})
        if error is not None:
            # in its place
            each = failed(each.group, FINDINGS, error, before, each.policy)  # noqa: PLW2901
            if error_of([each], {**own, each.group: before}) is not None:
                before = Memory()  # what is remembered is what is odd
                each = failed(each.group, FINDINGS, error, before)  # noqa: PLW2901
        sound.append(each)
        known[each.group] = before
    gone = {name: memories[name] for name in memories.keys() - known.keys() if name}
    return sound, known | {
        name: each for name, each in gone.items() if not error_of([], {**own, name: each})
    }


def _observe(signals: Signals) -> Iterable[Observation]:
    """Run every rule. A rule that raises yields RULE_FAILED; the others still run."""
    muted = set(signals.policy.mute_codes)
    for rule in RULES:
        if rule.code in muted:
            continue
        try:
            yield from (each for each in rule.check(signals) if each.state != FAILS)
        except Exception as error:  # noqa: BLE001 - its report is the finding
            yield failure(rule.code, error)
            # what it said before is neither true nor over
            yield Observation(rule.code, abstains=True)


def _still_slow(tracks: Iterable[Track], signals: Signals) -> dict[str, Observation]:
    """Return slow members and hosts with an open finding.

    They are left out if they consume as fast as the others again.

    Lag of others hides them for a window or two; a backlog that they drain at full speed is no
    reason to repair them.
    """
    return {
        each.code: Observation(each.code, subject=each.subject)
        for each in tracks
        if each.code in {"SLOW_MEMBER", "SLOW_HOST"}
        and each.opened_ms is not None
        and not is_at_pace_again(signals, each.subject)
    }


def _settle_group(
    each: Evaluated,
    shared: Sequence[Observation],
    open_ids: Mapping[tuple[str, str], str],
    unseen: Mapping[str, str],
    cluster: ClusterFrame,
    parameters: Parameters,
) -> tuple[list[Row], list[Row], Memory]:
    steps = advance_tracks(
        each.memory.tracks,
        each.observations,
        BY_CODE,
        cluster.window_ms,
        cluster.now_ms,
        parameters,
    )
    memory = _with_episode(each.memory, steps, cluster, parameters)
    conditions = {*each.conditions, *(one.code for one in shared)}
    evaluation = Evaluation(
        cluster.name,
        each.group,
        cluster.now_ms,
        each.coordinator,
        memory.episode_ms,
        each.policy.over(parameters),
    )
    above = {
        one.code: open_ids[one.code, one.subject]
        for one in shared
        if (one.code, one.subject) in open_ids
    }
    rows, tracks, found = finding_rows(evaluation, steps, conditions, BY_CODE, above)
    columns = verdict_columns(with_cluster(each.verdict, shared), each.sizing) | found
    columns["unseen_findings"] |= unseen  # of the cluster
    windows = [row | columns for row in each.rows]
    return windows, rows, replace(memory, tracks=tuple(tracks))


def _settle_cluster(
    shared: Sequence[Observation], cluster: ClusterFrame, memory: Memory, parameters: Parameters
) -> tuple[list[Row], Memory, dict[str, str]]:
    steps = advance_tracks(
        memory.tracks, shared, BY_CODE, cluster.window_ms, cluster.now_ms, parameters
    )
    evaluation = Evaluation(cluster.name, "", cluster.now_ms, None, None, parameters)
    rows, tracks, found = finding_rows(evaluation, steps, set(), BY_CODE)
    return rows, replace(memory, tracks=tuple(tracks)), found["unseen_findings"]


def _retired(
    group: str, memory: Memory, cluster: ClusterFrame, parameters: Parameters
) -> list[Row]:
    """Return the rows that close the open findings of a deleted group."""
    known = [track for track in memory.tracks if track.code in BY_CODE]
    steps = [Step(track, None, "retired") for track in known if track.opened_ms is not None]
    evaluation = Evaluation(
        cluster.name, group, cluster.now_ms, None, memory.episode_ms, parameters
    )
    return finding_rows(evaluation, steps, set(), BY_CODE)[0]


def _with_episode(
    memory: Memory, steps: Sequence[Step], cluster: ClusterFrame, parameters: Parameters
) -> Memory:
    """Return the memory with the episode of trouble.

    An episode begins with a cause or a symptom and outlasts short breaks.
    """
    is_open = any(
        step.track.opened_ms is not None
        and not step.closed
        and BY_CODE[step.track.code].kind in (CAUSE, SYMPTOM)
        for step in steps
    )
    if is_open:
        return replace(memory, episode_ms=memory.episode_ms or cluster.window_ms, quiet=0)
    if memory.episode_ms is None:
        return memory
    quiet = memory.quiet + 1
    if quiet > parameters.episode_gap:
        return replace(memory, episode_ms=None, quiet=0)
    return replace(memory, quiet=quiet)
