"""The API's description, OpenAPI 3.1, from the same declarations that it checks questions with.

`docs/openapi.json` and `docs/api-v1.schema.json` are written from it by `make docs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from laggard import __version__
from laggard.answers import questions
from laggard.answers.questions import Parameter
from laggard.answers.schema.api import SCHEMAS

_ERRORS = {
    400: "the question is wrong: `choices` has what would be right",
    401: "a password is needed, or it is wrong (web-config file)",
    404: "no such group, cluster or path: `choices` has what is near",
    405: "only GET and HEAD, and OPTIONS for pages of other origins",
    413: "a request has no body",
    429: "too many requests at once, or beyond the rate limit",
    431: "the headers are too large",
    503: "no fresh data: `clusters` says why and of when the newest is; or the tables cannot be "
    "read",
}
_GROUP = {
    "name": "group",
    "in": "path",
    "required": True,
    "description": "all behind the prefix, percent-encoded once, so that it may hold a slash; as "
    "it is or as shown",
    "schema": {"type": "string"},
}
_PATHS: tuple[tuple[str, str, str, Sequence[Parameter]], ...] = (
    ("/api/v1/clusters", "Clusters", "Clusters, and how fresh their data is", questions.CLUSTERS),
    ("/api/v1/groups", "Groups", "Groups, the worst first", questions.GROUPS),
    (
        "/api/v1/group",
        "OneGroup",
        "One group, named by a parameter: every name can be, also . and ..",
        questions.GROUP_BY_LABEL,
    ),
    (
        "/api/v1/groups/{group}",
        "OneGroup",
        "One group with partitions, members and rebalances",
        questions.ONE_GROUP,
    ),
    (
        "/api/v1/explain/{group}",
        "Explain",
        "What `laggard explain` says of a group",
        questions.EXPLAIN,
    ),
    ("/api/v1/findings", "Findings", "Findings, open ones first", questions.FINDINGS),
    ("/api/v1/openapi.json", "", "This document", questions.OPENAPI),
)
PARAMETERS = {path: known for path, _, _, known in _PATHS}


@cache
def openapi() -> dict[str, Any]:
    """Return the whole OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "laggard",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Consumer lag, its causes and rebalances. Read-only. Within v1 keys are "
            "only added.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"password": []}],
        "paths": {
            path: {"get": _operation(path, answer, text, known)}
            for path, answer, text, known in _PATHS
        },
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {"password": {"type": "http", "scheme": "basic"}},
        },
    }


def answer_schemas() -> dict[str, Any]:
    """Return the schemas alone, as one JSON Schema document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of laggard's API v1",
        "anyOf": [{"$ref": f"#/components/schemas/{name}"} for _, name, _, _ in _PATHS if name]
        + [{"$ref": "#/components/schemas/Error"}],
        "components": {"schemas": dict(SCHEMAS)},
    }


def _operation(
    path: str, answer: str, text: str, parameters: Sequence[Parameter]
) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{answer}"} if answer else {"type": "object"}
    name = answer or "openapi"
    operation_id = name[0].lower() + name[1:]
    if path == "/api/v1/group":
        operation_id = "groupByLabel"
    operation: dict[str, Any] = {
        "summary": text,
        "operationId": operation_id,
        "parameters": [*([_GROUP] if "{group}" in path else []), *map(_parameter, parameters)],
        "responses": {
            "200": {
                "description": text,
                "headers": {
                    "ETag": {"schema": {"type": "string"}, "description": "batches and a digest"}
                },
                "content": {"application/json": {"schema": schema}},
            },
            "304": {"description": "what If-None-Match names still holds"},
        },
    }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    operation["responses"] |= {
        str(code): {"description": text, "content": error} for code, text in _ERRORS.items()
    }
    return operation


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = dict(parameter.schema)
    if schema["type"] == "string" and "enum" not in schema:
        schema["maxLength"] = parameter.longest
    if parameter.default is not None:
        schema["default"] = (
            parameter.read(parameter.default) if schema["type"] == "boolean" else parameter.default
        )
    needed = {"required": True} if parameter.is_needed else {}
    return {
        "name": parameter.name,
        "in": "query",
        **needed,
        "description": parameter.text,
        "schema": schema,
    }
