"""Rules about what users feel: late records, lost records, and losses to come."""

from __future__ import annotations

import numpy as np

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CONFIDENCE,
    INFO,
    MIN_MATURED_RECORDS,
    PAGE,
    SYMPTOM,
    WARN,
    Observation,
    Rule,
    is_compacted,
    passes,
)
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.forecast import FEW_JUMPS
from laggard.diagnosis.signals.group import Loss, Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum

HOUR = 3600.0
_SLO_LONG_SECONDS = fixed("slo_long_seconds", 3600.0, "s over which the objective must be missed")
_SLO_SHORT_SECONDS = fixed("slo_short_seconds", 300.0, "s over which it must be missed as well")
# offsets.retention.check.interval.ms: so much later than due offsets may still be there
_EXPIRY_SWEEP_SECONDS = fixed("expiry_sweep_seconds", 600.0, "s")
_ABANDONED_SECONDS = fixed(
    "abandoned_seconds", 604_800.0, "s without members, after which a loss is no page"
)
_RESUMED_GAPS = fixed(
    "resumed_gaps",
    2,
    "newest gaps between commits, by the faster of which a reader is not overtaken",
)
_FEW_JUMPS_CONFIDENCE = fixed(
    "few_jumps_confidence", 0.5, "confidence if the log start was seen to jump too few times"
)


@Rule(
    "D03",
    "TIME_LAG_SLO_BREACH",
    SYMPTOM,
    says="More records are late than the service level allows.",
    is_not=(
        "a cause: it only shows that users are affected. A group that commits less often than its "
        "level allows is not evaluated."
    ),
    advice=("act on the primary cause",),
    falsifier="a replay of the hour counts no more late records than the objective allows",
    open_after=1,
)
def time_lag_slo_breach(signals: Signals) -> list[Observation]:
    """More records are late than the objective allows, over an hour and over five minutes."""
    if not signals.policy.slo_time_lag_seconds:
        return []
    found = []
    allowed = 1.0 - signals.policy.slo_objective
    for each in signals.topics:
        ranges = [
            max(1, round(seconds / signals.frame.window_seconds))
            for seconds in (_SLO_LONG_SECONDS, _SLO_SHORT_SECONDS)
        ]
        matured = [known_sum(each.frame["matured"][:, -windows:]) for windows in ranges]
        late = [known_sum(each.frame["late"][:, -windows:]) for windows in ranges]
        if min(matured) <= 0 or matured[0] < MIN_MATURED_RECORDS:
            continue
        if all(part > allowed * whole for part, whole in zip(late, matured, strict=True)):
            worst = int(
                np.nanargmax(np.nan_to_num(each.frame["late"][:, -ranges[0] :]).sum(axis=1))
            )
            found.append(
                Observation(
                    "TIME_LAG_SLO_BREACH",
                    topic=each.frame.topic,
                    evidence={
                        "late_records": late[0],
                        "matured_records": matured[0],
                        "slo_seconds": signals.policy.slo_time_lag_seconds,
                        "worst_partition": float(each.frame.partitions[worst]),
                    },
                )
            )
    return found


@Rule(
    "D04",
    "DATA_LOST",
    SYMPTOM,
    says="Retention deleted records that the group had not read.",
    is_not=(
        "lag: those records can never be read. After a jump past the log start, only records that "
        "the reader's pace cannot explain count, so more may be lost. It is less serious on a "
        "compacted topic, or if somebody deleted the records."
    ),
    advice=(
        "treat it as an incident: the records are gone for this group",
        "raise retention before anything else",
    ),
    falsifier=(
        "the next commit of the partition lies below the log start that was recorded; or, after a "
        "jump, the reader's own records show that it had read the deleted ones"
    ),
    open_after=1,
    close_after=15,  # a reader that is overtaken is so again with each segment that is deleted
)
def data_lost(signals: Signals) -> list[Observation]:
    """A reader that is behind has its offset below the log start, or jumped over deleted records.

    A jump counts if it is faster than the reader. One that keeps up and commits less often than
    retention deletes may have read on since its commit: not known.
    """
    found = []
    for each in signals.topics:
        lost = forecast.known_losses(signals, each)
        # a window whose loss is unknown is none without one: an open finding waits for the next
        unknown = tuple(int(number) for number in each.frame.partitions[np.isnan(lost)])
        if unknown:
            found.append(
                Observation("DATA_LOST", topic=each.frame.topic, partitions=unknown, abstains=True)
            )
        rows = lost > 0
        if not rows.any():
            continue
        severity = PAGE
        if is_compacted(each):
            severity = WARN
        empty_since = signals.frame.fact.get("empty_since")
        if (
            empty_since
            and (signals.frame.now_ms / 1000 - empty_since.timestamp()) > _ABANDONED_SECONDS
        ):
            severity = INFO
        found.append(
            Observation(
                "DATA_LOST",
                severity=severity,
                topic=each.frame.topic,
                partitions=tuple(int(number) for number in each.frame.partitions[rows]),
                evidence={"lost_records": float(lost[rows].sum())},
            )
        )
    return found


