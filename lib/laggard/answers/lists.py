"""Groups and findings of all clusters: chosen, in order, page by page.

The next page begins behind the last entry, by the order and not by a number.
"""

from __future__ import annotations

import base64
import json
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, TypeVar

from laggard.answers.document import name_of, named
from laggard.answers.findings import is_wanted, order, read_found
from laggard.answers.groups import SORTS, ClusterGroups
from laggard.answers.groups import order as order_of_status
from laggard.answers.questions import ApiError, Glob
from laggard.answers.reading import Row, Source
from laggard.answers.rebalances import read_lines
from laggard.answers.text.diagnosis_words import says, steps

Parameters = Mapping[str, Any]
T = TypeVar("T")
Key = tuple[Any, ...]
# kinds of the keys of each order, n for a number and s for a text; findings that ended have another
# one
_KINDS = {
    **dict.fromkeys(SORTS, ("nss",)),
    "severity": ("nnnss",),
    "findings": ("nnsnnnssss", "nnss"),
}


def groups(
    clusters: Sequence[ClusterGroups], asked: Parameters, _window_seconds: int
) -> dict[str, Any]:
    """Return one object per group that fits, with its series for a small chart."""
    ordered = [
        ((*order_of_status(row, asked["sort"]), cluster.snapshot.cluster), row)
        for cluster in clusters
        for name, row in cluster.groups.items()
        if _fits(row, cluster.topics.get(name, ()), asked)
    ]
    ordered.sort(key=itemgetter(0))
    rows, after = page_of(
        ordered, asked["limit"], asked["after"], asked["sort"], _KINDS[asked["sort"]]
    )
    if asked["rebalances"]:
        rows = _with_rebalances(clusters, rows)
    return {"total": len(ordered), "next": after, "groups": rows}


def _with_rebalances(clusters: Sequence[ClusterGroups], rows: Sequence[Row]) -> list[Row]:
    """Add the lines of `laggard status --rebalances`; null for a group without a possible line."""
    lines: dict[tuple[str, str], Row] = {}
    names = {name_of(row, "group") for row in rows}
    for cluster in clusters:
        for line in read_lines(cluster.root, cluster.batch, names):
            facts = asdict(line)
            lines[cluster.snapshot.cluster, facts.pop("group")] = facts
    return [
        row | {"rebalances": lines.get((name_of(row, "cluster"), name_of(row, "group")))}
        for row in rows
    ]


def _fits(row: Row, topics: Sequence[Row], asked: Parameters) -> bool:
    group, seconds = name_of(row, "group"), row["time_lag_known_seconds"]
    least = asked["min_time_lag_seconds"]
    names = (group, row["group"], row["owner"], row["team"])
    return (
        _fits_one(asked["group"], group)
        and all(
            asked[name] in (None, row[name]) for name in ("state", "health", "verdict", "status")
        )
        and _fits_one(asked["topic"], *(topic["topic"] for topic in topics))
        and _fits_one(asked["team"], row["team"])
        and (least is None or (seconds is not None and seconds >= least))
        and _is_found(asked["search"], names)
    )


def _is_found(searched: str | None, names: Iterable[str | None]) -> bool:
    """Return True if a known name contains the text in any case, or there is no text."""
    return searched is None or any(
        searched.casefold() in name.casefold() for name in names if name is not None
    )


def _fits_one(glob: Glob | None, *names: str | None) -> bool:
    """Return True if the glob fits one of the names that are known, or was not asked for."""
    return glob is None or any(name is not None and glob.fits(name) for name in names)


def findings(sources: Sequence[Source], asked: Parameters, window_seconds: int) -> dict[str, Any]:
    """Return open findings, then ended ones, each with its evidence and the action to take."""
    window = timedelta(seconds=window_seconds)
    wanted = Namespace(
        all=asked["suppressed"],
        group="*",
        code=None,
        severity=asked["severity"],
        open=asked["state"] == "open",
    )
    read = [
        (source, read_found(source.root, source.batch.polled_at, window, asked["since"]))
        for source in sources
    ]
    ordered = [
        (_place(row), _finding(row))
        for _, evaluated in read
        for row in evaluated.rows
        if is_wanted(row, wanted) and _is_asked_for(row, asked)
    ]
    ordered.sort(key=itemgetter(0))
    rows, after = page_of(ordered, asked["limit"], asked["after"], "findings", _KINDS["findings"])
    reached = [
        {
            **named("cluster", source.batch.cluster),
            "evaluated_to": evaluated.evaluated_to,
            "windows_behind": evaluated.behind,
        }
        for source, evaluated in read
    ]
    return {"total": len(ordered), "next": after, "evaluated": reached, "findings": rows}


def _is_asked_for(row: Row, asked: Parameters) -> bool:
    return (
        (asked["state"] != "closed" or row["event"] == "closed")
        and _fits_one(asked["group"], row["group"])
        and _fits_one(asked["code"], row["code"])
    )


def _place(row: Row) -> Key:
    key = (part.isoformat() if isinstance(part, datetime) else part for part in order(row))
    return (*key, row["cluster"])


def _finding(row: Row) -> Row:
    names = {
        name: value for key in ("cluster", "group") for name, value in named(key, row[key]).items()
    }
    return row | names | {"says": says(row), **steps(row, {})}


def page_of(
    ordered: Sequence[tuple[Key, T]],
    limit: int | None,
    after: str | None,
    order: str,
    kinds: Collection[str],
) -> tuple[list[T], str | None]:
    """Give the entries behind a place, and the place of the last one if there are more.

    A key is of one of the `kinds`, with n for a number and s for a text.
    """
    if after is not None:
        position = _read_cursor(after, order)
        if "".join(map(_kind, position)) not in kinds:
            raise _bad(after)
        try:
            ordered = [entry for entry in ordered if entry[0] > position]
        except TypeError:  # of the kind of another entry of the list
            raise _bad(after) from None
    shown = ordered[:limit]
    return [entry for _, entry in shown], _cursor(order, shown[-1][0]) if len(shown) < len(
        ordered
    ) else None


def _cursor(order: str, key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([order, *key]).encode()).decode().rstrip("=")


def _read_cursor(after: str, order: str) -> Key:
    try:
        order_of_key, *key = json.loads(
            base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)), parse_constant=_number
        )
    except (ValueError, TypeError, RecursionError):
        raise _bad(after) from None
    if order_of_key != order:
        raise ApiError(
            400, "bad_cursor", f"after belongs to the order {order_of_key!r}, not {order!r}"
        )
    return tuple(key)


def _number(name: str) -> float:
    """Read what JSON lacks and Python writes; NaN is no place, as nothing is behind it."""
    if name == "NaN":
        raise ValueError(name)
    return float(name)


def _kind(value: object) -> str:
    if isinstance(value, (int, float)):
        return "n"
    return "s" if isinstance(value, str) else "?"


def _bad(after: str) -> ApiError:
    return ApiError(400, "bad_cursor", f"after is not a position in this list: {after[:80]!r}")
