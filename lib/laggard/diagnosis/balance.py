"""Conditions of D14, D51 and D52: who gets how much of what arrives."""

from __future__ import annotations

from math import ceil, nan

from laggard.diagnosis.guards import assignor, fact, guard, known, state_by
from laggard.diagnosis.hot import share, skewed_places
from laggard.diagnosis.observation import ABSTAINS, HOLDS, INFO, WARN, Observation
from laggard.diagnosis.order import lower_median
from laggard.diagnosis.view import View

SKEW_SECONDS, IDLE_SECONDS = 1800.0, 600.0
IMBALANCE_PARTITIONS, IMBALANCE_RATIO = 2, 1.5


def arrival_skew(view: View) -> list[Observation]:
    """D14: some partitions have long been getting several times what the others get, and do not lag yet."""
    found = []
    for topic in view.topics:
        places = [place for place in skewed_places(view, topic, SKEW_SECONDS) if not topic.is_material[place]]
        if not places:
            continue
        others = topic.arrival[[place for place in range(len(topic.arrival)) if place not in places]]
        evidence = {
            "arrival_share_ratio": share(topic.arrival, places),
            "largest_arrival_rate": float(topic.arrival[places].max()),
            "median_other_rate": lower_median(others.tolist()),
        }
        partitions = tuple(topic.frame.partitions[places].tolist())
        found.append(Observation("ARRIVAL_SKEW", HOLDS, INFO, topic.frame.topic, partitions, evidence=known(evidence)))
    return found


def idle_members(view: View) -> list[Observation]:
    """D51: more members than could get a partition, and some have had none for ten minutes."""
    count = ceil(IDLE_SECONDS / view.frame.window_seconds)
    rows = view.frame.facts[-count:]
    idle = [(row or {}).get("idle_members") for row in rows]
    if view.member_count is None or not 0 < view.ceiling < view.member_count:  # ceiling 0: no topic is known
        return []
    if len(idle) < count or any(each is None for each in idle):
        return [Observation("IDLE_MEMBERS", ABSTAINS, INFO)]
    if not all(idle):
        return []
    guards = {"no_hot_standby": guard(view.policy.hot_standby)}
    evidence = {"idle_members": idle[-1], "members": view.member_count, "members_ceiling": view.ceiling}
    text = {"assignor": assignor(view)}
    return [
        Observation("IDLE_MEMBERS", state_by(guards), INFO, evidence=known(evidence), evidence_text=text, guards=guards)
    ]


def assignment_imbalance(view: View) -> list[Observation]:
    """D52: members have unlike numbers of partitions, or unlike arrivals; those with none at all are D51's."""
    spare = view.member_count is not None and view.member_count > view.ceiling
    members = [member for member in view.members.values() if member.partitions or not spare]
    if len(members) < 2:
        return []
    counts, arrivals = [len(member.partitions) for member in members], [member.arrival for member in members]
    mean = sum(arrivals) / len(arrivals)
    ratio = max(arrivals) / mean if mean > 0 else nan
    # 12 partitions of 9 members are 2 or 1 under the best assignment, and 2 are 1.5 times the mean
    forced = ceil(sum(counts) / len(members)) * len(members) / max(1, sum(counts))
    if max(counts) - min(counts) < IMBALANCE_PARTITIONS and not ratio >= IMBALANCE_RATIO * forced:
        return []
    guards = {"same_subscription": guard(fact(view, "divergent_subscriptions"))}
    evidence = {"most_partitions": max(counts), "fewest_partitions": min(counts), "imbalance_ratio": ratio}
    fullest = max(members, key=lambda member: (member.arrival, len(member.partitions), member.slot))
    found = Observation(
        "ASSIGNMENT_IMBALANCE",
        state_by(guards),
        WARN if view.is_material else INFO,
        evidence=known(evidence),
        evidence_text={"fullest_member": fullest.slot, "assignor": assignor(view)},
        guards=guards,
    )
    return [found]
