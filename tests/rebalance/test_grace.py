"""Half an operation, cut by the end of a batch, is shown as before for one tick
(KIP-848 records).
"""

from __future__ import annotations

import pytest

from rebalance.lives import CONSUMER_LIFE, CREATE, JOIN, LEAVE
from rebalance.modern import CONSUMER as C
from rebalance.modern import ENDS, folded
from stream.simulation import Record, Simulation, commit


def test_leave_and_delete_end_the_group_after_one_tick_of_grace() -> None:
    job = folded(CONSUMER_LIFE[:-1], CONSUMER_LIFE[-1:])
    assert job.groups["g"]["group_state"] == "Empty"
    job.tick(ENDS)
    assert job.groups == {}
    assert job.events() == ["group_created", "group_deleted"]


def test_a_group_that_was_deleted_before_the_job_began_is_never_shown() -> None:
    job = Simulation()
    job.tick(ENDS, CONSUMER_LIFE)
    assert job.groups == {}
    job.tick(ENDS)
    assert job.events() == []


def test_a_deleted_group_with_offsets_lives_on_without_members() -> None:
    job = folded([*CONSUMER_LIFE, commit(5)], [])
    row = job.groups["g"]
    assert (row["members"], row["group_epoch"], row["lag"], row["folded"]) == (None, None, 95, None)
    assert "group_deleted" not in job.events()


def test_half_an_operation_is_shown_as_before_and_then_as_it_is() -> None:
    job = folded([*CREATE, *JOIN], LEAVE[:3])
    assert (job.groups["g"]["members"], job.groups["g"]["is_held"]) == (2, True)
    job.tick(ENDS)  # the rest does not come
    assert (job.groups["g"]["members"], job.groups["g"]["is_held"]) == (1, False)


@pytest.mark.parametrize("opening", [JOIN[0], JOIN[2]], ids=["member", "target"])
def test_a_record_that_opens_an_operation_is_shown_with_what_follows(opening: Record) -> None:
    job = folded(CREATE, [opening])
    assert job.groups["g"]["is_held"]
    assert (job.groups["g"]["members"], job.groups["g"]["group_state"]) == (1, "Stable")


def test_a_member_without_its_assignment_has_nothing_any_more() -> None:
    job = folded(CREATE, C.gone("a")[:1], [])
    row = job.groups["g"]
    assert (row["members"], row["idle_members"], row["group_state"]) == (1, 1, "Reconciling")


def test_a_change_of_a_member_alone_is_shown_at_once() -> None:
    row = folded(CREATE, [C.member("a", ["u"])]).groups["g"]
    assert (row["topics"], row["is_held"]) == (["u"], False)
