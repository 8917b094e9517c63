"""JSON Schema of every answer, made from the declarations of the tables and lists of keys."""

from __future__ import annotations

from collections.abc import Mapping

from laggard.answers.document import NULL_REASONS, REASONS
from laggard.answers.evaluated import LEVELS
from laggard.answers.explain.rows import (
    GROUP_COLUMNS,
    MEMBER_COLUMNS,
    PARTITION_COLUMNS,
    REBALANCE_COLUMNS,
)
from laggard.answers.questions import DATA_STATUSES
from laggard.answers.rebalances import LAST
from laggard.answers.schema.parts import (
    FLAG,
    NUMBER_OR_NULL,
    TEXT,
    TEXTS,
    TIME,
    WHOLE,
    Schema,
    columns,
    list_of,
    object_of,
    or_null,
    ref,
    without,
)
from laggard.answers.schema.types import schema_of
from laggard.diagnosis.parameters import Policy
from laggard.lag.burrow import VERDICTS
from laggard.tables.schema.schemas import (
    FINDINGS,
    GROUP_MEMBERS,
    GROUP_STATUS,
    GROUP_WINDOWS,
    PARTITION_STATUS,
    REBALANCES,
)

_BYTES = TEXT | {"description": "base64 of its UTF-8 bytes, where the name is not written as it is"}


def _named(key: str, text: str) -> dict[str, Schema]:
    return {key: TEXT | {"description": text}, f"{key}_bytes": _BYTES}


