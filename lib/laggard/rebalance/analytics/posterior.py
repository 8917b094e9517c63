"""Estimate of why a member left: a posterior over five reasons, from evidence at its departure.

The evidence is the length of the silence, a replacement if any, and other departures. No record
states the reason; a Java consumer that exceeds max.poll.interval.ms sends LeaveGroup just as one
that closes (ConsumerCoordinator), and a static one sends nothing, so that its session has to
expire (KIP-345).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter, itemgetter, mul
from typing import TypeAlias

from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.parameters import RebalanceParameters


def gather_evidence(
    departure: Departure,
    others: Sequence[Departure],
    slots: int,
    until: datetime,
    parameters: RebalanceParameters,
) -> dict[str, str]:
    """Return the levels of the evidence known at a time; unknown evidence does not count.

    Unknown evidence is left out.

    `others` are departures of the group around this one, `slots` is the number of members it had.
    """
    evidence = {"idle": _idle(departure, parameters)}
    since = (until - departure.at).total_seconds()
    rotation = _rotation(departure, others, slots, parameters)
    if rotation is not None:
        evidence["rotation"] = rotation
    elif since >= parameters.deploy_horizon_seconds:
        evidence["rotation"] = "none"  # the next one of a deploy might still have left
    if departure.returned is not None:
        evidence["returned"] = departure.returned
    elif since >= parameters.return_seconds:
        evidence["returned"] = "none"
    # behind a member that is silent lag grows whatever silenced it
    was_reading = departure.idle_seconds is None or evidence["idle"] == "orderly"
    if departure.was_material is not None and was_reading:
        evidence["lag"] = "material" if departure.was_material else "not_material"
    return evidence


def _idle(departure: Departure, parameters: RebalanceParameters) -> str:
    """Return evidence of a member's silence.

    If a long join phase waited for the member, it was there up to the end.
    """
    idle, at_end = departure.idle_seconds, departure.idle_at_end_seconds
    level, swift = _level(departure, idle, parameters), departure.commit_interval_seconds or 0.0
    swift += 2 * parameters.heartbeat_seconds
    if idle is None or at_end is None or at_end - idle <= swift:
        return level
    if level != _level(departure, at_end, parameters):
        return "other"
    return level


def _level(departure: Departure, idle: float | None, parameters: RebalanceParameters) -> str:
    if idle is None:
        return "other"
    late, session = _timeouts(departure, parameters)
    interval = departure.commit_interval_seconds or 0.0
    is_late = _is_just_over(idle, late, interval, parameters)
    is_silent = _is_just_over(idle, session, interval, parameters)
    if is_late and is_silent:
        return "other"
    if is_late:
        return "poll_timeout"
    if is_silent:
        return "session"
    return _rough_level(departure, idle, parameters)


def _timeouts(departure: Departure, parameters: RebalanceParameters) -> tuple[float | None, float]:
    """Return the seconds of silence for a missed poll interval, and for a missed session."""
    session = departure.session_seconds
    if session is None:
        session = parameters.modern_session_seconds
    late = departure.rebalance_timeout_seconds
    if late is not None and departure.is_static:
        late += session  # its session has to expire as well
    return late, session


def _rough_level(departure: Departure, idle: float, parameters: RebalanceParameters) -> str:
    """Return evidence from a silence at which no timeout ran out just then.

    It names the timeout that the silence is about as long as.
    """
    late, session = _timeouts(departure, parameters)
    timeout = departure.rebalance_timeout_seconds
    interval = departure.commit_interval_seconds or 0.0
    slack = interval + parameters.heartbeat_seconds
    if late is not None and timeout is not None:
        latest = parameters.session_high * late + slack
        if parameters.poll_timeout_share * timeout <= idle <= latest:
            return "poll_timeout"
    if parameters.session_low * session <= idle <= parameters.session_high * session + slack:
        return "session"
    orderly = max(parameters.orderly_commit_intervals * interval, parameters.orderly_seconds)
    if idle <= orderly:
        return "orderly"
    return "other"


def _is_just_over(
    idle: float, timeout: float | None, interval: float, parameters: RebalanceParameters
) -> bool:
    """Return True if a timeout just expired.

    The last commit was up to an interval before the last poll or heartbeat.

    The start is an estimate, hence off by as much, and late by a heartbeat.
    """
    if timeout is None:
        return False
    slack = interval + parameters.heartbeat_seconds
    earliest = max(timeout - slack, parameters.session_low * timeout)
    return earliest <= idle <= timeout + slack + parameters.heartbeat_seconds


def _rotation(
    departure: Departure, others: Sequence[Departure], slots: int, parameters: RebalanceParameters
) -> str | None:
    near = _near(departure, others, parameters)
    times = Counter(map(attrgetter("slot"), near))
    # before the chain of owners: in a rolling deploy the partitions of one member wander on to the
    # next as well
    if max(times.values()) == 1 and _is_of_a_deploy(departure, near, slots, parameters):
        return "each_once"
    if times[departure.slot] >= parameters.crash_times and len(times) == 1:
        return "same_slot"
    if _befell_next_owners(departure, near, parameters):
        return "next_owners"
    # one that leaves no more often than the others is no case of its own
    mean = (sum(times.values()) - times[departure.slot]) / max(1, slots - 1)
    if times[departure.slot] >= max(parameters.crash_times, parameters.crash_ratio * mean):
        return "same_slot"
    return None


def _is_of_a_deploy(
    departure: Departure, near: Sequence[Departure], slots: int, parameters: RebalanceParameters
) -> bool:
    """Return True if it left in order, as enough replaced others did, and not all at once."""
    replaced = [
        neighbour
        for neighbour in near
        if (neighbour.returned is not None or neighbour is departure)
        and _idle(neighbour, parameters) == "orderly"
    ]
    is_spread = len({neighbour.at for neighbour in replaced}) >= parameters.deploy_batches
    enough = max(parameters.deploy_suspect_share * slots, parameters.deploy_departures)
    return departure in replaced and is_spread and len(replaced) >= enough


def _near(
    departure: Departure, others: Sequence[Departure], parameters: RebalanceParameters
) -> list[Departure]:
    """Return departures within the horizon of a deploy, this one included, each once."""
    near: dict[Hashable, Departure] = {}
    for other in (*others, departure):
        if abs((other.at - departure.at).total_seconds()) <= parameters.deploy_horizon_seconds:
            near[other.slot, other.member_id, other.at] = other
    return list(near.values())


def _befell_next_owners(
    departure: Departure, near: Sequence[Departure], parameters: RebalanceParameters
) -> bool:
    """Return True if a member of another slot also failed on one of its partitions."""
    # one that left in order, or fell silent, did not stumble over what is in the partition
    stumbled = [
        neighbour
        for neighbour in near
        if _idle(neighbour, parameters) not in {"orderly", "session"}
    ]
    held = set(departure.partitions or ())
    others = (other for other in stumbled if other.slot != departure.slot)
    failed = chain.from_iterable(other.partitions or () for other in others)
    return departure in stumbled and not held.isdisjoint(failed)


REASONS = ("poll_timeout", "session_expiry", "deploy", "crash", "scale_in")
Posterior: TypeAlias = dict[str, float]
Weights: TypeAlias = tuple[float, float, float, float, float]

# after which the mixture of a hundred departures changes in the third digit at most
_SHARING_ROUNDS = 50
PRIOR: Weights = (0.20, 0.20, 0.30, 0.10, 0.20)
LIKELIHOOD: Mapping[str, Mapping[str, Weights]] = {
    "idle": {
        "poll_timeout": (0.80, 0.05, 0.02, 0.05, 0.02),
        "session": (0.05, 0.70, 0.03, 0.30, 0.03),
        "orderly": (0.05, 0.10, 0.85, 0.40, 0.85),
        "other": (0.10, 0.15, 0.10, 0.25, 0.10),
    },
    "returned": {
        "same_host": (0.70, 0.70, 0.15, 0.45, 0.02),
        "other_host": (0.10, 0.10, 0.80, 0.30, 0.03),
        "none": (0.20, 0.20, 0.05, 0.25, 0.95),
    },
    "lag": {
        "material": (0.90, 0.40, 0.30, 0.40, 0.15),
        "not_material": (0.10, 0.60, 0.70, 0.60, 0.85),
    },
    "rotation": {
        "next_owners": (0.50, 0.10, 0.03, 0.05, 0.02),
        "same_slot": (0.15, 0.20, 0.02, 0.60, 0.02),
        "each_once": (0.05, 0.05, 0.85, 0.05, 0.05),
        "none": (0.30, 0.65, 0.10, 0.30, 0.91),
    },
}


def find_posterior(evidence: Mapping[str, str]) -> Posterior:
    """Return a dict from reason to probability: prior times likelihoods, with sum 1."""
    weights = list(PRIOR)
    for kind, level in sorted(evidence.items()):
        weights = list(map(mul, weights, LIKELIHOOD[kind][level]))
    total = sum(weights)
    return {reason: weight / total for reason, weight in zip(REASONS, weights, strict=True)}


def share_reasons(posteriors: Sequence[Posterior]) -> tuple[Posterior, list[Posterior]]:
    """Return the mixture of reasons behind a series of departures, and each departure's posterior.

    By expectation-maximization: departures of one time have reasons in common, so that small
    evidence adds up over repeats. The prior counts as one departure more.
    """
    prior = dict(zip(REASONS, PRIOR, strict=True))
    weights, updated = prior, list(posteriors)
    for _ in range(_SHARING_ROUNDS):
        updated = []
        for posterior in posteriors:
            scaled = {
                reason: posterior[reason] / prior[reason] * weights[reason] for reason in REASONS
            }
            total = sum(scaled.values())
            updated.append({reason: scaled[reason] / total for reason in REASONS})
        weights = {}
        for reason in REASONS:
            count = prior[reason] + sum(map(itemgetter(reason), updated))
            weights[reason] = count / (1 + len(updated))
    return weights, updated


def mix(posteriors: Iterable[Posterior]) -> Posterior | None:
    """Return the mean of the posteriors of several departures; None without any."""
    components = list(posteriors)
    if not components:
        return None
    return {
        reason: sum(map(itemgetter(reason), components)) / len(components) for reason in REASONS
    }


def claim_reason(posterior: Posterior | None, parameters: RebalanceParameters) -> str | None:
    """Return the reason that is probable enough to be claimed, or None."""
    if posterior is None:
        return None
    best = two_best(posterior)[0]
    if posterior[best] >= parameters.cause_posterior:
        return best
    return None


def two_best(posterior: Posterior) -> tuple[str, str]:
    """Return the two likeliest reasons, to be shown if none is claimed."""
    first, second, *_ = sorted(posterior, key=lambda reason: (-posterior[reason], reason))
    return first, second
