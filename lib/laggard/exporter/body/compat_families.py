"""Names and labels of other exporters, for existing dashboards and alerts.

They are served where `metrics.compat` asks for them.

Values are ours: absent if the other tool says -1, NaN, 0 or a partial sum. `cluster` is added
where it has none.
"""

from __future__ import annotations

from laggard.exporter.body.families import Family

_LEVEL = "compat"


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Family:
    return Family(name, "gauge", labels, text, _LEVEL)


# fmt: off
# burrow: https://github.com/linkedin/Burrow
_BG = ("cluster", "consumer_group")
_BP = (*_BG, "topic", "partition")
BURROW_LAG = _gauge("burrow_kafka_consumer_lag_total", _BG, "group_status.lag.")
BURROW_STATUS = _gauge("burrow_kafka_consumer_status", _BG,
    "Worst partition_status.verdict: 1 ok, 2 slow, 3 stopped, stalled or rewound; 1 only if "
    "every partition that has a commit has a verdict; absent while not known.")
BURROW_PARTITION_STATUS = _gauge("burrow_kafka_topic_partition_status", _BP,
    "partition_status.verdict: 1 ok, 2 slow, 4 stopped, 5 stalled, 6 rewound.")
BURROW_OFFSET = _gauge("burrow_kafka_consumer_current_offset", _BP,
    "partition_status.committed_offset.")
BURROW_PARTITION_LAG = _gauge("burrow_kafka_consumer_partition_lag", _BP, "partition_status.lag.")
BURROW_LOG_END = _gauge("burrow_kafka_topic_partition_offset", ("cluster", "topic", "partition"),
    "partition_status.log_end_offset.")

# kafka_exporter: https://github.com/danielqsj/kafka_exporter, and the two names with
# uncommitted_offsets, to which its fork https://github.com/grafana/kafka_exporter renames lag and
# lag_sum
_EG = ("cluster", "consumergroup")
_ET = (*_EG, "topic")
_EP = (*_ET, "partition")
_EL = ("cluster", "topic", "partition")
EXPORTER_LAG = _gauge("kafka_consumergroup_lag", _EP, "partition_status.lag.")
EXPORTER_UNCOMMITTED = _gauge("kafka_consumergroup_uncommitted_offsets", _EP,
    "partition_status.lag, as Grafana's fork of kafka_exporter names it.")
EXPORTER_OFFSET = _gauge("kafka_consumergroup_current_offset", _EP,
    "partition_status.committed_offset.")
EXPORTER_LAG_SUM = _gauge("kafka_consumergroup_lag_sum", _ET, "Sum of partition_status.lag; "
    "absent while a partition that has a commit is not ok.")
EXPORTER_UNCOMMITTED_SUM = _gauge("kafka_consumergroup_uncommitted_offsets_sum", _ET,
    "Sum of partition_status.lag, as Grafana's fork of kafka_exporter names it; absent while a "
    "partition that has a commit is not ok.")
EXPORTER_OFFSET_SUM = _gauge("kafka_consumergroup_current_offset_sum", _ET,
    "Sum of partition_status.committed_offset; absent while a partition that has a commit is not "
    "ok.")
EXPORTER_MEMBERS = _gauge("kafka_consumergroup_members", _EG, "group_status.members.")
EXPORTER_LOG_END = _gauge("kafka_topic_partition_current_offset", _EL,
    "partition_status.log_end_offset.")
EXPORTER_LOG_START = _gauge("kafka_topic_partition_oldest_offset", _EL,
    "partition_status.log_start_offset.")
EXPORTER_PARTITIONS = _gauge("kafka_topic_partitions", ("cluster", "topic"),
    "Number of partitions in topic_windows.partition of the newest closed window.")

# kafka_lag_exporter: https://github.com/seglo/kafka-lag-exporter
_LG = ("cluster_name", "group")
_LS = (*_LG, "is_simple_consumer")  # its offsets are those of somebody who never joined
_LT = (*_LG, "topic")
_LP = (*_LT, "partition", "member_host", "consumer_id", "client_id")
_LL = ("cluster_name", "topic", "partition")
LAG_EXPORTER_OFFSET = _gauge("kafka_consumergroup_group_offset", _LP,
    "partition_status.committed_offset; consumer_id is empty, as are member_host and client_id "
    "without metrics.compat_member_labels.")
