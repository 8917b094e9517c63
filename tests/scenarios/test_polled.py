"""Scenarios as a job records them that polls commits: no rule concludes from what a poll cannot
tell.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from laggard.tables.arrow import arrow_schema
from laggard.tables.schema import schemas
from laggard.tables.schema.admin_source import EMPTY, hide_unknown
from scenarios.catalogue import SCENARIOS
from scenarios.diagnosed import Diagnosed, diagnose
from scenarios.runs import Recorded, record, simulate

pytestmark = [pytest.mark.nightly]

OF_COMMITS = {
    "COMMITS_STOPPED",
    "COMMIT_IDLE_CHURN",
    "COMMIT_RATE_HIGH",
    "AUTOCOMMIT_PATTERN",
    "EXTERNAL_COMMITTER",
}
CALM = ("LA5", "LA8", "LA13", "LA18")
FOUND = {
    "SC06": "",
    "SC10": "PARTITION_STALLED",
    "SC11": "PARTITION_STALLED",
    "SC20": "",
    "SC03b": "",
    "SC33": "",
}


def polled(each: Recorded) -> Recorded:
    """The run without what polls cannot tell."""
    empty = {
        name: arrow_schema(schemas.TABLES[name]).empty_table()
        for name in EMPTY
        if name in each.tables
    }
    return replace(each, tables=hide_unknown(dict(each.tables)) | empty)


@cache
def diagnosed() -> dict[str, tuple[Diagnosed, Diagnosed]]:
    """By polls, and by the offsets topic."""
    runs = [simulate(SCENARIOS[name], 1, place) for place, name in enumerate((*CALM, *FOUND))]
    return {
        each.run.scenario.name: (diagnose(polled(each)), diagnose(each)) for each in record(runs)
    }


def codes(found: Diagnosed) -> set[str]:
    return {row["code"] for row in found.findings}


@pytest.mark.parametrize("name", [*CALM, *FOUND])
def test_nothing_is_concluded_from_commits_that_are_not_counted(name: str) -> None:
    by_poll, _ = diagnosed()[name]
    assert codes(by_poll) & OF_COMMITS == set()
    assert {row["commits"] for row in by_poll.windows} == {None}


@pytest.mark.parametrize("name", [*CALM, *FOUND])
def test_no_cause_is_found_that_the_offsets_topic_does_not_show(name: str) -> None:
    by_poll, by_topic = diagnosed()[name]
    causes = {row["code"] for row in by_poll.findings if row["severity"] in ("warn", "page")}
    assert causes <= codes(by_topic)


@pytest.mark.parametrize("name", [name for name, code in FOUND.items() if code])
def test_a_stalled_partition_is_found_and_its_kind_is_unknown(name: str) -> None:
    by_poll, _ = diagnosed()[name]
    rows = [row for row in by_poll.findings if row["code"] == FOUND[name]]
    assert rows
    assert {dict(row["evidence_text"])["kind"] for row in rows} == {"unknown"}
