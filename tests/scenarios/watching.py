"""What the monitor itself meets: a past that it has not watched, polls that fail, protocols that
change.
"""

from __future__ import annotations

from typing import Any

from scenarios.cluster import HEALTHY, ScenarioCluster
from scenarios.labels import CALM, Expect, Labels, Must, Scenario, only
from scenarios.rebalances import find_leader
from scenarios.rollouts import deploy
from simulator.cluster import SECOND
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.producer import steady

WATCHED_FROM = 40.0
PAST = frozenset(
    {
        "EAGER_LARGE_GROUP",
        "PING_PONG",
        "NON_STICKY_MOVES",
        "OFFSET_REWIND",
        "OFFSET_SKIP",
        "GROUP_DELETED",
    }
)


def sc46(cluster: ScenarioCluster) -> Labels:
    """A turbulent past, of which the log cleaner left the last of each key, and a calm present."""
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(assignors=(cluster.one_of("range", "roundrobin"),))

    def rejoin() -> None:
        leader = find_leader(cluster)
        if leader is not None:
            leader.rejoin("leader_rejoin")

    def crash() -> None:
        cluster.restart(cluster.one_of(*cluster.alive()), 15 * SECOND, how="crash", why="crash")

    cluster.every(cluster.between(8, 15), 8, 30, rejoin)
    cluster.every(180, 9, 30, crash)
    return Labels(
        WATCHED_FROM + 35, never=PAST, expects=(Expect(WATCHED_FROM + 12, WATCHED_FROM + 35, CALM),)
    )


def la15(cluster: ScenarioCluster) -> Labels:
    """The job begins in the middle of a group's life, soon after a deploy, and one that committed
    long ago is away.
    """
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group(commit_ms=cluster.one_of(5, 30) * SECOND)
    deploy(cluster, WATCHED_FROM - cluster.between(5, 9), 25, 40, 4)
    return Labels(
        WATCHED_FROM + 35, never=PAST, expects=(Expect(WATCHED_FROM + 12, WATCHED_FROM + 35, CALM),)
    )


def sc50(cluster: ScenarioCluster) -> Labels:
    at = float(HEALTHY + cluster.draw.randint(0, 4))
    cluster.topic(rate=steady(cluster.between(60, 120)))
    cluster.group()
    places = {(cluster.main, part) for part in range(12)}
    cluster.minute(at + 0.2, lambda: cluster.brokers.leaderless.update(places), "poll_fails")
    cluster.minute(at + cluster.between(2.2, 3.5), cluster.brokers.leaderless.clear)
    return Labels(
        at + 20,
        must=(Must("MONITOR_BLIND", at + 1, within=3),),
        expects=(Expect(at + 8, at + 20, CALM),),
    )


def sc47(cluster: ScenarioCluster) -> Labels:
    """One member after the other is restarted with the other protocol, and later back again."""
    cluster.topic(rate=steady(cluster.between(50, 90)))
    cluster.group(4, assignors=("cooperative-sticky",))
    begin, back = 15.0, 35.0

    def turn(index: int, kind: Any) -> None:
        member = cluster.alive()[index]
        member.close("deploy")
        cluster.clock.after(15 * SECOND, lambda: cluster.start(member.config, kind))

    for index in range(4):
        cluster.minute(begin + index, lambda index=index: turn(index, ModernMember), "upgrade")
        cluster.minute(back + index, lambda index=index: turn(index, Member), "downgrade")
    return Labels(
        back + 25,
        may=only("DEPLOY_LAG_SPIKE"),
        never=only(
            "GROUP_DELETED", "OFFSET_REWIND", "OFFSET_SKIP", "REBALANCE_STORM", "ASSIGNOR_FLAP"
        ),
        expects=(Expect(back + 15, back + 25, CALM),),
    )


SCENARIOS = (
    Scenario("SC46", "the job begins after a turbulent past", sc46, watched_from=WATCHED_FROM),
    Scenario("SC47", "a group goes to KIP-848 and back, on line", sc47),
    Scenario("SC50", "the poll gets no log ends for minutes", sc50),
    Scenario("LA15", "the job begins soon after a deploy", la15, watched_from=WATCHED_FROM),
)
