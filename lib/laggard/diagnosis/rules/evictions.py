"""Rules D40 to D42: evictions by the poll interval or the session, and repeated deaths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    REBALANCING,
    WHILE_REBALANCING,
    Observation,
    Rule,
    guard,
    has_members,
    known,
    no_deploy,
    no_maintenance,
    outranks,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.rebalances import longest_rebalance_timeout
from laggard.diagnosis.signals.rosters import CrashLoop, Eviction, pattern, slots_in
from laggard.diagnosis.signals.statistics import is_most

_MIN_EVICTIONS = fixed("min_evictions", 2, "departures")
_NAMED_SHARE = fixed(
    "named_share", 0.1, "of the departures of a series, from which a reason is named"
)
_LIFE_SHORTEST = fixed(
    "life_shortest", 0.9, "of the rebalance timeout: shortest membership that fits a poll timeout"
)
_LIFE_LONGEST = fixed(
    "life_longest", 2, "rebalance timeouts: longest membership that fits a poll timeout"
)
_ELSEWHERE_SECONDS = fixed(
    "elsewhere_seconds", 600.0, "s in which a member on another host counts as the successor"
)
_LOG_LINES = (
    "Java logs 'sending LeaveGroup request' with the poll timeout, and 'Attempt to heartbeat "
    "failed since group is rebalancing'; Go clients log 'maybe rebalancing'"
)


@Rule(
    "D40",
    "POLL_TIMEOUT_EVICTION",
    CAUSE,
    says="Members leave because a batch takes longer than max.poll.interval.ms; each departure "
    "makes the rest slower.",
    is_not="a lost heartbeat: the client leaves by itself, so a longer session timeout changes "
    "nothing.",
    advice=(
        f"check that heartbeats are fine: {_LOG_LINES}",
        "lower max.poll.records, so that a batch fits into the poll interval",
        "raise max.poll.interval.ms; this only delays the departure",
        "repair the sink that makes batches slow",
    ),
    not_more=("do not add consumers while members keep leaving",),
    falsifier="the next departure comes less than half a poll interval after the member's last "
    "commit",
    thresholds=("cause_posterior", "deploy_horizon_seconds"),
    inhibits=(
        outranks(REBALANCING, "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"),
        WHILE_REBALANCING,
    ),
    rank=110,
    blocks_scaling=True,
)
def poll_timeout_eviction(signals: Signals) -> Iterator[Observation]:
    """Members whose batches take longer than max.poll.interval.ms leave, and rejoin."""
    found = signals.membership.evicted("poll_timeout") if has_members(signals) else []
    if len(found) >= _MIN_EVICTIONS:
        timeout = longest_rebalance_timeout(signals.frame.members)
        yield Observation(
            "POLL_TIMEOUT_EVICTION",
            evidence=known({"rebalance_timeout_seconds": timeout} | _numbers(found)),
            evidence_text=_who(signals, found),
            guards={"no_maintenance": no_maintenance(signals)},
            is_falsified=_is_contradicted(signals, found, "poll_timeout"),
        )


@Rule(
    "D41",
    "SESSION_EVICTION",
    CAUSE,
    says="The coordinator evicted members because their heartbeats stopped for a session timeout.",
    is_not=(
        "a slow batch: heartbeats have their own thread. Nor a pod that was killed: it restarts "
        "on another host."
    ),
    advice=(
        "set the session timeout to at least 3 heartbeat intervals; 45 s is today's default",
        "if it is that long already, look for long garbage collections (GC) on these members",
        "look at the network between these hosts and the coordinator, and at CPU limits",
        f"logs to read: {_LOG_LINES}",
    ),
    not_more=("do not add consumers while members keep leaving",),
    falsifier="the next departure was announced by the member",
    thresholds=("cause_posterior", "deploy_horizon_seconds"),
    inhibits=(
        outranks(REBALANCING, "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"),
        WHILE_REBALANCING,
    ),
    rank=130,
    blocks_scaling=True,
)
def session_eviction(signals: Signals) -> Iterator[Observation]:
    """The coordinator evicted members whose heartbeats stopped for a session timeout."""
    found = signals.membership.evicted("session_expiry") if has_members(signals) else []
    # a static member says no word when it is restarted: it looks like one that was evicted, then
    # and later
    found = [each for each in found if not signals.membership.is_in_deploy(each.at)]
    if len({each.at for each in found}) < _MIN_EVICTIONS:
        # members that are lost together are one loss: of their host, or of what they connect
        # through
        return
    sessions = [
        row["session_timeout_ms"] / 1000
        for row in signals.frame.members
        if row.get("session_timeout_ms")
    ]
    elsewhere = sum(_is_elsewhere(signals, each) for each in found)
    places = {signals.membership.place(each.slot) for each in found}
    yield Observation(
        "SESSION_EVICTION",
        evidence=known({"session_timeout_seconds": min(sessions, default=None)} | _numbers(found)),
        evidence_text=_who(signals, found),
        guards={
            "no_deploy": no_deploy(signals),
            "no_maintenance": no_maintenance(signals),
            # pods that are killed restart on other hosts
            "same_host": guard(is_most(elsewhere, len(found))),
            "several_members": guard(places <= signals.membership.looped),
        },
        is_falsified=_is_contradicted(signals, found, "session_expiry"),
    )


@Rule(
    "D42",
    "CRASH_LOOP",
    CAUSE,
    says="One member, or all of them, leave again and again soon after they joined; each time the "
    "group rebalances.",
    is_not="a deploy that is repeated, nor a slow member: this one leaves soon after each join.",
    advice=(
        "read the application's log of that member from before each departure",
        "stop the member until it can start cleanly: each restart costs the group two rebalances",
    ),
    avoid=(
        (
            "do not lengthen session timeouts: that only hides the problem, and the member's "
            "partitions wait longer"
        ),
    ),
    falsifier="without any change, the member next stays in the group longer than ever before",
    thresholds=("crash_times", "deploy_horizon_seconds"),
    inhibits=(
        outranks(REBALANCING, "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"),
        # the others stop for its rebalances and take over its partitions: what they read shows no
        # costly record
        suppresses("COSTLY_PARTITION"),
        WHILE_REBALANCING,
    ),
    rank=120,
    blocks_scaling=True,
)
def crash_loop(signals: Signals) -> Iterator[Observation]:
    """One member leaves three times in half an hour, each time soon after it joined.

    It does not leave with most others.

    Members that leave together count as one crash loop of the group, once they have left three
    times soon after they joined. A group without members counts as stopped once that lasts three
    times as long as its longest absence before, and at least two minutes. Until then a crash loop
    continues if members have rejoined since it was one; otherwise it is unknown.
    """
    membership, is_empty = signals.membership, signals.member_count == 0
    if not has_members(signals):
        return
    late = {membership.place(each.slot) for each in membership.evicted("poll_timeout")}
    expired, looping = membership.evicted("session_expiry"), membership.looping
    others = len({each.at for each in expired if membership.place(each.slot) not in looping})
    for each in membership.crash_loops:
        if is_empty and each.is_given_up:
            continue
        departures, lives = len(each.departures), each.lifetimes_seconds
        numbers = {"longest_lifetime_seconds": max(lives), "shortest_lifetime_seconds": min(lives)}
        yield Observation(
            "CRASH_LOOP",
            subject=each.home,
            evidence={"departures": float(departures)} | numbers,
            guards={
                "no_deploy": no_deploy(signals),
                "no_maintenance": no_maintenance(signals),
                "not_poll_timeout": guard(
                    bool(each.places & late) or _lives_a_poll_interval(signals, each)
                ),
                # what evicts all members in turn evicts one of them twice in a row now and then
                "not_the_others": passes(is_most(departures - others, departures)),
            },
            abstains=is_empty and not each.has_returned,
        )


def _lives_a_poll_interval(signals: Signals, loop: CrashLoop) -> bool:
    """Return True if the median life lasts about the poll interval.

    That is how long a member that stops polling stays in the group.
    """
    timeout = longest_rebalance_timeout(
        row for row in signals.frame.members if row["generation_kind"] == "classic"
    )
    if timeout is None:
        return False
    lives = sorted(loop.lifetimes_seconds)
    return _LIFE_SHORTEST * timeout <= lives[(len(lives) - 1) // 2] <= _LIFE_LONGEST * timeout


def _is_elsewhere(signals: Signals, eviction: Eviction) -> bool:
    """Return True if another host took over in the same rebalance or within ten minutes.

    That host was not away itself.
    """
    if eviction.is_elsewhere is not None:
        return eviction.is_elsewhere
    membership, away = signals.membership, set[str]()
    place = membership.place(eviction.slot)
    for row in signals.frame.live_generations:
        away |= set(map(membership.place, slots_in(row, "left", "replaced")))
        if 0 < (row["record_timestamp"] - eviction.at).total_seconds() <= _ELSEWHERE_SECONDS:
            joined = set(map(membership.place, slots_in(row, "joined")))
            if place in joined:
                return False
            if pattern(place) in map(pattern, joined - away):
                return True
    return False


def _numbers(found: Sequence[Eviction]) -> dict[str, float | None]:
    slots, posteriors = {each.slot for each in found}, [each.posterior for each in found]
    return {"departures": len(found), "slots": len(slots), "lowest_posterior": min(posteriors)}


def _who(signals: Signals, found: Sequence[Eviction]) -> dict[str, str]:
    """Return who left, and the reasons that departures share which are not clear one by one."""
    mixture = sorted(
        signals.membership.series.mixture.items(), key=lambda each: (-each[1], each[0])
    )
    shares = ", ".join(
        f"{reason} {share:.0%}" for reason, share in mixture if share >= _NAMED_SHARE
    )
    return {"slots": ", ".join(each.slot for each in found[-10:])} | (
        {"reasons": shares} if shares else {}
    )


def _is_contradicted(signals: Signals, found: Sequence[Eviction], reason: str) -> bool:
    """Return True if a later departure has another claimed reason.

    The cause of these evictions has then ended.
    """
    newest = max(each.at for each in found)
    for row in signals.frame.live_rebalances:
        posterior = dict(row["cause_posterior"] or {})
        if row["ended_at"] > newest and posterior:
            best = max(sorted(posterior), key=lambda each: posterior[each])
            if best != reason and posterior[best] >= signals.parameters.cause_posterior:
                return True
    return False
