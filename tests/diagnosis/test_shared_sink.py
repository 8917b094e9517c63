"""Groups that slow down together: what it does to each, and who is to blame."""

from __future__ import annotations

import numpy as np
import pytest

from diagnosis.fluid import Evaluation, Fluid, evaluate, tables_of

FAULT, WINDOWS = 80, 125
GROUPS = ("billing", "fraud", "search")


def slowing(to: float, groups: tuple[str, ...] = GROUPS) -> Evaluation:
    """Four members each, 300 records/s for each of them, of which they can do `to` from a minute
    on.
    """
    arrival = np.full((12, WINDOWS), 100.0)
    capacity = np.full((4, WINDOWS), 600.0)
    capacity[:, FAULT:] = to
    return evaluate(
        tables_of([Fluid(arrival, capacity, seed, group) for seed, group in enumerate(groups)])
    )


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return slowing(240)


def test_members_that_do_less_than_they_did_all_day_are_down_as_long_as_they_do(
    evaluation: Evaluation,
) -> None:
    causes = [row["sub_cause"] for row in evaluation.windows if row["group"] == "billing"][
        FAULT + 10 :
    ]
    assert set(causes) == {"capacity_down"}


@pytest.mark.full
def test_of_three_groups_that_slow_down_together_what_they_share_is_the_cause(
    evaluation: Evaluation,
) -> None:
    opened = {
        (row["group"], row["code"], row["role"])
        for row in evaluation.findings
        if row["event"] == "opened"
    }
    assert (None, "SHARED_SINK", "primary") in opened
    newest = {row["finding_id"]: row for row in evaluation.findings}
    (sink,) = (row for row in newest.values() if row["code"] == "SHARED_SINK")
    assert sink["event"] != "closed"
    for group in GROUPS:
        (short,) = (
            row
            for row in newest.values()
            if row["code"] == "CAPACITY_SHORTAGE" and row["group"] == group
        )
        assert (short["role"], short["primary_finding_id"]) == ("contributing", sink["finding_id"])
        assert (
            evaluation.last(group)["primary_code"],
            evaluation.last(group)["scale_verdict"],
        ) == (
            "SHARED_SINK",
            "NO_DOWNSTREAM",
        )


def test_a_group_that_slows_down_alone_is_short_by_itself() -> None:
    alone = slowing(240, ("billing",))
    assert alone.open_codes() == {"CAPACITY_SHORTAGE"}
    assert alone.last()["primary_code"] == "CAPACITY_SHORTAGE"
