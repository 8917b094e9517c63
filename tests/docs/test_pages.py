"""The reference pages say what the code says, and whatever users meet can be found in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cli_json import FOLDER, files, schemas
from cli_json_records import RECORDS
from laggard import errors
from laggard.answers.schema.openapi import openapi
from laggard.cli.fail_on import FOUND
from laggard.cli.parser import VERBS
from laggard.cli.verbs.decode import BAD_INPUT
from laggard.diagnosis.findings.ranking import CONTRIBUTING, NOTE, PRIMARY, SUPPRESSED, SYMPTOM_ROLE
from laggard.diagnosis.findings.rows import CLOSED, OPENED, UPDATED
from laggard.diagnosis.parameters import FIXED, Parameters
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.diagnosis.rules.rule import INFO, PAGE, WARN
from laggard.diagnosis.verdict.reasons import VERDICTS
from laggard.exporter.api import CODES
from laggard.exporter.body.families import FAMILIES, SHAPES, TRENDS
from reference_pages import DOCS, api_documents, diagnosis_page, metrics_page, thresholds

# fields of a record of Kafka, and of a struct in a column, mean what their names say
NAMED = {*RECORDS, "assigned", "pending_revocation"}
DIAGNOSIS = (DOCS / "diagnosis.md").read_text(encoding="utf-8")
METRICS = (DOCS / "metrics.md").read_text(encoding="utf-8")


def test_the_page_of_metrics_is_what_is_declared() -> None:
    assert metrics_page() == METRICS


def test_the_page_of_the_diagnosis_is_what_is_declared() -> None:
    assert diagnosis_page(DIAGNOSIS) == DIAGNOSIS


def test_the_list_of_fixed_thresholds_is_what_is_declared() -> None:
    assert (DOCS / "thresholds.csv").read_text(encoding="utf-8") == thresholds()


@pytest.mark.parametrize("name", ["openapi.json", "api-v1.schema.json"])
def test_the_description_of_the_api_is_what_is_declared(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == api_documents()[name]


def test_the_schemas_of_the_commands_are_what_is_declared() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert found.keys() == files().keys()
    assert [name for name, text in files().items() if found[name] != text] == []


@pytest.mark.parametrize("name", schemas())
def test_a_schema_of_a_command_is_sound_and_each_key_has_its_meaning(name: str) -> None:
    schema = schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert [key for key, meaning in keys(schema, schema) if not meaning] == []


def keys(schema: Any, whole: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key of a schema with its meaning, which a part that it refers to may have."""
    if isinstance(schema, list):
        for each in schema:
            yield from keys(each, whole)
    elif isinstance(schema, dict):
        for name, each in schema.items():
            if name == "properties":
                for key, value in each.items():
                    part = whole.get("$defs", {}).get(value.get("$ref", "").rpartition("/")[2], {})
                    yield key, value.get("description", part.get("description", ""))
            if name not in NAMED:
                yield from keys(each, whole)


def test_the_page_of_the_schemas_names_each_with_its_commands() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*`) \| \[([a-z-]+)\]\(\2\.schema\.json\) \|", page, re.MULTILINE)
    first = {name: re.findall(r"`([^`]+)`", commands)[0] for commands, name in rows}
    assert len(rows) == len(first)
    assert first == {name: schema["title"] for name, schema in schemas().items() if name != "error"}
    assert "(error.schema.json)" in page


def test_the_page_of_the_api_names_every_path_and_error() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [path for path in openapi()["paths"] if f"`{path}`" not in page] == []
    assert [
        code
        for code in CODES.values()
        if code not in ("internal", "not_found") and f"`{code}`" not in page
    ] == []


def test_the_page_of_exit_codes_has_every_code_and_verb() -> None:
    page = (DOCS / "exit-codes.md").read_text(encoding="utf-8")
    codes = {
        value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)
    }
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == codes | {
        FOUND,
        2,
        BAD_INPUT,
    }
    verbs = page.partition("| verb |")[2].partition("## ")[0]
    assert set(
        re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", verbs, re.MULTILINE)))
    ) == set(VERBS)


def test_every_metric_is_listed() -> None:
    assert set(re.findall(r"^\| `(laggard_\w+)[`{]", METRICS, re.MULTILINE)) == {
        each.name for each in FAMILIES
    }


def test_every_code_has_its_section_and_says_what_it_is_not() -> None:
    assert set(re.findall(r"^### ([A-Z_]+)$", DIAGNOSIS, re.MULTILINE)) == set(BY_CODE)
    assert DIAGNOSIS.count("- Is not: ") == len(BY_CODE)
    assert [
        rule.code for rule in BY_CODE.values() if not (rule.is_not and rule.how and rule.says)
    ] == []


def test_every_threshold_is_listed_once() -> None:
    lines = (DOCS / "thresholds.csv").read_text(encoding="utf-8").splitlines()[1:]
    names = [line.partition(",")[0] for line in lines]
    assert names == [*(each.name for each in fields(Parameters)), *sorted(FIXED)]


def test_the_verdicts_stand_in_the_order_in_which_they_are_tried() -> None:
    rows = re.findall(r"^\| (\d+) \| `([A-Z_]+)` \|", DIAGNOSIS, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 17))
    assert tuple(dict.fromkeys(code for _, code in rows)) == VERDICTS


@pytest.mark.parametrize(
    "names",
    [
        SHAPES,
        TRENDS,
        (PAGE, WARN, INFO),
        (PRIMARY, CONTRIBUTING, SYMPTOM_ROLE, NOTE, SUPPRESSED),
        (OPENED, UPDATED, CLOSED, "cleared", "falsified", "retired", "unknown"),
        ("steady", "capacity_down", "arrival_up", "both"),
        ("partial", "stale", "blocked", "bootstrap", "sparse"),
        tuple(
            each.name
            for each in FAMILIES
            if each.name.startswith(("laggard_finding", "laggard_group_scale"))
        ),
    ],
    ids=lambda names: names[0],
)
def test_names_of_values_are_explained(names: tuple[str, ...]) -> None:
    assert [name for name in names if f"`{name}`" not in DIAGNOSIS] == []
