from dataclasses import replace
from datetime import timedelta
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosis.groups import END, GENERATION, signals_of, spread_over, topic_signals
from laggard.diagnosis.history.frames import Memory, Track
from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BLOCKS_SCALING
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.group import Signals, Trend
from laggard.diagnosis.verdict import reasons
from laggard.diagnosis.verdict.decisions import scale_verdict
from laggard.diagnosis.verdict.reasons import REASONS, VERDICTS, Verdict
from laggard.diagnosis.verdict.sizing import size

RESTLESS = sorted(BLOCKS_SCALING)
LAG = 17_000.0  # 220 + 17 000 / 900 is under 0.4 x 600: two partitions fit a member


def group(
    lag: Any = None,
    members: int = 4,
    topic: dict[str, Any] | None = None,
    members_without: list[str] | None = None,
    **fields: Any,
) -> Signals:
    """Twelve partitions at 220/s, four members that do 600/s: the steady shortage of which the
    answer is six.
    """
    lags = [LAG] * 12 if lag is None else lag
    shown = {
        "arrival": 220.0,
        "consume": 200.0,
        "slots": spread_over(len(lags), members),
        "trend": "growing",
    }
    busy = [f"m{n}" for n in range(members)]
    return signals_of(
        topic_signals(lags, **(shown | (topic or {}))),
        **({"capacity": 600.0, "busy": busy, "members": members_without} | fields),
    )


def verdict(
    signals: Signals, *codes: str, conditions: tuple[Observation, ...] = (), elasticity: float = nan
) -> Verdict:
    found = {each.code: each for each in (*map(Observation, codes), *conditions)}
    return scale_verdict(signals, found, size(signals), elasticity=elasticity)


def answer(signals: Signals, *codes: str, **others: Any) -> tuple[str, int | None]:
    found = verdict(signals, *codes, **others)
    return found.code, found.members_desired


def test_a_steady_shortage_is_answered_with_six_members() -> None:
    found = verdict(group())

    assert (found.code, found.members_desired) == ("YES", 6)
    assert {
        name: found.numbers[name] for name in ("members", "members_ceiling", "members_lower_bound")
    } == {
        "members": 4,
        "members_ceiling": 12,
        "members_lower_bound": 6,
    }


@pytest.mark.parametrize(
    ("history", "trends", "expected"),
    [
        ({"lag_min": 1001.0}, "flat", "YES"),
        ({"lag_min": 1000.0}, "flat", "NOT_NEEDED"),  # it was down to the floor within this window
        ({"lag_min": nan}, "flat", "YES"),
        ({"lag_min": 1000.0}, "growing", "YES"),  # with long commit intervals growth alone tells
    ],
)
def test_lag_that_was_worked_off_in_between_needs_nobody(
    history: dict[str, Any], trends: str, expected: str
) -> None:
    signals = group(topic={"trend": "flat", "history": history})
    topic = replace(signals.topics[0], trends=[Trend(trends)] * 12)
    assert answer(replace(signals, topics=[topic]))[0] == expected


def test_a_large_even_backlog_is_helped_by_members_though_it_misses_the_target() -> None:
    # every w_p = 1400/s is above c, and still: 25 minutes at twelve members, 150 at six
    signals = group(
        [900_000.0] * 12, 6, {"arrival": 400.0, "consume": 500.0}, capacity=1000.0, busy=()
    )
    found = verdict(signals)

    assert (found.code, found.members_desired) == ("YES_PARTIAL", 12)
    assert (
        found.numbers["drain_at_desired_seconds"],
        found.numbers["drain_at_members_seconds"],
    ) == (1500, 9000)


