"""A full body in both formats, compared with committed files; UPDATE_GOLDEN=1 writes them again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import Exporter
from laggard.diagnosis.parameters import Policy
from laggard.exporter.body.families import FAMILIES
from laggard.exporter.body.render import OPENMETRICS, TEXT
from tables.fixtures import (
    NOW,
    finding_row,
    group_row,
    partition_row,
    topic_row,
    window_row,
    write_batch,
    write_evaluated,
)

GOLDEN = Path(__file__).parent / "golden"
# differ from run to run, or with every change of a table
_VARYING = re.compile(
    r"^(process_\w+|laggard_build_info\{.*\}|laggard_exporter_refresh_seconds\{.*\}) .*$",
    re.MULTILINE,
)


def counted() -> dict[str, Any]:
    """What a job that follows rebalances adds to a row of group_status."""
    flows = (
        "produced",
        "consumed",
        "lost",
        "commits",
        "noop_commits",
        "rewinds",
        "rewound_records",
        "ahead",
    )
    return {
        "assignment_imbalance": 1.5,
        "last_rebalance_at": NOW - timedelta(minutes=5),
        "time_in_rebalance_ratio": 0.125,
        "ping_pong": 0.25,
        "interrupted_generations_total": 1,
        "static_restarts_absorbed_total": 2,
        "rebalances_total": {"member_join": 2, "replacement": 1},
        "member_changes_total": {"joined": 3, "left": 1},
        "partitions_moved_total": 6,
        "partitions_moved_avoidable_total": 2,
        "rebalance_duration_buckets": [0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        "rebalance_duration_sum": 7.5,
        "rebalance_pause_buckets": [1, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1],
        "rebalance_pause_sum": 700.0,
        "topic_counters": [{"topic": "orders", **{name: 10 * n for n, name in enumerate(flows)}}],
        "outcome_counters": [{"topic": "orders", "skips": 1, "matured": 500, "late": 20}],
    }


EMPTY = {
    "status": "partial",
    "lag": None,
    "trend": "abstain",
    "slope": None,
    "drain_seconds": None,
    "drain_at_capacity_seconds": None,
    "loss_seconds": float("inf"),
    "members": 0,
    "capacity": None,
    "scale_verdict": "NO_MEMBERS",
    "members_desired": 0,
}


def golden_body(root: Path, name: str) -> str:
    """One ok and one partial group, and a name that needs escaping."""
    partitions = [
        partition_row("billing", "orders", 0),
        partition_row("billing", "orders", 1, committed_offset=1000),
        partition_row("billing", "orders", 2, "no_commit"),
        partition_row(
            'odd "name"\n',
            "orders",
            0,
            "below_log_start",
            committed_offset=1,
            log_start_offset=400,
            readable_records=600,
        ),
        partition_row(
            'odd "name"\n',
            "orders",
            1,
            time_lag_censored=True,
            commit_timestamp=NOW - timedelta(hours=2),
        ),
    ]
    groups = [
        group_row("billing", **counted()),
        group_row(
            'odd "name"\n', group_type="simple", assignor=None, generation=None, group_state="Empty"
        ),
    ]
    topics = [topic_row("orders", n) for n in range(3)]
    write_batch(
        root,
        42,
        partitions=partitions,
        groups=groups,
        topics=topics,
        offsets_retention_minutes=10_080,
    )
    write_evaluated(root, NOW - timedelta(minutes=1), windows=[window_row("billing", "orders")])
    write_evaluated(
        root,
        windows=[
            window_row("billing", "orders", slo_breach_seconds=90.0),
            window_row('odd "name"\n', "orders", **EMPTY),
        ],
        findings=[
            finding_row("CAPACITY_SHORTAGE", "billing", topic="orders"),
            finding_row("EMPTY_WITH_LAG", 'odd "name"\n', severity="info"),
            finding_row("MONITOR_BLIND", None, severity="page"),
        ],
    )
    policy = Policy(
        owner="billing-oncall", team="payments", slo_time_lag_seconds=60, in_maintenance=True
    )
    exporter = Exporter(root, policies={"billing": policy})
    exporter.stats.count_request("/metrics", 200)
    exporter.stats.refresh_errors["table_unreadable"] = 1
    exporter.stats.refused["connections"] = 1
    exporter.stats.dropped["max_series"] = 0
    exporter.stats.clock_offset_seconds = 2.0
    exporter.stats.web_config_current = True
    published = exporter.refresh()
    return _VARYING.sub(r"\1 …", published.bodies(exporter.clock())[name].plain.decode())


@pytest.mark.parametrize("name", [TEXT, OPENMETRICS])
def test_a_full_body_equals_the_golden_file(tmp_path: Path, name: str) -> None:
    body = re.sub(r"laggard_build_info\{.*\}", "laggard_build_info{…}", golden_body(tmp_path, name))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(body)
    assert body == path.read_text()


@pytest.mark.full  # make test has no tools beyond Python and Java
@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool: make tools")
def test_promtool_has_nothing_against_the_golden_body() -> None:
    body = (GOLDEN / "text.txt").read_text().replace("{…}", "").replace(" …\n", " 1\n")
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=body,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_golden_body_shows_every_declared_family() -> None:
    body = (GOLDEN / "openmetrics.txt").read_text()
    shown = {line.split()[2] for line in body.splitlines() if line.startswith("# TYPE")}
    assert {family.base_name for family in FAMILIES} - shown == set()
