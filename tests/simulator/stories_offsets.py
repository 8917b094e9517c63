"""Stories about offsets: how often and by whom they are committed, hidden, deleted."""

from __future__ import annotations

from simulator.stage import MINUTE, SECOND, Stage


def commit_intervals(stage: Stage) -> int:
    """Groups that commit every second, every half minute, and every ten minutes."""
    stage.topic(partitions=4)
    for name, interval in (("every-second", 1), ("half-a-minute", 30), ("ten-minutes", 600)):
        for index in range(2):
            config = stage.config(index, group=stage.marked(name), commit_ms=interval * SECOND)
            stage.later(0, lambda config=config: stage.start(config))
    return 12 * MINUTE


def transactional(stage: Stage) -> int:
    """Commits in transactions, of which some abort: what they brought is processed again."""
    stage.topic(partitions=6)
    stage.group(2, commit_ms=2_000, abort_share=0.3)
    return 4 * MINUTE


def hanging_transaction(stage: Stage) -> int:
    """An open transaction hides everything behind it in its offsets partition, until its timeout."""
    stage.topic(partitions=6)
    stage.group(2)

    def hang() -> None:
        member_id, generation = stage.members[0].identity()
        offsets = dict(stage.members[0].positions)
        stage.coordinator.commit_in_transaction(stage.group_name, member_id, generation, offsets, lambda *_: None)

    stage.later(80, hang, "hanging_transaction")
    stage.later(100, lambda: stage.chance.choice(stage.living()).close("scale_in"), "clean_leave")
    return 5 * MINUTE


def topic_recreated(stage: Stage) -> int:
    """Deleted and made anew under another id while nobody reads it."""
    stage.topic()
    members = stage.group(2)

    def recreate() -> None:
        stage.brokers.delete(stage.topic_name)
        stage.coordinator.topic_deleted(stage.topic_name)
        stage.clock.after(20 * SECOND, stage.topic)

    for index in range(2):
        stage.later(60, lambda index=index: members[index].close("scale_in"))
    stage.later(80, recreate, "topic_recreated")
    for index in range(2):
        stage.later(120, lambda index=index: stage.start(stage.config(index)))
    return 5 * MINUTE


def simple_committer(stage: Stage) -> int:
    """Offsets without a group record; then real members."""
    stage.topic(partitions=3)

    def commit() -> None:
        offsets = {
            (stage.topic_name, partition): stage.brokers.end(stage.topic_name, partition) for partition in range(3)
        }
        stage.coordinator.commit(stage.marked("external"), "", -1, offsets, lambda _: None)

    for at in (10, 40, 70, 100):
        stage.later(at, commit)
    stage.later(150, lambda: stage.start(stage.config(0, group=stage.marked("external"))))
    return 5 * MINUTE


def group_deleted(stage: Stage) -> int:
    """Everybody leaves, an admin resets offsets, then deletes the group."""
    stage.topic(partitions=4)
    members = stage.group(2)
    for index in range(2):
        stage.later(60, lambda index=index: members[index].close("scale_in"))
    reset = {(stage.topic_name, partition): 100 for partition in range(4)}
    stage.later(100, lambda: stage.coordinator.commit(stage.group_name, "", -1, reset, lambda _: None), "reset")
    stage.later(150, lambda: stage.coordinator.delete_group(stage.group_name), "group_deleted")
    stage.later(200, lambda: stage.start(stage.config(0)))
    return 5 * MINUTE


def offsets_expired(stage: Stage) -> int:
    """An empty group loses its offsets and itself after a (short) retention; another one lives on."""
    stage.topic(partitions=4)
    members = stage.group(2)
    stage.later(0, lambda: stage.start(stage.config(0, group=stage.marked("alive"))))
    for index in range(2):
        stage.later(60, lambda index=index: members[index].close("scale_in"))
    for at in range(30, 240, 30):
        stage.later(at, lambda: stage.coordinator.sweep(90 * SECOND))
    return 5 * MINUTE


def old_records(stage: Stage) -> int:
    """A cluster of long ago: group records of version 1, commits of version 1, subscriptions of version 0."""
    stage.coordinator.commit_version = stage.coordinator.group_version = 1
    stage.topic()
    stage.group(3, record_version=0)
    stage.later(80, lambda: stage.chance.choice(stage.living()).close("scale_in"), "clean_leave")
    return 4 * MINUTE


def retention(stage: Stage) -> int:
    """A member stands still for longer than the log keeps records: some are lost before they are read."""
    stage.topic(partitions=4, retention_ms=60 * SECOND)
    stage.group(2)
    stage.later(60, lambda: stage.members[0].hang(150 * SECOND), "slow_batch")
    return 6 * MINUTE


def leaderless(stage: Stage) -> int:
    """Two partitions have no leader for a while: no poll knows their end."""
    stage.topic(partitions=4)
    stage.group(2)
    lost = {(stage.topic_name, 1), (stage.topic_name, 2)}
    stage.later(60, lambda: stage.brokers.leaderless.update(lost), "leaderless")
    stage.later(120, stage.brokers.leaderless.clear)
    return 4 * MINUTE


OFFSETS = (
    retention,
    leaderless,
    commit_intervals,
    transactional,
    hanging_transaction,
    topic_recreated,
    simple_committer,
    group_deleted,
    offsets_expired,
    old_records,
)
