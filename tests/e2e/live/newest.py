"""The members a group has now, as the history tables tell them."""

from e2e.kit import Row, View
from e2e.live.tools import Places


def newest_generation(view: View, group: str) -> Row:
    """All records of a group are in one partition of the offsets topic, whatever its protocol was."""
    rows = [row for row in view.rows("generations") if row["group"] == group and row["kind"] != "tombstone"]
    return max(rows, key=lambda row: row["source_offset"])


def newest_members(view: View, group: str) -> dict[str, Row]:
    """Rows of the newest generation or epoch by client id; a static member that came back is there once."""
    generation = newest_generation(view, group)
    rows = [
        row
        for row in view.rows("group_members")
        if row["group"] == group and row["source_offset"] >= generation["source_offset"]
    ]
    newest = max((row["source_offset"] for row in rows), default=0)
    replaced = {row["replaced_member_id"] for row in rows}
    kept = [row for row in rows if row["source_offset"] == newest and row["member_id"] not in replaced]
    assert len({row["client_id"] for row in kept}) == len(kept), kept
    return {row["client_id"]: row for row in kept}


def assigned(row: Row) -> Places:
    return frozenset((each["topic"], each["partition"]) for each in row["assigned"])
