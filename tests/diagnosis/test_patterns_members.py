"""Crash loops, evictions, static members."""

from __future__ import annotations

import pytest

from diagnosis.rebalance_rows import Life, at, pods
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.identity import (
    absence_p95_seconds,
    absences,
    find_flips,
    find_successors,
)

ALL = pods(1, 2, 3)
HOMES = [place.removesuffix("#0") for place in ALL]
LIMITS = Parameters()


def looping(times: list[float], **life: float) -> list[tuple[str, tuple[float, ...]]]:
    """The third member dies at these times and is back 20 s later."""
    life = Life(**life).generation(10, *ALL)
    for second in times:
        life.generation(second, *ALL[:2]).generation(second + 20, *ALL)
    return [(each.home, each.lifetimes_seconds) for each in life.membership().crash_loops]


def test_three_departures_after_short_lives_are_a_crash_loop() -> None:
    assert looping([3000, 3050, 3100]) == [(HOMES[2], (30.0, 30.0))]


def test_two_departures_are_no_crash_loop() -> None:
    assert looping([3000, 3050]) == []


def test_a_crash_loop_ends_most_lives_early() -> None:
    """Evicted by chance again and again, a member also lives long."""
    assert looping([2000, 2080, 2300, 2380, 2700]) == []
    assert looping([2000, 2080, 2160, 2300, 2380]) == [(HOMES[2], (60.0, 60.0, 60.0))]


def test_lives_of_two_sessions_are_no_crash_loop() -> None:
    assert looping([3000, 3110, 3220]) == []
    assert looping([3000, 3110, 3220], session=60) == [(HOMES[2], (90.0, 90.0))]


def test_departures_of_half_an_hour_ago_do_not_count() -> None:
    assert looping([1700, 1750, 1850]) == []


def test_a_member_that_restarts_within_one_rebalance_left_as_well() -> None:
    life = Life().generation(10, *ALL)
    for second in (3000, 3046, 3092):
        life.generation(second, *ALL, restarted=[ALL[1]])
    assert [each.home for each in life.membership().crash_loops] == [HOMES[1]]


def test_members_that_restart_before_their_dead_selves_are_missed_are_one_crash_loop() -> None:
    """A session of 120 s; each start gets a place of its own on the host, and leaves it in turn."""
    first, second, third = (f"app/10.0.0.3#{number}" for number in range(3))
    life = Life(session=120).generation(10, *ALL[:2], first)
    for seconds, selves in (
        (2900, [second]),
        (3000, [second, third]),
        (3100, [third, first]),
        (3200, [first, second]),
    ):
        life.generation(seconds, *ALL[:2], *selves)
    (loop,) = life.membership().crash_loops
    assert (loop.home, loop.places) == ("app/10.0.0.3", {first, second, third})
    assert (len(loop.departures), loop.lifetimes_seconds) == (3, (200.0, 200.0))


def test_a_modern_member_is_known_again_by_client_id_and_host() -> None:
    life = Life(kind="epoch")
    of_member = {
        f"id{number}": {
            "slot": f"id{number}",
            "group_instance_id": None,
            "client_id": "app",
            "client_host": "/10.0.0.9",
        }
        for number in range(4)
    }
    life.generation(10, ALL[0], "id0", of_member=of_member)
    for number, second in enumerate((3000, 3050, 3100), 1):
        life.generation(second, ALL[0]).generation(
            second + 20, ALL[0], f"id{number}", of_member=of_member
        )
    assert [each.home for each in life.membership().crash_loops] == ["app/10.0.0.9"]


def test_evictions_are_departures_whose_reason_is_claimed() -> None:
    life = Life().generation(10, *ALL)
    sure, unsure = ({"cause_posterior": {"poll_timeout": p}} for p in (0.7, 0.69))
    life.generation(3000, *ALL[:2], of_row=sure).generation(3100, *ALL).generation(
        3200, *ALL[:2], of_row=unsure
    )
    life.generation(3250, *ALL)
    life.generation(
        3300, *ALL, restarted=[ALL[0]], of_row={"cause_posterior": [("poll_timeout", 0.9)]}
    )
    found = life.membership().evicted("poll_timeout")
    assert [(each.slot, each.at) for each in found] == [(ALL[2], at(3000)), (ALL[0], at(3300))]
    assert life.membership().evicted("session_expiry") == []


def test_evictions_of_history_and_of_half_an_hour_ago_do_not_count() -> None:
    sure = {"cause_posterior": {"poll_timeout": 0.9}}
    life = (
        Life().generation(10, *ALL).generation(1800, *ALL[:2], of_row=sure).generation(1900, *ALL)
    )
    life.generation(3000, *ALL[:2], of_row=sure, live_read=False)
    assert life.membership().evicted("poll_timeout") == []


