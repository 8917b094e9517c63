"""E. Sizing of each group, from group_windows and its policy.

It shows if adding consumers would help, and how many consumers the group should have: the sizing,
once it lasts, within the limits of the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from prometheus_client.core import Metric

from laggard.diagnosis.history.frames import LEFT
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BLOCKS_SCALING
from laggard.diagnosis.verdict.sizing import SCALE_IN_SECONDS, SCALE_IN_UTILISATION
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import (
    Labels,
    SnapshotCollector,
    Value,
    filled,
    filled_columns,
    filled_states,
)
from laggard.exporter.snapshot import Row, Snapshot

_SCALARS = ((fam.GROUP_CEILING, "members_ceiling"), (fam.GROUP_CAPACITY, "capacity"))


class SizingCollector(SnapshotCollector):
    """Verdict, desired consumers, their limit and the capacity of one consumer.

    The rows of a group agree on these.
    """

    def collect(self) -> Iterator[Metric]:
        labels: list[Labels] = []
        rows: list[Row] = []
        desired: list[Value] = []
        for group, row, wanted in sizes(self._snapshot):
            labels.append({"cluster": self._cluster, "group": escape_label(group)})
            rows.append(row)
            desired.append(wanted)
        yield filled(fam.GROUP_DESIRED, zip(labels, desired, strict=True))
        verdicts = map(known_verdict, rows)
        yield filled_states(fam.GROUP_SCALE_VERDICT, zip(labels, verdicts, strict=True))
        yield from filled_columns(_SCALARS, labels, rows)


def sizes(snapshot: Snapshot) -> Iterator[tuple[str, Row, int | None]]:
    """Yield each group with the first row of its window, and its desired number of consumers."""
    evaluated = snapshot.evaluated
    restless = {row["group"] for row in evaluated.findings if row["code"] in BLOCKS_SCALING}
    for group, windows in groupby(evaluated.windows, key=itemgetter("group")):
        rows = list(windows)
        wanted = desired_consumers(
            rows,
            snapshot.policies.get(group, Policy()),
            evaluated.idle_seconds.get(group, 0.0),
            evaluated.before.get(group, ()),
            window_seconds=evaluated.window_seconds,
            is_restless=group in restless,
        )
        yield group, rows[0], wanted


def known_verdict(row: Row) -> str:
    """Return the verdict; UNKNOWN for one that only a newer job gives."""
    verdict = str(row["scale_verdict"])
    if verdict not in fam.GROUP_SCALE_VERDICT.states:
        return "UNKNOWN"
    return verdict


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
        earlier = before[0][0]["members_desired"] if before else None
        if earlier is None:
            return int(members)
        return int(max(members, min(desired, earlier)))
    hour = list(chain([rows], before))[: SCALE_IN_SECONDS // window_seconds]
    is_whole = len(hour) * window_seconds >= SCALE_IN_SECONDS
    fewer_do = (
        is_whole and not is_restless and all(_fewer_would_do(window, members) for window in hour)
    )
    return int(members - 1 if fewer_do else desired)


def _fewer_would_do(rows: Sequence[Row], members: int) -> bool:
    """Return True if most capacity is unused and one member less could drain arrivals and lag."""
    group, arrivals = rows[0], list(map(itemgetter("arrival_rate"), rows))
    bound, capacity = group["members_lower_bound"], group["capacity"]
    if group["members"] != members or bound is None or capacity is None or None in arrivals:
        return False
    return bool(bound <= members - 1 and sum(arrivals) <= SCALE_IN_UTILISATION * members * capacity)
