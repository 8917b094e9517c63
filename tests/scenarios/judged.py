"""The recorded history of a run, judged window by window with the functions that the job and a replay call."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.engine import settle
from laggard.diagnosis.memory import Memory, from_json
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.policy import Policy
from laggard.stream.judging import cluster_frame, judge_groups
from laggard.stream.reading import BASELINE, Options, Window, closed_windows, known_at
from laggard.tables import schemas
from laggard.tables.arrow import to_arrow
from scenarios.runs import WINDOW_MS, Recorded

Row = dict[str, Any]
KEPT_MS = 60 * WINDOW_MS


@dataclass
class Judged:
    """Rows of `findings` and of `group_windows`, and what they cost."""

    findings: list[Row] = field(default_factory=list)
    windows: list[Row] = field(default_factory=list)
    seconds: float = 0.0  # of CPU
    group_windows: int = 0  # groups × windows judged


def diagnose(
    recorded: Recorded,
    parameters: Parameters | None = None,
    policies: Mapping[str, Policy] | None = None,
    *,
    is_restarted: bool = False,
) -> Judged:
    """All windows of a run, in order; `is_restarted`: the job begins anew before each, with what it had stored."""
    known_policies = recorded.run.labels.policies if policies is None else policies
    options = Options(
        "c", WINDOW_MS // 1000, parameters or Parameters(), lambda _, group, __: known_policies.get(group, Policy())
    )
    result, memories, told = Judged(), dict[str, Memory](), list[Row]()
    began = time.process_time()
    for window in closed_windows(recorded.tables, 0, recorded.run.end_ms):
        if is_restarted:
            memories = {group: from_json(memory.to_json()) for group, memory in memories.items()}
        tables = _recent(recorded.tables, window.begin_ms) | {"deploys": to_arrow(schemas.DEPLOYS, told)}
        known = known_at(tables, window, options)
        judged = list(judge_groups(known, lambda: _baseline(result.windows), window, memories, options))
        rows, findings, memories = settle(judged, cluster_frame(known, window, options), memories, options.parameters)
        result.windows += rows
        result.findings += findings
        told += [{**row, **_written(window)} for each in judged for row in each.told.get("deploys", ())]
        result.group_windows += len(judged)
    result.seconds = time.process_time() - began
    return result


def _written(window: Window) -> Row:
    """What the job adds to a row of a window."""
    return {"cluster": "c", "batch_id": window.batch_id}


def _recent(tables: Mapping[str, pa.Table], window_ms: int) -> dict[str, pa.Table]:
    """As the job reads them: windows of the look-back, everything else whole."""
    found = dict(tables)
    since = pa.scalar(1000 * (window_ms - KEPT_MS), pa.int64())
    for name in ("lag_windows", "group_history", "topic_windows"):
        rows = tables[name]
        found[name] = rows.filter(pc.greater(pc.cast(rows["window_start"], pa.int64()), since))
    return found


def _baseline(rows: list[Row]) -> pa.Table:
    return pa.table({name: [row.get(name) for row in rows] for name in BASELINE})