HOT = {
    "arrival": [220.0] * 11 + [900.0],
    "consume": [200.0] * 11 + [400.0],
    "shape": "concentrated",
}
# seen for 9 windows
NEW = {"arrival": np.where(np.arange(60) < 60 - 9, nan, np.array(HOT["arrival"])[:, None])}
EMPTY: dict[str, Any] = {"member_count": 0, "state": "Empty"}
READ, UNREAD = {"history": {"consumed": 9000.0}}, {"history": {"consumed": 0.0}}
REPEATED = {"history": {"consumed": 0.0, "commits": 1.0}}
ANSWERS = [
    (reasons.INPUT_UNKNOWN, None, group(flags=frozenset({"stale"}))),
    (reasons.INPUT_UNKNOWN, None, group(topic={"status": ["ok"] * 10 + ["stale"] * 2})),
    (reasons.INPUT_UNKNOWN, None, group(topic={"status": ["no_commit"] * 12})),
    (reasons.INPUT_UNKNOWN, None, signals_of()),
    (reasons.NO_LAG, 4, group([10.0] * 12, topic={"trend": "flat"})),
    (reasons.NO_LAG, 0, group([0.0] * 12, topic={"trend": "flat"}, **EMPTY)),
    (
        reasons.NO_MEMBERS,
        1,
        group([10.0] * 12, topic=UNREAD | {"trend": "flat"}, **EMPTY),
    ),  # below the floor
    (reasons.NO_MEMBERS, 1, group(topic=UNREAD, **EMPTY)),
    # a reader that commits and never joins
    (reasons.READER_UNKNOWN, None, group(topic=READ, **EMPTY)),
    (reasons.NO_LAG, 1, group([10.0] * 12, topic=READ | {"trend": "flat"}, **EMPTY)),
    # behind a marker, say
    (reasons.NO_LAG, 1, group([1.0] * 12, topic=REPEATED | {"trend": "flat"}, **EMPTY)),
    (reasons.REBALANCES, 4, group(time_in_rebalance=0.2)),
    (reasons.STALLED, 4, group(topic={"stalled": dict.fromkeys(range(6), "silent")})),
    (reasons.HOT_PARTITION, 4, group([10.0] * 11 + [90_000.0], topic=HOT)),
    (reasons.HOT_UNKNOWN, None, group([10.0] * 11 + [90_000.0], topic=HOT | {"history": NEW})),
    (reasons.PARTITIONS_TOO_FEW, 4, group(topic={"arrival": 700.0, "consume": 200.0})),
    (reasons.DRAINING, 4, group(topic={"trend": "draining", "consume": 240.0})),
    (reasons.AT_CEILING, 12, group(members=12, topic={"arrival": 700.0, "consume": 600.0})),
    # no more could get a partition, and no more are needed
    (reasons.ENOUGH_MEMBERS, 12, group(members=12)),
    (reasons.LOAD_UNKNOWN, None, group(capacity=nan)),
    (reasons.READER_UNKNOWN, None, group(member_count=None)),
    (reasons.LOAD_UNKNOWN, None, group(topic={"shape": "none"})),
    (reasons.TOO_FEW_MEMBERS, 6, group()),
    (reasons.ENOUGH_MEMBERS, 4, group(topic={"arrival": 60.0})),
]


@pytest.mark.parametrize(("reason", "desired", "signals"), ANSWERS)
def test_each_reason_answers(reason: reasons.Reason, desired: int | None, signals: Signals) -> None:
    found = verdict(signals)

    assert (found.reason, found.members_desired) == (reason, desired)


def test_reasons_have_names_of_their_own_and_one_verdict_per_row_of_the_page() -> None:
    assert len({each.name for each in REASONS}) == len(REASONS)
    assert (
        len({(each.row, each.verdict) for each in REASONS})
        == len({each.row for each in REASONS})
        == 16
    )


def blamed(code: str, share: float, **fields: Any) -> Observation:
    return Observation(code, explained=share, **fields)


@pytest.mark.parametrize("code", RESTLESS)
def test_a_group_that_is_busy_with_itself_is_not_given_members(code: str) -> None:
    assert answer(group(), code) == ("NO_REBALANCE_FIRST", 4)


THERE, NOBODY = {"members": 4, "group_state": "Stable"}, {"members": 0, "group_state": "Empty"}


