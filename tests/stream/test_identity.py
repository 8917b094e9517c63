"""Start or refuse: every row of the table of checkpoint, identity file and tables."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from laggard.config.sections import Job
from laggard.errors import DAMAGED, REFUSED, LaggardError
from laggard.sources.readiness import OffsetsTopic
from laggard.stream.job import starting
from laggard.stream.job.identity import (
    FROZEN,
    Found,
    Identity,
    check_start,
    find_state,
    follows_another,
    identity_path,
    to_json,
)
from laggard.stream.job.starting import prepare
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.published import TICK, newest_batch
from laggard.tables.schema.schemas import BATCHES
from patience import some
from tables.fixtures import NOW, make_root

WANTED = Identity("cluster", "topic id", "/tables", 60)
TOPIC = OffsetsTopic("cluster", "topic id", 2)
STORED = replace(WANTED, checkpoint_id="c1", base_batch_id=100)
RESUMED = Found(
    has_checkpoint=True,
    identity=asdict(STORED),
    newest_batch_id=107,
    batch_checkpoint_id="c1",
    newest_wal_batch_id=8,
    newest_committed_batch_id=7,
)
NOTHING = Found(False, None, None, None, None, None)


def refusal(found: Found, wanted: Identity = WANTED) -> LaggardError:
    with pytest.raises(LaggardError) as raised:
        check_start(found, wanted)
    assert raised.value.exit_code == REFUSED
    assert raised.value.fix
    return raised.value


def check_is_renewed(found: Identity, before: Identity) -> None:
    """The same again under an id of its own: under the old one a batch that was cut off is
    recorded.
    """
    assert replace(found, checkpoint_id="") == replace(before, checkpoint_id="")
    assert found.checkpoint_id not in ("", before.checkpoint_id)


@pytest.mark.parametrize("root", ["/tables/", "file:/tables", "file:///tables", "/x/../tables"])
def test_the_same_root_may_be_written_in_another_way(root: str) -> None:
    assert check_start(RESUMED, replace(WANTED, table_root=root)).checkpoint_id == "c1"
    assert "table_root" in refusal(RESUMED, replace(WANTED, table_root=f"{root}2")).what


@pytest.mark.parametrize("identity", [None, asdict(STORED)])
def test_without_checkpoint_and_rows_it_is_a_first_start_with_new_ids(
    identity: dict[str, Any] | None,
) -> None:
    found = replace(NOTHING, identity=identity)
    first, second = check_start(found, WANTED), check_start(found, WANTED)
    assert replace(first, checkpoint_id="") == WANTED
    assert len({first.checkpoint_id, second.checkpoint_id, "c1", ""}) == 4


@pytest.mark.parametrize(
    ("newest", "wal", "committed"),
    [(107, 8, 7), (108, 8, 7), (107, 7, 7), (None, 0, None), (99, 0, None)],
)
def test_what_belongs_together_resumes(
    newest: int | None, wal: int | None, committed: int | None
) -> None:
    found = replace(
        RESUMED,
        newest_batch_id=newest,
        newest_wal_batch_id=wal,
        newest_committed_batch_id=committed,
    )
    assert check_start(found, WANTED) == STORED


LOST = replace(NOTHING, newest_batch_id=107, batch_checkpoint_id="c1", origin=STORED.origin())


@pytest.mark.parametrize(
    "identity", [None, {}, asdict(STORED), asdict(replace(STORED, checkpoint_id="c7"))]
)
@pytest.mark.parametrize("origin", [STORED.origin(), None])
def test_rows_whose_checkpoint_is_missing_go_on_if_they_or_the_identity_file_say_what_was_read(
    origin: dict[str, Any] | None, identity: dict[str, Any] | None
) -> None:
    found = replace(LOST, origin=origin, identity=identity)
    if origin is None and identity != asdict(STORED):
        assert "checkpoint is missing" in str(refusal(found))
    else:
        made = check_start(found, WANTED)
        assert replace(made, checkpoint_id="") == replace(
            WANTED, base_batch_id=108, replaces="c1", continues=True
        )
        assert made.checkpoint_id not in ("", "c1")


def test_without_a_checkpoint_the_offsets_topic_may_be_another_but_not_the_cluster() -> None:
    again = replace(WANTED, offsets_topic_id="recreated")
    made = check_start(LOST, again)
    assert (made.replaced_topic_id, made.continues, made.base_batch_id) == ("topic id", False, 108)
    for key, value in {"cluster_id": "other", "window_seconds": 61}.items():
        assert key in refusal(LOST, replace(WANTED, **{key: value})).what
    assert check_start(LOST, replace(WANTED, table_root="/moved")).continues


def test_a_checkpoint_without_its_identity_is_refused() -> None:
    assert "no identity file" in str(refusal(replace(RESUMED, identity=None)))


OVERTAKEN = replace(
    RESUMED,
    newest_batch_id=120,
    batch_checkpoint_id="c2",
    origin=STORED.origin(),
    newest_own_batch_id=107,
)
BEGUN = replace(
    OVERTAKEN, newest_wal_batch_id=0, newest_committed_batch_id=None, newest_own_batch_id=None
)


def test_a_checkpoint_that_another_job_overtook_goes_on_after_that_jobs_batches() -> None:
    made = check_start(OVERTAKEN, WANTED)
    assert replace(made, checkpoint_id="") == replace(
        WANTED, base_batch_id=121, replaces="c2", continues=True
    )
    assert made.checkpoint_id not in ("", "c1", "c2")
    assert "window_seconds" in refusal(OVERTAKEN, replace(WANTED, window_seconds=61)).what


@pytest.mark.parametrize(
    ("replaces", "has_replaced", "own"),
    [("c0", True, None), ("", False, None), ("c0", False, 100), ("c0", True, 100)],
)
def test_a_job_that_was_overtaken_before_it_committed_a_batch_goes_on_too(
    replaces: str, has_replaced: bool, own: int | None
) -> None:
    begun = asdict(replace(STORED, replaces=replaces, continues=bool(replaces)))
    made = check_start(
        replace(BEGUN, identity=begun, has_replaced=has_replaced, newest_own_batch_id=own), WANTED
    )
    assert replace(made, checkpoint_id="") == replace(
        WANTED, base_batch_id=121, replaces="c2", continues=True
    )


@pytest.mark.parametrize(
    "found",
    [
        # c0 is not in these tables
        replace(BEGUN, identity=asdict(replace(STORED, replaces="c0"))),
        replace(BEGUN, newest_committed_batch_id=0),
        replace(BEGUN, newest_wal_batch_id=1),
        replace(
            BEGUN,
            identity=asdict(replace(STORED, replaces="c0")),
            has_replaced=True,
            newest_committed_batch_id=0,
        ),
    ],
)
def test_a_checkpoint_without_a_batch_in_the_tables_is_of_other_ones_unless_it_had_only_begun(
    found: Found,
) -> None:
    assert "other tables" in refusal(found).what


def test_a_begun_checkpoint_whose_tables_are_of_another_cluster_is_refused() -> None:
    assert (
        "cluster_id"
        in refusal(replace(BEGUN, origin=STORED.origin() | {"cluster_id": "other"})).what
    )


@pytest.mark.parametrize("own", [100, 106])
def test_an_overtaken_checkpoint_whose_published_batches_the_tables_lost_is_refused(
    own: int,
) -> None:
    assert "lost batches" in refusal(replace(OVERTAKEN, newest_own_batch_id=own)).what


def test_a_published_checkpoint_is_refused_by_tables_that_end_before_it() -> None:
    """Restored from a backup of the time of the one that it continues."""
    stored = replace(STORED, checkpoint_id="c2", replaces="c1", continues=True)
    assert (
        "lost batches"
        in refusal(replace(RESUMED, identity=asdict(stored), newest_batch_id=99)).what
    )


def start(job: Job, batch_id: int) -> Identity:
    """A start up to Spark's plan of this batch."""
    identity = prepare(job, TOPIC)
    write_log(job, "offsets", batch_id - identity.base_batch_id)
    return identity


