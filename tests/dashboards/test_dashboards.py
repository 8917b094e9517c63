"""Dashboards and alerts beside clusters in trouble: every panel shows something, and exactly the
right alerts fire.
"""

from __future__ import annotations

import shutil

import pytest
import yaml

from dashboards.empty import EMPTY
from dashboards.history import CASES, Case, History, run
from dashboards.prometheus import RULES, quicker
from dashboards.queries import chosen_text, replaced

UNFILLED = 'ALERTS{team=~".*label.*"}'  # the text of a template


def test_all_times_of_the_rules_are_divided_alike() -> None:
    text = "  for: 15m\n  keep_firing_for: 1h\n  expr: rate(a[5m]) > 5m"
    assert quicker(text) == "  for: 30s\n  keep_firing_for: 120s\n  expr: rate(a[10s]) > 5m"


def test_nothing_but_times_changes_in_the_rules() -> None:
    text = (RULES / "laggard-alerts.yaml").read_text()
    before, after = (yaml.safe_load(each)["groups"][0]["rules"] for each in (text, quicker(text)))
    assert [each["alert"] for each in before] == [each["alert"] for each in after]
    assert [each["for"] for each in after if not each.get("for", "0s").endswith("s")] == []


def test_variables_are_replaced_as_grafana_does() -> None:
    assert chosen_text(["a.b"]) == r"a\\.b"
    assert chosen_text(["a(b", "c\\d"]) == r"(a\\(b|c\\\\d)"
    assert (
        replaced('rate(a{g=~"$group"}[$__rate_interval])', {"group": "(x|y)"}, 60)
        == 'rate(a{g=~"(x|y)"}[20s])'
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    if not shutil.which("prometheus"):
        pytest.skip("needs prometheus: make tools")
    return run(
        tmp_path_factory.mktemp("dashboards"),
        reasons={UNFILLED, *(reason for reason, _ in EMPTY.values())},
    )


@pytest.mark.full
def test_every_query_of_every_panel_returns_data_or_has_a_reason_that_holds(
    history: History,
) -> None:
    empty = {(each.board, each.title, each.letter) for each in history.shown if not each.series}
    assert {key for key in empty if not history.reasons.get(EMPTY.get(key, ("", ""))[0])} == set()


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exactly_the_right_alerts_fire_for_a_cluster(history: History, case: Case) -> None:
    assert history.fired.get(case.name, set()) - case.may == case.fires


@pytest.mark.full
def test_no_label_of_an_alert_is_the_text_of_its_template(history: History) -> None:
    assert not history.reasons[UNFILLED]
