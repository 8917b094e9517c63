"""Documents of `doctor`, `query --list` and `config`."""

from __future__ import annotations

from collections.abc import Mapping

from laggard.answers.schema.parts import (
    TEXT,
    TEXTS,
    Schema,
    list_of,
    object_of,
)
from laggard.answers.schema.types import schema_of
from laggard.cli.verbs.query.questions import Parameter
from laggard.config import Config
from laggard.config.policy import PolicyRule
from laggard.config.sections import keys, value_of
from laggard.diagnosis.parameters import Policy
from laggard.doctor.result import Result


def said(schema: Schema, text: str) -> Schema:
    """Return the schema with its meaning."""
    return schema | {"description": text}


CHECKS = said(
    list_of(schema_of(Result)),
    "one for each result, in the order of the checks; a check may have several",
)
PROBE = object_of({"sentence": said(TEXT, "the answer in words")})
SAVED = said(TEXT, "file that was written")


def _column(*left_out: str) -> dict[str, Schema]:
    """Return a column of a table in `laggard query --list`."""
    texts = {
        "column": "name",
        "type": "Spark DDL type",
        "comment": "meaning",
        "null": 'when it is null; "" if never',
    }
    return {name: said(TEXT, text) for name, text in texts.items() if name not in left_out}


LISTED = said(
    list_of(
        {
            "anyOf": [
                object_of(
                    {
                        "question": said(TEXT, "name, for --name"),
                        "title": said(TEXT, "the question"),
                        "parameters": said(list_of(schema_of(Parameter)), "values that it takes"),
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


def of_value(value: object) -> Schema:
    """Return the schema that fits the type of a default value."""
    if isinstance(value, tuple):
        return TEXTS
    if isinstance(value, Mapping):
        return {"type": "object", "additionalProperties": TEXT}
    # a bool is an int, too
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    return {"type": next(name for kind, name in kinds if isinstance(value, kind))}


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
_PLACE = "file and line of the rule, or default"
_IN_FORCE = {
    name: object_of(
        {"value": schema, "origin": said(TEXT, _PLACE)}, text=str(schema["description"])
    )
    for name, schema in schema_of(Policy)["properties"].items()
}
POLICY_OF_GROUP = object_of(
    {
        "cluster": said(TEXT, "name of the Kafka cluster"),
        "group": said(TEXT, "consumer group, as it is"),
        "rules": said(
            list_of(schema_of(PolicyRule)),
            "rules that match, in their order: a later one overrides an earlier one key by key",
        ),
        "policy": object_of(_IN_FORCE, text="values that are in force for the group"),
    }
)
