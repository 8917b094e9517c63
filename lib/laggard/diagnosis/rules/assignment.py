"""Rules D14, D47 to D49, D51 and D52: distribution of arrivals and moves between members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, nan
from operator import itemgetter

from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    HYGIENE,
    INFO,
    LAG_CAUSE,
    WARN,
    Observation,
    Rule,
    assignor,
    guard,
    has_assignments,
    known,
    no_deploy,
    no_maintenance,
)
from laggard.diagnosis.signals.group import Membership, Signals
from laggard.diagnosis.signals.hot import share, skewed_places
from laggard.diagnosis.signals.rebalances import longest_pause, recent
from laggard.diagnosis.signals.rosters import Roster
from laggard.diagnosis.signals.statistics import lower_median
from laggard.rebalance.parameters import DEFAULTS

SKEW_SECONDS = fixed("skew_seconds", 1800.0, "s")
IDLE_MEMBER_SECONDS = fixed("idle_member_seconds", 600.0, "s without a partition")
IMBALANCE_PARTITIONS = fixed(
    "imbalance_partitions", 2, "partitions between the fullest and the emptiest member"
)
IMBALANCE_RATIO = fixed(
    "imbalance_ratio", 1.5, "of the mean arrival rate, beyond what the best assignment gives"
)


@Rule(
    "D14",
    "ARRIVAL_SKEW",
    HYGIENE,
    says="Some partitions get several times as many records as the others, without lag so far.",
    is_not="lag: nothing has to be done today.",
    advice=("Look at how keys are spread before arrivals grow.",),
    falsifier="the arrival rates become more even",
    thresholds=("hot_ratio",),
    groups=(LAG_CAUSE,),
    open_after=1,
)
def arrival_skew(signals: Signals) -> Iterator[Observation]:
    """Some partitions have got several times as many records as the others for a long time.

    They do not lag yet.
    """
    for topic in signals.topics:
        places = [
            place
            for place in skewed_places(signals, topic, SKEW_SECONDS)
            if not topic.is_material[place]
        ]
        if not places:
            continue
        others = topic.arrival[
            [place for place in range(len(topic.arrival)) if place not in places]
        ]
        evidence = {
            "arrival_share_ratio": share(topic.arrival, places),
            "largest_arrival_rate": float(topic.arrival[places].max()),
            "median_other_rate": lower_median(others.tolist()),
        }
        partitions = tuple(topic.frame.partitions[places].tolist())
        yield Observation(
            "ARRIVAL_SKEW", INFO, topic.frame.topic, partitions, evidence=known(evidence)
        )


@Rule(
    "D51",
    "IDLE_MEMBERS",
    HYGIENE,
    says="Some members have no partition, as there are more members than partitions to assign.",
    is_not="spare capacity, unless `hot_standby` says so: an idle member does not reduce lag.",
    advice=(
        "Run no more than members_ceiling members.",
        (
            "With the range assignor and several topics, change to an assignor that counts all "
            "topics together."
        ),
        "If they are meant as a standby, declare hot_standby.",
    ),
    falsifier="each member has a partition",
    open_after=1,
)
def idle_members(signals: Signals) -> Iterator[Observation]:
    """There are more members than could get a partition, and some have had none for ten minutes."""
    count = ceil(IDLE_MEMBER_SECONDS / signals.frame.window_seconds)
    idle = [(row or {}).get("idle_members") for row in signals.frame.facts[-count:]]
    # ceiling 0: no topic is known
    if signals.member_count is None or not 0 < signals.ceiling < signals.member_count:
        return
    if len(idle) < count or None in idle:
        yield Observation("IDLE_MEMBERS", INFO, abstains=True)
    elif all(idle):
        evidence = {
            "idle_members": idle[-1],
            "members": signals.member_count,
            "members_ceiling": signals.ceiling,
        }
        guards = {"no_hot_standby": guard(signals.policy.hot_standby)}
        text = {"assignor": assignor(signals)}
        yield Observation(
            "IDLE_MEMBERS", INFO, evidence=known(evidence), evidence_text=text, guards=guards
        )


@Rule(
    "D52",
    "ASSIGNMENT_IMBALANCE",
    HYGIENE,
    says="The assignment gives some members much more to do than others.",
    is_not="a slow member: it was assigned more. Members with different subscriptions cannot be "
    "compared.",
    advice=(
        "Run a number of members that divides the number of partitions.",
        (
            "With the range assignor and several topics, change to an assignor that counts all "
            "topics together."
        ),
    ),
    avoid=("Do not look for a fault in the fullest member first: it was assigned more.",),
    falsifier="the loads become more even without a change of the assignment",
)
def assignment_imbalance(signals: Signals) -> Iterator[Observation]:
    """Members have different numbers of partitions, or different arrivals.

    IDLE_MEMBERS counts the members with none.
    """
    spare = signals.member_count is not None and signals.member_count > signals.ceiling
    members = [member for member in signals.members.values() if member.partitions or not spare]
    if len(members) < 2:
        return
    counts, arrivals = (
        [len(member.partitions) for member in members],
        [member.arrival for member in members],
    )
    mean = sum(arrivals) / len(arrivals)
    ratio = max(arrivals) / mean if mean > 0 else nan
    # 12 partitions of 9 members are 2 or 1 under the best assignment, and 2 are 1.5 times the mean
    forced = ceil(sum(counts) / len(members)) * len(members) / max(1, sum(counts))
    if max(counts) - min(counts) < IMBALANCE_PARTITIONS and not ratio >= IMBALANCE_RATIO * forced:
        return
    evidence = {
        "most_partitions": max(counts),
        "fewest_partitions": min(counts),
        "imbalance_ratio": ratio,
    }
    fullest = max(members, key=lambda member: (member.arrival, len(member.partitions), member.slot))
    yield Observation(
        "ASSIGNMENT_IMBALANCE",
        WARN if signals.is_material else INFO,
        evidence=known(evidence),
        evidence_text={"fullest_member": fullest.slot, "assignor": assignor(signals)},
        guards={"same_subscription": guard(signals.membership.subscriptions_differ)},
    )


TopicPartition = tuple[str, int]
_PING_PONG_SHARE = fixed("ping_pong_share", 0.3, "share of the moves that go back")
_PING_PONG_MOVES = fixed("ping_pong_moves", 3, "moves")
_PING_PONG_REBALANCES = fixed("ping_pong_rebalances", 2, "rebalances in which partitions went back")
_PING_PONG_SECONDS = fixed("ping_pong_seconds", 1800.0, "s")
# what moved before that time is no longer counted as a move to and fro
_PING_PONG_MEMORY_SECONDS = fixed(
    "ping_pong_memory_seconds", DEFAULTS.ping_pong_seconds, "s before these"
)
_AVOIDABLE_SHARE = fixed("avoidable_share", 0.2, "share of the moves")
_AVOIDABLE_REBALANCES = fixed("avoidable_rebalances", 3, "rebalances")
_AVOIDABLE_AMONG = fixed("avoidable_among", 5, "newest rebalances")
_LARGE_PARTITIONS = fixed("large_partitions", 100, "partitions")
_LARGE_MEMBERS = fixed("large_members", 10, "members")
_LARGE_SECONDS = fixed("large_seconds", 86_400.0, "s looked back for a rebalance")


@Rule(
    "D47",
    "PING_PONG",
    HYGIENE,
    says="Partitions move back and forth between members.",
    is_not="one restart, after which partitions return once, nor a deploy that is rolled back.",
    advice=(
        "stop what evicts members",
        (
            "use static membership and the cooperative-sticky assignor, so that returning members "
            "take nothing from others"
        ),
    ),
    falsifier="the member ids show that these partitions had the same owner all the time",
)
def ping_pong(signals: Signals) -> Iterator[Observation]:
    """Partitions move back to a former owner.

    Partitions that return once, after one member's restart, do not count.
    """
    found = find_ping_pong(signals.membership) if has_assignments(signals) else PingPong()
    if (
        found.moves < _PING_PONG_MOVES
        or found.index < _PING_PONG_SHARE
        or found.rebalances < _PING_PONG_REBALANCES
    ):
        return
    numbers = {
        "ping_pong_ratio": found.index,
        "moved_partitions": found.moves,
        "returned_partitions": found.returns,
        "rebalances": found.rebalances,
    }
    yield Observation(
        "PING_PONG",
        evidence=known(numbers),
        evidence_text={
            "partitions": ", ".join(f"{topic}-{number}" for topic, number in found.partitions[:20])
        },
        guards={"no_deploy": no_deploy(signals), "no_maintenance": no_maintenance(signals)},
    )


@dataclass(frozen=True, slots=True)
class PingPong:
    """Moves within a time, and the moves that took a partition back to its previous slot."""

    moves: int = 0
    returns: int = 0
    rebalances: int = 0  # with returns
    partitions: tuple[TopicPartition, ...] = ()  # that returned

    @property
    def index(self) -> float:
        return self.returns / self.moves if self.moves else 0.0


def find_ping_pong(membership: Membership) -> PingPong:
    """Find returns among the moves of the last 30 min.

    A member that keeps its id keeps its partitions, whatever its slot.

    Moves in a deploy do not count.
    """
    end = membership.frame.now
    span = _PING_PONG_SECONDS + _PING_PONG_MEMORY_SECONDS
    last: dict[TopicPartition, tuple[str, str]] = {}
    moves, returned, times = 0, [], set()
    for at, place, left, to in _moves(
        [each for each in membership.rosters if (end - each.at).total_seconds() < span]
    ):
        is_return = last.get(place) == (to, left)
        last[place] = left, to
        if (
            not at.is_live
            or (end - at.at).total_seconds() >= _PING_PONG_SECONDS
            or membership.is_in_deploy(at.at)
        ):
            continue
        moves += 1
        if is_return:
            returned.append(place)
            times.add(at.at)
    return PingPong(moves, len(returned), len(times), tuple(sorted(set(returned))))


def _moves(rosters: Sequence[Roster]) -> Iterator[tuple[Roster, TopicPartition, str, str]]:
    """Yield partitions that went over to another member: with roster, old slot and new slot."""
    owner: dict[TopicPartition, tuple[str, str]] = {}
    here: set[str] = set()
    for roster in rosters:
        held = _held(roster)
        if held is None:
            continue
        for place, now in held.items():
            was = owner.get(place, now)
            owner[place] = now
            # a number in a slot may go to a neighbour
            is_restart = was[1] == now[1] and now[0] not in here
            if was[0] != now[0] and not is_restart:
                yield roster, place, was[1], now[1]
        here = {row["member_id"] for row in roster.rows}


def _held(roster: Roster) -> dict[TopicPartition, tuple[str, str]] | None:
    """Return a dict from partition to member id and slot.

    Return None while an assignment is incomplete or not decodable.
    """
    if roster.generation_kind == "epoch" and any(
        row.get("member_state") != "Stable" for row in roster.rows
    ):
        return None
    if any(row.get("assigned") is None for row in roster.rows):
        return None
    return {
        (place["topic"], place["partition"]): (row["member_id"], row["slot"])
        for row in roster.rows
        for place in row["assigned"]
        if place["topic"] is not None
    }


@Rule(
    "D48",
    "NON_STICKY_MOVES",
    HYGIENE,
    says="Rebalances move partitions that could have stayed where they were.",
    is_not="moves that a departure or the balance needs, nor those that range makes when members "
    "are added.",
    advice=(
        "use static membership and the cooperative-sticky assignor",
        "or use the consumer protocol of KIP-848, whose assignors do not move what can stay",
    ),
    falsifier="no other assignment to the members after each rebalance is as even and moves fewer "
    "partitions",
)
def non_sticky_moves(signals: Signals) -> Iterator[Observation]:
    """Rebalances move more partitions than departures and balance need."""
    found = find_avoidable(signals.frame)
    if (
        not has_assignments(signals)
        or found.rebalances < _AVOIDABLE_REBALANCES
        or found.share < _AVOIDABLE_SHARE
    ):
        return
    is_one_way = set(found.causes) in ({"member_join"}, {"member_left"})
    numbers = {
        "moved_partitions": found.moved,
        "necessary_partitions": found.moved - found.avoidable,
        "avoidable_ratio": found.share,
        "rebalances": found.rebalances,
    }
    yield Observation(
        "NON_STICKY_MOVES",
        WARN if found.is_stateful else INFO,
        evidence=known(numbers),
        evidence_text={"assignor": found.assignor},
        guards={"not_scaling_under_range": guard(found.assignor == "range" and is_one_way)},
    )


@dataclass(frozen=True, slots=True)
class Avoidable:
    """Moves of the newest rebalances with known moves."""

    rebalances: int
    moved: int
    avoidable: int
    is_stateful: bool
    assignor: str
    causes: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.avoidable / self.moved if self.moved else 0.0


def find_avoidable(frame: GroupFrame) -> Avoidable:
    """Sum the moves, and the avoidable moves, of the newest live rebalances with known moves."""
    rows = [
        row
        for row in frame.live_rebalances
        if row.get("moved") is not None and row["members_before"]
    ]
    rows = sorted(rows, key=itemgetter("ended_at"))[-_AVOIDABLE_AMONG:]
    return Avoidable(
        rebalances=len(rows),
        moved=sum(row["moved"] for row in rows),
        avoidable=sum(row["avoidable"] for row in rows),
        is_stateful=any(row.get("stateful") for row in rows),
        # none if nobody is left
        assignor=next((row["assignor"] for row in reversed(rows) if row["assignor"]), ""),
        causes=tuple(row["cause"] for row in rows),
    )


@Rule(
    "D49",
    "EAGER_LARGE_GROUP",
    HYGIENE,
    says="Each rebalance of this large group stops every partition.",
    is_not="a fault: it is the cost of each rebalance. Joins over several topics may need the "
    "range assignor.",
    advice=(
        (
            "change to cooperative-sticky in two rolling restarts: first add it to the assignors, "
            "then remove the rest"
        ),
        "or change to the consumer protocol of KIP-848",
    ),
    avoid=(
        (
            "do not change the assignor in one step: eager and cooperative members cannot share a "
            "group"
        ),
    ),
    falsifier="partitions that did not move are committed during a rebalance",
    open_after=1,
)
def eager_large_group(signals: Signals) -> Iterator[Observation]:
    """Every rebalance stops many partitions of many members."""
    members, partitions = signals.member_count or 0, sum(len(topic.lag) for topic in signals.topics)
    is_eager = has_assignments(signals) and signals.frame.fact.get("rebalance_mode") == "eager"
    if not is_eager or partitions < _LARGE_PARTITIONS or members < _LARGE_MEMBERS:
        return
    day = recent(signals.membership.logical_rebalances, signals.frame.now, _LARGE_SECONDS)
    day = [each for each in day if not each.is_first]
    if day:
        numbers = {
            "partitions": partitions,
            "members": members,
            "rebalances_per_day": len(day),
            "longest_pause_p95_seconds": longest_pause(each.row for each in day if each.row) or nan,
        }
        text = {"assignor": assignor(signals)}
        yield Observation("EAGER_LARGE_GROUP", INFO, evidence=known(numbers), evidence_text=text)