@pytest.mark.parametrize("code", RESTLESS)
@pytest.mark.parametrize(
    ("newest", "frozen", "expected"),
    [
        ([THERE] * 3, 150.0, "NOT_NEEDED"),  # one of several members comes and goes
        ([THERE, THERE, NOBODY], 30.0, "NO_REBALANCE_FIRST"),  # all are gone
        # all came a moment ago, and have committed nothing yet
        ([NOBODY, NOBODY, THERE], 150.0, "NO_REBALANCE_FIRST"),
        ([NOBODY, NOBODY, THERE], 30.0, "NOT_NEEDED"),  # what was unread then is read
    ],
)
def test_little_lag_is_no_lag_in_unrest_only_if_members_were_there_to_read_it(
    code: str, newest: list[dict[str, Any]], frozen: float, expected: str
) -> None:
    facts = [THERE] * 57 + newest
    topic = {"trend": "flat", "history": {"frozen": frozen, "consumed": 0.0}}
    signals = group([10.0] * 12, topic=topic, group_facts=facts, state=newest[-1]["group_state"])
    signals = replace(signals, member_count=newest[-1]["members"])
    assert answer(signals, code)[0] == expected
    read = replace(signals.topics[0], lag=np.zeros(12), is_material=np.zeros(12, bool))
    assert answer(replace(signals, topics=[read], lag=0.0), code)[0] == "NOT_NEEDED"


def test_a_record_that_nobody_reads_says_nothing_of_the_others() -> None:
    """Seven of eight partitions were read since all members were back."""
    frozen = np.full((8, 60), 30.0)
    frozen[0] = 3000.0  # before a marker, say
    topic = {"trend": "flat", "history": {"frozen": frozen, "consumed": 0.0}}
    signals = group([1.0] * 8, topic=topic, group_facts=[THERE] * 57 + [NOBODY, NOBODY, THERE])
    assert answer(signals, "CRASH_LOOP")[0] == "NOT_NEEDED"


def test_little_lag_is_no_lag_after_one_restart_of_all_members() -> None:
    topic = {"trend": "flat", "history": {"frozen": 150.0, "consumed": 0.0}}
    assert (
        answer(group([10.0] * 12, topic=topic, group_facts=[THERE] * 57 + [NOBODY, NOBODY, THERE]))[
            0
        ]
        == "NOT_NEEDED"
    )


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        (blamed("BROKER_CORRELATED", 0.5), "NO_BROKER"),
        (blamed("LSO_STUCK", 0.5), "NO_BROKER"),
        (Observation("OFFSET_BEYOND_END", topic="orders", partitions=tuple(range(6))), "NO_BROKER"),
        (Observation("OFFSET_BEYOND_END", topic="orders", partitions=tuple(range(5))), "YES"),
        (blamed("BROKER_CORRELATED", 0.49), "YES"),
        # it has not lasted for long enough to be a finding
        (blamed("COSTLY_PARTITION", 0.5), "UNKNOWN"),
        (blamed("COSTLY_PARTITION", 0.49), "YES"),
        (Observation("SHARED_SINK"), "NO_DOWNSTREAM"),
        (Observation("COMMITS_STOPPED"), "NO_STALLED"),
        (
            Observation("PARTITION_UNOWNED", topic="orders", partitions=tuple(range(6))),
            "NO_STALLED",
        ),
        (Observation("PARTITION_UNOWNED", topic="others", partitions=tuple(range(6))), "YES"),
        (blamed("SLOW_MEMBER", 0.9, subject="m2"), "YES"),  # the others are busy, too
        (Observation("SCALE_OUT_FUTILE"), "YES"),
    ],
)
def test_a_cause_decides_from_half_of_the_lag(condition: Observation, code: str) -> None:
    assert verdict(group(), conditions=(condition,)).code == code


@pytest.mark.parametrize(("share", "code"), [(0.5, "NO_COSTLY_PARTITION"), (0.49, "YES")])
def test_a_costly_partition_decides_once_it_has_lasted(share: float, code: str) -> None:
    track = Track("COSTLY_PARTITION", "orders", (0,), "", since_ms=1, opened_ms=2)
    signals = replace(group(), memory=Memory(tracks=(track,)))
    assert verdict(signals, conditions=(blamed("COSTLY_PARTITION", share),)).code == code


@pytest.mark.parametrize(("rate", "code"), [(260.0, "NO_COSTLY_PARTITION"), (200.0, "YES")])
def test_lag_that_is_soon_gone_by_itself_does_not_hide_a_costly_partition(
    rate: float, code: str
) -> None:
    """It is a fifth of all lag, and half of what does not drain: seven of twelve partitions do, in
    425 s.
    """
    track = Track("COSTLY_PARTITION", "orders", (0,), "", since_ms=1, opened_ms=2)
    consumed = np.full((12, 60), 200.0)
    consumed[5:] = rate
    signals = replace(
        group(topic={"history": {"consume": consumed, "arrival": np.full((12, 60), 220.0)}}),
        memory=Memory(tracks=(track,)),
    )
    costly = Observation("COSTLY_PARTITION", topic="orders", partitions=(0,), explained=0.21)

    assert verdict(signals, conditions=(costly,)).code == code


