"""Rolling deploys: found while they run, distinguished from scaling and from faults."""

from __future__ import annotations

import pytest

from diagnosis.rebalance_rows import Life, at, pods
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.deploys import Deploy

LIMITS = Parameters()


def roll(
    number: int = 8,
    done: int = 8,
    gap: float = 45,
    away: float = 20,
    *,
    begin: float = 1000,
    surge: bool = False,
    **of_row: object,
) -> Life:
    """Dynamic members replaced one by one, each new one on a new host."""
    now = list(pods(*range(number)))
    life = Life().generation(10, *now)
    for index in range(done):
        second, new = begin + gap * index, pods(100 + index)[0]
        if surge:
            life.generation(second, *now, new)
            now[index] = new
            life.generation(second + away, *now)
        else:
            rest = [each for each in now if each != now[index]]
            life.generation(second, *rest, of_row=of_row)
            now[index] = new
            life.generation(second + away, *now)
    return life


def one(life: Life, now: float) -> Deploy:
    (found,) = life.membership(now).deploys
    return found


@pytest.mark.parametrize("surge", [False, True])
def test_a_rolling_deploy_is_one_deploy_with_all_its_rebalances(surge: bool) -> None:
    life = roll(surge=surge)
    found = one(life, 1600)
    assert (found.state, found.batches, found.slots, found.replaced, found.rebalances) == (
        "over",
        8,
        8,
        8,
        16,
    )
    assert (found.started_at, found.ended_at) == (at(1000), at(1335))
    assert found.quiet_at == at(1335 + 2 * 45)
    assert found.rebalance_ids == tuple(f"r{number}" for number in range(2, 18))


def test_a_deploy_is_suspected_from_a_third_of_the_slots_and_runs_from_four_fifths() -> None:
    assert roll(done=2).membership(1070).deploys == ()
    assert one(roll(done=3), 1120).state == "suspected"
    assert one(roll(done=6), 1250).state == "suspected"
    assert one(roll(done=7), 1300).state == "running"
    assert one(roll(done=7), 1400).state == "over"


def test_a_large_deploy_is_suspected_from_three_places_that_went_to_other_hosts() -> None:
    """Of 40 members, in a minute and a half; a third of them takes ten minutes, five rebalances
    take two.
    """
    assert roll(40, done=2).membership(1070).deploys == ()
    assert one(roll(40, done=3), 1120).state == "suspected"
    assert roll(40, done=3).membership(1000 + 2 * 45 + 20 + 91).deploys == ()
    now = pods(*range(40))
    back = Life().generation(10, *now)
    for index in range(3):  # who rejoins on its host may have been evicted
        back.generation(1000 + 45 * index, *[each for each in now if each != now[index]])
        back.generation(1020 + 45 * index, *now)
    assert back.membership(1120).deploys == ()


def test_a_suspicion_that_comes_to_nothing_is_no_deploy() -> None:
    assert roll(done=4).membership(1400).deploys == ()


def test_a_deploy_explains_rebalances_until_three_windows_after_its_quiet() -> None:
    assert roll().membership(1335 + 90 + 180).deploy is not None
    assert roll().membership(1335 + 90 + 181).deploy is None


def test_a_deploy_explains_nothing_after_45_minutes() -> None:
    life = roll(8, 8, gap=370)
    assert life.membership(1000 + 2700).deploy is not None
    assert life.membership(1000 + 2701).deploy is None


def test_restarts_on_the_same_hosts_are_a_deploy_as_well() -> None:
    now = pods(1, 2, 3, 4)
    life = Life().generation(10, *now)
    for index, slot in enumerate(now):
        life.generation(1000 + 40 * index, *now, restarted=[slot])
    assert (one(life, 1400).replaced, one(life, 1400).batches) == (4, 4)


def test_static_restarts_are_a_deploy_without_rebalances() -> None:
    ids = [f"s-{number}" for number in range(8)]
    life = Life().generation(10, *ids)
    for index, slot in enumerate(ids):
        life.static_return(1000 + 45 * index, slot, "new", "/10.0.0.1")
    found = one(life, 1600)
    assert (found.replaced, found.static_share, found.rebalances, found.generations) == (
        8,
        1.0,
        0,
        0,
    )


def test_a_modern_group_is_deployed_in_epochs() -> None:
    life = roll(4, 4)
    modern = Life(kind="epoch")
    for row in life.generations:
        slots = {each["slot"] for each in life.members if each["generation"] == row["generation"]}
        modern.generation((row["record_timestamp"] - at(0)).total_seconds(), *sorted(slots))
    assert one(modern, 1600).replaced == 4


def test_all_at_once_is_no_rolling_deploy() -> None:
    life = (
        Life()
        .generation(10, *pods(1, 2, 3, 4))
        .generation(1000)
        .generation(1020, *pods(5, 6, 7, 8))
    )
    assert life.membership(1100).deploys == ()


