"""Workloads about offsets: how often and by whom they are committed, hidden, deleted."""

from __future__ import annotations

from simulator.cluster import MINUTE, SECOND, Cluster


def commit_intervals(cluster: Cluster) -> int:
    """Groups that commit every second, every half minute, and every ten minutes."""
    cluster.topic(partitions=4)
    for name, interval in (("every-second", 1), ("half-a-minute", 30), ("ten-minutes", 600)):
        for index in range(2):
            config = cluster.config(index, group=cluster.marked(name), commit_ms=interval * SECOND)
            cluster.later(0, lambda config=config: cluster.start(config))
    return 12 * MINUTE


def transactional(cluster: Cluster) -> int:
    """Commits in transactions, of which some abort: what they brought is processed again."""
    cluster.topic(partitions=6)
    cluster.group(2, commit_ms=2_000, abort_share=0.3)
    return 4 * MINUTE


def hanging_transaction(cluster: Cluster) -> int:
    """An open transaction hides everything behind it in its offsets partition,
    until its timeout.
    """
    cluster.topic(partitions=6)
    cluster.group(2)

    def hang() -> None:
        member_id, generation = cluster.members[0].identity()
        offsets = dict(cluster.members[0].positions)
        cluster.coordinator.commit_in_transaction(
            cluster.group_name, member_id, generation, offsets, lambda *_: None
        )

    cluster.later(80, hang, "hanging_transaction")
    cluster.later(
        100, lambda: cluster.chance.choice(cluster.living()).close("scale_in"), "clean_leave"
    )
    return 5 * MINUTE


def topic_recreated(cluster: Cluster) -> int:
    """Deleted and recreated under another id while nobody reads it."""
    cluster.topic()
    members = cluster.group(2)

    def recreate() -> None:
        cluster.brokers.delete(cluster.topic_name)
        cluster.coordinator.topic_deleted(cluster.topic_name)
        cluster.clock.after(20 * SECOND, cluster.topic)

    for index in range(2):
        cluster.later(60, lambda index=index: members[index].close("scale_in"))
    cluster.later(80, recreate, "topic_recreated")
    for index in range(2):
        cluster.later(120, lambda index=index: cluster.start(cluster.config(index)))
    return 5 * MINUTE


def simple_committer(cluster: Cluster) -> int:
    """Offsets without a group record; then real members."""
    cluster.topic(partitions=3)

    def commit() -> None:
        offsets = {
            (cluster.topic_name, partition): cluster.brokers.end(cluster.topic_name, partition)
            for partition in range(3)
        }
        cluster.coordinator.commit(cluster.marked("external"), "", -1, offsets, lambda _: None)

    for at in (10, 40, 70, 100):
        cluster.later(at, commit)
    cluster.later(150, lambda: cluster.start(cluster.config(0, group=cluster.marked("external"))))
    return 5 * MINUTE


def group_deleted(cluster: Cluster) -> int:
    """Everybody leaves, an admin resets offsets, then deletes the group."""
    cluster.topic(partitions=4)
    members = cluster.group(2)
    for index in range(2):
        cluster.later(60, lambda index=index: members[index].close("scale_in"))
    reset = {(cluster.topic_name, partition): 100 for partition in range(4)}
    cluster.later(
        100,
        lambda: cluster.coordinator.commit(cluster.group_name, "", -1, reset, lambda _: None),
        "reset",
    )
    cluster.later(
        150, lambda: cluster.coordinator.delete_group(cluster.group_name), "group_deleted"
    )
    cluster.later(200, lambda: cluster.start(cluster.config(0)))
    return 5 * MINUTE


def offsets_expired(cluster: Cluster) -> int:
    """An empty group loses its offsets and itself after a (short) retention;
    another one lives on.
    """
    cluster.topic(partitions=4)
    members = cluster.group(2)
    cluster.later(0, lambda: cluster.start(cluster.config(0, group=cluster.marked("alive"))))
    for index in range(2):
        cluster.later(60, lambda index=index: members[index].close("scale_in"))
    for at in range(30, 240, 30):
        cluster.later(at, lambda: cluster.coordinator.sweep(90 * SECOND))
    return 5 * MINUTE


def old_records(cluster: Cluster) -> int:
    """A cluster of long ago: group records of version 1, commits of version 1, subscriptions of
    version 0.
    """
    cluster.coordinator.commit_version = cluster.coordinator.group_version = 1
    cluster.topic()
    cluster.group(3, record_version=0)
    cluster.later(
        80, lambda: cluster.chance.choice(cluster.living()).close("scale_in"), "clean_leave"
    )
    return 4 * MINUTE


def retention(cluster: Cluster) -> int:
    """A member is stalled for longer than the log keeps records: some are lost before they are
    read.
    """
    cluster.topic(partitions=4, retention_ms=60 * SECOND)
    cluster.group(2)
    cluster.later(60, lambda: cluster.members[0].hang(150 * SECOND), "slow_batch")
    return 6 * MINUTE


def leaderless(cluster: Cluster) -> int:
    """Two partitions have no leader for a while: no poll knows their end."""
    cluster.topic(partitions=4)
    cluster.group(2)
    lost = {(cluster.topic_name, 1), (cluster.topic_name, 2)}
    cluster.later(60, lambda: cluster.brokers.leaderless.update(lost), "leaderless")
    cluster.later(120, cluster.brokers.leaderless.clear)
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
