"""Which of several findings is the cause: the graph, the order, and what is never hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from laggard.diagnosis.findings.ranking import Open, roles
from laggard.diagnosis.rules.registry import BY_CODE, CONDITIONS, EDGES, RULES
from laggard.diagnosis.rules.rule import CAUSE, DEPLOY, LONG_REBALANCE, SYMPTOM


def finding(
    code: str, *, explained: float = 0.0, confidence: float = 0.9, partitions: Sequence[int] = ()
) -> Open:
    kind = BY_CODE[code].kind
    return Open(
        code, code, kind, "warn", "orders", frozenset(partitions), "", explained, confidence
    )


def roles_of(*codes: str, conditions: Sequence[str] = ()) -> Mapping[str, str]:
    return roles([finding(code) for code in codes], conditions)[0]


def test_the_graph_has_no_circle() -> None:
    after: dict[str, set[str]] = {}
    for edge in EDGES:
        after.setdefault(edge.by, set()).update(edge.codes)

    def visit(code: str, path: tuple[str, ...]) -> None:
        assert code not in path, " -> ".join((*path, code))
        for each in after.get(code, ()):
            visit(each, (*path, code))

    for code in after:
        visit(code, ())


def test_every_name_in_an_inhibition_is_a_rule_a_group_of_rules_or_a_condition() -> None:
    groups = {name for rule in RULES for name in rule.groups}
    conditions = {each.name for each in CONDITIONS}
    for edge in EDGES:
        assert {*edge.inhibition.targets} <= BY_CODE.keys() | groups, edge.by
        assert edge.inhibition.needs in {"", *conditions}


def test_no_two_causes_are_equally_strong() -> None:
    ranks = [rule.rank for rule in RULES if rule.rank is not None]
    assert len(ranks) == len(set(ranks))


def test_exactly_one_cause_is_primary() -> None:
    found = roles_of("CAPACITY_SHORTAGE", "AT_PARTITION_CEILING", "SLOW_MEMBER")
    assert sorted(found.values()) == ["contributing", "contributing", "primary"]
    assert found["SLOW_MEMBER"] == "primary"


@pytest.mark.parametrize(
    ("by", "suppressed"),
    [
        ("EMPTY_WITH_LAG", "CAPACITY_SHORTAGE"),
        ("HOT_PARTITION_ARRIVAL", "CAPACITY_SHORTAGE"),
        ("COMMITS_STOPPED", "PARTITION_STALLED"),
        ("CRASH_LOOP", "COSTLY_PARTITION"),
    ],
)
def test_a_cause_suppresses_what_follows_from_it(by: str, suppressed: str) -> None:
    assert roles_of(by, suppressed) == {by: "primary", suppressed: "suppressed"}


@pytest.mark.parametrize(
    "cause", ["POISON_PILL_SUSPECT", "POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP"]
)
def test_capacity_that_is_lost_with_members_is_not_the_cause_whatever_it_explains(
    cause: str,
) -> None:
    found = roles([finding(cause, explained=0.2), finding("CAPACITY_SHORTAGE", explained=1.0)], ())[
        0
    ]
    assert found == {cause: "primary", "CAPACITY_SHORTAGE": "contributing"}


def test_capacity_is_not_spoken_of_while_the_group_is_busy_with_rebalances() -> None:
    found = roles_of("POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE", conditions=[LONG_REBALANCE])
    assert found == {"POLL_TIMEOUT_EVICTION": "primary", "CAPACITY_SHORTAGE": "suppressed"}
    assert (
        roles_of("POLL_TIMEOUT_EVICTION", "CAPACITY_SHORTAGE")["CAPACITY_SHORTAGE"]
        == "contributing"
    )


def test_a_deploy_suppresses_storms_but_not_poison_pills() -> None:
    found = roles_of("REBALANCE_STORM", "POISON_PILL_SUSPECT", conditions=[DEPLOY])
    assert found == {"REBALANCE_STORM": "suppressed", "POISON_PILL_SUSPECT": "primary"}


def test_a_symptom_is_never_hidden_and_leads_only_where_no_cause_is_known() -> None:
    assert BY_CODE["DATA_LOST"].kind == SYMPTOM
    assert roles_of("DATA_LOST", "EMPTY_WITH_LAG") == {
        "DATA_LOST": "symptom",
        "EMPTY_WITH_LAG": "primary",
    }
    assert roles_of("DATA_LOST") == {"DATA_LOST": "primary"}


def test_what_explains_clearly_more_of_the_lag_goes_before_the_order() -> None:
    strong = finding("SLOW_MEMBER", explained=0.3)
    weak = finding("HOT_PARTITION_ARRIVAL", explained=0.6)
    assert roles([strong, weak], ())[1] == "HOT_PARTITION_ARRIVAL"
    assert roles([strong, finding("HOT_PARTITION_ARRIVAL", explained=0.4)], ())[1] == "SLOW_MEMBER"


def test_what_a_finding_of_the_cluster_explains_points_to_it() -> None:
    short = finding("CAPACITY_SHORTAGE")
    shared = {"SHARED_SINK": "id of the cluster's"}
    assert roles([short], shared, shared) == (
        {"CAPACITY_SHORTAGE": "contributing"},
        "id of the cluster's",
    )
    # before the cluster's finding is open its condition alone is nothing to point to
    assert roles([short], shared) == ({"CAPACITY_SHORTAGE": "primary"}, "CAPACITY_SHORTAGE")
    stalled = finding("PARTITION_STALLED")  # this is not the sink's doing
    assert roles([short, stalled], shared, shared)[1] == "PARTITION_STALLED"


def test_notes_are_nobodys_cause() -> None:
    assert BY_CODE["IDLE_MEMBERS"].kind not in (CAUSE, SYMPTOM)
    assert roles_of("IDLE_MEMBERS") == {"IDLE_MEMBERS": "note"}


def test_a_stall_hides_a_hot_partition_only_where_it_is_the_same() -> None:
    stalled = finding("PARTITION_STALLED", partitions=[3])
    same, other = (finding("HOT_PARTITION_ARRIVAL", partitions=[number]) for number in (3, 5))
    assert roles([stalled, same], ())[0]["HOT_PARTITION_ARRIVAL"] == "suppressed"
    assert roles([stalled, other], ())[0]["HOT_PARTITION_ARRIVAL"] == "contributing"
