"""Damage to a checkpoint is found before Spark starts, named by its file, and mended by the command
that is named.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laggard.cli.main import main
from laggard.config.load import load_config
from laggard.config.sections import Job
from laggard.doctor import repair as repairs
from laggard.doctor.repair import Repair, plan_repair
from laggard.errors import CONFIGURATION, DAMAGED, REFUSED, LaggardError
from laggard.sources.readiness import OffsetsTopic
from laggard.stream.job.checkpoint import REPAIR, check_checkpoint
from laggard.stream.job.identity import Identity, find_state, identity_path, to_json
from laggard.stream.job.starting import prepare, put_aside
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.published import newest_batch
from laggard.tables.readers import open_table
from laggard.tables.schema import schemas
from stream.simulation import NOON
from stream.test_identity import check_is_renewed
from tables.fixtures import make_root

OFFSETS = (
    'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"poll_id": 3}\n{"__consumer_offsets":{"0":7,"1":9}}'
)
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'
TOPIC = OffsetsTopic("cluster", "topic id", 2)
BATCHES = 12


def write(path: Path, text: str) -> None:
    """Write a file and its checksums, as Hadoop's ChecksumFileSystem does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(content)
    sums = [zlib.crc32(content[begin : begin + 512]) for begin in range(0, len(content), 512)]
    checksums = (
        b"crc\0" + struct.pack(">i", 512) + b"".join(struct.pack(">I", each) for each in sums)
    )
    path.with_name(f".{path.name}.crc").write_bytes(checksums)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    write(folder / "metadata", '{"id":"12"}')
    for number in range(BATCHES):
        write(folder / "offsets" / str(number), OFFSETS)
        if number < BATCHES - 1:
            write(folder / "commits" / str(number), COMMIT)
    return folder


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def truncate_with_checksum(path: Path) -> None:
    """As a power cut may leave it: nothing to compare with."""
    truncate(path)
    path.with_name(f".{path.name}.crc").unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink()


DAMAGES = [
    *[(damage, "offsets/11") for damage in (flip, truncate, truncate_with_checksum, empty)],
    *[(damage, "commits/10") for damage in (flip, truncate, truncate_with_checksum, empty)],
    *[(damage, name) for damage in (flip, empty, remove) for name in ("offsets/5", "commits/5")],
    (empty, "metadata"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "name"), DAMAGES)
def test_damage_is_named_with_its_file_and_the_command(
    checkpoint: Path, damage: Callable[[Path], None], name: str
) -> None:
    check_checkpoint(f"{checkpoint}/")
    damage(checkpoint / name)
    with pytest.raises(LaggardError) as raised:
        check_checkpoint(str(checkpoint))
    assert raised.value.exit_code == DAMAGED
    assert str(checkpoint / name) in raised.value.cause
    assert raised.value.fix == REPAIR


def test_a_checkpoint_whose_old_files_were_dropped_is_whole(checkpoint: Path) -> None:
    for number in range(5):
        remove(checkpoint / "offsets" / str(number))
        remove(checkpoint / "commits" / str(number))
    check_checkpoint(str(checkpoint))
    check_checkpoint(str(checkpoint.parent / "none"))


# ---- repair


@pytest.fixture
def job(tmp_path: Path, checkpoint: Path) -> Job:
    """Tables at batch 110 of the checkpoint's 111, with rows of that one unpublished."""
    job = Job(tables=str(tmp_path / "tables"), checkpoint=str(checkpoint))
    make_root(job.tables)
    writer = Writer(job.tables, "c1")
    for number in (109, 110, 111):
        event = {
            "date": NOON.date(),
            "cluster": "c",
            "group": "g",
            "event_at": NOON,
            "batch_id": number,
        }
        writer.write(schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [event]), number)
    publish(job, 110, {0: 5, 1: 9}, {0: 7, 1: 9})
    identity = Identity("cluster", "topic id", job.tables, job.window_seconds, "c1", 100)
    Path(identity_path(job.checkpoint)).write_text(to_json(identity))
    return job


def publish(
    job: Job, number: int, source_from: dict[int, int], source_to: dict[int, int], **more: Any
) -> None:
    row: dict[str, Any] = {
        "date": NOON.date(),
        "cluster": "c",
        "batch_id": number,
        "kind": "tick",
        "gap_seq": 0,
        "poll_id": number,
        "polled_at": NOON,
        "checkpoint_id": "c1",
        "source_from": source_from,
        "source_to": source_to,
        "table_versions": {"group_events": 2},
        **more,
    }
    Writer(job.tables, "c1").write(schemas.BATCHES, to_arrow(schemas.BATCHES, [row]), number)


