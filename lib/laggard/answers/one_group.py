"""One group: its topics, partitions, members, rebalances and findings; `laggard explain` data.

The latter is the page of `laggard explain` as data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from laggard.answers.document import named
from laggard.answers.explain.asked import FEW, Asked
from laggard.answers.explain.data import to_data
from laggard.answers.explain.members import readers
from laggard.answers.explain.page import page_lines
from laggard.answers.explain.rebalance import events_and_cost
from laggard.answers.explain.rows import Explained, read_rebalances
from laggard.answers.groups import ClusterGroups, is_censored, partition_counts
from laggard.answers.history import (
    MAX_DRAWN,
    gaps_between,
    group_series,
    partition_series,
    range_series,
)
from laggard.answers.questions import MAX_REBALANCES
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import checked, evidence_words, spoken, unchecked, where
from laggard.diagnosis.parameters import Policy

_REBALANCES = 200
_OF_OLD = "topic_recreated"
_DAY = timedelta(hours=24)
_OF_WINDOW = ("shape", "arrival_shape", "trend", "drain_seconds", "loss_seconds")
_OF_OWNER = ("member_id", "slot", "client_id", "client_host")


def explain(
    cluster: ClusterGroups, group: str, asked: Mapping[str, Any], window_seconds: int
) -> dict[str, Any]:
    """Give the facts of the page and its lines, as the verb prints them."""
    limit = asked["limit"] or (MAX_REBALANCES if asked["since"] else None)
    question = Asked(group, limit, asked["topic"], asked["at"], asked["since"])
    explained = question.read(cluster.root, window_seconds, cluster.snapshot.batch)
    return {"explain": to_data(explained, asked["partitions"]), "page": page_lines(explained)}


def group(
    cluster: ClusterGroups, group: str, asked: Mapping[str, Any], window_seconds: int
) -> dict[str, Any]:
    """Give the object of the list, and beside it what only one group can have."""
    end = cluster.batch.polled_at
    at = (lambda _: end) if cluster.is_past else None
    since = asked["since"] or (lambda _: end - _DAY)
    question = Asked(group, _REBALANCES, asked["topic"], at, since)
    explained = question.read(cluster.root, window_seconds, cluster.batch)
    facts = to_data(explained)
    diagnosis = dict(facts["diagnosis"])
    del diagnosis["windows"]
    drawn = [
        (row["topic"], row["partition"])
        for row in explained.partitions[: min(asked["limit"], MAX_DRAWN)]
    ]
    starts, series = partition_series(cluster.root, group, end, window_seconds, drawn)
    rebalances, findings = explained.rebalances, diagnosis.pop("findings")
    if rebalances is not None:
        rebalances = [
            row | {"says": list(events_and_cost(row, explained.names))} for row in rebalances
        ]
    if findings is not None:
        findings = [row | {"words": _words(row)} for row in findings]
    document = {
        "group": cluster.groups[group],
        "history": group_series(cluster.root, group, explained.topic, starts),
        "topics": [
            _topic(row, explained)
            for row in cluster.topics.get(group, ())
            if explained.topic in (None, row["topic"])
        ],
        "window_starts": starts,
        "partitions": _partitions(explained, asked["limit"], series),
        "members": facts["members"],
        "rebalances": rebalances,
        "findings": findings,
        "diagnosis": diagnosis,
        "policy": asdict(cluster.snapshot.policies.get(group, Policy())),
        "not_known": facts["not_known"],
    }
    if asked["since"]:
        document["range"] = _range(explained, cluster, since(end), window_seconds)
    if asked["page"]:
        document["page"] = _page(explained, cluster, asked)
    return document


def _range(
    explained: Explained, cluster: ClusterGroups, since: datetime, window_seconds: int
) -> Row:
    """Return the lag of the time asked for, and the parts of it that nobody watched."""
    group, end = explained.group["group"], cluster.batch.polled_at
    return {
        **range_series(cluster.root, group, explained.topic, since, end, window_seconds),
        "gaps": gaps_between(cluster.root, cluster.batch, since, end),
    }


def _page(explained: Explained, cluster: ClusterGroups, asked: Mapping[str, Any]) -> list[str]:
    """Return the lines of `laggard explain`; without a range with few rebalances, however old."""
    if asked["since"]:
        return page_lines(explained)
    newest = read_rebalances(cluster.root, explained.batch, explained.group, FEW)
    return page_lines(replace(explained, rebalances=newest, since=None, past=None))


def _words(finding: Row) -> Row:
    """Give the texts of the page of `laggard explain` about a finding."""
    return {
        "where": where(finding),
        "evidence": evidence_words(finding),
        "checked": checked(finding),
        "unchecked": unchecked(finding),
        "wrong_if": spoken(finding["falsifier"] or "").rstrip("."),
    }


def _topic(row: Row, explained: Explained) -> Row:
    windows = {
        window["topic"]: window
        for window in explained.diagnosis.windows
        if explained.diagnosis.is_current
    }
    window = windows.get(row["topic"], {})
    return {
        **named("topic", row["topic"]),
        "lag": row["lag"],
        "lag_known": row["lag_known"],
        "time_lag_seconds": row["time_lag"],
        "time_lag_known_seconds": row["time_lag_known"],
        "time_lag_censored": is_censored([row]),
        "partitions": partition_counts([row]),
        **{name: window.get(name) for name in _OF_WINDOW},
    }


def _place(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]


def _partitions(
    explained: Explained, limit: int, series: Mapping[tuple[str, int], Row]
) -> Sequence[Row]:
    """Return the worst partitions first, at most `limit`.

    Only they have a history, which keeps the answer small.
    """
    owners = readers(explained)
    # a topic that was made again has two rows of one partition: the history is of the new one
    again = {key for key, rows in Counter(map(_place, explained.partitions)).items() if rows > 1}
    shown = []
    for row in explained.partitions[:limit]:
        key = _place(row)
        owner = owners.get(key)
        is_of_old = key in again and row["status"] == _OF_OLD
        history = None if is_of_old else series.get(key)
        shown.append(
            row
            | named("topic", row["topic"])
            | {
                "owner": None if owner is None else {name: owner[name] for name in _OF_OWNER},
                "history": history,
            }
        )
    return shown
