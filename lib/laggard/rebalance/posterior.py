"""Estimate why a member left: a posterior over five reasons, from what records show around its departure.

No record states the reason; a Java consumer that exceeds max.poll.interval.ms sends LeaveGroup just as one that closes
(ConsumerCoordinator), and a static one sends nothing, so that its session has to expire (KIP-345).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from laggard.rebalance.parameters import RebalanceParameters

REASONS = ("poll_timeout", "session_expiry", "deploy", "crash", "scale_in")
Posterior: TypeAlias = dict[str, float]
Weights: TypeAlias = tuple[float, float, float, float, float]

_SHARING_ROUNDS = 50  # after which the mixture of a hundred departures changes in the third digit at most
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
    "lag": {"material": (0.90, 0.40, 0.30, 0.40, 0.15), "not_material": (0.10, 0.60, 0.70, 0.60, 0.85)},
    "rotation": {
        "next_owners": (0.50, 0.10, 0.03, 0.05, 0.02),
        "same_slot": (0.15, 0.20, 0.02, 0.60, 0.02),
        "each_once": (0.05, 0.05, 0.85, 0.05, 0.05),
        "none": (0.30, 0.65, 0.10, 0.30, 0.91),
    },
}


def find_posterior(evidence: Mapping[str, str]) -> Posterior:
    """Reason to probability; prior times likelihoods, sum 1."""
    weights = list(PRIOR)
    for kind, level in sorted(evidence.items()):
        weights = [weight * factor for weight, factor in zip(weights, LIKELIHOOD[kind][level], strict=True)]
    return {reason: weight / sum(weights) for reason, weight in zip(REASONS, weights, strict=True)}


def share_reasons(posteriors: Sequence[Posterior]) -> tuple[Posterior, list[Posterior]]:
    """Return the mixture of reasons behind a series of departures, and the posterior of each departure given it.

    By expectation-maximization: departures of one time have reasons in common, so that small evidence adds up over
    repeats. The prior counts as one departure more.
    """
    prior = dict(zip(REASONS, PRIOR, strict=True))
    weights, found = prior, list(posteriors)
    for _ in range(_SHARING_ROUNDS):
        found = []
        for each in posteriors:
            scaled = {reason: each[reason] / prior[reason] * weights[reason] for reason in REASONS}
            total = sum(scaled.values())
            found.append({reason: scaled[reason] / total for reason in REASONS})
        counts = {reason: prior[reason] + sum(each[reason] for each in found) for reason in REASONS}
        weights = {reason: counts[reason] / (1 + len(found)) for reason in REASONS}
    return weights, found


def mix(posteriors: Iterable[Posterior]) -> Posterior | None:
    """The posterior of a departure picked from several; None of none."""
    found = list(posteriors)
    if not found:
        return None
    return {reason: sum(each[reason] for each in found) / len(found) for reason in REASONS}


def claim_reason(posterior: Posterior | None, parameters: RebalanceParameters) -> str | None:
    """The reason that is sure enough to be named, or None."""
    if posterior is None:
        return None
    best = two_best(posterior)[0]
    return best if posterior[best] >= parameters.cause_posterior else None


def two_best(posterior: Posterior) -> tuple[str, str]:
    """The likeliest reasons, to be shown where none is claimed."""
    first, second, *_ = sorted(posterior, key=lambda reason: (-posterior[reason], reason))
    return first, second
