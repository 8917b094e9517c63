"""`laggard explain`: one group of real tables on a page, and the same as data."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake.fs import DeltaStorageHandler

from cli.group_rows import (
    AGO,
    codes,
    data,
    explain,
    group,
    member_row,
    page,
    partitions,
    rebalance_row,
    write,
)
from laggard.answers.explain.rows import read_group
from laggard.answers.reading import read_where
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from laggard.tables.published import newest_batch
from tables.fixtures import NOW, batch_row, partition_row, write_rows


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_state_says_since_when_who_coordinates_and_how_partitions_are_handed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, group_status=[group(static_members=1)])
    found = page(tmp_path, capsys)
    assert found[""][1:] == ["checkout on prod: batch 42, 2026-11-20 12:00:00 UTC"]
    assert found["State"] == [
        "Stable since 2026-11-20 11:50:00 UTC (10 m 00 s)",
        "classic group, generation 7, 3 members, 1 of them static",
        "coordinator broker 2, partition 3 of the offsets topic",
        "assignor range, eager: each rebalance stops every partition",
    ]


def test_a_state_that_was_there_when_watching_began_is_older_than_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, group_status=[group(state_since=NOW - AGO, watched_since=NOW - AGO)])
    assert (
        page(tmp_path, capsys)["State"][0]
        == "Stable since at least 2026-11-20 11:50:00 UTC (10 m 00 s)"
    )


def test_the_lag_is_shown_with_the_worst_partitions_and_who_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert page(tmp_path, capsys)["Lag"] == [
        "700 records in 4 partitions",
        "oldest unread record: 55 s old",
        "WORST PARTITIONS  LAG  TIME LAG  READ BY",
        "orders-2          550      55 s  c2 on 10.0.0.2",
        "orders-3          110      11 s  c2 on 10.0.0.2",
        "orders-1           40       4 s  c1 on 10.0.0.1",
    ]


def test_a_lag_that_is_not_whole_is_a_lower_bound_on_every_line_that_it_reaches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        group_status=[group(lag=None, status="partial", partitions_total=5)],
        partition_status=partitions(partition_row("checkout", "orders", 4, "no_end_offset")),
        group_members=[
            member_row(1, [("orders", 0), ("orders", 1)]),
            member_row(2, [("orders", 2), ("orders", 4)]),
        ],
    )
    found = page(tmp_path, capsys)
    assert found["Lag"][:2] == [
        "≥ 700 records in 5 partitions, 1 of them not known",
        "oldest unread record: ≥ 55 s old",
    ]
    assert [re.split(r" {2,}", line)[-2:] for line in found["Members"][1:3]] == [
        ["≥ 550", "≥ 55 s"],
        ["40", "4 s"],
    ]
    assert "- Lag of 1 partition (orders 4): the broker gave no log end." in found["Not known"]


def test_a_group_that_has_read_everything_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        group_status=[group(lag=0, lag_known=0, max_time_lag_seconds=0.0)],
        partition_status=[partition_row("checkout", "orders", 0, committed_offset=1000)],
    )
    assert page(tmp_path, capsys)["Lag"] == ["nothing unread in 4 partitions"]


def test_members_are_shown_with_their_partitions_and_lag_and_the_idle_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert page(tmp_path, capsys)["Members"] == [
        "CLIENT  HOST      INSTANCE  PARTITIONS     LAG  TIME LAG",
        "c2      10.0.0.2  pod-2     2: orders 2-3  660      55 s",
        "c1      10.0.0.1  -         2: orders 0-1   40       4 s",
        "1 idle member, without any partition: c3 on 10.0.0.3",
    ]


def test_the_assignment_is_that_of_the_newest_generation_and_of_a_member_its_newest_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epoch = {"generation_kind": "epoch", "generation": 9, "source_offset": 900}
    older = {"record_timestamp": NOW - timedelta(days=2)}
    write(
        tmp_path,
        group_status=[group(generation=None, group_epoch=9, group_type="consumer", members=2)],
        group_members=[
            member_row(1, [("orders", 3)], **epoch, batch_id=4),
            member_row(1, [("orders", 0)], **epoch, batch_id=5),
            member_row(2, [("orders", 1)], **epoch, group_instance_id="pod"),
            member_row(
                4, [("orders", 1)], **epoch, group_instance_id="pod", replaced_member_id="c2-id"
            ),
            member_row(5, [("orders", 2)], **{**epoch, "generation": 8, "source_offset": 850}),
            member_row(
                6, [("orders", 2)], **{**epoch, "generation": 40, "source_offset": 300}, **older
            ),
        ],
    )
    held = {row["client_id"]: row["assigned"] for row in data(tmp_path, capsys)["members"]}
    assert held == {
        "c1": [{"topic": "orders", "partition": 0}],
        "c4": [{"topic": "orders", "partition": 1}],
    }


def test_members_of_a_group_that_is_long_quiet_are_found_in_an_older_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long_ago = [NOW - timedelta(days=days) for days in range(1, 9)]
    others = [member_row(9, group="other", record_timestamp=at) for at in long_ago]
    write(
        tmp_path,
        group_members=[
            *others,
            member_row(1, [("orders", 2)], record_timestamp=NOW - timedelta(days=9)),
        ],
    )
    assert [row["client_id"] for row in data(tmp_path, capsys)["members"]] == ["c1"]


def test_members_of_an_earlier_group_of_the_same_name_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, group_status=[group(generation=2)])
    found = data(tmp_path, capsys)
    assert (found["members"], codes(found)) == ([], {"no_member_rows", "not_evaluated", "reasons"})


def test_a_group_without_members_has_none_and_its_old_ones_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, group_status=[group(members=0, group_state="Empty", assignor=None)])
    found = page(tmp_path, capsys)
    assert found["Members"] == ["none"]
    assert data(tmp_path, capsys)["members"] == []


@pytest.mark.parametrize(
    ("words", "expected"), [((), 5), (("--limit", "2"), 2), (("--limit", "9"), 8)]
)
def test_the_newest_rebalances_come_first_five_unless_said_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: int
) -> None:
    ends = [NOW - timedelta(hours=7 * n) for n in range(8)]
    rows = [rebalance_row(at) for at in ends] + [rebalance_row(NOW, group="other")]
    write(tmp_path, rebalances=rows, group_status=[group(rebalances_total={"member_left": 8})])
    shown = [row["ended_at"] for row in data(tmp_path, capsys, "checkout", *words)["rebalances"]]
    assert shown == [at.isoformat() for at in ends[:expected]]


def test_rebalances_of_an_earlier_group_of_the_same_name_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [rebalance_row(NOW - AGO), rebalance_row(NOW - 2 * AGO)]
    write(tmp_path, rebalances=rows, group_status=[group(rebalances_total={"member_left": 1})])
    assert len(data(tmp_path, capsys)["rebalances"]) == 1


def test_totals_are_given_by_cause_with_the_time_in_rebalance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert page(tmp_path, capsys)["Rebalances so far"] == [
        "5 in all",
        "3 × member_join: new members joined",
        "2 × member_left: members left",
        "members: 4 joined, 2 left, 0 replaced; static restarts without a rebalance: 2",
        "partitions moved: 20, of these without need: 7",
        "rounds that never got to an assignment: 1",
        "time in rebalance over the last 10 minutes: 3.1 %",
    ]


def test_a_group_that_never_rebalanced_says_since_when_it_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path, rebalances=[], group_status=[group(rebalances_total={}, last_rebalance_at=None)]
    )
    assert page(tmp_path, capsys)["Last rebalances"] == ["none seen since 2026-11-20 09:00:00 UTC"]


def test_names_that_clients_chose_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "it's\x1b[2J\\"
    write(
        tmp_path,
        group_status=[group() | {"group": name}],
        group_members=[
            member_row(
                1, [("orders\x1b", 0)], group=name, client_id="c\x1b[2J", client_host="/\x07"
            )
        ],
        rebalances=[rebalance_row(group=name, left=["c\x1b[2J/10.0.0.1#0"], straggler_slot="\x1b")],
    )
    assert explain(tmp_path, name) == OK
    by_name = capsys.readouterr().out
    assert explain(tmp_path, r"it's\x1b[2J\x5c") == OK
    assert capsys.readouterr().out == by_name
    assert all(line.isprintable() for line in by_name.splitlines())
    assert r"c\x1b[2J  \x07  -         1: orders\x1b 0" in by_name


@pytest.mark.parametrize(
    ("name", "near"),
    [("chekcout", "checkout"), ("CHECKOUT", "checkout"), ("CH", "checkout"), ("otherr", "other")],
)
def test_a_group_that_does_not_exist_ends_with_66_and_near_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, near: str
) -> None:
    write(tmp_path)
    assert explain(tmp_path, name) == NOT_FOUND
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()) == (
        "",
        [
            f'laggard: no group "{name}"',
            f"cause: none of the 2 groups of batch 42 has this name; near: {near}",
            f"fix: laggard explain {near}",
        ],
    )


def test_a_name_that_is_near_to_none_points_to_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert explain(tmp_path, "zzz") == NOT_FOUND
    assert capsys.readouterr().err.splitlines()[1:] == [
        "cause: none of the 2 groups of batch 42 has this name",
        "fix: laggard status",
    ]


def test_old_data_is_shown_with_a_warning_and_a_backfill_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert explain(tmp_path) == OK
    assert re.fullmatch(
        r"laggard: these numbers are .* old: does the job run\?.*\n", capsys.readouterr().err
    )
    write_rows(tmp_path, "batches", [batch_row(43, {}, kind="backfill")])
    assert explain(tmp_path) == TEMPORARY
    assert capsys.readouterr().err.startswith("laggard: the job is still catching up\n")


def test_only_what_the_batch_names_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    write_rows(tmp_path, "group_status", [group(generation=99)])
    write_rows(tmp_path, "rebalances", [rebalance_row(NOW)])
    write_rows(tmp_path, "group_members", [member_row(8, source_offset=999, record_timestamp=NOW)])
    found = data(tmp_path, capsys)
    assert found["group"]["generation"] == 7
    assert [row["ended_at"] for row in found["rebalances"]] == [(NOW - AGO).isoformat()]
    assert {row["client_id"] for row in found["members"]} == {"c1", "c2", "c3"}


def test_only_files_that_can_hold_the_group_are_opened(tmp_path: Path) -> None:
    write(tmp_path)
    write_rows(
        tmp_path,
        "rebalances",
        [rebalance_row(group="zebra"), rebalance_row(NOW - timedelta(days=5))],
    )
    versions = {
        "partition_status": 0, "group_status": 0, "group_members": 0,
        "rebalances": write_rows(tmp_path, "rebalances", [rebalance_row(group="aardvark")]),
    }  # fmt: skip
    write_rows(tmp_path, "batches", [batch_row(44, versions, NOW + timedelta(seconds=10))])
    for path in (tmp_path / "rebalances").rglob("*.parquet"):
        text = path.read_bytes()
        if b"zebra" in text or b"aardvark" in text or "2026-11-15" in str(path):
            path.write_bytes(b"not a Parquet file")
    assert [
        row["ended_at"] for row in read_group(str(tmp_path), "checkout", 1).rebalances or ()
    ] == [NOW - AGO]


def test_no_thread_of_arrow_calls_python_which_may_have_ended_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    batch = newest_batch(str(tmp_path))
    assert batch is not None
    monkeypatch.setattr(
        DeltaStorageHandler, "from_table", lambda *_: pytest.fail("a file system in Python is used")
    )
    assert len(read_where(str(tmp_path), batch, "partition_status", ("partition",))) == 5


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_that_is_none_is_a_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    assert explain(tmp_path, "checkout", f"--limit={limit}") == USAGE
    assert f"expected a number above 0, got '{limit}'" in capsys.readouterr().err


def test_the_data_have_the_keys_of_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    found = data(tmp_path, capsys)
    docs = Path(__file__).parents[2] / "docs" / "cli-json"
    schema = json.loads((docs / "explain.schema.json").read_text(encoding="utf-8"))
    sections = schema["$defs"]["Explained"]["properties"]
    assert sections.keys() == found.keys()
    promised, shown = {}, {}
    for section, value in found.items():
        keyed = value[0] if isinstance(value, list) else value
        shown[section] = set(keyed if isinstance(value, list | dict) else ())
        promised[section] = declared_keys(sections[section], schema)
    assert {name: keys for name, keys in promised.items() if shown[name]} == {
        name: keys for name, keys in shown.items() if keys
    }


def declared_keys(part: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Keys of an object of a schema, or of the objects of a list."""
    keys = set(part.get("properties", ()))
    below = [part["items"]] if "items" in part else []
    below += part.get("anyOf", [])
    if "$ref" in part:
        below.append(schema["$defs"][part["$ref"].rpartition("/")[2]])
    for each in below:
        keys |= declared_keys(each, schema)
    return keys
