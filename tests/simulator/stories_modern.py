"""Stories of KIP-848 groups, and of the way there and back."""

from __future__ import annotations

from simulator.member_modern import ModernMember
from simulator.offsets_log import partition_of
from simulator.producer import steady
from simulator.stage import MINUTE, SECOND, Stage


def modern_join_leave(stage: Stage) -> int:
    """KIP-848: two more, then one less."""
    stage.topic()
    stage.group(kind=ModernMember)
    for index in (4, 5):
        stage.later(80, lambda index=index: stage.start(stage.config(index), ModernMember))
    stage.later(140, lambda: stage.chance.choice(stage.living()).close("scale_in"), "clean_leave")
    return 5 * MINUTE


def modern_crash(stage: Stage) -> int:
    stage.topic()
    stage.group(kind=ModernMember)
    stage.later(80, lambda: stage.chance.choice(stage.living()).crash(), "crash")
    return 5 * MINUTE


def modern_slow(stage: Stage) -> int:
    """A batch longer than the poll interval, while others wait for what the slow member holds."""
    stage.topic()
    stage.group(kind=ModernMember, poll_interval_ms=60_000)
    stage.later(80, lambda: stage.members[0].hang(100 * SECOND), "slow_batch")
    stage.later(85, lambda: stage.start(stage.config(4, poll_interval_ms=60_000), ModernMember))
    return 6 * MINUTE


def modern_static_restart(stage: Stage) -> int:
    stage.topic()
    stage.static_group(kind=ModernMember)
    stage.later(90, lambda: stage.restart(stage.chance.choice(stage.living()), 20 * SECOND), "restart")
    stage.later(150, lambda: stage.restart(stage.chance.choice(stage.living()), 70 * SECOND), "restart")
    return 6 * MINUTE


def modern_partitions_added(stage: Stage) -> int:
    stage.topic()
    stage.group(kind=ModernMember)
    stage.later(90, lambda: stage.brokers.expand(stage.topic_name, [steady(100)] * 6), "partitions_added")
    return 4 * MINUTE


def modern_upgrade(stage: Stage) -> int:
    """Classic members are restarted one by one with the new protocol."""
    stage.topic()
    stage.group(3)

    def roll(index: int) -> None:
        member = stage.members[index]
        member.close("deploy")
        stage.clock.after(10 * SECOND, lambda: stage.start(member.config, ModernMember))
        if index < 2:
            stage.clock.after(45 * SECOND, lambda: roll(index + 1))

    stage.later(60, lambda: roll(0), "upgrade")
    return 6 * MINUTE


def modern_downgrade(stage: Stage) -> int:
    """One member tries the new protocol, and goes again."""
    stage.topic()
    stage.group(3)
    stage.later(60, lambda: stage.start(stage.config(4), ModernMember), "upgrade")
    stage.later(140, lambda: stage.members[-1].close("scale_in"), "downgrade")
    return 6 * MINUTE


def modern_range(stage: Stage) -> int:
    """The broker's range assignor: a scale-out moves more than it must."""
    stage.coordinator.assignor = "range"
    stage.topic()
    stage.group(kind=ModernMember)
    stage.later(80, lambda: stage.start(stage.config(4), ModernMember))
    return 4 * MINUTE


def modern_failover(stage: Stage) -> int:
    """The coordinator moves in quiet times, and right after a join."""
    stage.topic()
    stage.group(kind=ModernMember)
    part = partition_of(stage.group_name)
    stage.later(60, lambda: stage.coordinator.fail_over(part, 3 * SECOND), "failover")

    def in_the_middle() -> None:
        stage.start(stage.config(4), ModernMember)
        stage.clock.after(stage.chance.randint(0, 3 * SECOND), lambda: stage.coordinator.fail_over(part, 4 * SECOND))

    stage.later(110, in_the_middle, "failover")
    return 4 * MINUTE


def modern_mixed(stage: Stage) -> int:
    """In the middle of an upgrade an old member joins, and one crashes."""
    stage.topic()
    stage.group(2, session_ms=20_000)
    stage.later(60, lambda: stage.start(stage.config(2), ModernMember), "upgrade")
    stage.later(100, lambda: stage.start(stage.config(3, session_ms=20_000)))
    stage.later(150, lambda: stage.chance.choice(stage.members[:2]).crash(), "crash")
    return 5 * MINUTE


MODERN = (
    modern_mixed,
    modern_failover,
    modern_range,
    modern_join_leave,
    modern_crash,
    modern_slow,
    modern_static_restart,
    modern_partitions_added,
    modern_upgrade,
    modern_downgrade,
)
