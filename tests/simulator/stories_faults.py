"""Stories in which several things go wrong, or one thing again and again."""

from __future__ import annotations

from dataclasses import replace

from simulator.offsets_log import partition_of
from simulator.stage import MINUTE, SECOND, Stage


def failover(stage: Stage) -> int:
    """The coordinator moves in quiet times and in the middle of a rebalance."""
    stage.topic()
    stage.group()
    part = partition_of(stage.group_name)
    stage.later(80, lambda: stage.coordinator.fail_over(part, 2 * SECOND), "failover")

    def in_the_middle() -> None:
        stage.start(stage.config(7))
        stage.clock.after(stage.chance.randint(0, 3 * SECOND), lambda: stage.coordinator.fail_over(part, 4 * SECOND))

    stage.later(140, in_the_middle, "failover")
    return 8 * MINUTE


def failover_in_rebalance(stage: Stage) -> int:
    """The leader asks for a rebalance that its coordinator does not live to finish; the next one begins it anew."""
    stage.topic()
    stage.group()

    def rejoin() -> None:
        _rejoin_leader(stage)
        lasts_ms = stage.chance.randint(100, SECOND)
        stage.clock.after(lasts_ms, lambda: stage.coordinator.fail_over(partition_of(stage.group_name), 4 * SECOND))

    stage.later(100, rejoin, "failover")
    return 4 * MINUTE


def _rejoin_leader(stage: Stage) -> None:
    leader = stage.coordinator.groups[stage.group_name].leader
    for member in stage.living():
        if member.member_id == leader:
            member.rejoin("leader_rejoin")


def two_groups_failover(stage: Stage) -> int:
    """Groups of one offsets partition lose their coordinator together, others do not notice."""
    stage.topic(partitions=4)
    part = partition_of(stage.group_name)
    names = (stage.marked(f"twin-{number}") for number in range(10_000))
    twin = next(name for name in names if partition_of(name) == part)
    for name in (stage.group_name, twin, stage.marked("elsewhere")):
        for index in range(2):
            config = stage.config(index, group=name, session_ms=10_000)
            stage.later(0, lambda config=config: stage.start(config))
    stage.later(80, lambda: stage.coordinator.fail_over(part, 20 * SECOND), "failover")
    return 4 * MINUTE


def straggler(stage: Stage) -> int:
    """A member joins while another one is in a long batch: the join phase waits until the slow one is put out."""
    stage.topic()
    stage.group(poll_interval_ms=60_000)
    stage.later(80, lambda: stage.members[1].hang(75 * SECOND), "slow_batch")
    stage.later(90, lambda: stage.start(stage.config(4, poll_interval_ms=60_000)))
    return 6 * MINUTE


def interrupted_sync(stage: Stage) -> int:
    """Leaders die between join and sync, so generations pass that no record tells of."""
    stage.topic()
    stage.group(session_ms=10_000, poll_interval_ms=20_000)

    def break_syncs(times: int) -> None:
        group = stage.coordinator.groups[stage.group_name]
        if times and getattr(group, "state", "") == "CompletingRebalance":
            leader = next(each for each in stage.living() if each.member_id == group.leader)
            stage.restart(leader, 2 * SECOND, how="crash", why="crash")
            stage.clock.after(5 * SECOND, lambda: break_syncs(times - 1))
        elif times:
            stage.clock.after(1, lambda: break_syncs(times))

    stage.later(80, lambda: stage.start(stage.config(4, session_ms=10_000, poll_interval_ms=20_000)))
    stage.later(79, lambda: break_syncs(2), "crash")
    return 6 * MINUTE


def crash_loop(stage: Stage) -> int:
    stage.topic()
    stage.group(3, session_ms=10_000)
    for at in (60, 105, 150):
        stage.later(at, lambda: stage.restart(stage.members[-1], 5 * SECOND, how="crash", why="crash_loop"), "crash")
    return 6 * MINUTE


def static_expired(stage: Stage) -> int:
    """Away for longer than the session."""
    stage.topic()
    stage.static_group()
    stage.later(90, lambda: stage.restart(stage.chance.choice(stage.living()), 70 * SECOND), "restart")
    return 6 * MINUTE


def static_duplicate(stage: Stage) -> int:
    """A second process with an instance id that is in use: the first one is fenced."""
    stage.topic()
    stage.static_group()
    stage.later(90, lambda: stage.start(replace(stage.members[0].config, host="/10.0.9.9")), "duplicate")
    return 4 * MINUTE


def rebalance_storm(stage: Stage) -> int:
    """The leader joins again every three seconds, for nothing."""
    stage.topic()
    stage.group()
    for at in range(60, 180, 3):
        stage.clock.after(at * SECOND, lambda: _rejoin_leader(stage))
    return 5 * MINUTE


def scale_oscillation(stage: Stage) -> int:
    """3 → 6 → 3 members, again and again."""
    stage.topic()
    stage.group(3)

    def grow() -> None:
        for index in (3, 4, 5):
            stage.start(stage.config(index))

    def shrink() -> None:
        for member in stage.living()[3:]:
            member.close("scale_in")

    for at in range(60, 300, 120):
        stage.later(at, grow, "scale_out")
        stage.later(at + 60, shrink, "scale_in")
    return 6 * MINUTE


def replay_after_rebalance(stage: Stage) -> int:
    """Nobody commits when giving up partitions, so their next owners read some records again."""
    stage.topic()
    stage.group(commit_ms=20 * SECOND, commit_on_revoke=False, commit_on_close=False)
    stage.later(90, lambda: stage.chance.choice(stage.living()).close("scale_in"), "clean_leave")
    return 4 * MINUTE


FAULTS = (
    rebalance_storm,
    scale_oscillation,
    replay_after_rebalance,
    failover,
    failover_in_rebalance,
    two_groups_failover,
    straggler,
    interrupted_sync,
    crash_loop,
    static_expired,
    static_duplicate,
)