def write_log(job: Job, name: str, number: int) -> None:
    path = Path(job.checkpoint, name, str(number))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1\n{}\n")


def publish(job: Job, identity: Identity, batch_id: int) -> None:
    row = {"date": NOW.date(), "cluster": "c", "batch_id": batch_id, "kind": TICK, "polled_at": NOW}
    row |= {"checkpoint_id": identity.checkpoint_id, "origin": identity.origin()}
    Writer(job.tables, identity.checkpoint_id).write(BATCHES, to_arrow(BATCHES, [row]), batch_id)
    write_log(job, "commits", batch_id - identity.base_batch_id)


@pytest.mark.examples
@pytest.mark.parametrize(
    "order", some(["a B a B A B A", "a b A b a B A", "a b B a A b B", "A b A a b a B B"])
)
def test_jobs_that_take_over_from_each_other_go_on_wherever_they_were_suspended(
    tmp_path: Path, order: str
) -> None:
    """Lower case: suspended before the batch that was planned is published."""
    batch_id = 0
    for each in order.split():
        job = Job(tables=str(tmp_path / "tables"), checkpoint=str(tmp_path / each.lower()))
        identity = start(job, batch_id)
        assert (
            find_state(job.tables, job.checkpoint).newest_wal_batch_id
            == batch_id - identity.base_batch_id
        )
        if each.isupper():
            publish(job, identity, batch_id)
            batch_id += 1
    assert newest_batch(job.tables).batch_id == batch_id - 1


