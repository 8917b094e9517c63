"""Pages of random scenarios at random moments: no sentence contradicts another, no number another
of the same name.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timezone
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cli.declared import data_of
from cli.page_checks import faults, window_faults
from laggard.answers.groups import read_snapshot
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK
from laggard.exporter.collectors.lag import LagCollector, ShapeCollector
from laggard.exporter.collectors.sizing import SizingCollector
from laggard.exporter.collectors.state import FindingCollector
from laggard.exporter.evaluated import EvaluatedReader
from laggard.tables.arrow import to_arrow
from laggard.tables.schema import schemas
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import diagnose
from scenarios.drawn import draw_cluster
from scenarios.drawn_runs import Workload, scenario
from scenarios.runs import Recorder, declared, place_of, record, simulate
from tables.fixtures import batch_row, make_root, write_arrow, write_rows

MOMENTS = 6
DRAWN = "drawn at random"
_LONG = {"SC59"}  # a day
_WRITTEN = (
    "lag_windows",
    "group_history",
    "group_events",
    "generations",
    "group_members",
    "rebalances",
)


def written(root: Path, name: str, seed: int) -> list[str]:
    """Record a scenario, evaluate its windows and write all that a job would have written; gives
    the groups.

    A name that is no scenario stands for the cluster that is drawn from the seed.
    """
    chosen = SCENARIOS.get(name) or scenario(Workload(draw_cluster(seed)))
    run = simulate(chosen, seed, place_of(chosen, seed))
    job = Recorder(policies=declared([run.labels]))
    (recorded,) = record([run], job)
    evaluated = diagnose(recorded)
    make_root(root)
    versions = {}
    for table in _WRITTEN:
        versions[table] = write_arrow(root, table, recorded.tables[table])
    for table in ("partition_status", "group_status"):
        versions[table] = write_arrow(root, table, job.tables[table])
    versions["topic_windows"] = write_rows(root, "topic_windows", [])
    common = {"cluster": "c", "batch_id": 1}
    for table, rows in (("group_windows", evaluated.windows), ("findings", evaluated.findings)):
        filled = [common | row for row in rows]
        dated = [{"date": row[schemas.TABLES[table].time_column].date()} | row for row in filled]
        write_arrow(root, table, to_arrow(schemas.TABLES[table], dated))
    states = [
        {
            "date": start.date(),
            "cluster": "c",
            "batch_id": 1,
            "window_start": start,
            "group": "",
            "status": "ok",
        }
        for start in sorted({row["window_start"] for row in evaluated.windows})
    ]
    write_rows(root, "finding_state", states)
    polled_at = datetime.fromtimestamp(run.simulation.polls[-1].at_ms / 1000, timezone.utc)
    number = len(run.simulation.polls)
    write_rows(root, "batches", [batch_row(number, versions, polled_at, cluster="c")])
    found = {place_of_row(row): list(window_faults(row)) for row in evaluated.windows}
    assert {place: each for place, each in found.items() if each} == {}
    return [
        name for name in run.cluster.names if any(row["group"] == name for row in evaluated.windows)
    ]


def place_of_row(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["group"], row["topic"], f"{row['window_end']:%H:%M:%S}", row["scale_verdict"]


def page_faults(
    root: Path, capsys: pytest.CaptureFixture[str], group: str, *words: str
) -> list[str]:
    """Render the page and its data."""
    given = ["explain", group, *words, "--set", f"job.tables={root}"]
    code = main(given)
    if code == NOT_FOUND:  # the scenario has deleted it by then, or had not begun
        return []
    assert code == OK
    page = capsys.readouterr().out
    assert main([*given, "--json"]) == OK
    return list(faults(page, data_of("explain", capsys)))


def moments_without(root: Path, group: str, chance: random.Random) -> list[str]:
    """Return some moments at which an open finding is not seen, most of all those at which members
    would help.
    """
    rows = (
        DeltaTable(root / "group_windows")
        .to_pyarrow_table(filters=[("group", "=", group)])
        .to_pylist()
    )
    ends = {
        row["window_end"]: str(row["scale_verdict"]).startswith("YES")
        for row in rows
        if row["unseen_findings"]
    }
    chosen = sorted(ends, key=lambda end: (not ends[end], chance.random()))[:MOMENTS]
    return [f"{end:%Y-%m-%dT%H:%M:%S}" for end in chosen]


def _drawn(count: int, seed: int) -> list[tuple[str, int]]:
    chance = random.Random(seed)
    names = sorted(SCENARIOS.keys() - _LONG)
    return [(name, chance.randrange(1000, 50_000)) for name in chance.sample(names, count)]


def _crashing(count: int) -> list[int]:
    """Return seeds of clusters in which all members of a group crash again and again."""
    seeds = (seed for seed in range(600, 700) if "crash_loop_all" in _faults(seed))
    return list(islice(seeds, count))


def _faults(seed: int) -> set[str]:
    return {fault.kind for plan in draw_cluster(seed).plans for fault in plan.faults}


_SEEDS = (501, 506, 509, 516, *_crashing(3))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "seed"), [*_drawn(4, seed=16), *[(DRAWN, seed) for seed in _SEEDS]]
)
def test_no_page_contradicts_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    seed: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    groups = written(tmp_path / "tables", name, seed)
    chance = random.Random(seed)
    found = {}
    for group in groups:
        found[group, "now"] = page_faults(tmp_path / "tables", capsys, group)
        for _ in range(MOMENTS):
            back = f"-{chance.randrange(1, 30)}m"
            found[group, back] = page_faults(tmp_path / "tables", capsys, group, "--at", back)
        for at in moments_without(tmp_path / "tables", group, chance):
            found[group, at] = page_faults(tmp_path / "tables", capsys, group, "--at", at)
    assert {place: each for place, each in found.items() if each} == {}


def served(root: Path) -> dict[tuple[str, ...], float]:
    """Series of the newest batch as the exporter collects them: family and label values, without
    the cluster.
    """
    snapshot = replace(read_snapshot(str(root)), evaluated=EvaluatedReader(str(root), 60).read())
    collectors = [
        each(snapshot) for each in (LagCollector, ShapeCollector, SizingCollector, FindingCollector)
    ]
    series = {}
    for collector in collectors:
        for sample in chain.from_iterable(family.samples for family in collector.collect()):
            labels = [value for name, value in sample.labels.items() if name != "cluster"]
            series[(sample.name.removeprefix("laggard_"), *labels)] = sample.value
    return series


def shown(capsys: pytest.CaptureFixture[str], root: Path, *words: str) -> Any:
    assert main([*words, "--json", "--set", f"job.tables={root}"]) == OK
    return data_of(words[0], capsys)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "seed"), [*_drawn(3, seed=61), (DRAWN, 503), (DRAWN, 515)])
def test_explain_status_metrics_and_tables_give_the_same_numbers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    seed: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "tables"
    written(root, name, seed)
    series, lines = served(root), shown(capsys, root, "status")["groups"]
    for line in lines:
        group = line["group"]
        explained = shown(capsys, root, "explain", group)
        diagnosis = explained["diagnosis"]
        for lag in ("lag", "lag_known"):
            assert line[lag] == explained["group"][lag]
        lags = [value for (family, *labels),
            value in series.items() if family == "group_lag_records"
                and labels[0] == group]  # fmt: skip
        if explained["group"]["lag"] is not None and lags:
            assert sum(lags) == explained["group"]["lag"]
        assert line["scale_verdict"] == diagnosis["verdict"]
        if diagnosis["verdict"] is not None:
            assert series["group_scale_verdict", group, diagnosis["verdict"]] == 1
        for window in diagnosis["windows"] or ():
            drain = series.get(("group_drain_seconds", group, window["topic"]))
            text = None if drain is None else str(drain).replace("inf", "Infinity")
            seconds = window["drain_seconds"]
            assert text == (None if seconds is None else str(seconds))
        codes = {
            row["code"]
            for row in diagnosis["findings"] or ()
            if row["group"] and row["confidence"] >= 0.3
        }
        active = {key[3] for key in series if key[0] == "finding_active" and key[1] == group}
        assert active == codes
        leads = [row["code"] for row in diagnosis["findings"] or () if row["role"] != "note"]
        assert line["finding"] == (leads[0] if leads else None)


@pytest.mark.parametrize(
    ("lag", "cause", "fault"),
    [
        ("1,200", "too few members", ""),
        ("1,300", "too few members", "another lag under Lag"),
        ("1,200", "too few members, consume_rate fell", "the name of a column: consume_rate"),
        ("1,200", "lag 1,180 records", "a second lag in the evidence"),
        ("1,200", "offset 123456", "a number without separators"),
        ("1,200", "No rule names one", "contradiction: No rule names one"),
    ],
)
def test_the_checks_see_a_fault(lag: str, cause: str, fault: str) -> None:
    page = (
        "a is 1 m 00 s behind on its only partition: adding consumers would help, 1 → 2\na on "
        "c: batch 1\n\n"
        f"Would more consumers help?\n  Yes: 1 → 2 members.\n\nCause\n  {cause}\n\n"
        f"Lag\n  {lag} records in 1 partition\n"
    )
    row = {"finding_id": "1", "code": "", "evidence": {"lag_records": 1180.0}}
    window = {"drain_seconds": "Infinity", "unseen_findings": {}}
    diagnosis = {
        "is_current": True,
        "verdict_text": "Yes: 1 → 2 members.",
        "findings": [row],
        "windows": [window],
    }
    partitions = [{"status": "ok", "lag": 1200}]
    group = {"lag": 1200, "lag_known": 1200, "members": 1}
    found = list(faults(page, {"group": group, "partitions": partitions, "diagnosis": diagnosis}))
    assert [each[: len(fault)] for each in found] == [fault] * bool(fault)


@pytest.mark.parametrize(
    "first", ["has no significant lag, but: it rebalances", "keeps up: nothing to do"]
)
@pytest.mark.parametrize(("members", "lag", "count"), [(0, 12, 1), (1, 12, 0), (0, 0, 0)])
def test_the_checks_see_a_group_without_members_that_is_said_to_keep_up(
    first: str, members: int, lag: int, count: int
) -> None:
    page = f"a {first}\na on c: batch 1\n\nLag\n  {lag} records in 1 partition\n"
    group = {"lag": lag, "lag_known": lag, "members": members}
    diagnosis = {"is_current": False, "verdict_text": None, "findings": []}
    partitions = [{"status": "ok", "lag": lag}]
    found = list(faults(page, {"group": group, "partitions": partitions, "diagnosis": diagnosis}))
    assert [each[:18] for each in found] == ["records are unread"] * count
