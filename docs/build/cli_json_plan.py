"""The document of `laggard plan`, whose keys laggard.cli.plan.answer writes."""

from __future__ import annotations

from cli_json_parts import CLUSTER, GROUP_TEXT, of_class, said
from laggard.answers.schema_parts import (
    NUMBER_OR_NULL,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    list_of,
    object_of,
    or_null,
    ref,
)
from laggard.answers.schemas import SCHEMAS
from laggard.cli.plan.change import Change

_PLACES = list_of(object_of({"topic": said(TEXT, "topic"), "partition": said(WHOLE, "partition")}))


def _span(text: str) -> Schema:
    parts = {
        "value": "the value",
        "p10": "p10 of what is recorded",
        "p90": "p90 of what is recorded",
    }
    return object_of(
        {name: said(NUMBER_OR_NULL, f"{each}; null: unknown") for name, each in parts.items()},
        text=text,
    )


_DRAIN = "seconds until nothing is unread; Infinity: never at these rates"
OUTCOME = object_of(
    {
        "members": said(WHOLE, "members of the group"),
        "idle_members": said(
            or_null(WHOLE), "members without a partition; null: who owns what is unknown"
        ),
        "largest_rate": said(
            NUMBER_OR_NULL, "records/s that the busiest member gets; null: unknown"
        ),
        "drain_seconds": _span(f"of the slowest member: {_DRAIN}"),
        "unread_after_target": said(
            NUMBER_OR_NULL, "records that are unread after the drain target"
        ),
        "loads": said(
            list_of(
                object_of(
                    {
                        "member": said(
                            TEXT, "slot of a member of now, or the number of one to come"
                        ),
                        "partitions": said(_PLACES, "its partitions"),
                        "arrival_rate": said({"type": "number"}, "records/s that arrive for it"),
                        "lag": said({"type": "number"}, "records that it has not read"),
                        "drain_seconds": _span(_DRAIN),
                    }
                )
            ),
            "of members with a partition, the highest rate first",
        ),
    },
    text="a group with a number of members",
)
PLAN = object_of(
    CLUSTER
    | {
        "group": said(TEXT, GROUP_TEXT),
        "window_end": said(TIME, "end of the evaluated window that the plan is of"),
        "verdict": said(or_null(TEXT), "would adding consumers help, as the group is"),
        "verdict_text": said(TEXT, "the verdict as sentences, with its numbers"),
        "change": object_of(
            of_class(
                Change,
                {
                    "members": "members to have; null: as many as now",
                    "assignor": "assignor to have; null: that of now",
                    "partitions": "partitions that the topic is to have; null: as many as now",
                    "topic": "topic that gets partitions; null: none",
                    "rate": "times the records that arrive",
                },
            ),
            text="what is asked about",
        ),
        "members_desired": said(
            or_null(WHOLE), "members to have after the change; null: unknown, or none is enough"
        ),
        "members_ceiling": said(WHOLE, "members that can get a partition"),
        "capacity_rate": _span("records/s of one member"),
        "arrival_ratio": _span("times the arrival rate of now, in the recorded windows"),
        "hot_partitions": said(
            _PLACES, "those that get more than one member can read, the busiest first"
        ),
        "least_drain_seconds": said(
            NUMBER_OR_NULL,
            "drain time of the slowest partition with a member to itself; null: unknown",
        ),
        "now": said(
            or_null(ref("Outcome")),
            "the group as it is; null: no members, or their number is unknown",
        ),
        "then": said(ref("Outcome"), "the group after the change"),
        "cost": object_of(
            {
                "rebalances": said(
                    or_null(WHOLE), "on the way, at least; null: the members of now are unknown"
                ),
                "rebalances_most": said(
                    or_null(WHOLE), "if members join, leave or restart one by one"
                ),
                "moved_partitions": _span("partitions that change their owner"),
                "paused_partitions": said(
                    NUMBER_OR_NULL, "partitions that each rebalance pauses; null: unknown"
                ),
                "pause_max_seconds": _span("longest pause of a partition in a recorded rebalance"),
                "rebalances_recorded": said(WHOLE, "rebalances with a known pause"),
                "records_delayed": _span("records that arrive in the pauses of one rebalance"),
            },
            text="the way to the change",
        ),
        "sweep": said(
            list_of(ref("Outcome")), "one for each number of members; empty without --sweep"
        ),
        "not_known": SCHEMAS["Explained"]["properties"]["not_known"],
    }
)
