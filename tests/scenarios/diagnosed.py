"""The recorded history of a run, evaluated window by window with the functions that the job and a
replay call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from laggard.diagnosis.engine import settle
from laggard.diagnosis.history.frames import Memory, from_json
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation.evaluating import cluster_frame, evaluate_groups, lay_out
from laggard.stream.evaluation.reading import Options, Window, closed_windows, events_of, known_at
from laggard.tables.arrow import to_arrow
from laggard.tables.schema import schemas
from scenarios.runs import Recorded

Row = dict[str, Any]


@dataclass
class Diagnosed:
    """Rows of `findings` and of `group_windows`, and what they cost."""

    findings: list[Row] = field(default_factory=list)
    windows: list[Row] = field(default_factory=list)
    seconds: float = 0.0  # of CPU
    group_windows: int = 0  # groups × windows evaluated


def diagnose(
    recorded: Recorded,
    parameters: Parameters | None = None,
    policies: Mapping[str, Policy] | None = None,
    *,
    is_restarted: bool = False,
) -> Diagnosed:
    """All windows of a run, in order; `is_restarted`: the job restarts before each, with what it
    had stored.
    """
    known_policies = recorded.run.labels.policies if policies is None else policies
    options = Options(
        "c",
        recorded.window_seconds,
        parameters or Parameters(),
        lambda _, group, __: known_policies.get(group, Policy()),
    )
    result, memories, end_ms = Diagnosed(), dict[str, Memory](), recorded.run.end_ms
    began = time.process_time()
    windows = closed_windows(recorded.tables, 0, end_ms, options.window_seconds)
    history = lay_out(recorded.tables, windows[0].begin_ms if windows else end_ms, end_ms, options)
    read, before = events_of(recorded.tables), dict[str, dict[str, list[Row]]]()
    read.rows["deploys"] = []
    for window in windows:
        if is_restarted:
            memories = {group: from_json(memory.to_json()) for group, memory in memories.items()}
        known = known_at(read, window, options)
        diagnosed = list(
            evaluate_groups(
                history,
                known,
                lambda group: lambda: before.get(group, {}),
                window,
                memories,
                options,
            )
        )
        cluster = cluster_frame(known, window, options, recorded.tables["batches"])
        found, findings, memories = settle(diagnosed, cluster, memories, options.parameters)
        result.windows += found
        for row in found:
            before.setdefault(row["group"], {}).setdefault(row["topic"], []).append(row)
        result.findings += findings
        deploys = [
            {**row, **_written(window)}
            for each in diagnosed
            for row in each.completed.get("deploys", ())
        ]
        read.rows["deploys"] += to_arrow(schemas.DEPLOYS, deploys).to_pylist()
        result.group_windows += len(diagnosed)
    result.seconds = time.process_time() - began
    return result


def _written(window: Window) -> Row:
    """What the job adds to a row of a window."""
    return {"cluster": "c", "batch_id": window.batch_id}