def test_of_checkpoints_that_were_put_aside_the_newest_two_are_kept(tmp_path: Path) -> None:
    ours, other = (
        Job(tables=str(tmp_path / "tables"), checkpoint=str(tmp_path / name / "check.point"))
        for name in "ab"
    )
    mine = [
        tmp_path / "a" / name for name in ("check.point.backup", "check.point2.diagnose-00000000")
    ]
    for each in mine:
        each.mkdir(parents=True)
    before = []
    for number in range(5):
        for job in (ours, other):
            identity = start(job, 2 * number + (job is other))
            publish(job, identity, 2 * number + (job is other))
            Path(f"{job.checkpoint}.diagnose-{identity.checkpoint_id[:8]}").mkdir()
            before += [identity.checkpoint_id] if job is ours else []
    left = {each.name for each in (tmp_path / "a").iterdir()} - {each.name for each in mine}
    evaluated = f"diagnose-{before[-1][:8]}"
    expected = {
        "check.point.laggard.json",
        *(f"check.point.{each}" for each in (*before[-3:-1], evaluated)),
    }
    assert left == {"check.point", *expected}, "under their own ids"


@pytest.mark.parametrize("failing", ["put_aside", "write_text"])
def test_a_start_that_is_cut_off_is_made_good_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    first, second, third = (
        Job(tables=str(tmp_path / "t"), checkpoint=str(tmp_path / name)) for name in "abc"
    )
    publish(first, start(first, 0), 0)
    publish(second, start(second, 1), 1)
    with monkeypatch.context() as patched:
        patched.setattr(starting if failing == "put_aside" else starting.files, failing, _cut_off)
        with pytest.raises(KeyboardInterrupt):
            prepare(first, TOPIC)
    publish(third, start(third, 2), 2)
    assert prepare(first, TOPIC).base_batch_id == 3


