"""Desired consumers of a group: the sizing, once it lasts, within the limits of its policy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from laggard.diagnosis.history.frames import LEFT, Row
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.verdict.sizing import SCALE_IN_SECONDS, SCALE_IN_UTILISATION


def desired_consumers(
    rows: Sequence[Row],
    policy: Policy,
    idle_seconds: float = 0.0,
    before: Sequence[Sequence[Row]] = (),
    *,
    window_seconds: int = 60,
    is_restless: bool = False,
) -> int | None:
    """Return desired consumers from group_windows rows, one row per topic.

    The result is None if the verdict is unknown or a row is partial.

    `idle_seconds`: for how long nothing has arrived and nothing was left. `before`: rows of the
    windows before, the newest first, up to one that is missing. `is_restless`: a finding about
    rebalances is open. Topics that no member subscribes to any more ask for nobody.
    """
    rows = _subscribed(rows)
    group = rows[0]
    if not _is_known(rows):
        return None
    is_asleep = all((row["lag"], row["arrival_rate"]) == (0, 0) for row in rows)
    if (
        policy.scale_to_zero
        and is_asleep
        and (idle_seconds >= policy.idle_seconds or not group["members"])
    ):
        return 0
    wanted: int | None = policy.min_consumers
    if group["scale_verdict"] != "NO_MEMBERS":
        wanted = _lasting(
            rows, [*map(_subscribed, before)], window_seconds, is_restless=is_restless
        )
    if wanted is None:
        return None
    needs_one = policy.scale_to_zero and not is_asleep
    # neither what the policy forbids nor members that could not get a partition
    limits: list[int] = [*filter(None, (policy.max_consumers, group["members_ceiling"]))]
    return min([max(wanted, policy.min_consumers, int(needs_one)), *limits])


def _subscribed(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if LEFT not in (row.get("flags") or ())] or rows


def _is_known(rows: Sequence[Row]) -> bool:
    verdict = rows[0]["scale_verdict"]
    return (
        verdict is not None
        and not verdict.startswith("UNKNOWN")
        and all(row["status"] == "ok" for row in rows)
    )


def _lasting(
    rows: Sequence[Row], before: Sequence[Sequence[Row]], window_seconds: int, *, is_restless: bool
) -> int | None:
    """Ask for more members only if two windows do, and for one less only after an hour.

    Of the two windows' numbers the smaller counts.
    """
    members, desired = rows[0]["members"], rows[0]["members_desired"]
    if desired is None:
        return None
    if members is None:
        return int(desired)
    if desired > members:
        first = before[0][0]["members_desired"] if before else None
        return int(max(members, min(desired, members if first is None else first)))
    hour = list(chain([rows], before))[: SCALE_IN_SECONDS // window_seconds]
    is_whole = len(hour) * window_seconds >= SCALE_IN_SECONDS
    fewer_do = is_whole and not is_restless and all(_fewer_would_do(each, members) for each in hour)
    return int(members - 1 if fewer_do else desired)


def _fewer_would_do(rows: Sequence[Row], members: int) -> bool:
    """Return True if most capacity is unused and one member less could drain arrivals and lag."""
    group, arrivals = rows[0], [row["arrival_rate"] for row in rows]
    bound, capacity = group["members_lower_bound"], group["capacity"]
    if group["members"] != members or bound is None or capacity is None or None in arrivals:
        return False
    return bool(bound <= members - 1 and sum(arrivals) <= SCALE_IN_UTILISATION * members * capacity)
