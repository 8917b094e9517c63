"""Documents about groups: `status`, `findings` and `diagnose`.

The document of `explain` is in the schemas of the API.
"""

from __future__ import annotations

from cli_json_parts import CLUSTER, GROUP_TEXT, of_class, said
from laggard.answers.evaluated import LEVELS
from laggard.answers.groups import GroupLine
from laggard.answers.questions import DATA_STATUSES
from laggard.answers.rebalances import LAST, RebalanceLine
from laggard.answers.schema_parts import (
    TEXT,
    TIME,
    WHOLE,
    columns,
    list_of,
    object_of,
    or_null,
    without,
)
from laggard.tables.schema.schemas import FINDINGS, GROUP_STATUS, REBALANCES

SHOWN = CLUSTER | {
    "batch_id": said(WHOLE, "batch that is shown"),
    "polled_at": said(TIME, "time of its poll"),
}
GROUP_LINE = of_class(
    GroupLine,
    {
        "group": GROUP_TEXT,
        "state": "Kafka's state of the group",
        "members": "members now; null: unknown",
        "lag": "records; null: that of no partition is known",
        "lag_is_exact": "false: `lag` is a lower bound, or null",
        "time_lag_seconds": "age of the oldest unread record in seconds; null: that of no "
        "partition is known",
        "time_lag_is_exact": "false: `time_lag_seconds` is a lower bound, or null",
        "worst_partition": 'topic-partition with the largest time lag; "" if none has any lag',
        "generation": "generation of a classic group, group epoch of another; null: unknown",
        "status": "how far the lag is known",
        "health": "worst severity of its open findings, else behind, info, ok or unknown",
        "finding": "code of the open finding to act on; null: none is open, or unknown as "
        "`health` is",
        "shape": "shape of the lag of the topic that is furthest behind; null: not evaluated",
        "verdict": "would adding consumers help; null: not evaluated. The list is in "
        "docs/diagnosis.md",
    },
)
GROUP_LINE["status"] |= {"enum": [*DATA_STATUSES]}
GROUP_LINE["health"] |= {"enum": [*LEVELS]}
_LAST_REBALANCE = columns(REBALANCES, LAST) | columns(
    GROUP_STATUS, ("rebalancing_since", "last_rebalance_at", "time_in_rebalance_ratio")
)
REBALANCE_LINE = of_class(
    RebalanceLine,
    {name: str(schema["description"]) for name, schema in _LAST_REBALANCE.items()}
    | {
        "group": GROUP_TEXT,
        "rebalances": "rebalances so far; null: unknown",
        "least_seconds": "the last one took so long at least; null: unknown, or there was none",
        "most_seconds": "the last one took so long at most; null: unknown, or there was none",
    },
)
FOUND = object_of(
    {
        "evaluated_to": said(
            or_null(TIME), "end of the newest window that the rules have evaluated; null: of none"
        ),
        "polled_at": said(TIME, "time of the newest poll"),
        "findings": said(
            list_of(object_of(without(FINDINGS, "date", "batch_id", "status"))),
            "newest row of each: open ones by severity, group and role, then those that ended, "
            "the newest first",
        ),
    }
)
DIAGNOSED = object_of(
    {
        "windows_evaluated": said(WHOLE, "windows of the range"),
        "remembered_at": said(
            or_null(TIME), "end of the window before, whose memory it began with; null: with none"
        ),
        "findings": said(
            list_of(object_of(without(FINDINGS, "date"))), "rows as they would be, in their order"
        ),
        "output": said(or_null(TEXT), "place that --output wrote to; null: nothing was written"),
    }
)