def planned(
    job: Job, monkeypatch: pytest.MonkeyPatch, topic: OffsetsTopic | None = TOPIC
) -> Repair | None:
    config = load_config(None, [f"job.tables={job.tables}", f"job.checkpoint={job.checkpoint}"], {})
    monkeypatch.setattr(repairs, "look_up", lambda cluster: topic)
    return plan_repair(config)


def events(job: Job) -> list[int]:
    rows: pa.Table = open_table(job.tables, "group_events").to_pyarrow_table()
    return sorted(rows["batch_id"].to_pylist())


def lose_identity(job: Job) -> None:
    Path(identity_path(job.checkpoint)).unlink()


def cut_identity(job: Job) -> None:
    Path(identity_path(job.checkpoint)).write_text("{")


def lose_checkpoint(job: Job) -> None:
    Path(job.checkpoint).rename(f"{job.checkpoint}.moved")


def damage_wal(job: Job) -> None:
    flip(Path(job.checkpoint) / "offsets" / "11")


def restore_old_checkpoint(job: Job) -> None:
    for number in range(8, BATCHES):
        remove(Path(job.checkpoint) / "offsets" / str(number))
        (Path(job.checkpoint) / "commits" / str(number)).unlink(missing_ok=True)


REFUSED_OR_DAMAGED = [lose_identity, cut_identity, damage_wal, restore_old_checkpoint]


@pytest.mark.parametrize("harm", REFUSED_OR_DAMAGED)
def test_what_a_start_refuses_the_named_command_repairs(
    job: Job, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Job], None]
) -> None:
    assert planned(job, monkeypatch) is None
    harm(job)
    with pytest.raises(LaggardError) as raised:
        prepare(job, TOPIC)
    assert raised.value.exit_code in (REFUSED, DAMAGED)
    assert "laggard doctor --repair" in raised.value.fix

    repair = planned(job, monkeypatch)
    assert repair is not None
    assert list(repair.carry_out())

    identity = prepare(job, TOPIC)
    assert (identity.base_batch_id, identity.replaces, identity.continues) == (111, "c1", True)
    assert identity.checkpoint_id != "c1"
    assert events(job) == [109, 110]  # 111 was never visible
    assert not Path(job.checkpoint).exists()
    assert len(list(Path(job.checkpoint).parent.glob("checkpoint.c1*"))) == 1
    newest = newest_batch(job.tables)
    assert newest is not None
    assert newest.batch_id == 110
    assert planned(job, monkeypatch) is None