def test_what_retention_has_not_yet_deleted_counts_as_left() -> None:
    """One partition of twenty is stalled and lags by 9 000; of another records are deleted, and 50
    000 are left.
    """
    status = ["ok"] * 19 + ["below_log_start"]
    for left, code in ((50_000.0, False), (5_000.0, True)):
        history = {"start": 1_000.0, "end": 1_000.0 + left}
        topic = {"status": status, "stalled": {0: "silent"}, "history": history}
        found = verdict(group([9_000.0] + [10.0] * 19, topic=topic))
        assert (found.code == "NO_STALLED") == code


@pytest.mark.parametrize(
    ("busy", "code"),
    [(["m2"], "NO_UNHEALTHY_MEMBER"), (["m2", "m0"], "NO_UNHEALTHY_MEMBER"), (["m0", "m1"], "YES")],
)
def test_a_slow_member_decides_while_most_others_are_not_busy(busy: list[str], code: str) -> None:
    assert (
        verdict(group(busy=busy), conditions=(blamed("SLOW_MEMBER", 0.9, subject="m2"),)).code
        == code
    )
    assert (
        verdict(group(busy=busy), conditions=(blamed("SLOW_HOST", 0.9, subject="host-of-m2"),)).code
        == code
    )


def test_a_batch_that_came_since_the_newest_commits_does_not_outweigh_a_stall() -> None:
    signals = group(topic={"stalled": {7: "repeating"}})
    (topic,) = signals.topics
    left = np.where(topic.is_stalled, topic.lag, 100.0)

    assert verdict(signals).code == "YES"  # 11 of 12 wait for members
    assert verdict(replace(signals, topics=[replace(topic, envelope=left)])).code == "NO_STALLED"


@pytest.mark.parametrize(("arrival", "code"), [(100.0, "NO_UNHEALTHY_MEMBER"), (195.0, "YES")])
def test_others_that_will_soon_be_done_with_a_batch_are_not_short(
    arrival: float, code: str
) -> None:
    """51 000 records of a member take 170 s with 300 records/s to spare, and an hour with 15."""
    signals = group(topic={"arrival": arrival, "trend": "sawtooth"})
    assert verdict(signals, conditions=(blamed("SLOW_MEMBER", 0.9, subject="m2"),)).code == code


@pytest.mark.parametrize(
    ("elasticity", "code"),
    [(0.29, "NO_DOWNSTREAM"), (0.3, "YES"), (nan, "YES"), (-0.5, "NO_DOWNSTREAM")],
)
def test_a_scale_out_that_brought_nothing_is_not_repeated(elasticity: float, code: str) -> None:
    assert verdict(group(), elasticity=elasticity).code == code


def test_a_group_that_drains_too_slowly_is_given_members() -> None:
    # 12 x 17 000 at 12 x (220 to 235)/s: 1 133 s
    draining = {"trend": "draining", "consume": 235.0}

    assert verdict(group(topic=draining)).code == "YES"
    assert (
        verdict(group(topic=draining, policy=Policy(drain_target_seconds=1200))).code
        == "NOT_NEEDED_DRAINING"
    )


@pytest.mark.parametrize(
    ("newest", "lag", "interval", "code"),
    [
        # 17 000 at 40/s: 425 s, though no trend tells it yet
        ([220.0, 260.0, 260.0], LAG, 5.0, "NOT_NEEDED_DRAINING"),
        # 1 133 s: over both windows 15/s more are read than arrive
        ([220.0, 220.0, 250.0], LAG, 5.0, "YES"),
        ([220.0, 260.0, 260.0], 40_000.0, 5.0, "YES"),  # 1 000 s
    ],
)
def test_a_lag_that_has_begun_to_fall_and_is_gone_soon_is_waited_for(
    newest: list[float], lag: float, interval: float, code: str
) -> None:
    consumed = np.full((12, 60), 200.0)
    consumed[:, -3:] = newest
    history = {"consume": consumed, "arrival": np.full((12, 60), 220.0)}
    found = verdict(group([lag] * 12, topic={"history": history, "interval": interval}))

    assert found.code == code