@pytest.mark.parametrize(
    ("came", "is_evicted"), [(2950, False), (2761, False), (2760, True), (2000, True), (10, True)]
)
def test_a_member_that_came_within_its_poll_interval_did_not_exceed_it(
    came: float, is_evicted: bool
) -> None:
    life = Life(timeout=300).generation(10, *ALL)
    if came > 10:
        again = {"of_member": {ALL[2]: {"member_id": "another"}}}
        life.generation(came, *ALL, restarted=[ALL[2]], **again).generation(came + 9, *ALL, **again)
    life.generation(3000, *ALL[:2], of_row={"cause_posterior": {"poll_timeout": 0.9}})
    assert bool(life.membership().evicted("poll_timeout")) == is_evicted


def test_the_current_members_are_those_of_the_newest_record() -> None:
    life = Life().generation(10, *ALL).generation(20, *ALL[:2])
    assert [row["slot"] for row in life.membership().current] == list(ALL[:2])
    assert life.generation(30).membership().current == ()


def test_a_member_that_another_host_follows_left_and_one_back_on_its_own_restarted() -> None:
    life = Life().generation(10, *ALL).generation(20, *ALL[:2], *pods(9), restarted=[ALL[0]])
    found = life.membership().changes[-1]
    assert (found.left, found.joined, found.restarted) == ((ALL[2],), pods(9), (ALL[0],))


def test_changes_of_history_are_not_reported() -> None:
    life = Life().generation(10, *ALL, live_read=False).generation(20, *ALL[:2])
    assert [(each.left, each.before, each.after) for each in life.membership().changes] == [
        ((ALL[2],), 3, 2)
    ]


IDS = ("s-0", "s-1", "s-2")


def test_an_expired_absence_began_a_session_before_the_generation_without_the_member() -> None:
    life = Life().generation(10, *IDS).generation(3045, *IDS[:2]).generation(3070, *IDS)
    (found,) = absences(life.membership())
    assert (found.instance_id, found.seconds, found.is_expired) == ("s-2", 70.0, True)


def test_a_static_member_that_does_not_return_within_ten_minutes_was_removed() -> None:
    life = Life().generation(10, *IDS).generation(2000, *IDS[:2]).generation(2601, *IDS)
    assert absences(life.membership()) == []


def test_an_absorbed_restart_is_as_long_as_its_event_says() -> None:
    life = Life(session=30).generation(10, *IDS)
    life.static_return(3000, "s-0", "new", "/10.0.0.1", away=20.0).static_return(
        3100, "s-1", "new", "/10.0.0.1"
    )
    found = absences(life.membership())
    assert [(each.seconds, each.session_seconds, each.is_expired) for each in found] == [
        (20.0, 30.0, False), (None, 30.0, False),
    ]  # fmt: skip


def test_the_percentile_of_absences_is_nearest_rank() -> None:
    life = Life().generation(10, *IDS)
    for number, away in enumerate((20.0, 25.0, 30.0, None)):
        life.static_return(3000 + number, "s-0", f"m{number}", "/10.0.0.1", away=away)
    assert absence_p95_seconds(absences(life.membership())) == 30.0
    assert absence_p95_seconds([]) is None


def flips(*hosts: str, begin: float = 3100) -> list[tuple[int, tuple[str, ...], bool]]:
    life = Life().generation(10, *IDS)
    for number, host in enumerate(hosts):
        life.static_return(begin + 60 * number, "s-0", f"m{number}", host)
    return [(each.flips, each.hosts, each.returns) for each in find_flips(life.membership())]


def test_an_instance_id_that_flips_between_hosts_is_reported_with_its_path() -> None:
    assert flips("/b", "/10.0.0.1", "/b") == [(3, ("/10.0.0.1", "/b", "/10.0.0.1", "/b"), True)]


def test_restarts_on_one_host_and_old_flips_are_reported_as_such() -> None:
    assert flips("/10.0.0.1", "/10.0.0.1", "/10.0.0.1") == [(3, ("/10.0.0.1",), False)]
    assert flips("/b", "/10.0.0.1", "/b", begin=2800) == []


def renamed(names: list[str], *, overlap: bool = True) -> list[tuple[str, str]]:
    """Members restart one by one under new ids; the old one blocks its place for a session
    meanwhile.
    """
    now = list(IDS)
    life = Life().generation(10, *now)
    for number, name in enumerate(names):
        second = 1000 + 200 * number
        old = now[number % len(now)]
        if overlap:
            life.generation(second, *now, name)
        now[number % len(now)] = name
        life.generation(second + 45, *now)
        assert old not in now
    return [(each.old, each.new) for each in find_successors(life.membership())]


def test_ids_that_never_return_are_paired_with_the_new_ones() -> None:
    assert renamed(["s-x", "s-y", "s-z"]) == [("s-0", "s-x"), ("s-1", "s-y"), ("s-2", "s-z")]
    assert renamed(["s-x", "s-y", "s-z", "s-q"], overlap=False)[3] == ("s-x", "s-q")


def test_ids_that_return_have_no_successor() -> None:
    life = Life().generation(10, *IDS)
    for second in (1000, 1200, 1400):
        life.generation(second, *IDS[:2]).generation(second + 45, *IDS)
    assert find_successors(life.membership()) == []
