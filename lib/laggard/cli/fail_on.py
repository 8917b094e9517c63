"""The exit codes of --fail-on."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from laggard.answers.evaluated import SEVERITIES, open_findings
from laggard.answers.reading import Row
from laggard.errors import OK, TEMPORARY, LaggardError

FAIL_ON = ("warn", "page")
FOUND = 1  # exit code of --fail-on


def at_least(limit: str | None) -> tuple[str, ...]:
    """Return the severities from a limit upwards; none without a limit."""
    return SEVERITIES[: SEVERITIES.index(limit) + 1] if limit else ()


def exit_code(rows: Iterable[Row], limit: str | None, *, is_known: bool) -> int:
    """Return the exit code of --fail-on: 1 for an open finding of at least that severity.

    It is 75 if no finding can be known.

    Suppressed findings do not count, and without a limit none does.
    """
    severe = at_least(limit)
    if any(
        row["severity"] in severe and row["role"] != "suppressed" for row in open_findings(rows)
    ):
        return FOUND
    return OK if is_known else unknown_code(limit)


def unknown_code(limit: str | None) -> int:
    """Say why no finding is known, if --fail-on asks for one, and give the exit code."""
    if not limit:
        return OK
    unknown = LaggardError(
        f"--fail-on {limit}: findings are unknown",
        cause="the rules know no group that is asked for: they have not evaluated it, or there is "
        "none",
        fix="wait for the next window; if none comes, laggard doctor says why",
    )
    print(unknown, file=sys.stderr)
    return TEMPORARY