def _cut_off(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_new_checkpoint_whose_predecessor_went_on_begins_after_all_its_batches() -> None:
    """Two jobs in turn: one was cut off before its first batch, the one before it took the tables
    back.
    """
    begun = replace(STORED, checkpoint_id="c2", base_batch_id=108, replaces="c1", continues=True)
    found = replace(RESUMED, identity=asdict(begun), newest_batch_id=115, newest_wal_batch_id=0)
    found = replace(found, newest_committed_batch_id=None)
    assert check_start(found, WANTED).base_batch_id == 116


def test_a_checkpoint_of_other_tables_is_refused() -> None:
    error = refusal(replace(RESUMED, batch_checkpoint_id="c2"))
    assert ("c1" in error.cause, "c2" in error.cause) == (True, True)


def test_an_older_checkpoint_than_the_tables_is_refused() -> None:
    assert "older than the tables" in str(refusal(replace(RESUMED, newest_batch_id=109)))


@pytest.mark.parametrize("newest", [106, 99, None])
def test_a_committed_batch_that_the_tables_lost_is_refused(newest: int | None) -> None:
    assert "lost batches" in str(refusal(replace(RESUMED, newest_batch_id=newest)))


@pytest.mark.parametrize("key", FROZEN)
def test_a_frozen_value_that_changed_is_refused_with_key_and_both_values(key: str) -> None:
    changed = 61 if key == "window_seconds" else "other"
    text = str(refusal(RESUMED, replace(WANTED, **{key: changed})))
    assert all(part in text for part in (key, repr(changed), repr(getattr(WANTED, key))))


def test_a_recreated_offsets_topic_starts_again_over_the_same_tables() -> None:
    again = replace(WANTED, offsets_topic_id="recreated")
    rebuilt = check_start(RESUMED, again)
    assert replace(rebuilt, checkpoint_id="") == replace(
        again, base_batch_id=108, replaces="c1", replaced_topic_id="topic id"
    )
    assert rebuilt.checkpoint_id not in ("", "c1")

    cut_off = replace(
        RESUMED, identity=asdict(rebuilt), has_checkpoint=False, newest_committed_batch_id=None
    )
    check_is_renewed(check_start(cut_off, again), rebuilt)
    check_is_renewed(check_start(replace(cut_off, has_checkpoint=True), again), rebuilt)
    assert follows_another(rebuilt, "c1")

    gone_on = replace(
        RESUMED,
        identity=asdict(rebuilt),
        newest_batch_id=109,
        batch_checkpoint_id=rebuilt.checkpoint_id,
    )
    gone_on = replace(gone_on, newest_wal_batch_id=1, newest_committed_batch_id=0)
    assert check_start(gone_on, again) == rebuilt
    assert not follows_another(rebuilt, rebuilt.checkpoint_id)


def test_a_source_that_was_changed_there_and_back_before_a_batch_goes_on() -> None:
    there = check_start(RESUMED, replace(WANTED, offsets_topic_id="admin"))
    assert there.rebuild_reason == "source_changed"
    back = check_start(
        replace(RESUMED, identity=asdict(there), newest_committed_batch_id=None), WANTED
    )
    assert (back.replaced_topic_id, back.continues, back.replaces, back.base_batch_id) == (
        "",
        True,
        "c1",
        108,
    )


def test_a_checkpoint_of_an_older_layout_is_replaced_and_the_tables_go_on() -> None:
    older = {name: value for name, value in asdict(STORED).items() if name != "layout"}
    rebuilt = check_start(replace(RESUMED, identity=older), WANTED)
    assert replace(rebuilt, checkpoint_id="") == replace(
        WANTED, base_batch_id=108, replaces="c1", continues=True
    )
    assert rebuilt.checkpoint_id not in ("", "c1")
    cut_off = replace(RESUMED, identity=asdict(rebuilt), newest_committed_batch_id=None)
    check_is_renewed(check_start(cut_off, WANTED), rebuilt)


def test_a_recreated_offsets_topic_of_other_tables_is_refused() -> None:
    refusal(
        replace(RESUMED, batch_checkpoint_id="c2"), replace(WANTED, offsets_topic_id="recreated")
    )


def test_an_identity_file_of_another_version_is_refused_by_name() -> None:
    refusal(replace(RESUMED, identity={**asdict(STORED), "later": 1}))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", to_json(STORED)[:40], "\x00" * 40])
def test_an_identity_file_that_is_empty_or_cut_off_is_damage_with_a_remedy(
    tmp_path: Path, text: str
) -> None:
    make_root(tmp_path / "tables")
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("v1\n")
    Path(identity_path(str(checkpoint))).write_text(text)
    with pytest.raises(LaggardError, match="identity file") as raised:
        check_start(find_state(str(tmp_path / "tables"), str(checkpoint)), WANTED)
    assert raised.value.exit_code == DAMAGED
    assert identity_path(str(checkpoint)) in raised.value.cause
    assert raised.value.fix


def test_an_empty_identity_file_does_not_hinder_a_first_start(tmp_path: Path) -> None:
    make_root(tmp_path / "tables")
    checkpoint = str(tmp_path / "checkpoint")
    Path(identity_path(checkpoint)).write_text("")
    assert check_start(find_state(str(tmp_path / "tables"), checkpoint), WANTED).checkpoint_id


def test_a_start_that_changes_nothing_leaves_the_identity_file_alone(tmp_path: Path) -> None:
    job = Job(tables=str(tmp_path / "tables"), checkpoint=str(tmp_path / "checkpoint"))
    first = prepare(job, TOPIC)
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text("v1\n")
    before = Path(identity_path(job.checkpoint)).stat()
    assert prepare(job, TOPIC) == first
    after = Path(identity_path(job.checkpoint)).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_identity_file_lies_beside_the_checkpoint_and_reads_back() -> None:
    assert identity_path("/data/checkpoint/") == "/data/checkpoint.laggard.json"
    assert Identity(**json.loads(to_json(STORED))) == STORED