@Rule(
    "D05",
    "DATA_LOSS_FORECAST",
    SYMPTOM,
    says="Retention will delete records before the group reads them.",
    is_not=(
        "a loss that has happened. It needs growing lag, a stall, or a log start that moves "
        "faster than the group."
    ),
    advice=("raise the topic's retention now", "act on the primary cause"),
    falsifier="the log start stops, or lag falls",
    thresholds=("loss_page_hours", "loss_warn_hours"),
    open_after=1,
)
def data_loss_forecast(signals: Signals) -> list[Observation]:
    """Retention will delete records before the group has read them."""
    found = []
    for each in signals.topics:
        loss = signals.losses.get(each.frame.topic)
        if loss is None or not loss.seconds <= signals.parameters.loss_warn_hours * HOUR:
            continue
        row = int(np.flatnonzero(each.frame.partitions == loss.partition)[0])
        is_overtaken = _is_overtaken(each, row, loss)
        # what has come true is a finding of its own; but it ends no forecast of more
        is_losing = loss.seconds == 0 and bool(forecast.known_losses(signals, each)[row] > 0)
        if is_losing and not _is_open(signals, each.frame.topic):
            continue
        is_unread = bool(each.is_stalled[row]) or not signals.member_count
        if not (is_losing or is_unread or is_overtaken or _grows(signals, each, row)):
            continue
        is_precise = loss.jumps >= FEW_JUMPS
        confidence = _FEW_JUMPS_CONFIDENCE if is_overtaken and not is_precise else CONFIDENCE
        found.append(
            Observation(
                "DATA_LOSS_FORECAST",
                severity=_severity_of(signals, loss),
                topic=each.frame.topic,
                confidence=confidence,
                evidence={"loss_seconds": loss.seconds, "partition": float(loss.partition)},
                guards={"log_start_jumps": passes(is_precise or None)},
            )
        )
    return found


def _grows(signals: Signals, topic: TopicSignals, row: int) -> bool:
    """Return True if lag grows.

    Retention overtakes no reader whose lag falls, though a trend outlasts its cause.
    """
    newest = topic.frame["lag"][row, -2:]
    is_falling = (
        newest[-1] < newest[0]
        or forecast.paces(topic, signals.parameters)[row] > topic.arriving[row]
    )
    return topic.trend.name == "growing" and not is_falling


def _is_overtaken(topic: TopicSignals, row: int, loss: Loss) -> bool:
    """Return True if the log start outran its reader in all newest gaps and lag does not fall.

    The start is faster than the reader was in any of these gaps.

    A batch moves the start of a log that is full for a minute or two: what counts is the mean
    speed of the start.
    """
    newest = topic.frame["lag"][row, -2:]
    fastest = float(np.fmax.reduce([topic.consume, *topic.positions.gap_rates(_RESUMED_GAPS)])[row])
    return loss.jumps > 0 and fastest < loss.start_rate and not newest[-1] < newest[0]


def _severity_of(signals: Signals, loss: Loss) -> str:
    empty_since = signals.frame.fact.get("empty_since")
    if empty_since and (signals.frame.now_ms / 1000 - empty_since.timestamp()) > _ABANDONED_SECONDS:
        return INFO
    return PAGE if loss.seconds <= signals.parameters.loss_page_hours * HOUR else WARN


def _is_open(signals: Signals, topic: str) -> bool:
    """Return True if a loss was forecast before it happened."""
    tracks = signals.memory.tracks
    return any(
        (t.code, t.topic) == ("DATA_LOSS_FORECAST", topic) and t.opened_ms is not None
        for t in tracks
    )


@Rule(
    "D06",
    "OFFSETS_EXPIRY_FORECAST",
    SYMPTOM,
    says="The broker will delete the offsets of a group without members; it would then start by "
    "its reset policy.",
    is_not="a loss of records: the log keeps them, only the committed offsets are lost.",
    advice=("start the consumers of the group, or raise offsets.retention.minutes",),
    falsifier="a member joins",
    thresholds=("expiry_warn_hours", "expiry_page_hours", "offsets_retention_minutes"),
    open_after=1,
)
def offsets_expiry_forecast(signals: Signals) -> list[Observation]:
    """The broker will delete the group's offsets while its topics still receive records."""
    empty_since = signals.frame.fact.get("empty_since")
    if signals.member_count or empty_since is None:
        return []
    if not any(known_sum(each.arrival) > 0 for each in signals.topics):
        return []
    observed = signals.frame.offsets_retention_minutes
    retention = signals.parameters.offsets_retention_minutes if observed is None else observed
    expiry_ms = forecast.offsets_expiry_ms(empty_since.timestamp() * 1000, retention)
    left = (expiry_ms - signals.frame.now_ms) / 1000
    if (
        not -_EXPIRY_SWEEP_SECONDS - signals.frame.window_seconds
        < left
        <= signals.parameters.expiry_warn_hours * HOUR
    ):
        return []
    severity = PAGE if left <= signals.parameters.expiry_page_hours * HOUR else WARN
    return [
        Observation(
            "OFFSETS_EXPIRY_FORECAST",
            severity=severity,
            evidence={"expiry_seconds": max(0.0, left), "offsets_retention_minutes": retention},
            evidence_text={
                "empty_since": str(empty_since),
                "offsets_retention": "assumed" if observed is None else "as the brokers say",
            },
        )
    ]
