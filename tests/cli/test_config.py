"""laggard config: show, check, sample."""

import json
from pathlib import Path

import pytest

from laggard.cli.main import main
from laggard.conf import conf_file
from laggard.config.sections import keys
from laggard.errors import CONFIGURATION, OK, USAGE

WRONG = "[job]\ntick_seconds = 0\n"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_show_prints_every_key_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("laggard.toml").write_text('[cluster]\nname = "ünïcode"\n', encoding="utf-8")
    assert main(["config", "show", "--set", 'job.spark={"spark.ui.enabled" = true}']) == OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" = ")[0] for line in lines] == list(keys())
    assert 'cluster.name = "ünïcode"' in lines[1]
    assert lines[1].endswith("# laggard.toml:2")
    spark = next(line for line in lines if line.startswith("job.spark"))
    assert spark.startswith('job.spark = {"spark.ui.enabled" = "true"} ')
    assert spark.endswith("# --set")


def test_show_can_be_put_back_as_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    main(["config", "show", "--set", "exporter.listen=[::1]:1"])
    Path("shown.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["--config", "shown.toml", "config", "check"]) == OK
    main(["--config", "shown.toml", "--json", "config", "show"])
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert shown["data"]["exporter.listen"]["value"] == "[::1]:1"


def test_show_as_json_has_value_and_origin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--json"]) == OK
    answer = json.loads(capsys.readouterr().out)
    assert (answer["v"], answer["ok"]) == (1, True)
    assert answer["data"]["job.tick_seconds"] == {"value": 10, "origin": "default"}


def test_check_names_what_the_job_still_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == OK
    captured = capsys.readouterr()
    assert captured.out == "laggard: the configuration is right\n"
    assert (
        captured.err
        == "laggard: cluster.bootstrap_servers is empty: laggard run needs at least one\n"
    )


@pytest.mark.parametrize("action", ["show", "check"])
def test_a_mistake_ends_with_its_own_exit_code(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("laggard.toml").write_text(WRONG)
    assert main(["config", action]) == CONFIGURATION
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "laggard: the configuration has a mistake",
        "cause: laggard.toml:2: job.tick_seconds: expected 1 to 300, got 0",
        "fix: laggard config sample  # every key with its default and range",
    ]


def test_sample_prints_the_reference_file_even_when_the_configuration_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("laggard.toml").write_text(WRONG)
    assert main(["config", "sample"]) == OK
    assert capsys.readouterr().out == conf_file("reference.toml").read_text(encoding="utf-8")


POLICY = """
[[policy]]
match = "*"
slo_time_lag_seconds = 300
[[policy]]
match = "pay*"
owner = "payments"
slo_time_lag_seconds = 60
[[policy.maintenance]]
start = 2020-01-01T00:00:00Z
end = 2999-01-01T00:00:00Z
"""


def test_policy_tells_which_rules_match_a_group_and_what_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("laggard.toml").write_text(POLICY)
    assert main(["config", "policy", "payments"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        '# laggard.toml:2: match = "*", cluster = "*"',
        '# laggard.toml:5: match = "pay*", cluster = "*"',
    ]
    shown = {line.partition("  # ")[0].strip(): line.partition("  # ")[2] for line in lines[2:]}
    assert shown['owner = "payments"'] == "laggard.toml:5"
    assert shown["slo_time_lag_seconds = 60.0"] == "laggard.toml:5"
    assert shown["min_consumers = 1"] == "default"
    assert shown["in_maintenance = true"] == "now"


def test_policy_as_json_has_rules_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    Path("laggard.toml").write_text(POLICY)
    assert main(["--json", "config", "policy", "other"]) == OK
    data = json.loads(capsys.readouterr().out)["data"]
    assert (data["cluster"], data["group"]) == ("default", "other")
    assert data["rules"] == [{"place": "laggard.toml:2", "match": "*", "cluster": "*"}]
    assert data["policy"]["slo_time_lag_seconds"] == {"value": 300.0, "origin": "laggard.toml:2"}
    assert data["policy"]["in_maintenance"]["value"] is False


def test_policy_of_a_group_of_no_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "policy", "g"]) == OK
    assert capsys.readouterr().out.splitlines()[0] == "# none of 0 rules matches"


@pytest.mark.parametrize("words", [["policy"], ["show", "g"]])
def test_policy_and_no_other_action_takes_a_group(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", *words]) == USAGE
    assert capsys.readouterr().err.splitlines() == [
        "laggard: only the action policy takes a group",
        "fix: laggard config policy GROUP",
    ]