def test_one_restart_is_no_deploy_of_four() -> None:
    now = pods(1, 2, 3, 4)
    life = Life().generation(10, *now).generation(1000, *now[:3]).generation(1020, *now)
    assert life.membership(1030).deploys == ()


def test_one_member_again_and_again_is_no_deploy() -> None:
    now = pods(1, 2, 3, 4)
    life = Life().generation(10, *now)
    for index in range(4):
        life.generation(1000 + 50 * index, *now[:3]).generation(1020 + 50 * index, *now)
    assert life.membership(1200).deploys == ()


def test_swings_of_an_autoscaler_are_no_deploy() -> None:
    few, many = pods(1, 2, 3), pods(1, 2, 3, 4, 5, 6)
    life = Life().generation(10, *few)
    for index in range(5):
        life.generation(600 + 300 * index, *(few if index % 2 else many))
        assert life.membership(610 + 300 * index).deploys == ()


def test_a_change_of_size_is_no_deploy() -> None:
    now, life = list(pods(1, 2, 3, 4)), Life().generation(10, *pods(1, 2, 3, 4))
    for index in range(4):
        life.generation(1000 + 40 * index, *[each for each in now if each != now[index]])
        now[index] = pods(50 + index)[0]
        life.generation(1020 + 40 * index, *now)
    life.generation(1160, *now, *pods(90, 91))
    assert life.membership(1600).deploys == ()


def test_evictions_in_turn_are_no_deploy() -> None:
    for reason in ("poll_timeout", "session_expiry"):
        assert roll(4, 3, cause_posterior={reason: 0.8}).membership(1120).deploys == ()
    assert roll(4, 3, cause_posterior={"deploy": 0.8}).membership(1120).deploys != ()


def test_a_deploy_of_members_that_were_evicted_once_and_came_back_at_once_is_one() -> None:
    """Each of eight was evicted and back in one epoch, long ago; now they are restarted one after
    the other.
    """
    now, evicted = list(pods(*range(8))), {"cause_posterior": {"session_expiry": 0.9}}
    life = Life(kind="epoch").generation(10, *now)
    for index in range(8):
        life.generation(
            100 + 60 * index, *now, left=[now[index]], joined=[now[index]], of_row=evicted
        )
    for index in range(8):
        life.generation(2900 + 60 * index, *now[:index], *now[index + 1 :])
        life.generation(2930 + 60 * index, *now)

    assert len(life.membership(3400).deploys) == 1


def test_evicted_members_that_return_replace_nobody() -> None:
    """Four of six are evicted, and return while each of the last two leaves for a reason that is
    not known.
    """
    now, evicted = list(pods(*range(6))), {"cause_posterior": {"poll_timeout": 0.9}}
    life = Life().generation(10, *now)
    for index in range(4):
        life.generation(1000 + 40 * index, *now[index + 1 :], of_row=evicted)
    life.generation(1180, *now[4:], now[0]).generation(1230, now[0], now[5])
    life.generation(1270, now[0], now[5], now[1]).generation(1310, *now[:2]).generation(
        1340, *now[:3]
    )

    assert life.membership(1350).deploys == ()


def test_a_deploy_that_outlasts_static_sessions_is_a_deploy() -> None:
    expired = {"cause": "static_expired", "cause_posterior": {"session_expiry": 0.8}}
    ids = [f"s-{number}" for number in range(4)]
    life = Life().generation(10, *ids)
    for index, slot in enumerate(ids):
        life.generation(1000 + 90 * index, *[each for each in ids if each != slot], of_row=expired)
        life.generation(1025 + 90 * index, *ids)
    assert one(life, 1600).replaced == 4


def test_a_group_that_comes_to_life_is_no_deploy() -> None:
    life = (
        Life()
        .generation(10, *pods(1))
        .generation(13, *pods(1, 2))
        .generation(16, *pods(1, 2, 3, 4))
    )
    assert life.membership(60).deploys == ()


def test_two_deploys_of_a_day_are_two() -> None:
    life = roll(4, 4)
    now = list(pods(100, 101, 102, 103))
    for index in range(4):
        life.generation(2500 + 45 * index, *[each for each in now if each != now[index]])
        now[index] = pods(200 + index)[0]
        life.generation(2520 + 45 * index, *now)
    assert [each.started_at for each in life.membership().deploys] == [at(1000), at(2500)]


def test_the_second_roll_of_a_migration_is_a_deploy_of_its_own_though_it_follows_at_once() -> None:
    now = pods(1, 2, 3)
    life = Life().generation(10, *now)
    for begin in (1000, 1125):
        for index, slot in enumerate(now):
            second = begin + 30 * index
            life.generation(second, *[each for each in now if each != slot]).generation(
                second + 12, *now
            )
    found = life.membership(1400).deploys
    assert [(each.started_at, each.replaced) for each in found] == [(at(1000), 3), (at(1125), 3)]
