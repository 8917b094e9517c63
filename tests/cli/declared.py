"""The data that a verb has printed, once its document is what docs/cli-json declares."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from cli_json import schemas
from json_schemas import faults, strict


@cache
def schema_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = strict(schemas()[name])
    return found


def document_of(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert faults(schema_of(name), found) == []
    return found


def data_of(name: str, capsys: pytest.CaptureFixture[str]) -> Any:
    return document_of(name, capsys)["data"]
