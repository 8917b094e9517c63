"""`[[policy]]`: which rules are about a group, what follows from them, and what is
wrong with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from laggard.conf import conf_file
from laggard.config import Config, load_config
from laggard.diagnosis.parameters import Policy
from laggard.errors import LaggardError

NOON = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, parts: Mapping[str, str] | None = None) -> Config:
    Path("laggard.toml").write_text(text, encoding="utf-8")
    Path("policy.d").mkdir(exist_ok=True)
    for name, part in (parts or {}).items():
        Path("policy.d", name).write_text(part, encoding="utf-8")
    return load_config(None, (), {})


def problems(text: str, parts: Mapping[str, str] | None = None) -> Sequence[str]:
    with pytest.raises(LaggardError) as caught:
        load(text, parts)
    return caught.value.cause.split("\n  ")


def policy(text: str, group: str = "g", at: datetime = NOON, cluster: str = "default") -> Policy:
    return load(text).policies.of(cluster, group, at)


def test_a_group_of_no_rule_has_the_defaults() -> None:
    assert policy("") == Policy()
    assert policy("[[policy]]\nmatch = 'other'\nowner = 'x'\n") == Policy()


def test_every_key_can_be_set() -> None:
    values: dict[str, Any] = {
        "owner": "a",
        "team": "b",
        "slo_time_lag_seconds": 60,
        "slo_objective": 0.95,
        "isolation": "read_committed",
        "scale_to_zero": True,
        "idle_seconds": 5.5,
        "min_consumers": 2,
        "max_consumers": 9,
        "drain_target_seconds": 10,
        "heartbeat_seconds": 3,
        "hot_standby": True,
        "export_partitions": "all",
        "mute_codes": ["X"],
    }
    lines = [
        f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for name, value in values.items()
    ]
    found = policy("\n".join(["[[policy]]", "match = '*'", *lines]))
    assert {*values, "in_maintenance"} == {each.name for each in fields(Policy)}
    assert found == Policy(**values | {"mute_codes": ("X",)})


def test_later_rules_override_earlier_ones_key_by_key() -> None:
    text = """
[[policy]]
match = "*"
owner = "everybody"
slo_time_lag_seconds = 300
[[policy]]
match = "pay*"
slo_time_lag_seconds = 60
[[policy]]
match = "pay-[ab]"
cluster = "prod-*"
slo_time_lag_seconds = 0
"""
    expected = {
        ("dev", "other"): 300,
        ("dev", "pay-a"): 60,
        ("prod-1", "pay-a"): 0,
        ("prod-1", "pay-c"): 60,
        ("prod-1", "Pay-a"): 300,
    }
    found = {(cluster, group): policy(text, group, cluster=cluster) for cluster, group in expected}
    assert {key: each.slo_time_lag_seconds for key, each in found.items()} == expected
    assert {each.owner for each in found.values()} == {"everybody"}


def test_the_files_of_policy_d_come_after_the_main_file_in_the_order_of_their_names() -> None:
    rule = "[[policy]]\nmatch = '*'\nowner = '{0}'\n{0}_consumers = 7\n"
    config = load(
        "\n[[policy]]\nmatch = '*'\nowner = 'main'\nteam = 'main'\n",
        {"20.toml": rule.format("max"), "10.toml": rule.format("min"), "30.txt": "not TOML"},
    )
    found = config.policies.of("default", "g", NOON)
    assert (found.owner, found.team, found.min_consumers, found.max_consumers) == (
        "max",
        "main",
        7,
        7,
    )
    assert [rule.place for rule in config.policies.rules] == [
        "laggard.toml:2",
        "policy.d/10.toml:1",
        "policy.d/20.toml:1",
    ]


ONCE = "[[policy.maintenance]]\nstart = 2026-12-01T23:00:00+01:00\nend = 2026-12-02T01:00:00Z\n"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-12-01T21:59:59", False),
        ("2026-12-01T22:00:00", True),
        ("2026-12-02T00:59:59", True),
        ("2026-12-02T01:00:00", False),
    ],
)
def test_maintenance_is_from_its_start_until_before_its_end(at: str, expected: bool) -> None:
    found = policy(f"[[policy]]\nmatch = '*'\n{ONCE}", at=datetime.fromisoformat(f"{at}+00:00"))
    assert found.in_maintenance is expected


@pytest.mark.parametrize(
    # Berlin is UTC+2 until 2026-10-25 03:00, then UTC+1; the 25th is a Sunday
    ("weekly", "at", "expected"),
    [
        ("Sun 02:00-04:00", "2026-10-17T23:59", False),
        ("Sun 02:00-04:00", "2026-10-18T00:00", True),
        ("Sun 02:00-04:00", "2026-10-18T01:59", True),
        ("Sun 02:00-04:00", "2026-10-18T02:00", False),
        ("Sun 02:00-04:00", "2026-10-19T00:30", False),
        # the clock was put back, the night is an hour longer
        ("Sun 02:00-04:00", "2026-10-25T02:59", True),
        ("Sun 02:00-04:00", "2026-11-01T01:00", True),
        ("Sun 02:00-04:00", "2026-11-01T00:59", False),
        ("Sun 23:00-01:00", "2026-11-01T22:00", True),
        ("Sun 23:00-01:00", "2026-11-01T23:59", True),
        ("Sun 23:00-01:00", "2026-11-02T00:00", False),
        ("Sun 23:00-01:00", "2026-10-31T23:30", False),
        ("Sun 23:00-24:00", "2026-11-01T22:59", True),
        ("Sun 23:00-24:00", "2026-11-01T23:00", False),
    ],
)
def test_weekly_maintenance_goes_by_the_clock_of_its_time_zone(
    weekly: str, at: str, expected: bool
) -> None:
    rule = (
        f"[[policy]]\nmatch = '*'\n[[policy.maintenance]]\nweekly = '{weekly}'\ntimezone = "
        "'Europe/Berlin'\n"
    )
    assert policy(rule, at=datetime.fromisoformat(f"{at}+00:00")).in_maintenance is expected


def test_a_later_rules_maintenance_is_added_to_that_of_earlier_ones() -> None:
    text = (
        f"[[policy]]\nmatch = '*'\n{ONCE}[[policy]]\nmatch = 'g'\n[[policy.maintenance]]\nweekly "
        "= 'Tue 11:00-13:00'\n"
    )
    for at, expected in ((NOON, True), (datetime(2026, 12, 1, 23, tzinfo=timezone.utc), True)):
        assert policy(text, at=at).in_maintenance is expected
    assert not policy(text, "other").in_maintenance


def test_every_mistake_is_reported_with_its_line() -> None:
    text = """[job]
