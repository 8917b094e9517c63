"""Stories of what is meant to happen, and of single failures. Each sets the stage and gives its length in ms."""

from __future__ import annotations

from dataclasses import replace

from simulator.producer import steady
from simulator.stage import MINUTE, SECOND, Stage


def steady_state(stage: Stage) -> int:
    stage.topic()
    stage.group()
    return 5 * MINUTE


def clean_leave(stage: Stage) -> int:
    stage.topic()
    stage.group()
    stage.later(120, lambda: stage.chance.choice(stage.living()).close("scale_in"), "clean_leave")
    return 5 * MINUTE


def crash(stage: Stage) -> int:
    """No word to the coordinator; the session runs out."""
    stage.topic()
    stage.group(assignors=(stage.chance.choice(["range", "roundrobin", "sticky"]),))
    stage.later(120, lambda: stage.chance.choice(stage.living()).crash(), "crash")
    return 6 * MINUTE


def session_expiry(stage: Stage) -> int:
    """A long garbage collection: the member is put out and comes back as another."""
    stage.topic()
    stage.group(session_ms=10_000)
    stage.later(120, lambda: stage.chance.choice(stage.living()).freeze(15 * SECOND), "freeze")
    return 5 * MINUTE


def poll_interval_eviction(stage: Stage) -> int:
    """One batch takes longer than max.poll.interval.ms: the client leaves, and returns when the batch is done."""
    stage.topic()
    stage.group(poll_interval_ms=60_000)
    stage.later(90, lambda: stage.chance.choice(stage.living()).hang(100 * SECOND), "slow_batch")
    return 6 * MINUTE


def rolling_deploy(stage: Stage) -> int:
    """One pod after the other, each new one on a new host."""
    stage.topic()
    stage.group()
    stage.later(90, lambda: stage.roll(15 * SECOND, 40 * SECOND), "deploy")
    return 7 * MINUTE


def static_restart(stage: Stage) -> int:
    """Back within the session: no rebalance."""
    stage.topic()
    stage.static_group(assignors=(stage.chance.choice(["range", "cooperative-sticky"]),))
    stage.later(90, lambda: stage.restart(stage.chance.choice(stage.living()), 20 * SECOND), "restart")
    stage.later(150, lambda: stage.restart(stage.chance.choice(stage.living()), 10 * SECOND), "restart")
    return 5 * MINUTE


def scale_out(stage: Stage) -> int:
    stage.topic()
    stage.group(assignors=(stage.chance.choice(["range", "sticky"]),))
    for index in (4, 5):
        stage.later(100, lambda index=index: stage.start(replace(stage.members[0].config, host=f"/10.0.0.{index + 1}")))
    return 5 * MINUTE


def scale_in(stage: Stage) -> int:
    """To one member, and then to none."""
    stage.topic()
    members = stage.group()
    for index, at in enumerate((80, 110, 140, 200)):
        stage.later(at, lambda index=index: members[index].close("scale_in"), "scale_in")
    return 5 * MINUTE


def cooperative_join(stage: Stage) -> int:
    """4 → 6 with two rounds."""
    stage.topic()
    stage.group(assignors=("cooperative-sticky",))
    for index in (4, 5):
        stage.later(100, lambda index=index: stage.start(replace(stage.members[0].config, host=f"/10.0.0.{index + 1}")))
    return 5 * MINUTE


def cooperative_crash(stage: Stage) -> int:
    """What the dead one held is given away in one round."""
    stage.topic()
    stage.group(assignors=("cooperative-sticky",), session_ms=20_000)
    stage.later(100, lambda: stage.chance.choice(stage.living()).crash(), "crash")
    return 5 * MINUTE


def subscription_change(stage: Stage) -> int:
    stage.topic()
    payments = stage.marked("payments")
    stage.topic(payments, 6)
    stage.group()
    for index in range(4):
        stage.later(
            90, lambda index=index: stage.members[index].subscribe(stage.topic_name, payments), "subscription_change"
        )
    return 5 * MINUTE


def partitions_added(stage: Stage) -> int:
    stage.topic()
    stage.group(metadata_ms=40_000)
    stage.later(90, lambda: stage.brokers.expand(stage.topic_name, [steady(100)] * 6), "partitions_added")
    return 5 * MINUTE


def assignor_change(stage: Stage) -> int:
    """The two-step way from range to cooperative-sticky, by rolling restarts."""
    stage.topic()
    stage.group(3)

    def roll(assignors: tuple[str, ...]) -> None:
        for index, member in enumerate(stage.living()):
            fresh = replace(member.config, assignors=assignors)
            stage.clock.after(index * 30 * SECOND, lambda member=member: member.close("deploy"))
            stage.clock.after(index * 30 * SECOND + 10 * SECOND, lambda fresh=fresh: stage.start(fresh))

    stage.later(60, lambda: roll(("cooperative-sticky", "range")), "assignor_change")
    stage.later(180, lambda: roll(("cooperative-sticky",)), "assignor_change")
    return 7 * MINUTE


def rolling_deploy_cooperative(stage: Stage) -> int:
    stage.topic()
    stage.group(assignors=("cooperative-sticky",))
    stage.later(90, lambda: stage.roll(15 * SECOND, 40 * SECOND), "deploy")
    return 7 * MINUTE


PLANNED = (
    steady_state,
    clean_leave,
    crash,
    session_expiry,
    poll_interval_eviction,
    rolling_deploy,
    static_restart,
    scale_out,
    scale_in,
    cooperative_join,
    cooperative_crash,
    subscription_change,
    partitions_added,
    assignor_change,
    rolling_deploy_cooperative,
)
