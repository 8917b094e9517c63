"""A table root may have any name: every part of laggard finds the same folder by it, batch after
batch.
"""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard import files
from laggard.cli.verbs.query.verb import run_query
from laggard.errors import CONFIGURATION, LaggardError
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import read_files
from laggard.tables.delta import Writer, create_tables
from laggard.tables.published import newest_batch
from laggard.tables.readers import read_table
from laggard.tables.schema import schemas
from laggard.tables.upkeep.maintenance import Retention, maintain
from patience import some
from tables.fixtures import NOW

ODD = (
    "a b",
    "a#b",
    "a%b",
    "a?b",
    "é",
    "~x",
    "a:b",
    "a+b&c=d;e",
    "*",
    "[a]",
    "{a}",
    "日本",
    "a'b\"c`d",
    "<a|b>",
    "$HOME",
)
RETENTION = Retention(30, 30, 30, 30, status_files_hours=1, vacuum_hours=168)
DELTA_RS_READS_OTHERWISE = ("a%20b", "%41", "a%2Fb", "a%zz%C3%A9", "a\\b", "a\nb", "a\x00b", "\x7f")


def live_in(root: str) -> None:
    """Write three batches, read them at the versions that they name, maintain, and read again."""
    create_tables(root)
    writer = Writer(root, "one")
    for batch_id in range(3):
        rows = to_arrow(
            schemas.PARTITION_STATUS, [{"group": "g", "partition": batch_id, "batch_id": batch_id}]
        )
        version = writer.write(schemas.PARTITION_STATUS, rows, batch_id)
        state = read_files(schemas.PARTITION_STATUS, writer.file_uris("partition_status", version))
        assert state["partition"].to_pylist() == [batch_id]
        event = {"date": NOW.date(), "group": "g", "event_at": NOW, "batch_id": batch_id}
        events = writer.write(
            schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [event]), batch_id
        )
        row = {
            "date": NOW.date(), "batch_id": batch_id, "kind": "tick", "polled_at": NOW,
            "table_versions": {"partition_status": version, "group_events": events},
        }  # fmt: skip
        writer.write(schemas.BATCHES, to_arrow(schemas.BATCHES, [row]), batch_id)
    check(root)
    assert [each for each in maintain(root, RETENTION, NOW + timedelta(days=1)) if each.error] == []
    check(root)


def check(root: str) -> None:
    batch = newest_batch(root)
    assert batch is not None
    assert batch.batch_id == 2
    version = batch.table_versions["partition_status"]
    assert read_table(root, "partition_status", version, ["partition"]).to_pylist() == [
        {"partition": 2}
    ]
    assert run_query(root, "select count(*) as n from group_events").to_pylist() == [{"n": 3}]


@pytest.mark.examples
@pytest.mark.parametrize("name", some(ODD))
def test_a_root_may_have_any_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name / "tables"
    live_in(str(root))
    assert {each.name for each in root.iterdir()} == {*schemas.TABLES, "_laggard"}
    assert [each.name for each in tmp_path.iterdir()] == [name]


@settings(max_examples=8, deadline=None)
@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="/\\\x7f%", exclude_categories=["C"]),
        min_size=1,
    )
)
def test_so_may_any_text_that_is_a_name(name: str) -> None:
    if name in (".", "..") or len(name.encode()) > 200:
        return
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/x{name}"
        create_tables(root, (schemas.PARTITION_STATUS,))
        writer = Writer(root, "one")
        for number in range(2):
            rows = to_arrow(schemas.PARTITION_STATUS, [{"group": name, "partition": number}])
            version = writer.write(schemas.PARTITION_STATUS, rows, number)
            state = read_files(
                schemas.PARTITION_STATUS, writer.file_uris("partition_status", version)
            )
            assert state["group"].to_pylist() == [name]
        assert [each.name for each in Path(folder).iterdir()] == [f"x{name}"]


@pytest.mark.examples
@pytest.mark.parametrize(
    "write", some(["file:{}", "file://{}", "file://localhost{}", "{}/", "{}//", "{}/../tables"])
)
def test_a_root_may_be_written_in_other_ways(
    tmp_path: Path, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live_in(write.format(f"{tmp_path}/tables"))
    assert [each.name for each in tmp_path.iterdir()] == ["tables"]
    assert newest_batch(str(tmp_path / "tables")) is not None


def test_a_url_is_decoded_and_a_path_is_not(tmp_path: Path) -> None:
    assert files.locate(f"file://{tmp_path}/a%20b%23") == f"{tmp_path}/a b#"
    assert files.locate(f"{tmp_path}/a%b#c?d") == f"{tmp_path}/a%b#c?d"


def test_a_relative_root_is_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    live_in("./a b/x:y")
    assert (tmp_path / "a b" / "x:y" / "batches" / "_delta_log").is_dir()


def test_a_tilde_is_the_home_folder_alone_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.locate("~/tables") == f"{tmp_path}/tables"
    assert files.locate("/x/~/tables") == "/x/~/tables"
    assert files.locate("~x").endswith("/~x")


@pytest.mark.parametrize("url", ["s3://bucket/a b", "s3a://bucket/é", "abfss://c@account/x"])
def test_a_url_of_another_store_is_kept(url: str) -> None:
    assert files.locate(f"{url}/") == url
    assert files.locate(files.locate(url)) == url


@pytest.mark.parametrize("name", DELTA_RS_READS_OTHERWISE)
def test_what_delta_would_take_for_another_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LaggardError, match="cannot be read as a path") as refused:
        create_tables(f"{tmp_path}/{name}/tables")
    assert refused.value.exit_code == CONFIGURATION
    assert len(str(refused.value).splitlines()) <= 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["s3:/bucket/x", "file://host/x", "dbfs:/x"])
def test_a_url_that_names_no_place_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LaggardError) as refused:
        create_tables(url)
    assert refused.value.exit_code == CONFIGURATION
    assert list(tmp_path.iterdir()) == []