@pytest.mark.parametrize(("rate", "code"), [(220.0, "YES"), (260.0, "NOT_NEEDED_DRAINING")])
def test_a_second_commit_in_a_window_is_no_fall(rate: float, code: str) -> None:
    """Commits come every 50 s: each fifth window holds two of them, and the newest one does."""
    ends = 60.0 * np.arange(61)
    commits = 50.0 * np.floor(ends / 50.0)
    history = {
        "consume": rate * np.diff(commits) / 60.0,
        "frozen": (ends - commits)[1:],
        "arrival": np.full((12, 60), 220.0),
    }
    assert np.diff(commits)[-1] == 100

    assert verdict(group(topic={"history": history, "interval": 50.0})).code == code


@pytest.mark.parametrize(
    ("ago", "code"),
    [
        # every three minutes, and the next one may be on its way
        ([660, 480, 300], "NO_REBALANCE_FIRST"),
        ([900, 720, 540, 361], "YES"),  # twice as long ago
        ([1500, 1100, 601], "YES"),  # however rare they were
        ([260, 250, 180], "NO_REBALANCE_FIRST"),  # three windows at least
    ],
)
def test_rebalances_block_scaling_for_as_long_as_the_next_one_may_come(
    ago: list[int], code: str
) -> None:
    signals = group()
    rows = [GENERATION | {"record_timestamp": END - timedelta(seconds=each)} for each in ago]
    signals = replace(signals, frame=replace(signals.frame, generations=rows))

    assert verdict(signals, "REBALANCE_STORM").code == code


def test_a_hot_partition_that_wanders_is_answered_without_a_number() -> None:
    """Each is hot for four minutes, so that a mean over five windows has it at less
    than it gets.
    """
    arrival = np.full((12, 60), 40.0)
    for window in range(60):
        arrival[(window // 4) % 3, window] = 800.0
    wandering = {"arrival": arrival.mean(axis=1), "history": {"arrival": arrival}, "shape": "mixed"}
    found = verdict(group([20_000.0] * 3 + [10.0] * 9, topic=wandering))

    assert (found.reason, found.members_desired) == (reasons.HOT_WANDERS, 4)


def test_a_partition_that_seems_hot_is_named_once_it_was_seen_for_long_enough() -> None:
    seen = np.where(np.arange(60) < 60 - 10, nan, np.array(HOT["arrival"])[:, None])

    assert (
        verdict(group([10.0] * 11 + [90_000.0], topic=HOT | {"history": {"arrival": seen}})).code
        == "NO_HOT_PARTITION"
    )


def test_a_new_partition_that_one_member_can_do_does_not_delay_the_answer() -> None:
    """It gets 500 records/s, more than the others, and a member has done 600."""
    mild = {
        "arrival": [220.0] * 11 + [500.0],
        "consume": [200.0] * 12,
        "shape": "mixed",
        "history": NEW,
    }

    assert verdict(group([LAG] * 12, topic=mild)).reason in {
        reasons.TARGET_MISSED,
        reasons.TOO_FEW_MEMBERS,
    }


def test_what_the_best_member_could_do_and_the_others_not_is_not_known() -> None:
    """Each partition gets 700 records/s; three members do 600 and one 900."""
    unlike = group(
        topic={"arrival": 700.0}, capacity={"m0": 900.0, "m1": 600.0, "m2": 600.0, "m3": 600.0}
    )
    found = verdict(unlike)

    assert (found.reason, found.numbers["capacity_known"]) == (reasons.LOAD_UNKNOWN, 0)


@st.composite
def loads(draw: st.DrawFn) -> dict[str, Any]:
    """Up to 16 partitions whose rates, lags and history have nothing to do with each other."""
    count, members = draw(st.integers(1, 16)), draw(st.integers(1, 16))
    rate = st.integers(0, 20_000).map(lambda tenths: tenths / 10)
    arrivals = draw(st.lists(rate, min_size=count, max_size=count))
    lags = draw(st.lists(st.integers(0, 1_000_000).map(float), min_size=count, max_size=count))
    seen = draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))
    is_seen = 60 - np.arange(60) <= np.array(seen)[:, None]
    topic = {
        "arrival": arrivals,
        "consume": draw(st.lists(rate, min_size=count, max_size=count)),
        "shape": draw(st.sampled_from(["spread", "mixed", "concentrated", "single"])),
        "trend": draw(st.sampled_from(["growing", "flat", "draining", "abstain"])),
        "slots": spread_over(count, members),
        "history": {"arrival": np.where(is_seen, np.array(arrivals)[:, None], nan)},
    }
    capacities = {f"m{n}": draw(st.floats(1.0, 3_000.0)) for n in range(members)}
    extra = [f"m{n}" for n in range(members)]
    assignor = draw(st.sampled_from(["range", "sticky", "roundrobin", None]))
    return {
        "lag": lags, "members": members, "topic": topic, "members_without": extra,
        "capacity": capacities,
        "assignor": assignor, "busy": (),
    }  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(loads())