tick_seconds = 0

[[policy]]
match = "a"
slo_objektive = 0.99

[[policy]]
owner = 5
isolation = "none"
in_maintenance = true

[[policy.maintenance]]
weekly = "Sun 2-4"

[[policy.maintenance]]
weekly = "Sun 02:00-04:00"
timezone = "Mars"

[[policy]]
match = ""
min_consumers = -1
"""
    parts = {
        "a.toml": "[cluster]\nname = 'x'\n[[policy]]\nmatch = 'b'\nidle_seconds = "
        "0\nslo_objective = "
        "1.0\n",
        "b.toml": "policy = 5\n",
    }
    assert problems(text, parts) == [
        "laggard.toml:2: job.tick_seconds: expected 1 to 300, got 0",
        "laggard.toml:6: policy.slo_objektive: unknown key (did you mean slo_objective?)",
        (
            "laggard.toml:8: policy: match is missing: a glob on the group, such as match = "
            '"payments-*"'
        ),
        "laggard.toml:9: policy.owner: expected string, got integer 5",
        (
            "laggard.toml:10: policy.isolation: expected read_uncommitted or read_committed, got "
            '"none"'
        ),
        "laggard.toml:11: policy.in_maintenance: unknown key (did you mean maintenance?)",
        (
            'laggard.toml:13: policy.maintenance: expected weekly such as "Sun 02:00-04:00", got '
            '"Sun 2-4"'
        ),
        'laggard.toml:16: policy.maintenance: expected timezone such as Europe/Berlin, got "Mars"',
        'laggard.toml:21: policy.match: expected not empty, got ""',
        "laggard.toml:22: policy.min_consumers: expected 0 or more, got -1",
        "policy.d/a.toml: cluster: only [[policy]] may stand here",
        "policy.d/a.toml:5: policy.idle_seconds: expected more than 0, got 0.0",
        "policy.d/a.toml:6: policy.slo_objective: expected 0.94 to 0.9999, got 1.0",
        "policy.d/b.toml: policy: expected tables, each with the header [[policy]]",
    ]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("", "expected start as a time with its offset, such as 2026-12-01T22:00:00Z, got nothing"),
        (
            "start = 2026-12-01T22:00:00",
            (
                "expected start as a time with its offset, such as 2026-12-01T22:00:00Z, got "
                '"2026-12-01 22:00:00"'
            ),
        ),
        (
            "start = 2026-12-01T22:00:00Z\nend = 2026-12-02",
            (
                "expected end as a time with its offset, such as 2026-12-01T22:00:00Z, got "
                '"2026-12-02"'
            ),
        ),
        (
            "start = 2026-12-01T22:00:00Z\nend = 2026-12-01T23:00:00+01:00",
            (
                "ends at 2026-12-01 23:00:00+01:00, which is not after its start at 2026-12-01 "
                "22:00:00+00:00"
            ),
        ),
        (
            "weekly = 'Sun 02:00-25:00'",
            'expected weekly such as "Sun 02:00-04:00", got "Sun 02:00-25:00"',
        ),
        (
            "weekly = 'Sun 02:00-04:00'\nend = 2026-12-02",
            "expected either weekly, or start and end",
        ),
        (
            "timezone = 'UTC'",
            "timezone belongs to weekly; start and end have an offset of their own",
        ),
        ("starts = 5", "unknown key starts (did you mean start?)"),
        ("weekly = 5", "expected string, got integer 5"),
    ],
)
def test_a_wrong_maintenance_says_what_was_expected(keys: str, problem: str) -> None:
    text = f"[[policy]]\nmatch = 'g'\n\n[[policy.maintenance]]\n{keys}\n"
    assert problems(text) == [f"laggard.toml:4: policy.maintenance: {problem}"]


def test_the_sample_shows_every_key_with_its_default() -> None:
    lines = conf_file("reference.toml").read_text(encoding="utf-8").splitlines()
    sample = [
        line.removeprefix("# ") for line in lines[lines.index("# [[policy]]") :] if line != "#"
    ]
    config = load("\n".join(sample))
    (rule,) = config.policies.rules
    assert len(rule.maintenance) == 2
    assert set(rule.values) == {each.name for each in fields(Policy)} - {"in_maintenance"}
    assert config.policies.of("default", "payments-1", NOON) == Policy()