_SAID = {"says": TEXT | {"description": "one sentence: the meaning"}}
_STEPS = {
    "advice": TEXTS | {"description": "sentences: what to do, the first one first"},
    "avoid": TEXTS
    | {"description": "sentences: mistakes to avoid; beside a verdict none that contradicts it"},
    "alert": or_null(TEXT) | {"description": "the alert that repeats it; null without one"},
    "runbook": TEXT
    | {
        "description": "path in the repository: the alert's runbook, else the entry in the "
        "diagnosis"
    },
}
_COUNTS = object_of(
    {
        "total": WHOLE | {"description": "all partitions"},
        "ok": WHOLE | {"description": "those whose lag is known"},
        "no_commit": WHOLE | {"description": "those without a commit"},
        "unknown": WHOLE | {"description": "those whose lag is not known"},
    },
    text="partitions by what is known of their lag",
)
_LAGS = {
    "lag": or_null(WHOLE)
    | {"description": "records; null while that of a committed partition is not known"},
    "lag_known": or_null(WHOLE)
    | {"description": "records of the partitions that are known: a lower bound"},
    "time_lag_seconds": {
        "type": ["number", "null"],
        "description": "age of the oldest unread record; null: not exact",
    },
    "time_lag_known_seconds": {
        "type": ["number", "null"],
        "description": "as far as it is known: a lower bound",
    },
    "time_lag_censored": or_null(FLAG)
    | {
        "description": "true: the oldest unread record is older than what was watched; null: no "
        "partition is known"
    },
}
_CODE = or_null(TEXT)
_PARTITION_VERDICT = or_null(TEXT | {"enum": [*VERDICTS]}) | {
    "description": "Burrow's verdict of the partition that is worst; null: none is known"
}
_WORST = object_of(
    {
        **_named("topic", "topic"),
        "partition": WHOLE | {"description": "its number"},
        "lag": or_null(WHOLE) | {"description": "records; null: unknown"},
        "time_lag_seconds": NUMBER_OR_NULL
        | {"description": "age of the oldest unread record; null: unknown"},
        "verdict": _PARTITION_VERDICT,
    },
    ["topic_bytes"],
    text="the partition that is furthest behind; null: none has lag",
)
_REBALANCES = object_of(
    {
        "rebalances": or_null(WHOLE) | {"description": "so far"},
        **columns(
            GROUP_STATUS, ("rebalancing_since", "last_rebalance_at", "time_in_rebalance_ratio")
        ),
        **columns(REBALANCES, LAST),
        "least_seconds": NUMBER_OR_NULL | {"description": "the last one took so long at least"},
        "most_seconds": NUMBER_OR_NULL | {"description": "the last one took so long at most"},
    },
    text="rebalances so far, and the last one; only with rebalances=true; null: no line can be "
    "made of the rows",
)
_GROUP = object_of(
    {
        **_named("cluster", "cluster"),
        **_named("group", "group, written as in the labels of the metrics"),
        "type": _CODE | {"description": "protocol of the group; null: unknown"},
        "state": TEXT | {"description": "Kafka's state of the group"},
        "status": TEXT | {"enum": [*DATA_STATUSES], "description": "how far the lag is known"},
        "verdict": _PARTITION_VERDICT,
        "generation": or_null(WHOLE)
        | {"description": "of a classic group, else the group epoch; null: unknown"},
        "members": or_null(WHOLE) | {"description": "members now; null: unknown"},
        **_LAGS,
        "partitions": _COUNTS,
        "health": TEXT
        | {
            "enum": [*LEVELS],
            "description": "worst severity of an open finding, else behind, info, ok or unknown",
        },
        "finding": _CODE | {"description": "code of the finding to act on"},
        "findings": TEXTS | {"description": "codes that are open, the one to act on first"},
        "shape": _CODE
        | {"description": "of the topic that is furthest behind; null: not evaluated"},
        "trend": _CODE
        | {"description": "of the topic that is furthest behind; null: not evaluated"},
        "scale_verdict": _CODE
        | {"description": "would adding consumers help; null: not evaluated"},
        "desired_consumers": or_null(WHOLE) | {"description": "members to have; null: unknown"},
        "worst": or_null(_WORST)
        | {"description": "the partition that is furthest behind; null: none has lag"},
        "owner": _CODE | {"description": "owner in the policy; null: none is declared"},
        "team": _CODE | {"description": "team in the policy; null: none is declared"},
        "in_maintenance": FLAG | {"description": "true: the policy declares maintenance now"},
        "history": list_of(NUMBER_OR_NULL)
        | {"description": "largest known time lag in the newest closed windows, the newest last"},
        "history_bounds": list_of(WHOLE)
        | {"description": "places in history, from 0, of lower bounds"},
        "rebalances": or_null(_REBALANCES),
    },
    ["cluster_bytes", "group_bytes", "rebalances"],
)
_TOPIC = object_of(
    {
        **_named("topic", "topic"),
        **_LAGS,
        "partitions": _COUNTS,
        **columns(
            GROUP_WINDOWS, ("shape", "arrival_shape", "trend", "drain_seconds", "loss_seconds")
        ),
    },
    ["topic_bytes"],
)
_OWNER = object_of(dict.fromkeys(("member_id", "slot", "client_id", "client_host"), _CODE))
_SERIES = object_of(
    {
        "lag": list_of(or_null(WHOLE)),
        "time_lag_seconds": list_of(NUMBER_OR_NULL),
        "status": list_of(_CODE),
        "slot": list_of(_CODE),
        "time_lag_censored": list_of(or_null(FLAG)),
    },
    text="one value for each of window_starts",
)
_PARTITION = object_of(
    {
        **columns(PARTITION_STATUS, PARTITION_COLUMNS),
        "topic_bytes": TEXT,
        "owner": or_null(_OWNER),
        "history": or_null(_SERIES),
    },
    ["topic_bytes"],
)
_MEMBER = object_of(
    {
        **columns(
            GROUP_MEMBERS,
            (name for name in MEMBER_COLUMNS if name not in {"batch_id", "source_offset"}),
        ),
        "is_idle": FLAG | {"description": "true: it has no partition"},
        "lag": or_null(WHOLE)
        | {"description": "records, over its partitions; null: that of none is known"},
        "lag_is_exact": FLAG | {"description": "false: `lag` is a lower bound, or null"},
        "time_lag_seconds": NUMBER_OR_NULL
        | {
            "description": "age of the oldest unread record of its partitions; null: that of none "
            "is known"
        },
        "time_lag_is_exact": FLAG
        | {"description": "false: `time_lag_seconds` is a lower bound, or null"},
    }
)
_OF_FINDING = without(FINDINGS, "date", "batch_id", "status")
_FINDING = object_of(_OF_FINDING | _SAID | _STEPS)
_FINDING_WORDS = object_of(
    {"where": TEXT, "evidence": TEXT, "checked": TEXTS, "unchecked": TEXTS, "wrong_if": TEXT},
    text="the same in words, as on the page of `laggard explain`",
)
_GROUP_SERIES = object_of(
    {
        "lag": list_of(or_null(WHOLE)),
        "lag_known": list_of(or_null(WHOLE)),
        "time_lag_seconds": list_of(NUMBER_OR_NULL),
        "time_lag_is_exact": list_of(FLAG),
    },
    text="one value for each of window_starts; null: the rules have evaluated none of them",
)
_GAPS = list_of(
    object_of(
        {
            "code": TEXT | {"description": "stable name of the gap"},
            "text": TEXT | {"description": "the same as a sentence, with the reason"},
        }
    )
) | {"description": "every gap in the answer"}
_SUMMARY = {
    "headline": TEXT
    | {"description": "one sentence: lag, trend, and whether adding consumers would help"},
    "evaluated_to": or_null(TIME)
    | {
        "description": "end of the newest window that the rules have evaluated; null: they have "
        "evaluated none"
    },
    "windows_behind": or_null(WHOLE)
    | {"description": "windows that have closed since; null: none was evaluated"},
    "is_current": FLAG
    | {
        "description": "false: the rules say nothing of the moment, and what they would say is "
        "null below"
    },
    "verdict": _CODE
    | {"description": "would adding consumers help; the list is in docs/diagnosis.md"},
    "verdict_text": _CODE | {"description": "the verdict as sentences, with its numbers"},
    "members_desired": or_null(WHOLE)
    | {"description": "members to have; null: the verdict is unknown"},
    "primary_finding_id": _CODE | {"description": "the finding to act on; null: none is open"},
    "suppressed": or_null(WHOLE)
    | {"description": "open findings that are left out, as another one explains them"},
}
_WINDOW = object_of(without(GROUP_WINDOWS, "date", "cluster", "batch_id"))
_EXPLAINED = object_of(
    {
        "cluster": TEXT | {"description": "name of the Kafka cluster"},
        "batch_id": WHOLE
        | {"description": "batch; of a time in the past the one that closed the window"},
        "polled_at": TIME
        | {"description": "time of its poll; of a time in the past the end of the window"},
        "diagnosis": object_of(
            _SUMMARY
            | {
                "windows": or_null(list_of(ref("Window")))
                | {
                    "description": "one per topic of the newest evaluated window, the furthest "
                    "behind first"
                },
                "findings": or_null(list_of(ref("Finding")))
                | {"description": "the open ones, the primary first"},
            },
            text="what the rules say",
        ),
        "group": object_of(
            columns(GROUP_STATUS, GROUP_COLUMNS)
            | {
                "time_lag_is_exact": FLAG
                | {"description": "false: `max_time_lag_seconds` is a lower bound, or null"}
            },
            text="the group's row of group_status",
        ),
        "partitions": list_of(object_of(columns(PARTITION_STATUS, PARTITION_COLUMNS)))
        | {"description": "the furthest behind first"},
        "partitions_left_out": WHOLE
        | {"description": "that `partitions` of the question left out; 0: it has all"},
        "members": or_null(list_of(ref("Member")))
        | {"description": "of the newest generation; null: unknown"},
        "rebalances": or_null(list_of(ref("Rebalance")))
        | {"description": "the newest first; null: unknown"},
        "topic": _CODE | {"description": "the only topic that is shown; null: all are"},
        "since": or_null(TIME)
        | {"description": "time from which on `past` is; null: it was not asked for"},
        "past": or_null(list_of(object_of(_OF_FINDING | _SAID)))
        | {"description": "findings that opened or ended since then; null: not asked for"},
        "not_known": _GAPS,
    },
    text="the data of `laggard explain --json`; names are as they are",
)
_CLUSTER = object_of(
    {
        **_named("cluster", "cluster"),
        "batch_id": or_null(WHOLE) | {"description": "its newest batch; null: there is none"},
        "data_timestamp": or_null(TIME) | {"description": "time of the poll; null: no batch"},
        "is_fresh": FLAG | {"description": "true: the numbers are of now"},
        "reason": _CODE | {"description": "why its groups are not shown"},
    },
    ["cluster_bytes"],
)
_TOP = {
    "api": {"const": "v1", "description": "version of this form: within it keys are only added"},
    "batch_id": or_null(WHOLE) | {"description": "null if the answer is of several clusters"},
    "data_timestamp": TIME | {"description": "time of the poll; of several clusters the oldest"},
    "clusters": list_of(ref("Cluster")) | {"description": "clusters that the answer is of"},
    NULL_REASONS: {
        "type": "object",
        "description": "JSON pointer to why a number is null that JSON has not; absent if there "
        "is none",
        "additionalProperties": TEXT | {"enum": [*REASONS]},
    },
}
_PAGED = {
    "total": WHOLE | {"description": "entries of all pages"},
    "next": _CODE | {"description": "`after` of the next page; null: this is the last"},
}
_EVALUATED = object_of(
    {
        **_named("cluster", "cluster"),
        "evaluated_to": or_null(TIME)
        | {"description": "end of the newest window that the rules evaluated; null: none"},
        "windows_behind": WHOLE | {"description": "windows that have closed since"},
    },
    ["cluster_bytes"],
)
_GAP = {"gap_from": TIME, "gap_to": TIME, "gap_reason": or_null(TEXT), "gap_scope": or_null(TEXT)}
_RANGE = object_of(
    {
        "starts": list_of(TIME) | {"description": "begin of each point"},
        "point_seconds": WHOLE | {"description": "length of a point, in whole windows"},
        "history": or_null(_GROUP_SERIES)
        | {"description": "largest value of each point; null: the rules evaluated none of it"},
        "gaps": list_of(object_of(_GAP)) | {"description": "times that nobody watched"},
    }
)
_OPTIONAL = [NULL_REASONS]

