"""Tables of a simulated cluster in which the rules have found the faults, under
names of services.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from laggard.tables.arrow import to_arrow
from laggard.tables.schema.schemas import FINDINGS, GROUP_WINDOWS
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.runs import Recorder, place_of, record, simulate
from tables.fixtures import CLUSTER, batch_row, write_arrow, write_rows

# a hot key, too much for all members, a member that hangs, evictions, no member, and two that are
# well
WHO: Mapping[str, str] = {
    "SC03a": "checkout", "SC52": "reporting", "SC10": "fraud", "SC14": "mailer", "SC33": "archive",
    "LA18": "search", "LA1": "audit",
}  # fmt: skip
MINUTES = 38  # when the faults have lasted for twenty minutes
APPENDED = (
    "lag_windows",
    "group_members",
    "rebalances",
    "generations",
    "topic_windows",
    "group_events",
)


def write_simulated(root: Path, seed: int = 1) -> datetime:
    """Simulate all of them side by side and write what the job and the diagnosis would; gives the
    time of the poll.
    """
    runs = []
    for number, name in enumerate(WHO):
        run = simulate(SCENARIOS[name], seed, place_of(SCENARIOS[name], seed + number))
        end_ms = run.cluster.at_ms(MINUTES)
        polls = [each for each in run.simulation.polls if each.at_ms <= end_ms]
        runs.append(
            replace(
                run,
                labels=replace(run.labels, minutes=MINUTES),
                simulation=replace(run.simulation, polls=polls),
            )
        )
    job = Recorder()
    recorded = record(runs, job)
    names = {name: WHO[run.scenario.name] for run in runs for name in run.cluster.names}
    evaluated = [diagnose(each) for each in recorded]
    polled_at = max(each.at_ms for run in runs for each in run.simulation.polls)
    at = datetime.fromtimestamp(polled_at / 1000, timezone.utc)
    found: dict[str, Any] = {name: job.whole(name) for name in APPENDED if name in job.pieces}
    found |= {name: job.tables[name] for name in ("partition_status", "group_status")}
    found["findings"] = to_arrow(FINDINGS, [row for each in evaluated for row in each.findings])
    found["group_windows"] = to_arrow(
        GROUP_WINDOWS, [row for each in evaluated for row in each.windows]
    )
    versions = {
        name: write_arrow(root, name, _named(table, names)) for name, table in found.items()
    }
    newest = max(row["window_start"] for each in evaluated for row in each.windows)
    place = {
        "date": newest.date(),
        "cluster": CLUSTER,
        "batch_id": 1,
        "window_start": newest,
        "group": "",
        "status": "ok",
    }
    write_rows(root, "finding_state", [place | {"window_end": newest, "state": None}])
    write_rows(root, "batches", [batch_row(1, versions, at)])
    return at


def _named(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """Give groups the names of services, and the cluster that of the fixtures."""
    for column, name_of in (
        ("group", lambda name: names.get(name, name)),
        ("cluster", lambda _: CLUSTER),
    ):
        if column in table.column_names:
            place = table.column_names.index(column)
            values = [
                None if value is None else name_of(value) for value in table[column].to_pylist()
            ]
            table = table.set_column(
                place, table.schema.field(place), pa.array(values, pa.string())
            )
    return table
