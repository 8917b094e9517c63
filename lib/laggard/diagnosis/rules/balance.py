"""Conditions of D14, D51 and D52: who gets how much of what arrives."""

from __future__ import annotations

from math import ceil, nan

from laggard.diagnosis.order import lower_median
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.guards import assignor, guard, known, state_by
from laggard.diagnosis.rules.rule import ABSTAINS, HOLDS, HYGIENE, INFO, LAG_CAUSE, WARN, Observation, Rule
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.hot import share, skewed_places

SKEW_SECONDS = fixed("skew_seconds", 1800.0, "s")
IDLE_MEMBER_SECONDS = fixed("idle_member_seconds", 600.0, "s without a partition")
IMBALANCE_PARTITIONS = fixed("imbalance_partitions", 2, "partitions between the fullest and the emptiest member")
IMBALANCE_RATIO = fixed("imbalance_ratio", 1.5, "of the mean arrival rate, beyond what the best assignment gives")


@Rule(
    "D14",
    "ARRIVAL_SKEW",
    HYGIENE,
    says="Some partitions get several times what the others get, without lag so far.",
    is_not="lag: nothing has to be done today.",
    advice=("Look at how keys are spread before arrivals grow.",),
    falsifier="the arrival rates come closer",
    thresholds=("hot_ratio",),
    groups=(LAG_CAUSE,),
    open_after=1,
)
def arrival_skew(signals: Signals) -> list[Observation]:
    """Some partitions have long been getting several times what the others get, and do not lag yet."""
    found = []
    for topic in signals.topics:
        places = [place for place in skewed_places(signals, topic, SKEW_SECONDS) if not topic.is_material[place]]
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


@Rule(
    "D51",
    "IDLE_MEMBERS",
    HYGIENE,
    says="Members have no partition, as there are more members than partitions to give.",
    is_not="spare capacity, unless `hot_standby` says so: an idle member shortens no lag.",
    advice=(
        "Run no more than members_ceiling members.",
        "Under range with several topics, change to an assignor that counts all of them together.",
        "If they are meant as a standby, declare hot_standby.",
    ),
    falsifier="each member has a partition",
    open_after=1,
)
def idle_members(signals: Signals) -> list[Observation]:
    """More members than could get a partition, and some have had none for ten minutes."""
    count = ceil(IDLE_MEMBER_SECONDS / signals.frame.window_seconds)
    rows = signals.frame.facts[-count:]
    idle = [(row or {}).get("idle_members") for row in rows]
    if signals.member_count is None or not 0 < signals.ceiling < signals.member_count:  # ceiling 0: no topic is known
        return []
    if len(idle) < count or any(each is None for each in idle):
        return [Observation("IDLE_MEMBERS", ABSTAINS, INFO)]
    if not all(idle):
        return []
    guards = {"no_hot_standby": guard(signals.policy.hot_standby)}
    evidence = {"idle_members": idle[-1], "members": signals.member_count, "members_ceiling": signals.ceiling}
    text = {"assignor": assignor(signals)}
    return [
        Observation("IDLE_MEMBERS", state_by(guards), INFO, evidence=known(evidence), evidence_text=text, guards=guards)
    ]


@Rule(
    "D52",
    "ASSIGNMENT_IMBALANCE",
    HYGIENE,
    says="Some members have much more to do than others by assignment.",
    is_not="a slow member: it was given more. Members with other subscriptions cannot be compared.",
    advice=(
        "Run a number of members that divides the number of partitions.",
        "Under range with several topics, change to an assignor that counts all of them together.",
    ),
    avoid=("Do not look for a fault in the fullest member first: it was given more.",),
    falsifier="the loads come closer without a change of assignment",
)
def assignment_imbalance(signals: Signals) -> list[Observation]:
    """Members have unlike numbers of partitions, or unlike arrivals; those with none at all are D51's."""
    spare = signals.member_count is not None and signals.member_count > signals.ceiling
    members = [member for member in signals.members.values() if member.partitions or not spare]
    if len(members) < 2:
        return []
    counts, arrivals = [len(member.partitions) for member in members], [member.arrival for member in members]
    mean = sum(arrivals) / len(arrivals)
    ratio = max(arrivals) / mean if mean > 0 else nan
    # 12 partitions of 9 members are 2 or 1 under the best assignment, and 2 are 1.5 times the mean
    forced = ceil(sum(counts) / len(members)) * len(members) / max(1, sum(counts))
    if max(counts) - min(counts) < IMBALANCE_PARTITIONS and not ratio >= IMBALANCE_RATIO * forced:
        return []
    guards = {"same_subscription": guard(signals.membership.subscriptions_differ)}
    evidence = {"most_partitions": max(counts), "fewest_partitions": min(counts), "imbalance_ratio": ratio}
    fullest = max(members, key=lambda member: (member.arrival, len(member.partitions), member.slot))
    found = Observation(
        "ASSIGNMENT_IMBALANCE",
        state_by(guards),
        WARN if signals.is_material else INFO,
        evidence=known(evidence),
        evidence_text={"fullest_member": fullest.slot, "assignor": assignor(signals)},
        guards=guards,
    )
    return [found]
