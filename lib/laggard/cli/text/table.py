"""A table of text: all of it for a pipe, and what fits for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from laggard.answers.text.words import pad, width

GAP = "  "


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a sentence and their titles, in the order of reading."""

    sentence: str
    titles: Sequence[str] = ()  # none: the sentence says it all
    rows: Sequence[Sequence[str]] = ()
    right: Collection[str] = ()  # columns of numbers
    limit: int = 0  # rows to show; 0: all
    least: Sequence[str] = ()  # columns that a narrow terminal does without, the least wanted first

    def lines(self) -> list[str]:
        """Return the whole table as text."""
        cells = self.padded(self.titles, self.limit) if self.titles else []
        return [self.sentence, *(GAP.join(row).rstrip() for row in cells), *self.more(self.limit)]

    def padded(self, titles: Sequence[str], limit: int) -> list[list[str]]:
        """Return the cells of some columns, padded to the widest cell of each column.

        The titles come first.
        """
        places = [self.titles.index(title) for title in titles]
        shown = [self.titles, *(self.rows[:limit] if limit else self.rows)]
        widths = [max(width(row[column]) for row in shown) for column in places]
        return [
            [
                pad(row[column], size, is_right=title in self.right)
                for title, column, size in zip(titles, places, widths, strict=True)
            ]
            for row in shown
        ]

    def more(self, limit: int) -> list[str]:
        """Return a line that counts the rows beyond the limit, if there are any."""
        return [f"… and {len(self.rows) - limit} more"] if 0 < limit < len(self.rows) else []

    def fitting(self, columns: int) -> list[str]:
        """Return the titles of the columns that fit into a width."""
        kept = list(self.titles)
        for title in ("", *self.least):
            kept = [name for name in kept if name != title]
            if width(GAP.join(self.padded(kept, self.limit)[0])) <= columns:
                break
        return kept