def test_a_repair_that_is_cut_off_is_finished_by_the_next_start(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_wal(job)
    repair = planned(job, monkeypatch)
    assert repair is not None
    assert repair.identity is not None
    put_aside(job.checkpoint, "c1")  # no step after it

    check_is_renewed(prepare(job, TOPIC), repair.identity)
    assert events(job) == [109, 110]
    # and again after the new checkpoint took its first offsets
    write(Path(job.checkpoint) / "offsets" / "0", OFFSETS)
    check_is_renewed(prepare(job, TOPIC), repair.identity)
    assert not Path(job.checkpoint).exists()


def test_a_repair_of_tables_whose_topic_was_recreated_reads_the_new_one_from_its_start(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_wal(job)
    repair = planned(job, monkeypatch, replace(TOPIC, topic_id="recreated"))
    assert repair is None  # a start does that by itself
    lose_identity(job)
    publish(
        job,
        111,
        {0: 7, 1: 9},
        {0: 7, 1: 9},
        origin={"cluster_id": "cluster", "offsets_topic_id": "topic id", "window_seconds": 60},
    )
    repair = planned(job, monkeypatch, replace(TOPIC, topic_id="recreated"))
    assert repair is not None
    assert repair.identity is not None
    assert (repair.identity.replaced_topic_id, repair.identity.continues) == ("topic id", False)


def test_a_missing_checkpoint_needs_no_repair(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_checkpoint(job)
    assert planned(job, monkeypatch) is None
    identity = prepare(job, TOPIC)
    assert (identity.base_batch_id, identity.replaces, identity.continues) == (111, "c1", True)
    assert events(job) == [109, 110], "111 was never visible"
    check_is_renewed(prepare(job, TOPIC), identity)


@pytest.mark.parametrize(
    ("states", "left"),
    [([109], [108, 109]), ([109, 110], [108, 109, 110]), ([109, 111], [108, 109, 110])],
)
def test_of_a_window_whose_state_was_not_written_no_row_is_left(
    job: Job, states: list[int], left: list[int]
) -> None:
    """`finding_state` is the last table that a window is written to."""
    for name, batches in (("findings", [108, 109, 110, 111]), ("finding_state", states)):
        for number in batches:
            row = {
                "date": NOON.date(),
                "cluster": "c",
                "group": "",
                "window_start": NOON,
                "batch_id": number,
            }
            row |= {"event_at": NOON} if name == "findings" else {"status": "ok"}
            Writer(job.tables, "c1").write(
                schemas.TABLES[name], to_arrow(schemas.TABLES[name], [row]), number
            )
    lose_checkpoint(job)
    prepare(job, TOPIC)
    found: pa.Table = open_table(job.tables, "findings").to_pyarrow_table()
    assert sorted(found["batch_id"].to_pylist()) == left


def test_another_window_length_is_refused_by_the_repair_too(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_wal(job)
    stored = json.loads(Path(identity_path(job.checkpoint)).read_text())
    Path(identity_path(job.checkpoint)).write_text(json.dumps(stored | {"window_seconds": 61}))
    with pytest.raises(LaggardError, match="window_seconds") as raised:
        planned(job, monkeypatch)
    assert raised.value.exit_code == REFUSED


def test_without_the_brokers_nothing_is_repaired(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LaggardError, match="brokers"):
        planned(job, monkeypatch, None)


def test_tables_without_a_batch_begin_with_the_first_record(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tables=str(tmp_path / "tables"), checkpoint=str(checkpoint))
    repair = planned(job, monkeypatch)
    assert repair is not None
    assert list(repair.carry_out())
    assert not find_state(job.tables, job.checkpoint).has_checkpoint
    assert not prepare(job, TOPIC).continues


# ---- positions that fell


def test_after_a_truncation_a_start_reads_the_partition_again_under_a_new_checkpoint(
    job: Job,
) -> None:
    publish(job, 111, {0: 7, 1: 9}, {0: 3, 1: 12})
    identity = prepare(job, TOPIC)
    assert (identity.base_batch_id, identity.replaces, identity.continues) == (112, "c1", True)
    check_is_renewed(prepare(job, TOPIC), identity)  # cut off before its first batch


def test_a_checkpoint_of_an_older_version_is_put_aside_and_the_tables_go_on(job: Job) -> None:
    path = Path(identity_path(job.checkpoint))
    older = {
        name: value for name, value in json.loads(path.read_text()).items() if name != "layout"
    }
    path.write_text(json.dumps(older))
    identity = prepare(job, TOPIC)
    assert (identity.base_batch_id, identity.replaces, identity.continues) == (111, "c1", True)
    assert events(job) == [109, 110], "what was written of a batch that is not repeated"
    assert len(list(Path(job.checkpoint).parent.glob("checkpoint.c1*"))) == 1
    check_is_renewed(prepare(job, TOPIC), identity)


def test_of_an_older_version_that_published_nothing_nothing_is_left(
    tmp_path: Path, checkpoint: Path
) -> None:
    job = Job(tables=str(tmp_path / "tables"), checkpoint=str(checkpoint))
    make_root(job.tables)
    event = {"date": NOON.date(), "cluster": "c", "group": "g", "event_at": NOON, "batch_id": 0}
    Writer(job.tables, "c1").write(schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [event]), 0)
    older = asdict(Identity("cluster", "topic id", job.tables, job.window_seconds, "c1"))
    for number in range(1, BATCHES):
        remove(checkpoint / "offsets" / str(number))
        (checkpoint / "commits" / str(number)).unlink(missing_ok=True)
    (checkpoint / "commits" / "0").unlink()
    Path(identity_path(job.checkpoint)).write_text(
        json.dumps({k: v for k, v in older.items() if k != "layout"})
    )
    identity = prepare(job, TOPIC)
    assert (identity.base_batch_id, identity.replaces) == (0, "")
    assert identity.checkpoint_id != "c1"
    assert events(job) == []


def test_the_command_needs_brokers_and_says_so_before_it_touches_anything(job: Job) -> None:
    assert main(["doctor", "--repair", "--set", f"job.tables={job.tables}"]) == CONFIGURATION
