"""Write docs/cli-json/: JSON Schemas of the verbs' documents for `--json`: `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli_json_records import DECODED, RECORDS
from cli_json_tools import (
    CHECKS,
    LISTED,
    POLICY_OF_GROUP,
    PROBE,
    SAVED,
    SHOWN_CONFIG,
    said,
)
from laggard import errors
from laggard.answers.plan.answer import PlanDocument
from laggard.answers.schema.api import SCHEMAS
from laggard.answers.schema.parts import FLAG, TEXT, TEXTS, WHOLE, Schema, list_of, object_of, ref
from laggard.answers.schema.types import schema_of
from laggard.audit.result import AuditDocument
from laggard.cli.verbs.audit import UNCHECKED
from laggard.cli.verbs.diagnose import Diagnosed

FOLDER = Path(__file__).parents[1] / "cli-json"
INFINITE = "^(-?Infinity|NaN)$"  # texts in the place of numbers that JSON has not
_LOCAL = "#/$defs/"
_DEFINITIONS: Mapping[str, Schema] = {**SCHEMAS, **RECORDS}


@dataclass(frozen=True, slots=True)
class Document:
    """A document that commands print: its data and the meaning of `ok`.

    The meaning is "" if `ok` is always true.
    """

    commands: str
    data: Schema
    ok: str = ""

    def schema(self) -> Schema:
        """Return the whole document as JSON Schema."""
        ok = (
            said(FLAG, self.ok)
            if self.ok
            else said({"const": True}, "a failure prints error.schema.json")
        )
        return _whole(
            self.commands,
            {"v": _VERSION, "ok": ok, "data": {"description": "the answer"} | self.data},
        )


_VERSION: Schema = {
    "const": 1,
    "description": "version of this form: within it keys are only added",
}


def _whole(commands: str, properties: Mapping[str, Schema]) -> Schema:
    body: Schema = _printed(object_of(properties))
    definitions: dict[str, Schema] = {}
    wanted = set(_names(body))
    while missing := sorted(wanted - definitions.keys()):
        definitions |= {name: _printed(_DEFINITIONS[name]) for name in missing}
        wanted |= {each for name in missing for each in _names(definitions[name])}
    head: Schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": commands}
    return (
        head
        | body
        | (
            {"$defs": {name: definitions[name] for name in sorted(definitions)}}
            if definitions
            else {}
        )
    )


def _printed(schema: Any) -> Any:
    """Return a schema in the form that verbs print.

    An infinite number is a text, and references point into the same document.
    """
    if isinstance(schema, list):
        return [_printed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: _printed(each) for name, each in schema.items()}
    kinds = found.get("type")
    if kinds == "number" or (isinstance(kinds, list) and "number" in kinds):
        found |= {
            "type": [*([kinds] if isinstance(kinds, str) else kinds), "string"],
            "pattern": INFINITE,
        }
    if isinstance(target := found.get("$ref"), str):
        found["$ref"] = _LOCAL + target.rpartition("/")[2]
    return found


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _names(each)
    elif isinstance(schema, Mapping):
        if isinstance(target := schema.get("$ref"), str):
            yield target.removeprefix(_LOCAL)
        for each in schema.values():
            yield from _names(each)


_EXIT_CODES = sorted(
    {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    - {errors.OK}
    | {UNCHECKED}
)
ERROR = object_of(
    {
        "what": said(TEXT, "what failed"),
        "cause": said(TEXT, 'the cause with its exact value; "" if `what` says it'),
        "fix": said(TEXT, 'what to do, as a command if there is one; "" if there is nothing'),
        "exit_code": said(
            WHOLE | {"enum": _EXIT_CODES}, "exit code of the command; docs/exit-codes.md has them"
        ),
    },
    text="the failure",
)

DOCUMENTS: Mapping[str, Document] = {
    "status": Document("laggard status --json", ref("Groups")),
    "explain": Document("laggard explain GROUP --json", ref("Explained")),
    "plan": Document("laggard plan GROUP --json", schema_of(PlanDocument)),
    "findings": Document("laggard findings --json", ref("Findings")),
    "diagnose": Document("laggard diagnose --from 2h --json", schema_of(Diagnosed)),
    "query": Document(
        "laggard query SQL --json",
        said(
            list_of({"type": "object"}),
            "one object for each row; its keys are the columns that the query names",
        ),
    ),
    "query-list": Document("laggard query --list --json", LISTED),
    "query-output": Document(
        "laggard query SQL -o FILE --json",
        object_of({"file": SAVED, "rows": said(WHOLE, "rows that it holds")}),
    ),
    "report": Document(
        "laggard report GROUP --json",
        object_of({"file": SAVED, "bytes": said(WHOLE, "its size in bytes")}),
    ),
    "audit": Document(
        "laggard audit --json",
        schema_of(AuditDocument),
        "true: all that was asked for holds (exit code 0)",
    ),
    "doctor": Document("laggard doctor --json", CHECKS, "true: nothing is wrong (exit code 0)"),
    "run-check": Document(
        "laggard run --check live --json", PROBE, "true: the job makes progress (exit code 0)"
    ),
    "export-check": Document(
        "laggard export --check live --json", PROBE, "true: the exporter answers (exit code 0)"
    ),
    "config-show": Document("laggard config show --json", SHOWN_CONFIG),
    "config-check": Document(
        "laggard config check --json",
        object_of({"missing": said(TEXTS, "what `laggard run` needs and is not set")}),
    ),
    "config-sample": Document(
        "laggard config sample --json",
        object_of({"toml": said(TEXT, "the commented reference file")}),
    ),
    "config-policy": Document("laggard config policy GROUP --json", POLICY_OF_GROUP),
    "decode": Document(
        "laggard decode --json",
        DECODED,
        "true: each line of the input was of its form (exit code 0)",
    ),
}


def schemas() -> dict[str, Schema]:
    """Return every schema by the first part of its file's name.

    The schema `error` describes the document that any command prints when it fails.
    """
    error = {"v": _VERSION, "ok": said({"const": False}, "the command failed"), "error": ERROR}
    return {name: each.schema() for name, each in DOCUMENTS.items()} | {
        "error": _whole("a command that fails, with --json", error)
    }


def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        f"{name}.schema.json": json.dumps(schema, indent=1) + "\n"
        for name, schema in schemas().items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
