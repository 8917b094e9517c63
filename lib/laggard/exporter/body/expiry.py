"""Forecast of a broker's first deletion of group offsets (offsets.retention.minutes, KIP-211)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laggard.exporter.fold import GroupTopics

_BY_COMMIT = ("classic", "consumer", "streams", "simple")  # a share group keeps no offsets there


def first_commits(folded: GroupTopics) -> dict[str, dict[str, float]]:
    """Return the oldest commit per group and topic, in seconds since 1970.

    A topic without a commit is left out.
    """
    found: dict[str, dict[str, float]] = {}
    for group, topic, at in zip(
        folded.group, folded.topic, folded.columns.get("first_commit", ()), strict=True
    ):
        if at is not None:
            found.setdefault(group, {})[topic] = at
    return found


def offsets_expiry(
    group: Mapping[str, Any], commits: Mapping[str, float], retention_minutes: int | None
) -> float | None:
    """Return the offsets' expiry in seconds since 1970; None if nothing expires or it is unknown.

    A classic group's offsets live on from when it became empty, those of any other group from
    their commits. Of a group with members only topics expire that none of them subscribes to.
    """
    kind, members = group["group_type"], group["members"]
    if retention_minutes is None or kind not in _BY_COMMIT:
        return None
    if kind == "classic" and members == 0:
        since = None if group["empty_since"] is None else group["empty_since"].timestamp()
    elif members and group["topics"] is None:
        return None
    else:
        read = frozenset(group["topics"] if members else ())
        since = min(map(commits.__getitem__, commits.keys() - read), default=None)
    return None if since is None else since + 60.0 * retention_minutes