SCHEMAS: Mapping[str, Schema] = {
    "Clusters": object_of({"api": {"const": "v1"}, "clusters": list_of(ref("Cluster"))}),
    "Groups": object_of(
        _TOP
        | _PAGED
        | {"groups": list_of(ref("Group")) | {"description": "the worst first, or by `sort`"}},
        _OPTIONAL,
    ),
    "OneGroup": object_of(
        _TOP
        | {
            "group": ref("Group"),
            "history": or_null(_GROUP_SERIES),
            "topics": list_of(ref("Topic")),
            "window_starts": list_of(TIME),
            "partitions": list_of(ref("Partition")),
            "members": or_null(list_of(ref("Member"))),
            "rebalances": or_null(list_of(ref("WordedRebalance"))),
            "findings": or_null(list_of(ref("WordedFinding"))),
            "diagnosis": object_of(_SUMMARY),
            "policy": ref("Policy"),
            "not_known": _GAPS,
            "page": TEXTS | {"description": "lines of `laggard explain`; only with page=true"},
            "range": _RANGE | {"description": "lag since `since`; only with it"},
        },
        [*_OPTIONAL, "page", "range"],
    ),
    "Explain": object_of(_TOP | {"explain": ref("Explained"), "page": TEXTS}, _OPTIONAL),
    "Findings": object_of(
        _TOP
        | _PAGED
        | {
            "evaluated": list_of(_EVALUATED) | {"description": "how far the rules have come"},
            "findings": list_of(ref("ListedFinding"))
            | {"description": "newest row of each: the open ones, then those that ended"},
        },
        _OPTIONAL,
    ),
    "Error": object_of(
        {
            "error": object_of(
                {
                    "code": TEXT,
                    "message": TEXT,
                    "choices": TEXTS,
                    "clusters": list_of(ref("Cluster")),
                },
                ["clusters"],
            )
        }
    ),
    "Cluster": _CLUSTER,
    "Group": _GROUP,
    "Topic": _TOPIC,
    "Partition": _PARTITION,
    "Member": _MEMBER,
    "Rebalance": object_of(columns(REBALANCES, REBALANCE_COLUMNS)),
    "WordedRebalance": object_of(
        columns(REBALANCES, REBALANCE_COLUMNS)
        | {"says": TEXTS | {"description": "what happened, and what it cost"}}
    ),
    "Finding": _FINDING,
    "WordedFinding": object_of(_FINDING["properties"] | {"words": _FINDING_WORDS}),
    "ListedFinding": object_of(
        _FINDING["properties"] | {f"{name}_bytes": _BYTES for name in ("group", "cluster")},
        ["group_bytes", "cluster_bytes"],
    ),
    "Window": _WINDOW,
    "Explained": _EXPLAINED,
    "Policy": schema_of(Policy),
}
