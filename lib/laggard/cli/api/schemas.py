"""JSON Schema of every answer, made from the declarations of the tables and lists of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from laggard.cli.api.document import NULL_REASONS, REASONS
from laggard.cli.api.questions import DATA_STATUSES
from laggard.cli.evaluated import LEVELS
from laggard.cli.explain.rows import GROUP_COLUMNS, MEMBER_COLUMNS, PARTITION_COLUMNS, REBALANCE_COLUMNS
from laggard.cli.status_rebalances import LAST
from laggard.diagnosis.parameters import Policy
from laggard.lag.burrow import VERDICTS
from laggard.tables.schemas import (
    FINDINGS,
    GROUP_MEMBERS,
    GROUP_STATUS,
    GROUP_WINDOWS,
    PARTITION_STATUS,
    REBALANCES,
    Table,
)

Schema = dict[str, Any]
_FORMATS = {"timestamp": "date-time", "date": "date"}
_SCALARS = {"string": "string", "int": "integer", "bigint": "integer", "double": "number", "boolean": "boolean"}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_WHOLE: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "string", "format": "date-time"}


def _or_null(schema: Schema) -> Schema:
    if "type" in schema and isinstance(schema["type"], str):
        enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | enum
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Mapping[str, Schema], optional: Iterable[str] = (), text: str = "") -> Schema:
    required = [name for name in properties if name not in set(optional)]
    found: Schema = {"type": "object", "properties": dict(properties), "required": required}
    return found | {"description": text} if text else found


def _named(key: str, text: str) -> dict[str, Schema]:
    coded = "base64 of its UTF-8 bytes, where the name is not written as it is"
    return {key: _TEXT | {"description": text}, f"{key}_bytes": _TEXT | {"description": coded}}


def of_type(ddl: str) -> Schema:
    """Schema of a Spark DDL type; every value may be null, also those inside others."""
    if ddl in _FORMATS:
        return {"type": ["string", "null"], "format": _FORMATS[ddl]}
    if ddl in _SCALARS:
        return {"type": [_SCALARS[ddl], "null"]}
    outer, _, rest = ddl.partition("<")
    inner = rest.removesuffix(">")
    if outer == "array":
        return {"type": ["array", "null"], "items": of_type(inner)}
    if outer == "map":
        return {"type": ["object", "null"], "additionalProperties": of_type(inner.partition(",")[2])}
    parts = (part.partition(":") for part in inner.split(","))
    return {"type": ["object", "null"], "properties": {name: of_type(kind) for name, _, kind in parts}}


def _of_value(value: object) -> Schema:
    if isinstance(value, tuple):
        return _TEXTS
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))  # a bool is an int, too
    return {"type": next(name for kind, name in kinds if isinstance(value, kind))}


def _columns(table: Table, names: Iterable[str]) -> dict[str, Schema]:
    by_name = {column.name: column for column in table.columns}
    return {
        name: of_type(by_name[name].type)
        | {"description": by_name[name].comment + (f"; null: {by_name[name].null}" if by_name[name].null else "")}
        for name in names
    }


def _without(table: Table, *left_out: str) -> dict[str, Schema]:
    return _columns(table, (name for name in table.names if name not in left_out))


_SAID = {"says": _TEXT | {"description": "one sentence: the meaning"}}
_STEPS = {
    "advice": _TEXTS,
    "avoid": _TEXTS,
    "alert": _or_null(_TEXT) | {"description": "the alert that repeats it; null without one"},
    "runbook": _TEXT | {"description": "path in the repository: the alert's runbook, else the entry in the diagnosis"},
}
_COUNTS = _object(dict.fromkeys(("total", "ok", "no_commit", "unknown"), _WHOLE))
_LAGS = {
    "lag": _or_null(_WHOLE) | {"description": "records; null while that of a committed partition is not known"},
    "lag_known": _or_null(_WHOLE) | {"description": "records of the partitions that are known: a lower bound"},
    "time_lag_seconds": {"type": ["number", "null"], "description": "age of the oldest unread record; null: not exact"},
    "time_lag_known_seconds": {"type": ["number", "null"], "description": "as far as it is known: a lower bound"},
    "time_lag_censored": _or_null(_FLAG)
    | {"description": "true: the oldest unread record is older than what was watched; null: no partition is known"},
}
_CODE = _or_null(_TEXT)
_PARTITION_VERDICT = _or_null(_TEXT | {"enum": [*VERDICTS]})
_WORST = _object(
    {
        **_named("topic", "topic"), "partition": _WHOLE, "lag": _or_null(_WHOLE),
        "time_lag_seconds": {"type": ["number", "null"]}, "verdict": _PARTITION_VERDICT,
    },
    ["topic_bytes"],
)  # fmt: skip
_NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
_REBALANCES = _object(
    {
        "rebalances": _or_null(_WHOLE) | {"description": "so far"},
        **_columns(GROUP_STATUS, ("rebalancing_since", "last_rebalance_at", "time_in_rebalance_ratio")),
        **_columns(REBALANCES, LAST),
        "least_seconds": _NUMBER_OR_NULL | {"description": "the last one took so long at least"},
        "most_seconds": _NUMBER_OR_NULL | {"description": "the last one took so long at most"},
    },
    text="rebalances so far, and the last one; only with rebalances=true; null: no line can be made of the rows",
)
_GROUP = _object(
    {
        **_named("cluster", "cluster"),
        **_named("group", "group, written as in the labels of the metrics"),
        "type": _CODE,
        "state": _TEXT,
        "status": _TEXT | {"enum": [*DATA_STATUSES]},
        "verdict": _PARTITION_VERDICT,
        "generation": _or_null(_WHOLE),
        "members": _or_null(_WHOLE),
        **_LAGS,
        "partitions": _COUNTS,
        "health": _TEXT | {"enum": [*LEVELS]},
        "finding": _CODE | {"description": "code of the finding to act on"},
        "findings": _TEXTS | {"description": "codes that are open, the one to act on first"},
        "shape": _CODE,
        "trend": _CODE,
        "scale_verdict": _CODE,
        "desired_consumers": _or_null(_WHOLE),
        "worst": _or_null(_WORST),
        "owner": _CODE,
        "team": _CODE,
        "in_maintenance": _FLAG,
        "history": _list({"type": ["number", "null"]})
        | {"description": "largest known time lag in the newest closed windows, the newest last"},
        "history_bounds": _list(_WHOLE) | {"description": "places in history, from 0, of values that are lower bounds"},
        "rebalances": _or_null(_REBALANCES),
    },
    ["cluster_bytes", "group_bytes", "rebalances"],
)
_TOPIC = _object(
    {
        **_named("topic", "topic"),
        **_LAGS,
        "partitions": _COUNTS,
        **_columns(GROUP_WINDOWS, ("shape", "arrival_shape", "trend", "drain_seconds", "loss_seconds")),
    },
    ["topic_bytes"],
)
_OWNER = _object(dict.fromkeys(("member_id", "slot", "client_id", "client_host"), _CODE))
_SERIES = _object(
    {
        "lag": _list(_or_null(_WHOLE)),
        "time_lag_seconds": _list({"type": ["number", "null"]}),
        "status": _list(_CODE),
        "slot": _list(_CODE),
        "time_lag_censored": _list(_or_null(_FLAG)),
    },
    text="one value for each of window_starts",
)
_PARTITION = _object(
    {
        **_columns(PARTITION_STATUS, PARTITION_COLUMNS),
        "topic_bytes": _TEXT,
        "owner": _or_null(_OWNER),
        "history": _or_null(_SERIES),
    },
    ["topic_bytes"],
)
_MEMBER = _object(
    {
        **_columns(GROUP_MEMBERS, (name for name in MEMBER_COLUMNS if name not in {"batch_id", "source_offset"})),
        "is_idle": _FLAG,
        "lag": _or_null(_WHOLE),
        "lag_is_exact": _FLAG,
        "time_lag_seconds": {"type": ["number", "null"]},
        "time_lag_is_exact": _FLAG,
    }
)
_FINDING = _object(_without(FINDINGS, "date", "batch_id", "status") | _SAID | _STEPS)
_FINDING_WORDS = _object(
    {"where": _TEXT, "evidence": _TEXT, "checked": _TEXTS, "unchecked": _TEXTS, "wrong_if": _TEXT},
    text="the same in words, as on the page of `laggard explain`",
)
_GROUP_SERIES = _object(
    {
        "lag": _list(_or_null(_WHOLE)),
        "lag_known": _list(_or_null(_WHOLE)),
        "time_lag_seconds": _list({"type": ["number", "null"]}),
        "time_lag_is_exact": _list(_FLAG),
    },
    text="one value for each of window_starts; null: the rules have evaluated none of them",
)
_GAPS = _list(_object({"code": _TEXT, "text": _TEXT}))
_SUMMARY = {
    "headline": _TEXT,
    "evaluated_to": _or_null(_TIME),
    "windows_behind": _or_null(_WHOLE),
    "is_current": _FLAG,
    "verdict": _CODE,
    "verdict_text": _CODE,
    "members_desired": _or_null(_WHOLE),
    "primary_finding_id": _CODE,
    "suppressed": _or_null(_WHOLE),
}
_WINDOW = _object(_without(GROUP_WINDOWS, "date", "cluster", "batch_id"))
_EXPLAINED = _object(
    {
        "cluster": _TEXT,
        "batch_id": _WHOLE,
        "polled_at": _TIME,
        "diagnosis": _object(
            _SUMMARY | {"windows": _or_null(_list(_ref("Window"))), "findings": _or_null(_list(_ref("Finding")))}
        ),
        "group": _object(_columns(GROUP_STATUS, GROUP_COLUMNS) | {"time_lag_is_exact": _FLAG}),
        "partitions": _list(_object(_columns(PARTITION_STATUS, PARTITION_COLUMNS)))
        | {"description": "the furthest behind first"},
        "partitions_left_out": _WHOLE | {"description": "that `partitions` of the question left out; 0: it has all"},
        "members": _or_null(_list(_ref("Member"))),
        "rebalances": _or_null(_list(_ref("Rebalance"))),
        "topic": _CODE,
        "since": _or_null(_TIME),
        "past": _or_null(_list(_object(_without(FINDINGS, "date", "batch_id", "status") | _SAID))),
        "not_known": _GAPS,
    },
    text="the data of `laggard explain --json`; names are as they are",
)
_CLUSTER = _object(
    {
        **_named("cluster", "cluster"),
        "batch_id": _or_null(_WHOLE),
        "data_timestamp": _or_null(_TIME),
        "is_fresh": _FLAG,
        "reason": _CODE | {"description": "why its groups are not shown"},
    },
    ["cluster_bytes"],
)
_TOP = {
    "api": {"const": "v1"},
    "batch_id": _or_null(_WHOLE) | {"description": "null if the answer is of several clusters"},
    "data_timestamp": _TIME | {"description": "time of the poll; of several clusters the oldest"},
    "clusters": _list(_ref("Cluster")),
    NULL_REASONS: {
        "type": "object",
        "description": "JSON pointer to why a number is null that JSON has not; absent if there is none",
        "additionalProperties": _TEXT | {"enum": [*REASONS]},
    },
}
_PAGED = {"total": _WHOLE, "next": _CODE | {"description": "`after` of the next page; null: this is the last"}}
_EVALUATED = _object(
    {**_named("cluster", "cluster"), "evaluated_to": _or_null(_TIME), "windows_behind": _WHOLE}, ["cluster_bytes"]
)
_OPTIONAL = [NULL_REASONS]

SCHEMAS: Mapping[str, Schema] = {
    "Clusters": _object({"api": {"const": "v1"}, "clusters": _list(_ref("Cluster"))}),
    "Groups": _object(_TOP | _PAGED | {"groups": _list(_ref("Group"))}, _OPTIONAL),
    "OneGroup": _object(
        _TOP
        | {
            "group": _ref("Group"),
            "history": _or_null(_GROUP_SERIES),
            "topics": _list(_ref("Topic")),
            "window_starts": _list(_TIME),
            "partitions": _list(_ref("Partition")),
            "members": _or_null(_list(_ref("Member"))),
            "rebalances": _or_null(_list(_ref("WordedRebalance"))),
            "findings": _or_null(_list(_ref("WordedFinding"))),
            "diagnosis": _object(_SUMMARY),
            "policy": _ref("Policy"),
            "not_known": _GAPS,
            "page": _TEXTS | {"description": "lines of `laggard explain`; only with page=true"},
        },
        [*_OPTIONAL, "page"],
    ),
    "Explain": _object(_TOP | {"explain": _ref("Explained"), "page": _TEXTS}, _OPTIONAL),
    "Findings": _object(
        _TOP | _PAGED | {"evaluated": _list(_EVALUATED), "findings": _list(_ref("ListedFinding"))}, _OPTIONAL
    ),
    "Error": _object(
        {
            "error": _object(
                {"code": _TEXT, "message": _TEXT, "choices": _TEXTS, "clusters": _list(_ref("Cluster"))}, ["clusters"]
            )
        }
    ),
    "Cluster": _CLUSTER,
    "Group": _GROUP,
    "Topic": _TOPIC,
    "Partition": _PARTITION,
    "Member": _MEMBER,
    "Rebalance": _object(_columns(REBALANCES, REBALANCE_COLUMNS)),
    "WordedRebalance": _object(
        _columns(REBALANCES, REBALANCE_COLUMNS) | {"says": _TEXTS | {"description": "what happened, and what it cost"}}
    ),
    "Finding": _FINDING,
    "WordedFinding": _object(_FINDING["properties"] | {"words": _FINDING_WORDS}),
    "ListedFinding": _object(
        _FINDING["properties"] | {"group_bytes": _TEXT, "cluster_bytes": _TEXT}, ["group_bytes", "cluster_bytes"]
    ),
    "Window": _WINDOW,
    "Explained": _EXPLAINED,
    "Policy": _object({each.name: _of_value(each.default) for each in fields(Policy)}),
}
