"""A poll of any size reaches the batch and every re-run of it, and what no batch can name any more
is removed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from laggard.errors import DAMAGED, TEMPORARY, LaggardError
from laggard.sources import snapshot as shapes
from laggard.sources.poll_files import MOST_BYTES, PollFiles, offset_in
from laggard.sources.snapshot import Snapshot
from laggard.stream.job.checkpoint import check_checkpoint


def poll(poll_id: int, partitions: int = 100) -> Snapshot:
    """A poll whose offsets are as random as those of real topics, so that they hardly compress."""
    draw = random.Random(poll_id)
    columns = {
        "topic": [f"topic-{number // 50}" for number in range(partitions)],
        "partition": [number % 50 for number in range(partitions)],
        "log_end_offset": [int(10 ** draw.uniform(0, 12)) for _ in range(partitions)],
        "log_start_offset": [int(10 ** draw.uniform(0, 12)) for _ in range(partitions)],
    }
    absent = {name: [None] * partitions for name in shapes.POSITIONS.names if name not in columns}
    return Snapshot(
        poll_id,
        2,
        positions=pa.table({**columns, **absent})
        .select(shapes.POSITIONS.names)
        .cast(shapes.POSITIONS),
    )


class Job:
    """A checkpoint as Spark keeps it: the newest batches, each with its offset."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.checkpoint = folder / "checkpoint"
        self.wal = self.checkpoint / "offsets"
        self.wal.mkdir(parents=True)
        self.poll_files = PollFiles(str(self.checkpoint), most_bytes)

    def run(self, batch: int, snapshot: Snapshot, kept: int = 3) -> None:
        self.log(batch, self.poll_files.to_offset(snapshot))
        for path in self.wal.iterdir():
            if int(path.name) <= batch - kept:
                path.unlink()

    def log(self, batch: int, offset: object) -> None:
        (self.wal / str(batch)).write_text(
            f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset)}\n{{"orders":{{"0":1}}}}'
        )

    def read(self, batch: int) -> Snapshot:
        return self.poll_files.from_offset(offset_in((self.wal / str(batch)).read_text()))

    @property
    def files(self) -> set[str]:
        return {path.name for path in Path(self.poll_files.folder).iterdir()}


def test_a_small_poll_is_in_the_offset_itself(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.run(0, poll(1))
    assert job.read(0) == poll(1)
    assert not Path(job.poll_files.folder).exists()


def test_a_large_poll_leaves_a_small_offset(tmp_path: Path) -> None:
    job = Job(tmp_path)
    large = poll(1, 200_000)
    job.run(0, large)
    assert (job.wal / "0").stat().st_size < 300
    assert job.read(0) == large


def test_every_batch_in_the_log_can_be_run_again_and_no_more_is_kept(tmp_path: Path) -> None:
    job = Job(tmp_path, most_bytes=0)
    for batch in range(10):
        job.run(batch, poll(100 + batch))
        assert all(
            job.read(int(path.name)) == poll(100 + int(path.name)) for path in job.wal.iterdir()
        )
        assert len(job.files) <= 4


def test_a_poll_that_never_became_a_batch_is_replaced(tmp_path: Path) -> None:
    job = Job(tmp_path, most_bytes=0)
    job.run(0, poll(1))
    job.poll_files.to_offset(poll(2, partitions=7))  # killed before Spark wrote its log
    job.run(1, poll(2))
    assert job.read(1) == poll(2)
    assert job.read(0) == poll(1)


def test_what_a_kill_or_an_older_checkpoint_left_is_removed(tmp_path: Path) -> None:
    job = Job(tmp_path, most_bytes=0)
    job.run(0, poll(4))
    for name in (".poll-3.json.77.tmp", "poll-3.json", "poll-900.json"):
        (Path(job.poll_files.folder) / name).write_text("part")
    job.run(1, poll(5))
    assert job.files == {"poll-4.json", "poll-5.json"}


def test_nothing_is_removed_while_the_log_cannot_be_read(tmp_path: Path) -> None:
    job = Job(tmp_path, most_bytes=0)
    job.run(0, poll(1))
    (job.wal / "0").write_text("v1\n{cut off")
    job.run(1, poll(2))
    assert job.files == {"poll-1.json", "poll-2.json"}


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_a_damaged_file_is_named_with_a_remedy(tmp_path: Path, damage: str) -> None:
    job = Job(tmp_path, most_bytes=0)
    job.run(0, poll(1))
    [path] = Path(job.poll_files.folder).iterdir()
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-1])
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(LaggardError) as raised:
        job.read(0)
    assert raised.value.exit_code == DAMAGED
    assert str(path) in raised.value.cause
    with pytest.raises(LaggardError, match=raised.value.what):
        check_checkpoint(str(job.checkpoint))
    (job.checkpoint / "commits").mkdir()
    (job.checkpoint / "commits" / "0").write_text("v1\n{}")
    check_checkpoint(str(job.checkpoint))  # it will not be run again
    assert "laggard doctor --repair" in raised.value.fix


def test_a_folder_that_takes_no_files_is_a_named_temporary_error(tmp_path: Path) -> None:
    job = Job(tmp_path, most_bytes=0)
    Path(job.poll_files.folder).write_text("no folder")
    with pytest.raises(LaggardError) as raised:
        job.poll_files.to_offset(poll(1))
    assert raised.value.exit_code == TEMPORARY
    assert job.poll_files.folder in raised.value.what
