"""Checkpoints and their tables; Delta silently skips writes whose app id outlived its checkpoint.

So the app id's random part is kept beside the checkpoint, and every mismatch refuses to start. A
checkpoint that is not there at all is no mismatch, nor is one that another job has overtaken on
the same tables: everything that it held for us is in the newest `batches` row.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from laggard import files
from laggard.config.sections import ADMIN
from laggard.errors import DAMAGED, REFUSED, LaggardError
from laggard.stream.job.checkpoint import REPAIR
from laggard.stream.job.source_positions import fallen
from laggard.tables.published import Batch, newest_batch, newest_of_checkpoints
from laggard.tables.readers import has_table
from laggard.tables.schema.batch_tables import OFFSETS_TOPIC_RECREATED, SOURCE_CHANGED
from laggard.tables.schema.schemas import BATCHES

LAYOUT = 2  # 1: the offsets topic was a streaming source of its own
FROZEN = ("cluster_id", "table_root", "window_seconds")  # a new offsets_topic_id is a rebuild
RESTORE = (
    "restore the checkpoint and tables that belong together, or continue from the tables: "
    "laggard doctor --repair"
)
MOVE = "restore the value it had, or give this job its own job.tables and job.checkpoint"


@dataclass(frozen=True, slots=True)
class Identity:
    """Values constant for a checkpoint's life; written to `<checkpoint>.laggard.json`."""

    cluster_id: str
    offsets_topic_id: str  # "admin" where coordinators are asked instead
    table_root: str
    window_seconds: int
    checkpoint_id: str = ""
    base_batch_id: int = 0
    replaces: str = ""  # the checkpoint id whose tables this one continues, "" for none
    replaced_topic_id: str = ""  # id of the offsets topic that it had read
    # after a repair: state and positions of the tables go on; else they are of another topic
    continues: bool = False
    # of the streaming offsets; a checkpoint of another one is replaced, and the tables go on
    layout: int = LAYOUT

    @property
    def rebuild_reason(self) -> str:
        """The reason of the gap row if it begins again with another source."""
        is_switch = ADMIN in (self.offsets_topic_id, self.replaced_topic_id)
        if is_switch:
            return SOURCE_CHANGED
        return OFFSETS_TOPIC_RECREATED

    def origin(self) -> dict[str, Any]:
        """Give what each `batches` row keeps of it, so that the tables are enough to go on."""
        return {
            name: getattr(self, name)
            for name in ("cluster_id", "offsets_topic_id", "window_seconds")
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The identity on disk at start; None if there is none."""

    has_checkpoint: bool
    identity: Mapping[str, Any] | None  # empty: the file is there and cannot be read
    newest_batch_id: int | None  # in the `batches` table
    batch_checkpoint_id: str | None  # in that row
    newest_wal_batch_id: int | None  # in the checkpoint's offsets
    newest_committed_batch_id: int | None  # in the checkpoint's commits
    identity_path: str = ""
    # in the newest published batch a position fell: what follows it is to be read again
    has_truncation: bool = False
    # of the newest published batch; None in a row of an older job
    origin: Mapping[str, Any] | None = None
    # of this checkpoint, if the newest of all is of another one
    newest_own_batch_id: int | None = None
    has_replaced: bool = False  # the tables have batches of the checkpoint that this one continues

    def next_batch_id(self, first: int) -> int:
        """Return the number after the newest batch; `first` without any."""
        if self.newest_batch_id is None:
            return first
        return self.newest_batch_id + 1


def identity_path(checkpoint: str) -> str:
    """Return the path of the identity file, which is beside a checkpoint."""
    return checkpoint.rstrip("/") + ".laggard.json"


def to_json(identity: Identity) -> str:
    """Return the text of the identity file."""
    return json.dumps(asdict(identity), indent=2, sort_keys=True) + "\n"


def identity_of(values: Mapping[str, Any]) -> Identity:
    """Return the written identity.

    Raise TypeError if it is not an identity of this version or an older one.
    """
    return Identity(**{"layout": 1, **values})


def check_start(state: Found, wanted: Identity) -> Identity:
    """Return the identity to run under: new on a first start or rebuild, stored on a resume.

    Otherwise refuse.

    Where nothing is published under the given identity yet (`follows_another`), a checkpoint is in
    the way.
    """
    stored = _stored(state) if state.has_checkpoint else readable(state)
    if (
        stored is not None
        and stored.replaces
        and follows_another(stored, state.batch_checkpoint_id)
    ):
        return _again(stored, state, wanted)
    if not state.has_checkpoint:
        return _without_checkpoint(state, wanted)
    if stored is None:
        raise _refusal(
            "the checkpoint has no identity file", "the file <checkpoint>.laggard.json is missing"
        )
    check_frozen(stored, wanted)
    if state.batch_checkpoint_id not in (None, stored.checkpoint_id):
        _check_overtaken(stored, state)
        return _without_checkpoint(state, wanted)
    return _resumed(stored, state, wanted)


def _resumed(stored: Identity, state: Found, wanted: Identity) -> Identity:
    """Return the stored identity if tables and checkpoint are of one job; else refuse.

    A rebuild of the job counts as the same job.
    """
    # recreated: its positions mean nothing any more
    if stored.offsets_topic_id != wanted.offsets_topic_id:
        return rebuilt(
            state, wanted, replaced_topic_id=stored.offsets_topic_id, base=stored.base_batch_id
        )
    newest = -1
    if state.newest_batch_id is not None:
        newest = state.newest_batch_id - stored.base_batch_id
    wal = -1 if state.newest_wal_batch_id is None else state.newest_wal_batch_id
    if newest > wal:
        raise _refusal(
            "the checkpoint is older than the tables",
            f"tables at batch {newest}, checkpoint at {wal}",
        )
    _check_committed(stored, state, state.newest_batch_id)
    if state.has_truncation or stored.layout != LAYOUT:
        return rebuilt(state, wanted)
    return stored


def _check_overtaken(stored: Identity, state: Found) -> None:
    """Refuse other tables than those of this checkpoint.

    The newest batch of these tables is another checkpoint's.

    They have batches of it; or it has committed none, and they have those that it was to follow,
    if there were any.
    """
    has_committed = state.newest_committed_batch_id is not None or state.newest_wal_batch_id != 0
    is_before_its_first = not has_committed and (state.has_replaced or not stored.replaces)
    if state.newest_own_batch_id is None and not is_before_its_first:
        raise _refusal(
            "the checkpoint belongs to other tables",
            f"tables: {state.batch_checkpoint_id}, checkpoint: {stored.checkpoint_id}",
        )
    _check_committed(stored, state, state.newest_own_batch_id)


def _check_committed(stored: Identity, state: Found, newest_batch_id: int | None) -> None:
    newest = -1
    if newest_batch_id is not None:
        newest = newest_batch_id - stored.base_batch_id
    committed = -1 if state.newest_committed_batch_id is None else state.newest_committed_batch_id
    if newest < committed:
        raise _refusal(
            "the tables lost batches that the checkpoint committed",
            f"tables at batch {newest}, checkpoint at {committed}",
        )


def _again(stored: Identity, state: Found, wanted: Identity) -> Identity:
    """Begin a rebuild that was cut off before its first batch once more."""
    check_frozen(stored, wanted)
    if state.has_checkpoint:
        _check_committed(stored, state, state.newest_own_batch_id)
    if stored.continues and stored.offsets_topic_id != wanted.offsets_topic_id:
        return rebuilt(state, wanted, replaced_topic_id=stored.offsets_topic_id)
    # there and back: the tables are of this source
    if stored.replaced_topic_id == wanted.offsets_topic_id:
        return rebuilt(state, wanted)
    # under an id of its own again: tables that the cut-off batch has reached would leave out its
    # second run; and after all that the job before it has published since, which in a bucket may
    # have taken the tables back
    return replace(
        stored,
        checkpoint_id=uuid.uuid4().hex,
        offsets_topic_id=wanted.offsets_topic_id,
        base_batch_id=state.next_batch_id(stored.base_batch_id),
        layout=LAYOUT,
    )


def _without_checkpoint(state: Found, wanted: Identity) -> Identity:
    """Return the identity of a first start, or of a lost checkpoint on a scratch disk.

    The tables know all that the checkpoint knew.
    """
    if state.newest_batch_id is None:
        return replace(wanted, checkpoint_id=uuid.uuid4().hex)
    before = find_origin(state, wanted)
    if before is None:
        raise _refusal(
            "the tables hold batches but their checkpoint is missing",
            f"newest batch {state.newest_batch_id} is of an older version, which does not say "
            "what it read",
        )
    check_frozen(before, wanted)
    if before.offsets_topic_id == wanted.offsets_topic_id:
        return rebuilt(state, wanted)
    return rebuilt(state, wanted, replaced_topic_id=before.offsets_topic_id)


def find_origin(state: Found, wanted: Identity) -> Identity | None:
    """Return the fixed parts of the identity that read the newest batch; None if not recorded."""
    if state.origin is None:
        return readable(state)
    return replace(wanted, **state.origin)


def readable(state: Found) -> Identity | None:
    """Return the stored identity, if of this version and these tables' checkpoint; else None."""
    try:
        stored = None
        if state.identity:
            stored = identity_of(state.identity)
    except TypeError:
        return None
    if stored and state.batch_checkpoint_id in (
        None,
        stored.checkpoint_id,
        stored.replaces or None,
    ):
        return stored
    return None


def rebuilt(
    state: Found, wanted: Identity, *, replaced_topic_id: str = "", base: int = 0
) -> Identity:
    """Return a new checkpoint over the same tables.

    State and positions go on unless their topic no longer exists.
    """
    return replace(
        wanted,
        checkpoint_id=uuid.uuid4().hex,
        base_batch_id=state.next_batch_id(base),
        replaces=state.batch_checkpoint_id or "",
        replaced_topic_id=replaced_topic_id,
        continues=not replaced_topic_id,
    )


def follows_another(identity: Identity, batch_checkpoint_id: str | None) -> bool:
    """Return True if nothing is published under this identity, but something under an earlier."""
    return batch_checkpoint_id is not None and batch_checkpoint_id == identity.replaces


def _stored(state: Found) -> Identity | None:
    if state.identity is None:
        return None
    if not state.identity:
        raise LaggardError(
            "the checkpoint's identity file is damaged",
            cause=f"{state.identity_path} is empty or cut off",
            fix=REPAIR,
            exit_code=DAMAGED,
        )
    try:
        return identity_of(state.identity)
    except TypeError as error:
        raise _refusal(
            "the checkpoint's identity file is not one of this version", str(error)
        ) from error


def check_frozen(stored: Identity, wanted: Identity) -> None:
    """Refuse values that must not change during a checkpoint's life."""
    for key in FROZEN:
        before, now = getattr(stored, key), getattr(wanted, key)
        is_same = before == now
        if key == "table_root":
            is_same = files.locate(before) == files.locate(now)
        if not is_same:
            what = f"{key} is not the one this checkpoint was made with"
            raise _refusal(what, f"was {before!r}, now {now!r}", MOVE)


def _refusal(what: str, cause: str, fix: str = RESTORE) -> LaggardError:
    return LaggardError(f"refusing to start: {what}", cause=cause, fix=fix, exit_code=REFUSED)


def find_state(root: str, checkpoint: str) -> Found:
    """Return the state on disk of this checkpoint and these tables."""
    newest = None
    if has_table(root, BATCHES.name):
        newest = newest_batch(root)
    path = identity_path(checkpoint)
    wal = files.newest_number(f"{checkpoint.rstrip('/')}/offsets")
    identity = None
    if files.exists(path):
        identity = _parsed(files.read_bytes(path))
    state = Found(
        has_checkpoint=wal is not None,
        identity=identity,
        newest_batch_id=None,
        batch_checkpoint_id=None,
        newest_wal_batch_id=wal,
        newest_committed_batch_id=files.newest_number(f"{checkpoint.rstrip('/')}/commits"),
        identity_path=path,
    )
    if newest is None:
        return state
    return _with_newest(state, newest, root)


def _with_newest(state: Found, newest: Batch, root: str) -> Found:
    """Return the same with the newest published batch of the tables."""
    checkpoint_id, stored = newest.values["checkpoint_id"], state.identity or {}
    is_another = stored.get("checkpoint_id") not in (None, checkpoint_id)
    published = newest_of_checkpoints(root) if is_another else {}
    return replace(
        state,
        newest_batch_id=newest.batch_id,
        batch_checkpoint_id=checkpoint_id,
        has_truncation=bool(fallen(newest.values)),
        origin=newest.values["origin"],
        newest_own_batch_id=published.get(str(stored.get("checkpoint_id"))),
        has_replaced=stored.get("replaces") in published,
    )


def _parsed(text: bytes) -> dict[str, Any]:
    """Return the identity file's values; empty if it holds no JSON object."""
    try:
        values = json.loads(text)
    except ValueError:  # UnicodeDecodeError is one, too
        return {}
    if isinstance(values, dict):
        return values
    return {}
