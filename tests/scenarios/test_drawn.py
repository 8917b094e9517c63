"""Clusters drawn at random: one seed is one cluster, their truth is physics, and no simple method
comes near.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from scenarios.drawn import FAULTS, LOOK_ALIKES, VARIED, Fault, Plan, draw_cluster
from scenarios.drawn_page import section, with_section
from scenarios.drawn_report import from_line, to_line
from scenarios.drawn_runs import Drawn, Sample, simulate_drawn
from scenarios.drawn_score import OWN, DrawnScore, is_at_rest, score_drawn
from scenarios.drawn_truth import Alarm, Alarms, alarms, answers
from scenarios.scoring import Opened
from simulator.cluster import MINUTE

FEW = (3, 11)  # short ones
PLAN = Plan(0, "range", 2, 4, 100.0, 5.0, 0.0, (1000, 1000), (20.0,) * 4, 0.0, None, ())
CALM = Sample(
    20.0,
    (1000,) * 4,
    (100,) * 4,
    (False,) * 4,
    (20.0,) * 4,
    ("a", "a", "b", "b"),
    ("app-0/a", "app-0/a", "app-0/b", "app-0/b"),
    {"a": 100.0, "b": 100.0},
    frozenset(),
)


def during(kind: str) -> Plan:
    return replace(PLAN, faults=(Fault(kind, 15, 40, 1.0, 0, ()),))


def test_one_seed_is_one_cluster_and_seeds_differ() -> None:
    assert draw_cluster(7) == draw_cluster(7)
    assert len({repr(draw_cluster(seed).plans) for seed in range(50)}) == 50


def test_every_kind_is_drawn_and_pairs_of_them() -> None:
    groups = [plan for seed in range(600) for plan in draw_cluster(seed).plans]
    drawn = Counter(fault.kind for plan in groups for fault in plan.faults)
    assert drawn.keys() == {*FAULTS, *VARIED, *LOOK_ALIKES}
    assert {len(plan.faults) for plan in groups} == {0, 1, 2}


def test_whole_groups_crash_loop_too_of_one_member_and_of_several() -> None:
    groups = [plan for seed in range(600) for plan in draw_cluster(seed).plans]
    sizes = Counter(
        plan.members for plan in groups for fault in plan.faults if fault.kind == "crash_loop_all"
    )
    assert {1, 2, 3} <= sizes.keys()
    assert max(sizes) > 3


@pytest.mark.parametrize(
    ("plan", "sample", "right"),
    [
        pytest.param(PLAN, CALM, {"NOT_NEEDED"}, id="five seconds of records between two commits"),
        pytest.param(
            during("stop"),
            replace(CALM, backlog=(9000,) * 4, capacities={}),
            {"NO_MEMBERS"},
            id="nobody",
        ),
        pytest.param(
            during("rewind"),
            replace(CALM, capacities={}),
            {"NO_MEMBERS", "NOT_NEEDED", "NOT_NEEDED_DRAINING"},
            id="stopped for a reset of its offsets",
        ),
        pytest.param(
            during("overload"),
            replace(CALM, backlog=(9000,) * 4, arrival=(60.0,) * 4),
            {"YES", "YES_PARTIAL"},
            id="120/s for each member of 100/s, and partitions for two more",
        ),
        pytest.param(
            during("hot"),
            replace(CALM, backlog=(90_000, 0, 0, 0), arrival=(150.0, 5.0, 5.0, 5.0)),
            {"NO_HOT_PARTITION"},
            id="one partition gets more than a member can do",
        ),
        pytest.param(
            during("slow"),
            replace(CALM, backlog=(9000, 9000, 0, 0), capacities={"a": 20.0, "b": 100.0}),
            {"NO_UNHEALTHY_MEMBER"},
            id="one member does less than it gets",
        ),
        pytest.param(
            during("pause"),
            replace(CALM, backlog=(9000, 50, 50, 50), stalled=frozenset({0})),
            {"NO_STALLED"},
            id="one partition is not read",
        ),
        pytest.param(
            during("overload"),
            replace(CALM, minute=41.0, backlog=(9000,) * 4),
            {"NOT_NEEDED", "NOT_NEEDED_DRAINING"},
            id="18,000 records of a member that has 60/s to spare are gone in 300 s",
        ),
    ],
)
def test_what_is_right_follows_from_capacity_arrivals_and_owners(
    plan: Plan, sample: Sample, right: set[str]
) -> None:
    assert answers(plan, sample) == right


@pytest.mark.parametrize(("members", "lag", "right"), [(2, 800, 1), (0, 0, 1), (0, 800, 0)])
def test_what_no_member_is_left_to_read_is_not_kept_up_with(
    members: int, lag: int, right: int
) -> None:
    """The member that crash-loops has committed a moment before, and the group is empty again."""
    plan, minute = during("crash_loop_all"), 20
    row = {
        "scale_verdict": "NOT_NEEDED",
        "lag": lag,
        "lag_known": lag,
        "members": members,
        "floor_records": 400,
    }
    score, samples = (
        DrawnScore(0),
        [replace(CALM, minute=each / 2) for each in range(2 * minute + 3)],
    )
    score.verdicts(plan, samples, {minute: row})
    assert score.right[OWN] == score.after_delay[OWN] == right


MEMBER = Alarm("CRASH_LOOP", 10, 30, "orders", subjects=frozenset({"app-0/10.0.0.2"}))
TWO = Alarm("PARTITION_STALLED", 10, 30, "orders", frozenset({0, 3}), frozenset({"app-0/10.0.0.2"}))
GROUP = Alarm("CAPACITY_SHORTAGE", 10, 30, "orders")


def finding(
    subject: str = "", *partitions: int, topic: str = "orders", minute: int = 12, until: int = 30
) -> Opened:
    return Opened(
        "",
        "g",
        frozenset(partitions),
        minute * MINUTE,
        until * MINUTE,
        subject=subject,
        topic=topic,
    )


@pytest.mark.parametrize(
    ("alarm", "found", "minute"),
    [
        pytest.param(
            MEMBER, [finding("app-0/10.0.0.2#0", topic="")], 12, id="a member by its slot"
        ),
        pytest.param(MEMBER, [finding("app-0/10.0.0.3#1", topic="")], None, id="another member"),
        pytest.param(MEMBER, [finding()], None, id="the whole group for one member"),
        pytest.param(GROUP, [finding(topic="")], 12, id="the group"),
        pytest.param(
            GROUP, [finding("app-0/10.0.0.2#0")], None, id="one member for the whole group"
        ),
        pytest.param(TWO, [finding("app-0/10.0.0.2#0")], 12, id="two partitions by their member"),
        pytest.param(
            TWO, [finding("app-0/10.0.0.2#0", 7)], None, id="another partition of that member"
        ),
        pytest.param(TWO, [finding("", 0, 3)], 12, id="both partitions"),
        pytest.param(
            TWO, [finding("", 0, 3, topic="orders-left")], None, id="partitions of another topic"
        ),
        pytest.param(TWO, [finding("", 0)], None, id="half of the partitions"),
        pytest.param(
            TWO, [finding("", 0), finding("", 3, minute=20)], 20, id="halves: named by the later"
        ),
        pytest.param(
            TWO,
            [finding("", 0, until=15), finding("", 3, minute=20)],
            None,
            id="halves one after the other",
        ),
    ],
)
def test_an_alarm_is_met_by_findings_of_exactly_its_scope_once_they_name_all_of_it(
    alarm: Alarm, found: list[Opened], minute: int | None
) -> None:
    assert alarm.met_ms(found) == (None if minute is None else minute * MINUTE)


def moved(minute: float, *committed: int) -> Sample:
    return replace(CALM, minute=minute, committed=committed)


@pytest.mark.parametrize(
    ("offsets", "needs"),
    [
        pytest.param(
            [(0, 0, 0, 0), (50, 0, 9, 9), (50, 9, 20, 20)],
            5.0,
            id="the last of the others moves at minute 20",
        ),
        pytest.param(
            [(0, 0, 0, 0), (50, 9, 9, 9), (50, 20, 20, 20)],
            5.0,
            id="it moved as late as they, then they go on",
        ),
        pytest.param(
            [(0, 0, 0, 0), (50, 0, 9, 9), (50, 0, 20, 20)], None, id="another one stands as long"
        ),
        pytest.param(
            [(0, 0, 0, 0), (0, 9, 9, 9), (50, 9, 9, 9)], None, id="it stands since the others do"
        ),
    ],
)
def test_a_record_must_be_found_once_no_other_partition_may_hold_it(
    offsets: list[tuple[int, ...]], needs: float | None
) -> None:
    plan = replace(
        PLAN, faults=(Fault("poison", 15, 40, 1.0, 0, (0,)),), scopes={0: frozenset({0})}
    )
    samples = [
        moved(minute, *each) for minute, each in zip((15.0, 17.5, 20.0), offsets, strict=True)
    ]
    found = alarms(plan, samples, "orders")

    assert [each.needs for each in found.must] == ([] if needs is None else [needs])
    assert ("POISON_PILL_SUSPECT" in {code for code, _, _ in found.may}) == (needs is None)


def test_partitions_that_are_all_that_a_member_has_may_go_by_its_name() -> None:
    plan = replace(
        PLAN, faults=(Fault("pause", 15, 40, 1.0, 0, (0, 1)),), scopes={0: frozenset({0, 1})}
    )
    one = replace(
        plan, faults=(replace(plan.faults[0], partitions=(1,)),), scopes={0: frozenset({1})}
    )

    assert [each.subjects for each in alarms(plan, [CALM], "orders").must] == [
        frozenset({"app-0/a"})
    ]
    assert [each.subjects for each in alarms(one, [CALM], "orders").must] == [frozenset()]


def test_a_member_that_hangs_may_go_by_its_name_for_its_paused_partition_as_well() -> None:
    faults = (Fault("pause", 15, 40, 1.0, 0, (0,)), Fault("hang", 17, 45, 1.0, 0, ()))
    plan = replace(PLAN, faults=faults, scopes={0: frozenset({0}), 1: frozenset({0, 1})})
    hung = replace(CALM, stalled=frozenset({0, 1}))

    assert [each.subjects for each in alarms(plan, [CALM], "orders").must] == [
        frozenset(),
        frozenset(),
    ]
    assert [each.subjects for each in alarms(plan, [hung], "orders").must] == [
        frozenset({"app-0/a"}),
        frozenset(),
    ]


@pytest.mark.parametrize(("stands", "hung"), [((0, 1), {0, 1}), ((2, 3), {0, 1})])
def test_a_hang_looks_like_a_pause_of_the_same_or_of_all_other_partitions(
    stands: tuple[int, ...], hung: set[int]
) -> None:
    faults = (Fault("pause", 15, 40, 1.0, 0, stands), Fault("hang", 17, 45, 1.0, 0, ()))
    plan = replace(PLAN, faults=faults, scopes={0: frozenset(stands), 1: frozenset(hung)})

    assert [each.partitions for each in alarms(plan, [CALM], "orders").must] == [frozenset(stands)]


@pytest.mark.parametrize(("capacity", "may"), [(8.0, True), (9.0, False)])
def test_a_batch_that_takes_a_minute_looks_like_a_hang(capacity: float, *, may: bool) -> None:
    sample = replace(CALM, capacities={"a": capacity, "b": 100.0})
    codes = {code for code, _, _ in alarms(during("slow"), [sample], "orders").may}

    assert ("PARTITION_STALLED" in codes) == may


@pytest.mark.parametrize(
    ("kind", "lost", "codes"),
    [
        ("burst", False, {("DATA_LOSS_FORECAST", 15, 45.0)}),
        ("burst", True, {("DATA_LOSS_FORECAST", 15, 45.0), ("DATA_LOST", 20.0, 21.0)}),
        ("skew", True, {("DATA_LOST", 20.0, 21.0)}),
        ("skew", False, set()),
    ],
)
def test_a_burst_may_lose_records_and_a_forecast_does_not_know_its_end(
    kind: str, codes: set[tuple[str, float, float]], *, lost: bool
) -> None:
    plan = replace(during(kind), retention_records=9000)
    found = alarms(plan, [replace(CALM, behind_start=(lost, False, False, False))], "orders").may

    assert {each for each in found if each[0].startswith("DATA_LO")} == codes


@pytest.mark.parametrize(("minute", "wrong"), [(48, 0), (51, 1)])
def test_a_record_whose_last_reader_is_still_in_it_may_be_found_again(
    minute: int, wrong: int
) -> None:
    known, score = (
        Alarm("POISON_PILL_SUSPECT", 10, 40, "orders", frozenset({0}), after=9.0),
        DrawnScore(0),
    )
    shown = {"code": "POISON_PILL_SUSPECT", "roles": [(0, "primary")]}
    found = [replace(finding("", 0, minute=at, until=60), **shown) for at in (12, minute)]
    score.findings(PLAN, Alarms([known]), found, 0)

    assert (score.misses.total(), score.false.total()) == (0, wrong)


SLOW_AND_HUNG = replace(
    PLAN, faults=(Fault("slow", 20, 60, 0.8, 0, ()), Fault("hang", 30, 60, 1.0, 1, ()))
)


def minutes_of(
    backlogs: dict[int, Callable[[float], float]], lost_at: float = 99.0
) -> list[Sample]:
    """A sample every half minute from 15 to 60: lag of these partitions by minute; the last of them
    loses records.
    """
    found = []
    for step in range(90):
        minute, lags, behind = 15 + step / 2, [100] * 4, [False] * 4
        for part, backlog in backlogs.items():
            lags[part] = round(backlog(minute))
            behind[part] = minute >= lost_at and part == max(backlogs)
        found.append(replace(CALM, minute=minute, backlog=tuple(lags), behind_start=tuple(behind)))
    return found


def reported(
    name: str, seconds: Callable[[float], float | None]
) -> list[tuple[float, dict[str, float | None]]]:
    """Rows of each whole minute."""
    return [(float(minute), {name: seconds(float(minute)), "lag": 1e4}) for minute in range(15, 60)]


@pytest.mark.parametrize(("interval", "is_rest"), [(5.0, False), (180.0, True)])
def test_lag_is_at_rest_by_what_commits_make_of_it(interval: float, is_rest: bool) -> None:
    sample = replace(CALM, backlog=(20 * 200, 100, 100, 100))
    assert is_at_rest(replace(PLAN, commit_seconds=interval), sample) == is_rest
    assert is_at_rest(PLAN, sample, [1, 2, 3])


def test_a_loss_is_forecast_from_when_the_partition_that_loses_fell_behind() -> None:
    """Partition 0 is behind since minute 20; the owner of partition 1 hangs at 30 and loses its
    records at 50.
    """
    samples = minutes_of(
        {0: lambda at: 900 * max(0, at - 20), 1: lambda at: 1200 * max(0, at - 30)}, lost_at=50
    )
    score = DrawnScore(1)
    score.loss_forecast(
        SLOW_AND_HUNG,
        samples,
        reported("loss_seconds", lambda at: 60 * (50 - at) if at > 30 else 9e9),
    )
    assert score.losses == [pytest.approx(1.0)]


def test_no_forecast_of_a_loss_is_asked_for_before_something_else_changes() -> None:
    samples = minutes_of({1: lambda at: 1200 * max(0, at - 30)}, lost_at=50)
    score = DrawnScore(1)
    plan = replace(
        SLOW_AND_HUNG, faults=(*SLOW_AND_HUNG.faults, Fault("rewind", 45, 47, 5.0, 0, ()))
    )
    score.loss_forecast(plan, samples, reported("loss_seconds", lambda _: None))
    assert (score.losses, score.silent) == ([], 0)


def test_a_drain_is_that_of_the_last_partition_and_begins_when_deletion_has_ended() -> None:
    """Records are deleted until minute 30; 9000 are left then, and drain at 450 a minute beside lag
    between commits.
    """
    plan = replace(PLAN, faults=(Fault("hang", 16, 20, 1.0, 1, ()),))
    backlog = {
        0: lambda _: 1200.0,
        1: lambda at: 40_000.0 if at < 30 else max(100.0, 9000 - 450 * (at - 30)),
    }
    samples = [
        replace(each, behind_start=(False, each.minute < 30, False, False))
        for each in minutes_of(backlog)
    ]
    score = DrawnScore(1)
    score.drain_forecasts(plan, samples, reported("drain_seconds", lambda at: 60 * (50 - at)))
    assert score.drains == [pytest.approx(1.0, rel=0.02)]


@pytest.fixture(scope="module")
def few() -> list[Drawn]:
    return list(simulate_drawn(FEW))


def test_a_few_clusters_are_diagnosed_better_than_by_always_saying_no(few: list[Drawn]) -> None:
    scores = [score_drawn(each) for each in few]
    right = Counter[str]()
    for each in scores:
        right.update(each.right)
    minutes = sum(each.minutes for each in scores)
    assert right[OWN] >= 0.9 * minutes
    assert right[OWN] > right["always NOT_NEEDED"]
    assert from_line(to_line(scores[0])) == scores[0]


@pytest.mark.full
def test_the_section_takes_the_place_of_the_one_before_and_survives_another_page(
    few: list[Drawn],
) -> None:
    old, new = (section([score_drawn(few[number])]) for number in (0, 1))
    page = with_section("# Scenarios\n", old)
    assert page == f"# Scenarios\n\n{old}\n"
    assert with_section(page, new) == f"# Scenarios\n\n{new}\n"
    assert with_section("# Others\n", known=page) == f"# Others\n\n{old}\n"


@pytest.mark.full
def test_verdicts_of_more_clusters_beat_every_simple_method() -> None:
    scores = [score_drawn(each) for each in simulate_drawn(range(1000, 1016))]
    right = Counter[str]()
    for each in scores:
        right.update(each.right)
    minutes = sum(each.minutes for each in scores)
    assert right[OWN] >= 0.8 * minutes, section(scores)
    assert right[OWN] > max(count for method, count in right.items() if method != OWN)
