"""The configuration: precedence, errors, and the reference file."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from laggard.conf import conf_file
from laggard.config import Config, load_config, require_brokers
from laggard.config.load import SPARK_FIXED
from laggard.config.ranges import is_host_port, is_url
from laggard.config.sections import SECTIONS, keys, value_of
from laggard.config.sources import MAX_FILE_BYTES, line_of
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.errors import CONFIGURATION, LaggardError
from laggard.stream.job.session import FIXED

UNITS = {  # by the last word of the key
    "seconds": "seconds",
    "hours": "hours",
    "days": "days",
    "minutes": "minutes",
    "records": "records",
    "series": "series",
    "k": "partitions",
}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str = "", *sets: str, environ: Mapping[str, str] | None = None) -> Config:
    Path("laggard.toml").write_text(text, encoding="utf-8")
    return load_config(None, sets, environ or {})


def problems(text: str = "", *sets: str, environ: Mapping[str, str] | None = None) -> Sequence[str]:
    with pytest.raises(LaggardError) as caught:
        load(text, *sets, environ=environ)
    assert caught.value.exit_code == CONFIGURATION
    return caught.value.cause.split("\n  ")


def test_without_file_every_default_is_in_force() -> None:
    config = load_config(None, (), {})
    assert config == Config()
    assert set(config.origins.values()) == {"default"}


def test_sections_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().job.tick_seconds = 5  # type: ignore[misc]  # which is what must not work


@pytest.mark.parametrize(
    ("environ", "sets", "expected", "origin"),
    [
        ({}, (), 20, "laggard.toml:3"),
        ({"LAGGARD_JOB__TICK_SECONDS": "30"}, (), 30, "env LAGGARD_JOB__TICK_SECONDS"),
        ({"LAGGARD_JOB__TICK_SECONDS": "30"}, ("job.tick_seconds=15",), 15, "--set"),
        ({}, ("job.tick_seconds=15", "job.tick_seconds=12"), 12, "--set"),
    ],
)
def test_the_later_source_wins(
    environ: dict[str, str], sets: tuple[str, ...], expected: int, origin: str
) -> None:
    config = load("# a comment\n[job]\ntick_seconds = 20\n", *sets, environ=environ)
    assert (config.job.tick_seconds, config.origins["job.tick_seconds"]) == (expected, origin)
    assert config.origins["job.window_seconds"] == "default"


def test_the_named_file_comes_before_the_environments_and_that_before_the_folders() -> None:
    for name in ("named", "pointed"):
        Path(name).write_text(f'[cluster]\nname = "{name}"\n')
    Path("laggard.toml").write_text('[cluster]\nname = "folder"\n')
    pointed = {"LAGGARD_CONFIG": "pointed"}
    assert load_config("named", (), pointed).cluster.name == "named"
    assert load_config(None, (), pointed).cluster.name == "pointed"
    assert load_config(None, (), {"LAGGARD_CONFIG": ""}).cluster.name == "folder"


def test_names_without_a_double_underscore_are_not_ours() -> None:
    assert (
        load(environ={"LAGGARD_PORT": "tcp://10.0.0.1:8917", "LAGGARD_SERVICE_HOST": "x"})
        == Config()
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a:9092", "b:9092"]', ("a:9092", "b:9092")),
        ("[]", ()),
    ],
)
def test_a_list_is_read_as_toml(text: str, expected: tuple[str, ...]) -> None:
    environ = {"LAGGARD_CLUSTER__BOOTSTRAP_SERVERS": text}
    assert load(environ=environ).cluster.bootstrap_servers == expected
    assert load("", f"cluster.bootstrap_servers={text}").cluster.bootstrap_servers == expected


@pytest.mark.parametrize(
    "text", ["payments", "2024", "true", "1979-05-27", '"quoted"', "a=b", "x\ny = 1"]
)
def test_a_string_needs_no_quotes_outside_the_file(text: str) -> None:
    assert load("", f"cluster.name={text}").cluster.name == text.strip('"')


def test_sparks_names_may_be_quoted_or_not() -> None:
    expected = {"spark.executor.memory": "2g", "spark.task.cpus": "2", "spark.ui.enabled": "true"}
    dotted = (
        '[job.spark]\nspark.executor.memory = "2g"\nspark.task.cpus = 2\nspark.ui.enabled = true\n'
    )
    quoted = (
        '[job]\nspark = {"spark.executor.memory" = "2g", "spark.task.cpus" = "2", '
        '"spark.ui.enabled" = "true"}\n'
    )
    assert load(dotted).job.spark == expected
    assert load(quoted).job.spark == expected


def test_thresholds_are_what_the_diagnosis_takes() -> None:
    assert load().diagnosis.thresholds == Parameters()
    loaded = load("[diagnosis]\nloss_page_hours = 7\nstall_min_seconds = 90\n").diagnosis
    assert loaded.thresholds == replace(Parameters(), loss_page_hours=7.0, stall_min_seconds=90.0)


def test_a_pace_divides_the_thresholds_in_seconds_and_no_others() -> None:
    slow, fast = Parameters(), load("[diagnosis]\npace = 10\nstall_min_seconds = 90\n").diagnosis
    expected = {
        each.name: getattr(slow, each.name) / (10 if each.metadata["unit"] == "s" else 1)
        for each in fields(Parameters)
    }
    assert asdict(fast.thresholds) == expected | {"stall_min_seconds": 9.0}
    assert load("[diagnosis]\npace = 10\n").policies.default == Policy(drain_target_seconds=90.0)


@pytest.mark.parametrize("name", SPARK_FIXED)
def test_sparks_settings_that_the_job_depends_on_are_refused(name: str) -> None:
    assert problems(f'[job.spark]\n{name} = "x"\n') == [
        f"laggard.toml:1: job.spark: {name}: fixed by the job"
    ]


def test_what_the_job_fixes_is_what_is_refused() -> None:
    assert set(FIXED) == set(SPARK_FIXED)


def test_every_mistake_is_reported_at_once_in_the_order_of_places() -> None:
    text = (
        "[job]\nwindow_seconds = 45\n\n[exporter]\nmax_serie = 5\nlisten = "
        '"8917"\n\n[clutser]\nname = "a"\n'
    )
    environ = {"LAGGARD_EXPORTER__LISTEN": "8917", "LAGGARD_JOBS__TICK": "1"}
    assert problems(text, "metrics.max_series=5", "zzz=1", environ=environ) == [
        (
            "laggard.toml:2: job.window_seconds: window of 45 s is not a multiple of "
            "job.tick_seconds (10)"
        ),
        "laggard.toml:5: exporter.max_serie: unknown key (did you mean metrics.max_series?)",
        'laggard.toml:6: exporter.listen: expected host:port, got "8917"',
        "laggard.toml:8: clutser: unknown key (did you mean cluster?)",
        'env LAGGARD_EXPORTER__LISTEN: expected host:port, got "8917"',
        "env LAGGARD_JOBS__TICK: unknown key",
        "--set: metrics.max_series: expected 1000 to 500000, got 5",
        "--set: zzz: unknown key",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[job]\ntick_seconds = "10"\n', 'job.tick_seconds: expected integer, got string "10"'),
        ("[job]\ntick_seconds = true\n", "job.tick_seconds: expected integer, got boolean true"),
        ("[job]\ntick_seconds = 1.5\n", "job.tick_seconds: expected integer, got float 1.5"),
        ("[job]\ntick_seconds = 0\n", "job.tick_seconds: expected 1 to 300, got 0"),
        ("[job]\ntick_seconds = 301\n", "job.tick_seconds: expected 1 to 300, got 301"),
        ("[maintenance]\nenabled = 1\n", "maintenance.enabled: expected boolean, got integer 1"),
        ("[cluster]\nname = 5\n", "cluster.name: expected string, got integer 5"),
        ('[cluster]\nname = ""\n', 'cluster.name: expected not empty, got ""'),
        ('[cluster]\ngroups = "a"\n', 'cluster.groups: expected list of strings, got string "a"'),
        ("[cluster]\ngroups = [1]\n", "cluster.groups: expected list of strings, got list [1]"),
        ("[cluster]\ngroups = []\n", "cluster.groups: expected list of globs, not empty, got []"),
        (
            "[cluster]\nbootstrap_servers = ['a']\n",
            'cluster.bootstrap_servers: expected list of host:port, got ["a"]',
        ),
        (
            "[diagnosis]\nloss_page_hours = -1\n",
            "diagnosis.loss_page_hours: expected more than 0, got -1.0",
        ),
        (
            "[diagnosis]\nloss_page_hours = inf\n",
            "diagnosis.loss_page_hours: expected more than 0, got Infinity",
        ),
        ("[diagnosis]\npace = nan\n", "diagnosis.pace: expected more than 0, got NaN"),
        ("[diagnosis]\npace = '3'\n", 'diagnosis.pace: expected number, got string "3"'),
        ("[diagnosis]\npace = true\n", "diagnosis.pace: expected number, got boolean true"),
        (
            "[diagnosis]\nmin_group_lag_records = 0\n",
            "diagnosis.min_group_lag_records: expected 1 or more, got 0",
        ),
        (
            "[diagnosis]\nmin_group_lag_records = 2.5\n",
            "diagnosis.min_group_lag_records: expected integer, got float 2.5",
        ),
        ('[logging]\nformat = "xml"\n', 'logging.format: expected json or text, got "xml"'),
    ],
)
def test_a_wrong_value_names_what_was_expected_and_what_was_found(text: str, problem: str) -> None:
    assert problems(text) == [f"laggard.toml:2: {problem}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("job = 5\n", "laggard.toml:1: job: expected table, got 5"),
        (
            "config_version = 2\n",
            "laggard.toml:1: config_version: 2 needs a later release of laggard; this one reads 1",
        ),
        ("config_version = 0\n", "laggard.toml:1: config_version: expected 1, got 0"),
        ("[job]\nmaster = 'a'\nmaster = 'b'\n", "laggard.toml:3: Cannot overwrite a value"),
        ("[job]\n[job]\n", "laggard.toml:2: Cannot declare ('job',) twice"),
        ("[job\n", "laggard.toml:1: Expected ']' at the end of a table declaration"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_tick_that_no_window_is_a_multiple_of_is_shown_where_the_tick_was_set() -> None:
    expected = "window of 60 s is not a multiple of job.tick_seconds (7)"
    assert problems("", "job.tick_seconds=7") == [f"--set: job.tick_seconds: {expected}"]
    assert problems(environ={"LAGGARD_JOB__TICK_SECONDS": "7"}) == [
        f"env LAGGARD_JOB__TICK_SECONDS: {expected}"
    ]


def test_an_assignment_without_a_value_is_refused() -> None:
    assert problems("", "job.tick_seconds") == [
        "--set job.tick_seconds: expected section.key=value"
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"# " + b"x" * MAX_FILE_BYTES, "laggard.toml: larger than 256 KB"),
        (b'[cluster]\nname = "\xff"\n', "laggard.toml: not UTF-8 at byte 18"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_refused(content: bytes, problem: str) -> None:
    Path("laggard.toml").write_bytes(content)
    with pytest.raises(LaggardError) as caught:
        load_config(None, (), {})
    assert caught.value.cause == problem


def test_a_named_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LaggardError) as caught:
        load_config("absent.toml", (), {})
    assert (caught.value.cause, caught.value.exit_code) == (
        "absent.toml: No such file or directory",
        CONFIGURATION,
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[job]\ntick_seconds=1", 2),
        ("[ job ]\n  tick_seconds = 1", 2),
        ('["job"]\n"tick_seconds" = 1', 2),
        ("job.tick_seconds = 1", 1),
        ("\njob = { window_seconds = 20, tick_seconds = 1 }", 2),
        ("[cluster]\ntick_seconds = 1\n[job]\n\ntick_seconds = 2", 5),
        ("[job]\nmy_tick_seconds = 1", None),
    ],
)
def test_the_line_of_a_key(text: str, line: int | None) -> None:
    assert line_of(text, "job.tick_seconds") == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092", True),
        ("127.0.0.1:0", True),
        ("[::1]:8917", True),
        ("kafka_1.internal:65535", True),
        ("8917", False),
        (":8917", False),
        ("::1:8917", False),
        ("host:65536", False),
        ("host:", False),
        ("host:٣", False),
        ("http://host:80", False),
        ("a b:80", False),
    ],
)
def test_host_and_port(text: str, expected: bool) -> None:
    assert is_host_port(text) is expected


def test_a_job_without_brokers_says_how_to_name_them() -> None:
    with pytest.raises(LaggardError) as caught:
        require_brokers(Config())
    assert caught.value.exit_code == CONFIGURATION
    config = load("", *re.findall(r"--set '(.*)'", caught.value.fix))
    assert require_brokers(config) == ("localhost:9092",)


def reference_lines() -> dict[str, tuple[str, str]]:
    """Dotted key to the comment above it and the line itself, in the file's order."""
    section, comment, found = "", "", {}
    for line in conf_file("reference.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
        elif line and not line.startswith("#"):
            found[section + line.partition(" = ")[0]] = (comment, line)
        comment = line if line.startswith("#") else ""
    return found


def test_the_reference_file_has_every_key_with_its_default() -> None:
    config = load_config(str(conf_file("reference.toml")), (), {})
    assert config == Config()
    assert list(reference_lines()) == list(keys())
    assert all(origin != "default" for origin in config.origins.values())


@pytest.mark.parametrize("key", keys())
def test_the_reference_file_tells_unit_and_range(key: str) -> None:
    comment, _ = reference_lines()[key]
    unit = keys()[key].metadata.get("unit") or UNITS.get(key.rpartition("_")[2])
    unit = {"s": "seconds", "h": "hours"}.get(unit, unit)
    accepts = keys()[key].metadata["accepts"]
    assert comment.endswith(f"[{unit}, {accepts}]" if unit else f"[{accepts}]")


@pytest.mark.parametrize("key", keys())
def test_every_default_is_in_its_own_range(key: str) -> None:
    value: Any = value_of(Config(), key)
    assert keys()[key].metadata["holds"](value)
    assert key.partition(".")[0] in (*SECTIONS, "config_version")


def other_value(key: str) -> Any:
    """A value of the key's range that is not its default."""
    default, accepts = value_of(Config(), key), keys()[key].metadata["accepts"]
    if isinstance(default, bool):
        return not default
    if isinstance(default, (int, float)):
        steps = (default + 1, default - 1, default * 2, default * 0.99, default / 2)
        return next(
            value for value in steps if value != default and keys()[key].metadata["holds"](value)
        )
    if isinstance(default, tuple):
        samples = {"host:port": "a:1", "kminion": "kminion", "origins": "*"}
        return [
            next((each for word, each in samples.items() if word in accepts), "NO_RULE_MATCHED")
        ]
    if isinstance(default, Mapping):
        return {"spark.x": "1"}
    words = (
        "https://id.example/token",
        "https://id.example/",
        "127.0.0.2:1",
        *re.split(r", | or ", accepts),
        "other",
    )
    return next(word for word in words if word != default and keys()[key].metadata["holds"](word))


LONELY = [
    key for key in keys() if not key.startswith("cluster.security.") and key != "config_version"
]
LOGINS = (  # keys that belong together
    {
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-512",
        "username": "2024",
        "password_file": "/p",
        "ca_file": "/ca",
        "cert_file": "/c",
        "key_file": "/k",
        "key_password_file": "/kp",
        "verify_hostname": False,
        "min_tls": "1.3",
    },
    {
        "protocol": "SASL_SSL",
        "mechanism": "OAUTHBEARER",
        "oauth.token_url": "https://id.example/token",
        "oauth.client_id": "c",
        "oauth.client_secret_file": "/s",
        "oauth.scope": "kafka",
        "oauth.ca_file": "/ca",
    },
)


def written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = "{each}"' for name, each in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize(
    "values",
    [
        *({key: other_value(key)} for key in LONELY),
        *({f"cluster.security.{name}": value for name, value in login.items()} for login in LOGINS),
    ],
    ids=min,
)
def test_environment_and_set_reach_every_key(values: dict[str, Any]) -> None:
    if "job.tick_seconds" in values:
        values = values | {"job.window_seconds": 11 * 60}
    expected = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    environ = {
        f"LAGGARD_{key.upper().replace('.', '__')}": written(value) for key, value in values.items()
    }
    if "job.window_seconds" in values and "job.tick_seconds" not in values:
        environ["LAGGARD_JOB__TICK_SECONDS"] = "1"
    for config in (
        load(environ=environ),
        load(
            "", *(f"{name[8:].lower().replace('__', '.')}={text}" for name, text in environ.items())
        ),
    ):
        assert {key: value_of(config, key) for key in values} == expected