def test_more_members_are_never_the_answer_where_the_lag_does_not_drain_with_them(
    load: dict[str, Any],
) -> None:
    view = group(**load)
    found = verdict(view)
    if found.code.startswith("YES"):
        assert found.numbers["drain_at_desired_seconds"] < inf
        assert found.members_desired is not None
        assert view.member_count is not None
        assert view.member_count < found.members_desired <= view.ceiling


def test_lag_that_is_even_is_not_blamed_on_a_hot_partition() -> None:
    assert (
        verdict(group([90_000.0] * 12, topic=HOT | {"shape": "spread"})).code != "NO_HOT_PARTITION"
    )


def test_a_hot_partition_comes_with_the_lag_that_ideal_packing_leaves() -> None:
    numbers = verdict(group([10.0] * 11 + [90_000.0], topic=HOT)).numbers

    assert (
        numbers["hot_partitions"],
        numbers["hot_arrival_rate"],
        numbers["best_capacity_rate"],
    ) == (1, 900, 800)
    assert numbers["residual_records"] == 90_000 + (900 - 600) * 900


def test_lag_of_an_empty_group_needs_members_and_no_more() -> None:
    # ends 9 / 9 / 12, committed 9 / 3 / 0
    topic = topic_signals(
        [0.0, 6.0, 12.0], arrival=0.0, floor=1.0, slots=["", "", ""], shape="concentrated"
    )

    assert answer(signals_of(topic, state="Empty", member_count=0)) == ("NO_MEMBERS", 1)


def test_more_members_than_partitions_are_not_asked_for() -> None:
    signals = group(
        [700_000.0] * 6, 6, {"arrival": 700.0, "consume": 600.0}, members_without=["m6", "m7"]
    )

    assert (signals.member_count, answer(signals)) == (8, ("NO_IDLE", 6))


def test_a_simple_committer_is_evaluated_by_what_is_known_of_it() -> None:
    stalled = {"stalled": dict.fromkeys(range(12), "silent")}

    assert answer(group(member_count=None, topic=stalled)) == ("NO_STALLED", None)
    assert verdict(group(member_count=None)).numbers["members_known"] == 0


@pytest.mark.parametrize("ago", range(5))
@pytest.mark.parametrize(
    ("lag", "reason"), [(10.0, reasons.NO_LAG), (1500.0, reasons.READER_UNKNOWN)]
)
def test_a_reader_that_never_joins_is_there_between_two_of_its_commits(
    ago: int, lag: float, reason: reasons.Reason
) -> None:
    signals = group([lag] * 12, topic=_every_five_minutes(ago), **EMPTY)

    assert verdict(signals).reason == reason
    assert forecast.topic_drain_seconds(signals, signals.topics[0]) == pytest.approx(lag / 300)


@pytest.mark.parametrize(
    "row",
    [{"members": 2}, None],  # those who left had read; who read in a gap is not known
)
def test_what_members_read_before_they_left_is_no_sign_of_another_reader(
    row: dict[str, Any] | None,
) -> None:
    facts = [row] * 57 + [{"members": 0}] * 3

    assert (
        answer(group(topic=_every_five_minutes(4), group_facts=facts, **EMPTY))[0] == "NO_MEMBERS"
    )
    assert answer(group(topic=_every_five_minutes(1), group_facts=facts, **EMPTY))[0] == "UNKNOWN"


