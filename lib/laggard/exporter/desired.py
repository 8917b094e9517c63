"""How many consumers a group should have: what the sizing says, within what its policy allows."""

from __future__ import annotations

from collections.abc import Sequence

from laggard.diagnosis.frames import Row
from laggard.diagnosis.policy import Policy


def desired_consumers(rows: Sequence[Row], policy: Policy, idle_seconds: float = 0.0) -> int | None:
    """Consumers by a group's rows of group_windows, one per topic; None where the verdict is unknown or a row partial.

    `idle_seconds`: for how long nothing has arrived and nothing was left.
    """
    group = rows[0]
    verdict = group["scale_verdict"]
    if verdict is None or verdict.startswith("UNKNOWN") or any(row["status"] != "ok" for row in rows):
        return None
    is_asleep = all(row["lag"] == 0 and row["arrival_rate"] == 0 for row in rows)
    if policy.scale_to_zero and is_asleep and (idle_seconds >= policy.idle_seconds or not group["members"]):
        return 0
    wanted = policy.min_consumers if verdict == "NO_MEMBERS" else group["members_desired"]
    if wanted is None:
        return None
    needs_one = policy.scale_to_zero and not is_asleep
    least = max(policy.min_consumers, 1) if needs_one else policy.min_consumers
    # neither what the policy forbids nor members that could not get a partition
    limits = [limit for limit in (policy.max_consumers, group["members_ceiling"]) if limit]
    return min([max(wanted, least), *limits])
