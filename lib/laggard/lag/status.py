"""The closed list of what can be said about one partition of a group."""

from __future__ import annotations

STATUSES = (  # in order of precedence: when several apply, the first wins
    "stale",
    "topic_missing",
    "topic_recreated",
    "no_end_offset",
    "source_blocked",
    "no_commit",
    "committed_ahead",
    "below_log_start",
    "ok",
)
PARTIAL = "partial"  # aggregates only: a partition that has a commit is not ok
KNOWN_STATUSES = ("ok", "no_commit")  # a partition without a commit does not make a sum partial
