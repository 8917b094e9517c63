"""The offsets topic itself: whether it grew or is another one since the batch before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from laggard.errors import REFUSED, LaggardError
from laggard.lag.tick import Tick
from laggard.sources.snapshot import Snapshot
from laggard.stream.job.identity import Identity
from laggard.stream.tick.events import event_row
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import DataFile, write_files
from laggard.tables.readers import table_uri
from laggard.tables.schema import schemas
from laggard.tables.schema.batch_tables import OFFSETS_TOPIC_RECREATED


def offsets_topic_events(
    last: Mapping[str, Any] | None, snapshot: Snapshot, tick: Tick, rebuild: Identity | None = None
) -> list[dict[str, Any]]:
    """Return the group-less `group_events` row if partition count or topic id changed.

    It is compared with the last `batches` row.

    `rebuild` is given for the first batch of a topic that was created again.
    """
    if last is None:
        return []
    known = count_known(last["source_to"], last["source_high_watermark"] or ())
    polled = count_known(snapshot.offsets_partitions["offsets_partition"].to_pylist())
    detail = [] if rebuild is None else _new_id(rebuild)
    # one topic only grows
    if known and polled and (known < polled or (rebuild and known > polled)):
        detail = [("partitions_from", str(known)), ("partitions_to", str(polled)), *detail]
    row = {"group": None, "event_at": tick.now, "detail": detail}
    if not detail:
        return []
    return [event_row("offsets_topic_changed", tick, row)]


def _new_id(rebuild: Identity) -> list[tuple[str, str]]:
    is_same_source = rebuild.rebuild_reason == OFFSETS_TOPIC_RECREATED
    if not is_same_source or not rebuild.replaced_topic_id:  # an older job did not keep it
        return []
    return [("topic_id_from", rebuild.replaced_topic_id), ("topic_id_to", rebuild.offsets_topic_id)]


def with_events(
    files: Mapping[str, Sequence[DataFile]], events: Sequence[Mapping[str, Any]], root: str
) -> dict[str, Sequence[DataFile]]:
    """Return data files of a batch's tasks by table, with one more for these event rows.

    The rows are of `group_events`.
    """
    rows = to_arrow(schemas.GROUP_EVENTS, events)
    own = write_files(table_uri(root, "group_events"), schemas.GROUP_EVENTS, rows) if events else []
    if own:
        return {**files, "group_events": [*files.get("group_events", ()), *own]}
    return dict(files)


def check_same_topic(known_id: str, found_id: str) -> None:
    """Refuse to read on if the topic is another one.

    Positions in the old topic mean nothing in it.
    """
    if known_id and found_id not in ("", known_id):
        raise RebuildError(
            "the offsets topic was deleted and made again",
            cause=f"its topic id was {known_id}, now it is {found_id}",
        )


def check_truncated(partitions: Collection[int]) -> None:
    """Ask for a new checkpoint if positions fell, as records below them were not read."""
    if partitions:
        numbers = ", ".join(map(str, sorted(partitions)[:10])) + (
            ", …" if len(partitions) > 10 else ""
        )
        raise RebuildError(
            "the offsets topic was truncated below what was read",
            cause=f"partitions {numbers}; an unclean leader election does that",
        )


class RebuildError(LaggardError):
    """Failure of positions in the offsets topic, which mean nothing any more.

    A new checkpoint is needed, over the same tables.
    """

    def __init__(self, what: str, cause: str) -> None:
        fix = "start the job again: it keeps all history and goes on with the topic as it is"
        super().__init__(what, cause=cause, fix=fix, exit_code=REFUSED)


def count_known(*partitions: Iterable[int]) -> int:
    """Count the partitions, by the highest of those that are known."""
    return 1 + max((number for numbers in partitions for number in numbers), default=-1)
