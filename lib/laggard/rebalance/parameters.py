"""Every threshold of the rebalance analytics, with its default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RebalanceParameters:
    """Seconds and shares by which generations are joined, evaluated and written.

    The diagnosis sets those that its `Parameters` have under the same name, as drills scale them.
    """

    min_lag_records: int = 5  # of a partition: less counts as no lag
    # commit intervals of arrivals, and one record: the lag that commits alone make
    floor_intervals: float = 2.0
    # a next join phase that ends so soon belongs to the same logical rebalance
    merge_seconds: float = 10.0
    # so does one within this many sync phases, where those are longer
    merge_sync_times: float = 2.0
    merge_limit_seconds: float = 600.0  # a group that never comes to rest still gets a row so often
    # of such gaps without a record: a next join phase may have ended in the first
    settle_gaps: float = 2.0
    # so long after its end a rebalance is written with what is known
    give_up_seconds: float = 600.0
    initial_delay_seconds: float = 3.0  # Kafka's default of group.initial.rebalance.delay.ms

    # a new leader of the offsets partition so shortly before explains a rebalance
    coordinator_seconds: float = 60.0
    partitions_added_seconds: float = 300.0
    static_return_seconds: float = 600.0
    probing_seconds: float = 600.0  # Kafka Streams' default of probing.rebalance.interval.ms
    probing_tolerance: float = 0.1

    straggler_tolerance: float = 0.1  # of the longest rebalance timeout
    # of it at least that a join took which ended with a member's own poll interval
    straggler_share: float = 0.5
    # the Java consumer's default; Kafka does not record the interval
    heartbeat_seconds: float = 3.0

    poll_timeout_share: float = 0.8  # of the rebalance timeout: idle so long before it left
    modern_session_seconds: float = (
        45.0  # Kafka's default of group.consumer.session.timeout.ms; Kafka does not record it
    )
    session_low: float = 0.7  # of the session timeout
    session_high: float = 1.3
    orderly_commit_intervals: float = 2.0  # a member that left in order committed shortly before
    orderly_seconds: float = 5.0
    return_seconds: float = 600.0
    crash_times: int = 3
    # times the mean of the other slots: who leaves so often has a fault of its own
    crash_ratio: float = 3.0
    deploy_horizon_seconds: float = 1_800.0
    deploy_suspect_share: float = 0.3  # of the slots replaced, each once: a deploy may be under way
    deploy_batches: int = 2
    deploy_departures: int = 3  # two may leave in half an hour without having to do with each other
    cause_posterior: float = 0.7
    ping_pong_seconds: float = 3_600.0  # a partition that returns later has not moved to and fro


DEFAULTS = RebalanceParameters()
