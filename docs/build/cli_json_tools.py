"""Documents of `audit`, `doctor`, `query --list` and `config`."""

from __future__ import annotations

from collections.abc import Mapping

from cli_json_parts import CLUSTER, GROUP_TEXT, of_class, said
from laggard.answers.schema_parts import (
    TEXT,
    TIME,
    WHOLE,
    Schema,
    list_of,
    object_of,
    of_value,
    or_null,
)
from laggard.audit.result import INVARIANTS, Tally, Totals, Violation
from laggard.cli.query.questions import Parameter
from laggard.config import Config
from laggard.config.policy import PolicyRule
from laggard.config.sections import keys, value_of
from laggard.diagnosis.parameters import Policy
from laggard.doctor import result as doctor
from laggard.tables.schema.columns import Column

_TALLY = of_class(
    Tally,
    {
        "checked": "rows, or pairs of rows, that were checked",
        "violations": "rows that break it",
        "unchecked": 'reason why it could not be checked; "" if it was, or was not asked for',
    },
    but=["samples"],
)
_VIOLATION = of_class(
    Violation,
    {
        "table": "table of the row",
        "key": "columns that name the row",
        "what": "the column, or the fact, that is wrong",
        "expected": "value that it should have",
        "found": "value that it has",
    },
)
AUDIT = object_of(
    CLUSTER
    | {
        "batch_id": said(WHOLE, "batch whose versions of the tables were checked"),
        "since": said(or_null(TIME), "rows from this time on were checked; null: all"),
        "invariants": said(
            list_of(
                object_of(
                    {
                        "code": said(TEXT | {"enum": [*INVARIANTS]}, "code of the invariant"),
                        "rule": said(TEXT, "what has to hold"),
                    }
                    | _TALLY
                    | {
                        "samples": said(
                            list_of(object_of(_VIOLATION)), "the first rows that break it"
                        )
                    }
                )
            ),
            "in the order of their codes",
        ),
        "facts": object_of(
            of_class(
                Totals,
                {
                    "batches": "batches of the range",
                    "records": "records that they read from the offsets topic",
                    "unknown_records": "of these, records of unknown types",
                    "reconciled": "corrections after asking the coordinators",
                    "gaps_known_since": "poll of the oldest row of batches, if lag_windows is "
                    "older; else null",
                    "ahead": "rows of lag_windows whose commit is newer than the poll",
                    "gap_seconds": "seconds that were not watched, by reason",
                    "gaps": "gaps by reason",
                    "dead_letters": "records that could not be decoded, by reason",
                    "statuses": "rows of lag_windows by status",
                },
            ),
            text="counts that are no violation",
        ),
    }
)
CHECKS = said(
    list_of(
        object_of(
            of_class(
                doctor.Result,
                {
                    "level": "result",
                    "check": "name of the check",
                    "fact": "what was found",
                    "remedy": 'what to do; "" if all is well',
                    "is_ahead": "true: no fault, it has not happened yet",
                },
            )
            | {"level": said(TEXT | {"enum": [*doctor.LEVELS]}, "result")}
        )
    ),
    "one for each result, in the order of the checks; a check may have several",
)
PROBE = object_of({"sentence": said(TEXT, "the answer in words")})
SAVED = said(TEXT, "file that was written")


def _column(*left_out: str) -> dict[str, Schema]:
    """Return a column of a table in `laggard query --list`."""
    texts = {"type": "Spark DDL type", "comment": "meaning", "null": 'when it is null; "" if never'}
    kept = {name: text for name, text in texts.items() if name not in left_out}
    return {"column": said(TEXT, "name")} | of_class(Column, kept, but=["name", *left_out])


LISTED = said(
    list_of(
        {
            "anyOf": [
                object_of(
                    {
                        "question": said(TEXT, "name, for --name"),
                        "title": said(TEXT, "the question"),
                        "parameters": said(
                            list_of(
                                object_of(
                                    of_class(
                                        Parameter,
                                        {
                                            "name": "name, for --param",
                                            "type": "text, number or timestamp",
                                            "default": "a value, or the word required, now or null",
                                            "comment": "meaning",
                                        },
                                    )
                                )
                            ),
                            "values that it takes",
                        ),
                    },
                    text="a shipped question",
                ),
                *(
                    object_of(
                        {
                            kind: said(TEXT, "name"),
                            "comment": said(TEXT, "meaning of a row"),
                            "columns": said(
                                list_of(object_of(_column(*left_out))),
                                "its columns, in their order",
                            ),
                        },
                        text=f"a {kind}",
                    )
                    for kind, left_out in (("view", ("type", "null")), ("table", ()))
                ),
            ]
        }
    ),
    "questions, views and tables",
)

_ORIGIN = "defaults, or the file, variable or option that it comes from"


def _shown(key: str, metadata: Mapping[str, object]) -> Schema:
    """Return the value of a key in force, with its origin."""
    texts = [str(metadata[name]) for name in ("unit", "accepts") if name in metadata]
    return object_of(
        {
            "value": said(of_value(value_of(Config(), key)), "value that is in force"),
            "origin": said(TEXT, _ORIGIN),
        },
        text="; ".join(texts),
    )


SHOWN_CONFIG = object_of(
    {key: _shown(key, each.metadata) for key, each in keys().items()},
    text="every key, with its unit and what it may be",
)
_POLICY = of_class(
    Policy,
    {
        "owner": "owner of the group",
        "team": "team that owns it",
        "slo_time_lag_seconds": "seconds of time lag that records may have; 0: no objective",
        "slo_objective": "share of records that must be read in time",
        "isolation": "read_uncommitted or read_committed",
        "scale_to_zero": "true: no member is normal while there is nothing to read",
        "idle_seconds": "seconds without members after which that is over",
        "min_consumers": "members to have at least",
        "max_consumers": "members to have at most; 0: as many as can get a partition",
        "drain_target_seconds": "seconds in which lag should have drained",
        "heartbeat_seconds": "seconds between heartbeats of the clients; 0: unknown",
        "hot_standby": "true: idle members are wanted",
        "export_partitions": "partitions with metrics of their own: worst, all or none",
        "in_maintenance": "true: a planned maintenance is on now",
        "mute_codes": "codes of findings that are not reported",
    },
)
_PLACE = "file and line of the rule, or default"
_IN_FORCE = {
    name: object_of(
        {"value": schema, "origin": said(TEXT, _PLACE)}, text=str(schema["description"])
    )
    for name, schema in _POLICY.items()
}
POLICY_OF_GROUP = object_of(
    CLUSTER
    | {
        "group": said(TEXT, GROUP_TEXT),
        "rules": said(
            list_of(
                object_of(
                    of_class(
                        PolicyRule,
                        {
                            "match": "glob on the group",
                            "cluster": "glob on the cluster",
                            "place": "file and line",
                        },
                        but=["values", "maintenance"],
                    )
                )
            ),
            "rules that match, in their order: a later one overrides an earlier one key by key",
        ),
        "policy": object_of(_IN_FORCE, text="values that are in force for the group"),
    }
)
