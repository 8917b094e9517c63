"""The diagnosis: seconds and CPU of one window of 1,000 groups with 50 partitions each.

The window is evaluated from an hour of history.

The CPU of reading the tables, laying them out, evaluating and settling is shown apart; the job
does all but the last on its executors, a shard each.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import report

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/wire")]

from diagnosis.fluid import NOON, Fluid, tables_of  # noqa: E402 - histories without a broker
from laggard.diagnosis.engine import Evaluated, settle  # noqa: E402
from laggard.diagnosis.parameters import Parameters, Policy  # noqa: E402
from laggard.diagnosis.signals.cluster import ClusterFrame  # noqa: E402
from laggard.stream.evaluation.diagnose import in_shard, of_shard  # noqa: E402
from laggard.stream.evaluation.evaluating import Baselines, evaluate_groups, lay_out  # noqa: E402
from laggard.stream.evaluation.reading import (  # noqa: E402
    RECENT,
    Options,
    Window,
    events_of,
    known_at,
    read_baseline,
    read_history,
)
from laggard.tables.delta import Writer, create_tables  # noqa: E402
from laggard.tables.schema import schemas  # noqa: E402

WINDOWS, PARTITIONS, MEMBERS = 60, 50, 10
TROUBLED = 10  # one group of so many falls behind
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())
LAST = Window(round((NOON + timedelta(minutes=WINDOWS - 1)).timestamp() * 1000), WINDOWS + 1)


def main() -> None:
    """Write an hour of history and evaluate its last window in one and in two processes.

    The number of groups grows from run to run.
    """
    rows = []
    for groups in (100, 1_000):
        with tempfile.TemporaryDirectory() as folder:
            write_history(folder, groups)
            same = {"groups": groups, "partitions": PARTITIONS}
            rows += [{**same, "processes": shards} | measure(folder, shards) for shards in (1, 2)]
    report("diagnose", rows)


def write_history(root: str, groups: int) -> None:
    """Write an hour of windows as the job leaves them: a file per window."""
    create_tables(root)
    writer = Writer(root, "bench")
    models = [_group(number) for number in range(20)]
    base = tables_of(models)
    for name in ("lag_windows", "group_history"):
        table, rows = schemas.TABLES[name], base[name]
        for number in range(WINDOWS):
            begin = pa.scalar(NOON + timedelta(minutes=number), pa.timestamp("us", tz="UTC"))
            of_window = rows.filter(pa.compute.equal(rows["window_start"], begin))
            copies = [_renamed(of_window, copy) for copy in range(groups // len(models))]
            writer.write(table, pa.concat_tables(copies), number + 1)


def _group(number: int) -> Fluid:
    arrival = np.full((PARTITIONS, WINDOWS), 100.0)
    if number % TROUBLED == 0:
        arrival[:, WINDOWS // 2 :] = 150.0
    return Fluid(arrival, np.full((MEMBERS, WINDOWS), 600.0), number, f"group-{number}")


def _renamed(rows: pa.Table, copy: int) -> pa.Table:
    names = pa.compute.binary_join_element_wise(rows["group"], str(copy), "-")
    return rows.set_column(rows.schema.get_field_index("group"), "group", names)


def measure(root: str, shards: int) -> dict[str, Any]:
    """Return seconds from the tables to the rows of group_windows and findings."""
    began = time.perf_counter()
    # delta-rs does not survive a fork
    with ProcessPoolExecutor(shards, get_context("spawn")) as pool:
        # processes are there before the clock starts, as Spark's workers are
        list(pool.map(abs, range(shards)))
        began = time.perf_counter()
        parts = list(pool.map(_shard, [(root, shard, shards) for shard in range(shards)]))
    evaluated = [each for part, _ in parts for each in part]
    read, laid_out, evaluating = (
        sum(phase) for phase in zip(*(cpu for _, cpu in parts), strict=True)
    )
    mark = time.perf_counter()
    windows, findings, _ = settle(
        evaluated, ClusterFrame("c", LAST.begin_ms, 60), {}, OPTIONS.parameters
    )
    assert len(windows) == len(evaluated), (len(windows), len(evaluated), findings[:1])
    now = time.perf_counter()
    return {
        "seconds": now - began,
        "settle_seconds": now - mark,
        "read_cpu_seconds": read,
        "lay_out_cpu_seconds": laid_out,
        "evaluate_cpu_seconds": evaluating,
        "cpu_seconds": read + laid_out + evaluating + now - mark,
        "cpu_ms_per_group": 1e3 * (read + laid_out + evaluating) / len(evaluated),
        "target_seconds": 5.0,
    }


def _shard(place: tuple[str, int, int]) -> tuple[list[Evaluated], list[float]]:
    """Return the evaluated groups of a shard and the CPU seconds of each step.

    The steps are reading, laying out and evaluating.
    """
    root, shard, shards = place
    marks = [time.process_time()]
    own = {"shard": shard, "shards": shards}
    tables = read_history(root, {}, LAST.begin_ms, LAST.begin_ms, OPTIONS)
    tables |= {name: of_shard(tables[name], **own) for name in (*RECENT, "group_history")}
    marks.append(time.process_time())
    history = lay_out(tables, LAST.begin_ms, LAST.begin_ms, OPTIONS, partial(in_shard, **own))
    marks.append(time.process_time())
    known = known_at(events_of(tables), LAST, OPTIONS)
    before = Baselines(partial(read_baseline, root, LAST.begin_ms, OPTIONS))
    found = list(evaluate_groups(history, known, before.of, LAST, {}, OPTIONS))
    marks.append(time.process_time())
    return found, [end - begin for begin, end in pairwise(marks)]


if __name__ == "__main__":
    main()
