"""Write the generated parts of docs/migrate: `make docs`.

They are names side by side, and queries that compare two tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from laggard.exporter.body.compat_families import COMPAT
from laggard.exporter.body.families import Family

PAGES = Path(__file__).parents[1] / "migrate"
TRIAL = "trial_"  # put before the names while both tools are scraped


@dataclass(frozen=True, slots=True)
class Tool:
    """The other tool: its page, its names in Prometheus, and the lag that both are compared by."""

    key: str  # in metrics.compat
    title: str
    page: str
    prefixes: tuple[str, ...]
    lag: str
    by: str
    added: str = ""  # label that laggard adds to its names


TOOLS = (
    Tool(
        key="burrow",
        title="Burrow",
        page="burrow",
        prefixes=("burrow_",),
        lag="burrow_kafka_consumer_lag_total",
        by="cluster, consumer_group",
    ),
    Tool(
        key="kminion",
        title="kminion",
        page="kminion",
        prefixes=("kminion_",),
        lag="kminion_kafka_consumer_group_topic_lag",
        by="group_id, topic_name",
        added="cluster",
    ),
    Tool(
        key="kafka_exporter",
        title="kafka_exporter",
        page="kafka_exporter",
        prefixes=("kafka_consumergroup_", "kafka_topic_"),
        lag="kafka_consumergroup_lag_sum",
        by="consumergroup, topic",
        added="cluster",
    ),
    Tool(
        key="kafka_lag_exporter",
        title="kafka-lag-exporter",
        page="kafka-lag-exporter",
        prefixes=("kafka_consumergroup_", "kafka_partition_"),
        lag="kafka_consumergroup_group_topic_sum_lag",
        by="cluster_name, group, topic",
    ),
)

# laggard's own metric of the same fact; a group's lag is a sum by topic here, and absent while a
# topic's is not whole
_LAG, _LAG_SUM = "laggard_partition_lag_records", "laggard_group_lag_records"
_OFFSET, _END, _START = (
    f"laggard_partition_{name}"
    for name in ("committed_offset", "log_end_offset", "log_start_offset")
)
_MEMBERS = "laggard_group_members"
OWN: dict[str, str] = {
    "burrow_kafka_consumer_lag_total": _LAG_SUM,
    "burrow_kafka_consumer_status": "laggard_group_verdict",
    "burrow_kafka_topic_partition_status": "laggard_group_verdict",
    "burrow_kafka_consumer_current_offset": _OFFSET,
    "burrow_kafka_consumer_partition_lag": _LAG,
    "burrow_kafka_topic_partition_offset": _END,
    "kafka_consumergroup_lag": _LAG,
    "kafka_consumergroup_uncommitted_offsets": _LAG,
    "kafka_consumergroup_current_offset": _OFFSET,
    "kafka_consumergroup_lag_sum": _LAG_SUM,
    "kafka_consumergroup_uncommitted_offsets_sum": _LAG_SUM,
    "kafka_consumergroup_current_offset_sum": "",
    "kafka_consumergroup_members": _MEMBERS,
    "kafka_topic_partition_current_offset": _END,
    "kafka_topic_partition_oldest_offset": _START,
    "kafka_topic_partitions": "laggard_topic_partitions",
    "kafka_consumergroup_group_offset": _OFFSET,
    "kafka_consumergroup_group_lag": _LAG,
    "kafka_consumergroup_group_lag_seconds": "laggard_partition_time_lag_seconds",
    "kafka_consumergroup_group_max_lag": "laggard_group_max_lag_records",
    "kafka_consumergroup_group_max_lag_seconds": "laggard_group_time_lag_seconds",
    "kafka_consumergroup_group_sum_lag": _LAG_SUM,
    "kafka_consumergroup_group_topic_sum_lag": _LAG_SUM,
    "kafka_partition_latest_offset": _END,
    "kafka_partition_earliest_offset": _START,
    "kafka_consumergroup_poll_time_ms": "laggard_stage_seconds_total",
    "kminion_kafka_consumer_group_info": "laggard_group_info",
    "kminion_kafka_consumer_group_members": _MEMBERS,
    "kminion_kafka_consumer_group_empty_members": "laggard_group_idle_members",
    "kminion_kafka_consumer_group_topic_members": "",
    "kminion_kafka_consumer_group_topic_assigned_partitions": "",
    "kminion_kafka_consumer_group_topic_offset_sum": "",
    "kminion_kafka_consumer_group_topic_partition_lag": _LAG,
    "kminion_kafka_consumer_group_topic_lag": _LAG_SUM,
    "kminion_kafka_consumer_group_offset_commits_total": "laggard_group_commits_total",
    "kminion_kafka_topic_partition_low_water_mark": _START,
    "kminion_kafka_topic_partition_high_water_mark": _END,
    "kminion_kafka_topic_low_water_mark_sum": "",
    "kminion_kafka_topic_high_water_mark_sum": "",
}


def families(tool: Tool) -> list[Family]:
    """Return the names that laggard serves of a tool."""
    found = [each for each in COMPAT if each.name.startswith(tool.prefixes)]
    if tool.key in ("kafka_exporter", "kafka_lag_exporter"):
        found = [
            each
            for each in found
            if ("cluster_name" in each.labels) is (tool.key == "kafka_lag_exporter")
        ]
    return found


def generated(tool: Tool) -> dict[str, list[str]]:
    """Return the lines of each generated part of a page."""
    return {"names": [*_names(tool)], "scrape": [*_scrape(tool)], "queries": [*_queries(tool)]}


def page(tool: Tool, text: str) -> str:
    """Return the page with its generated parts written again."""
    for name, lines in generated(tool).items():
        begin, end = f"<!-- {name}: written by make docs -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = "\n".join([before + begin, "", *lines, "", end + after])
    return text


def _names(tool: Tool) -> Iterator[str]:
    yield f"| name and labels of {tool.title}, served by both | laggard's own |"
    yield "|---|---|"
    for family in families(tool):
        labels = ",".join(label for label in family.labels if label != tool.added)
        own = f"`{OWN[family.name]}`" if OWN[family.name] else "–"
        yield f"| `{family.name}{{{labels}}}` | {own} |"


def _scrape(tool: Tool) -> Iterator[str]:
    names = "|".join(f"{prefix}.+" for prefix in tool.prefixes)
    yield "```yaml"
    yield "scrape_configs:"
    yield "- job_name: laggard"
    yield "  scrape_interval: 15s"
    yield "  static_configs:"
    yield '  - targets: ["laggard.example.org:8917"]'
    yield "  metric_relabel_configs:"
    yield "  - source_labels: [__name__]"
    yield f"    regex: ({names})"
    yield "    target_label: __name__"
    yield f"    replacement: {TRIAL}$1"
    yield "```"


def _queries(tool: Tool) -> Iterator[str]:
    theirs, ours = (f"max by ({tool.by}) ({name})" for name in (tool.lag, TRIAL + tool.lag))
    means = [
        f"max by ({tool.by}) (avg_over_time({name}[1h]))" for name in (tool.lag, TRIAL + tool.lag)
    ]
    yield (
        "Groups and topics whose mean lag of an hour differs by more than a tenth and 100 records:"
    )
    yield ""
    yield "```promql"
    yield f"abs({means[0]} - {means[1]})"
    yield f"> 100 + 0.1 * {means[0]}"
    yield "```"
    yield ""
    yield f"Served by {tool.title} only: unknown here, or a group or topic that is left out:"
    yield ""
    yield "```promql"
    yield f"{theirs} unless {ours}"
    yield "```"
    yield ""
    yield "Served by laggard only:"
    yield ""
    yield "```promql"
    yield f"{ours} unless {theirs}"
    yield "```"


def main() -> None:
    """Write them."""
    for tool in TOOLS:
        path = PAGES / f"{tool.page}.md"
        path.write_text(page(tool, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