def _every_five_minutes(ago: int) -> dict[str, Any]:
    """A topic of which the newest commit is so many windows old."""
    consumed = np.where(np.arange(60)[::-1] % 5 == ago, 120_000.0, 0.0)  # 400 records/s
    return {
        "history": {"consumed": consumed},
        "trend": "flat",
        "interval": 300.0,
        "consume": 400.0,
        "arrival": 100.0,
    }


def test_numbers_that_are_not_known_are_left_out_and_never_is_a_number() -> None:
    numbers = verdict(group(capacity=nan)).numbers
    endless = verdict(group(members=12, topic={"arrival": 700.0})).numbers

    assert not {"capacity_rate", "members_desired", "drain_at_desired_seconds"} & numbers.keys()
    assert numbers["busy_windows_needed"] == 5
    assert endless["drain_at_members_seconds"] == inf


def test_every_code_is_listed_once() -> None:
    assert len(VERDICTS) == len(set(VERDICTS)) == 15
    assert {reason for reason, _, _ in ANSWERS} <= set(REASONS)


SHAPES = ["", "none", "single", "spread", "mixed", "concentrated"]


@st.composite
def of_groups(draw: st.DrawFn) -> Signals:
    """The steady shortage, from which a few things differ."""

    def mostly(usual: Any, *others: Any) -> Any:
        return draw(st.sampled_from([*[usual] * 9, *others]))

    members = mostly(4, 0, 1, 11, 12, 14)
    topic = {
        "arrival": mostly(220.0, 0.0, 50.0, 700.0, nan, [220.0] * 11 + [2_000.0]),
        "consume": mostly(200.0, 0.0, 240.0, nan),
        "shape": mostly("spread", "", "none", "single", "mixed", "concentrated"),
        "trend": mostly("growing", "flat", "draining", "abstain"),
        "status": mostly(
            ["ok"] * 12, ["stale"] * 12, ["no_commit"] * 3 + ["ok"] * 9, ["stale"] * 2 + ["ok"] * 10
        ),
        "stalled": dict.fromkeys(range(mostly(0, 3, 9)), "silent"),
        "slots": spread_over(12, members),
    }
    return group(
        mostly([LAG] * 12, [10.0] * 12, [900_000.0] * 12, [LAG] * 6 + [0.0] * 6),
        members,
        topic,
        [f"m{n}" for n in range(members)],
        capacity=mostly(600.0, nan, 100.0, 5_000.0),
        member_count=mostly(members, None),
        state=mostly("Stable", "Empty", "PreparingRebalance"),
        assignor=mostly("range", "sticky", None),
        time_in_rebalance=mostly(0.0, nan, 0.19, 0.2, 0.9),
        flags=mostly(frozenset(), frozenset({"sparse"}), frozenset({"blocked"})),
    )


CODES = [
    *RESTLESS,
    "BROKER_CORRELATED",
    "COSTLY_PARTITION",
    "SLOW_MEMBER",
    "SHARED_SINK",
    "COMMITS_STOPPED",
]


@settings(max_examples=250)
@given(
    of_groups(),
    st.sampled_from([(), (), (), *((code,) for code in CODES)]),
    st.sampled_from([nan, nan, 0.1, 0.9]),
)
def test_no_path_adds_members_without_a_shape_or_into_a_rebalance(
    signals: Signals, codes: tuple[str, ...], elasticity: float
) -> None:
    found = verdict(signals, *codes, elasticity=elasticity)

    assert found.code in VERDICTS
    assert (found.members_desired is None) >= found.code.startswith("UNKNOWN")
    assert not np.isnan(list(found.numbers.values())).any()
    if found.members_desired is not None:
        assert found.members_desired <= signals.ceiling
        if found.code.startswith("N"):
            assert found.members_desired == min(signals.member_count or 1, signals.ceiling)
    if found.code.startswith("YES"):
        assert signals.topics[0].shape.name in {"single", "spread", "mixed", "concentrated"}
        assert not signals.time_in_rebalance >= 0.2
        assert not {*codes} & {*RESTLESS, "SHARED_SINK", "COMMITS_STOPPED"}
        assert elasticity != 0.1
        assert found.members_desired is not None
        assert signals.member_count is not None
        assert signals.member_count < found.members_desired