LAG_EXPORTER_LAG = _gauge("kafka_consumergroup_group_lag", _LP,
    "partition_status.lag; consumer_id is empty, as are member_host and client_id without "
    "metrics.compat_member_labels.")
LAG_EXPORTER_SECONDS = _gauge("kafka_consumergroup_group_lag_seconds", _LP,
    "partition_status.time_lag_seconds; consumer_id is empty, as are member_host and client_id "
    "without metrics.compat_member_labels.")
LAG_EXPORTER_MAX = _gauge("kafka_consumergroup_group_max_lag", _LS,
    "Maximum of partition_status.lag; absent while a partition that has a commit is not ok.")
LAG_EXPORTER_MAX_SECONDS = _gauge("kafka_consumergroup_group_max_lag_seconds", _LS,
    "Maximum of partition_status.time_lag_seconds; absent while partial or censored.")
LAG_EXPORTER_SUM = _gauge("kafka_consumergroup_group_sum_lag", _LG, "group_status.lag.")
LAG_EXPORTER_TOPIC_SUM = _gauge("kafka_consumergroup_group_topic_sum_lag", _LT,
    "Sum of partition_status.lag; absent while a partition that has a commit is not ok.")
LAG_EXPORTER_LOG_END = _gauge("kafka_partition_latest_offset", _LL,
    "partition_status.log_end_offset.")
LAG_EXPORTER_LOG_START = _gauge("kafka_partition_earliest_offset", _LL,
    "partition_status.log_start_offset.")
LAG_EXPORTER_POLL = _gauge("kafka_consumergroup_poll_time_ms", ("cluster_name",),
    "The poll in batches.durations_seconds, in milliseconds.")

# kminion: https://github.com/redpanda-data/kminion
_KG = ("cluster", "group_id")
_KT = (*_KG, "topic_name")
_KP = (*_KT, "partition_id")
_KL = ("cluster", "topic_name", "partition_id")
KMINION_INFO = _gauge("kminion_kafka_consumer_group_info",
    (*_KG, "protocol", "protocol_type", "state", "coordinator_id"),
    "1 if group_status.group_state is Stable, else 0; protocol is group_status.assignor.")
KMINION_MEMBERS = _gauge("kminion_kafka_consumer_group_members", _KG, "group_status.members.")
KMINION_EMPTY_MEMBERS = _gauge("kminion_kafka_consumer_group_empty_members", _KG,
    "group_status.idle_members.")
KMINION_TOPIC_MEMBERS = _gauge("kminion_kafka_consumer_group_topic_members", _KT,
    "Number of members that have a partition of the topic with a row in partition_status, by the "
    "group_status.folded of the newest group records.")
KMINION_ASSIGNED = _gauge("kminion_kafka_consumer_group_topic_assigned_partitions", _KT,
    "Number of partitions of the topic with a row in partition_status that a member has, by the "
    "group_status.folded of the newest group records.")
KMINION_OFFSET_SUM = _gauge("kminion_kafka_consumer_group_topic_offset_sum", _KT,
    "Sum of partition_status.committed_offset; absent while a partition that has a commit is not "
    "ok.")
KMINION_LAG = _gauge("kminion_kafka_consumer_group_topic_partition_lag", _KP,
    "partition_status.lag.")
KMINION_TOPIC_LAG = _gauge("kminion_kafka_consumer_group_topic_lag", _KT,
    "Sum of partition_status.lag; absent while a partition that has a commit is not ok.")
KMINION_COMMITS = Family("kminion_kafka_consumer_group_offset_commits_total", "counter", _KG,
    "Sum of commits of group_status.topic_counters; never falls.", _LEVEL)
KMINION_LOW = _gauge("kminion_kafka_topic_partition_low_water_mark", _KL,
    "partition_status.log_start_offset.")
KMINION_HIGH = _gauge("kminion_kafka_topic_partition_high_water_mark", _KL,
    "partition_status.log_end_offset.")
KMINION_LOW_SUM = _gauge("kminion_kafka_topic_low_water_mark_sum", ("cluster", "topic_name"),
    "Sum of partition_status.log_start_offset; absent while a partition has none.")
KMINION_HIGH_SUM = _gauge("kminion_kafka_topic_high_water_mark_sum", ("cluster", "topic_name"),
    "Sum of partition_status.log_end_offset; absent while a partition has none.")
# fmt: on

COMPAT = tuple(value for value in list(globals().values()) if isinstance(value, Family))
