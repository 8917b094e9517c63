"""The members a group has now, as the history tables tell them."""

from collections import defaultdict

from e2e.kit import Row, View
from e2e.live.tools import Places


class Newest:
    """Each group's newest generation or epoch and its members; reads the tables once.

    All records of a group are in one partition of the offsets topic, whatever its protocol was.
    """

    def __init__(self, view: View) -> None:
        self._generations: dict[str, Row] = {}
        for row in sorted(view.rows("generations"), key=lambda row: row["source_offset"]):
            if row["kind"] != "tombstone":
                self._generations[row["group"]] = row
        self._members: dict[str, list[Row]] = defaultdict(list)
        for row in view.rows("group_members"):
            self._members[row["group"]].append(row)

    def generation(self, group: str) -> Row:
        return self._generations[group]

    def members(self, group: str) -> dict[str, Row]:
        """By client id; a static member that rejoined within the generation is there once."""
        first = self._generations[group]["source_offset"]
        rows = [row for row in self._members[group] if row["source_offset"] >= first]
        newest = max((row["source_offset"] for row in rows), default=0)
        replaced = {row["replaced_member_id"] for row in rows}
        kept = [
            row
            for row in rows
            if row["source_offset"] == newest and row["member_id"] not in replaced
        ]
        assert len({row["client_id"] for row in kept}) == len(kept), kept
        return {row["client_id"]: row for row in kept}


def assigned(row: Row) -> Places:
    return frozenset((each["topic"], each["partition"]) for each in row["assigned"])
