"""What verbs print with --json is what docs/cli-json declares: no key more, none less, each of its
type.

The documents are of groups in trouble, with all that a document can have.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import layouts
import made_up
import vectors
from audit.roots import change, write_root
from cli import group_rows
from cli.evaluated_run import evaluate, even, hot, record
from cli.group_rows import rebalance_row
from cli_json import schemas
from diagnosis.fluid import Fluid
from exporter.api_kit import serving_api
from exporter.harness import LIMIT_SECONDS, Exporter
from json_schemas import faults, keys, strict, unseen, validator
from laggard.cli.asking import client
from laggard.cli.main import main
from laggard.exporter import api as api_module
from laggard.stream.job.heartbeat import Heartbeat
from laggard.tables.published import newest_batch
from laggard.tables.schema.schemas import TABLES
from laggard.wire.decode import decode, to_json
from laggard.wire.schemas import RECORD_TYPES
from tables.fixtures import batch_row, group_row, make_root, write_rows

SCHEMAS = schemas()
RECORDS = strict(SCHEMAS["decode"]["$defs"])
COLUMNS = {name for table in TABLES.values() for name in table.names}
ANY = ("expected", "found")  # values of any column
WINDOWS = 24
pytestmark = pytest.mark.full
POLICY = """[[policy]]
match = "fr*"
slo_time_lag_seconds = 60
mute_codes = ["NO_RULE_MATCHED"]
"""
Documents = dict[str, list[Any]]


class Collector:
    """Documents by the name of their schema."""

    def __init__(self) -> None:
        self.documents: Documents = {}

    def __call__(self, name: str, root: Path, *words: str) -> Any:
        output = io.StringIO()
        with redirect_stdout(output):
            main([*words, "--json", "--set", f'job.tables="{root}"', "--set", "cluster.name=prod"])
        found = json.loads(output.getvalue())
        self.documents.setdefault(name, []).append(found)
        return found


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Documents:
    """All documents, each of several states."""
    folder = tmp_path_factory.mktemp("documents")
    collect = Collector()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(client, "ASK_SECONDS", LIMIT_SECONDS)
        patch.setattr(api_module, "ANSWER_SECONDS", LIMIT_SECONDS)
        collect_evaluated(collect, folder / "evaluated")
        collect_recorded(collect, folder / "recorded")
        collect_audited(collect, folder)
        collect_configured(collect, folder)
        lines = [
            {"key_hex": hex_of(each.key), "value_hex": hex_of(each.value)}
            for each in vectors.RECORDS
        ]
        text = b"".join(json.dumps(each).encode() + b"\n" for each in [*lines, "no record"])
        patch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        collect("decode", folder, "decode")
    return collect.documents


def in_place(place: tuple[int, int]) -> str:
    return "type {} version {}".format(*place)


def hex_of(raw: bytes | None) -> str | None:
    return None if raw is None else raw.hex()


def collect_evaluated(collect: Collector, root: Path) -> None:
    """`fraud` has a hot partition, `billing` too few members, `calm` nothing, `stuck` had a member
    that was stalled.
    """
    capacity = np.full((3, WINDOWS), 1000.0)
    capacity[1, 9:15] = 0.0
    capacity[:, 15:] = 5000.0
    stuck = Fluid(np.full((12, WINDOWS), 75.0), capacity, group="stuck")
    groups = [
        hot(WINDOWS),
        even(WINDOWS, group="calm"),
        even(WINDOWS, arrival=3600.0, group="billing"),
        stuck,
    ]
    polled_at = record(root, groups)
    evaluate(root, 8)
    write_rebalances(root, polled_at)
    for group in ("fraud", "calm", "billing", "stuck"):
        collect("explain", root, "explain", group, "--since", "-2h", "--topic", "orders")
        collect("plan", root, "plan", group, "--members", "6", "--sweep")
    collect("explain", root, "explain", "stuck", "--at", "8m")
    collect("plan", root, "plan", "billing", "--partitions", "30")
    collect("plan", root, "plan", "billing", "--assignor", "sticky", "--rate", "2")
    collect("findings", root, "findings", "--all")
    collect(
        "diagnose",
        root,
        "diagnose",
        "--from",
        "10m",
        "--output",
        str(root.with_name("other")),
    )
    collect("diagnose", root, "diagnose", "--from", "2h", "--group", "billing")
    collect("report", root, "report", "fraud", "-o", "fraud.html")
    collect("report", root, "report", "--fleet", "-o", "fleet.html")
    collect("query", root, "query", "select * from group_windows")
    collect("query", root, "query", "--name", "Q2", "--param", "group=fraud")
    collect("query", root, "query", "show tables")
    collect("query-output", root, "query", "select * from findings", "-o", "findings.json")
    collect("query-list", root, "query", "--list")
    collect("status", root, "status")
    with served(root, polled_at) as port:
        url = ("--url", f"http://127.0.0.1:{port}")
        collect("status", root, "status", *url)
        collect("status", root, "status", "--rebalances", *url)
        collect("explain", root, "explain", "fraud", *url)
        collect("findings", root, "findings", *url)
        collect("doctor", root, "doctor", *url)
        collect("export-check", root, "export", "--check", "ready", "--listen", f"127.0.0.1:{port}")
    collect("export-check", root, "export", "--check", "--listen", "127.0.0.1:1")


def write_rebalances(root: Path, polled_at: datetime) -> None:
    """One of each group, in one more batch."""
    batch, ended_at = newest_batch(str(root)), polled_at - timedelta(minutes=6)
    assert batch is not None
    rows = (
        DeltaTable(str(root / "group_status"))
        .to_pyarrow_table()
        .to_pylist(maps_as_pydicts="strict")
    )
    counts = {
        "rebalances_total": {"member_left": 1},
        "last_rebalance_at": ended_at,
        "rebalancing_since": polled_at,
    }
    tables = {
        "group_status": [row | counts for row in rows],
        "rebalances": [rebalance_row(ended_at, group=row["group"]) for row in rows],
    }
    versions = dict(batch.table_versions) | {
        name: write_rows(root, name, each) for name, each in tables.items()
    }
    write_rows(root, "batches", [batch_row(batch.batch_id + 1, versions, polled_at)])


@contextmanager
def served(root: Path, polled_at: datetime) -> Iterator[int]:
    exporter = Exporter(root)
    exporter.clock.now = polled_at.timestamp()
    exporter.refresh()
    with serving_api(exporter) as asker:
        yield asker.port


def collect_recorded(collect: Collector, root: Path) -> None:
    """`checkout` rebalanced at a cost, `other` has no known lag; the rules have not evaluated."""
    unknown = group_row("other", lag=None, lag_known=None, max_time_lag_seconds=None, members=None)
    make_root(root)
    group_rows.write(root, group_status=[group_rows.group(), unknown])
    for group in ("checkout", "other"):
        collect("explain", root, "explain", group)
    collect("status", root, "status", "--rebalances")
    collect("findings", root, "findings")


def collect_audited(collect: Collector, folder: Path) -> None:
    """Tables that are right, tables with a wrong lag, and tables whose oldest batches are gone."""
    write_root(folder / "right", "transactional", seed=1)

    def edit(rows: list[dict[str, Any]]) -> None:
        max((row for row in rows if row["status"] == "ok"), key=lambda row: row["window_start"])[
            "lag"
        ] += 1

    change(folder / "right", folder / "wrong", "lag_windows", edit)

    def put_off(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["date"], row["polled_at"] = (
                row["date"] + timedelta(days=1),
                row["polled_at"] + timedelta(days=1),
            )

    change(folder / "right", folder / "late", "batches", put_off)
    collect("audit", folder / "late", "audit")
    collect("audit", folder / "right", "audit", "--since", "1h")
    collect("audit", folder / "wrong", "audit")


def collect_configured(collect: Collector, folder: Path) -> None:
    """The configuration with rules about groups, the checks of this machine, and
    the beat of a job.
    """
    (folder / "laggard.toml").write_text(POLICY, encoding="utf-8")
    for action in ("show", "check", "sample"):
        collect(f"config-{action}", folder, "config", action)
    collect("config-policy", folder, "config", "policy", "fraud")
    collect("config-policy", folder, "config", "policy", "calm")
    collect("doctor", folder, "doctor")
    beat = folder / "beat.json"
    for setting in ("job.heartbeat_file=none", f"job.heartbeat_file={beat}"):
        collect("run-check", folder, "run", "--check", "ready", "--set", setting)
        Heartbeat(str(beat), 120, 900).published()
    collect("error", folder, "query", "selekt")
    collect("error", folder, "run")
    collect("error", folder, "audit", "--set", f"job.tables={folder / 'none'}")


# of odd names, a second page, a policy and infinite numbers: tests of the API see these
OF_API = {
    *("cluster_bytes", "group_bytes", "topic_bytes"),
    *("next", "null_reasons", "team", "history_bounds"),
}
OPTIONAL = {"rebalances"}  # only with --rebalances


@pytest.mark.parametrize("name", SCHEMAS)
def test_documents_are_as_declared(documents: Documents, name: str) -> None:
    found = [fault for each in documents[name] for fault in faults(strict(SCHEMAS[name]), each)]
    assert found == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_declared_key_is_seen_with_a_value(documents: Documents, name: str) -> None:
    """But for columns of tables, which have the types of their tables, and Kafka's own fields,
    which are below.
    """
    found = unseen(SCHEMAS[name], documents[name])
    fields = ("data.key.", "data.value.") if name == "decode" else ()
    assert {
        path
        for path in found
        if path.rpartition(".")[2] not in COLUMNS | OF_API and not path.startswith(fields)
    } == set()


@pytest.mark.parametrize("place", sorted(layouts.VALUES), ids=in_place)
@settings(max_examples=10)
@given(st.data())
def test_made_up_records_are_as_declared(place: tuple[int, int], data: st.DataObject) -> None:
    record_type, name = place[0], RECORD_TYPES[place[0]].name
    key, value = data.draw(made_up.KEYS[record_type]), data.draw(made_up.VALUES[place])
    found = to_json(
        decode(encoder.record_key(record_type, key), encoder.record_value(*place, value))
    )
    assert found["outcome"] == "record"
    for part in ("key", "value"):
        schema = {"$ref": f"#/$defs/{name}{part.title()}", "$defs": RECORDS}
        assert faults(schema, found[part]) == []


def test_ok_is_false_if_the_answer_is_no(documents: Documents) -> None:
    names = ("audit", "doctor", "run-check", "export-check")
    assert {name: {each["ok"] for each in documents[name]} for name in names} == {
        name: {True, False} for name in names
    }


def leave_out(place: dict[str, Any], key: str) -> None:
    del place[key]


def add(place: dict[str, Any], key: str) -> None:
    place[f"{key}_more"] = place[key]


def retype(place: dict[str, Any], key: str) -> None:
    place[key] = [[place[key]]]


# the values of some may be anything, or one of several forms; config-show is hundreds of keys of
# one form
@pytest.mark.parametrize(
    "name", sorted(SCHEMAS.keys() - {"query", "query-list", "decode", "config-show"})
)
def test_a_key_less_or_more_or_of_another_type_is_a_fault(documents: Documents, name: str) -> None:
    check, document = (
        validator(strict(SCHEMAS[name])),
        max(documents[name], key=lambda each: len(str(each))),
    )
    for *path, key in keys(SCHEMAS[name], document):
        for damage in (leave_out, add, retype):
            if (damage is retype and key in ANY) or (damage is leave_out and key in OPTIONAL):
                continue
            damaged = deepcopy(document)
            place = damaged
            for step in path:
                place = place[step]
            damage(place, str(key))
            assert not check.is_valid(damaged), (damage.__name__, *path, key)