def test_every_key_is_among_those_that_are_set() -> None:
    tried = {
        *LONELY,
        "config_version",
        *(f"cluster.security.{name}" for login in LOGINS for name in login),
    }
    assert tried == set(keys())


SASL = '[cluster.security]\nprotocol = "SASL_SSL"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            SASL,
            (
                "laggard.toml:2: cluster.security.protocol: cluster.security.mechanism is needed "
                "for SASL_SSL"
            ),
        ),
        (
            f'{SASL}mechanism = "PLAIN"\npassword_file = "p"\n',
            "cluster.security.username is needed for PLAIN",
        ),
        (
            f'{SASL}mechanism = "SCRAM-SHA-256"\nusername = "a,b"\npassword_file = "p"\n',
            "neither comma nor equals",
        ),
        (
            f'{SASL}mechanism = "PLAIN"\nusername = "u"\npassword_file = "p"\npassword = "x"\n',
            "unknown key",
        ),
        (
            '[cluster.security]\nca_file = "c"\n',
            "laggard.toml:2: cluster.security.ca_file: has no use in PLAINTEXT",
        ),
        (
            '[cluster.security]\nprotocol = "SSL"\ncert_file = "c"\n',
            "cert_file and key_file belong together",
        ),
        (
            '[cluster.security]\nprotocol = "SSL"\nkey_password_file = "c"\n',
            "has no use without key_file",
        ),
        ('[cluster.security]\nprotocol = "SSL"\nusername = "u"\n', "has no use with no mechanism"),
        (
            '[cluster.security]\nprotocol = "SSL"\nmechanism = "PLAIN"\n',
            "mechanism: has no use in SSL",
        ),
        ("[cluster.security]\nmin_tls = 1.2\n", "expected string, got float 1.2"),
        (
            '[cluster.security.oauth]\nscope = "s"\n',
            "laggard.toml:2: cluster.security.oauth.scope: has no use with",
        ),
        ('[cluster]\nsecurity = "SSL"\n', "cluster.security: expected table, got"),
        ("[cluster.security]\nssl_crlfile = 'x'\n", "cluster.security.ssl_crlfile: unknown key"),
    ],
)
def test_keys_of_the_login_that_do_not_go_together_are_named(text: str, problem: str) -> None:
    found = problems(text)
    assert any(problem in each for each in found), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://id.example/token", True),
        ("http://127.0.0.1:8080/a?b=c", True),
        ("https://[::1]:443/", True),
        ("ftp://id.example", False),
        ("https://", False),
        ("https://user@id.example/", False),
        ("https://user:pass@id.example/", False),
        ("https://@id.example/", False),
        ("https://id.example:99999/", False),
        ("https://id.example:x/", False),
        ("http://[::1", False),
        ("https://id.example/#part", False),
        ("https://id example/", False),
        ("https://id.example/\n", False),
        ("id.example/token", False),
    ],
)
def test_urls(text: str, expected: bool) -> None:
    assert is_url(text) is expected
