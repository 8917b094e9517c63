"""Every way to log in, live: job, poll, doctor and exporter; each wrong login named; the exact
rights.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from authority import Authority
from e2e.kit import now
from e2e.secured import MODES, Right, Secured
from e2e.secured_client import (
    ALL_RIGHTS,
    CANARY,
    OFFSETS_TOPIC,
    PASSWORDS,
    PRINCIPALS,
    RIGHTS,
    Client,
    watched_cluster,
)
from laggard.config import load_config
from laggard.config.security import Security
from laggard.doctor.principal import principal_of
from laggard.errors import CONFIGURATION, DENIED, LaggardError
from laggard.sources.brokers import Brokers
from laggard.sources.poll import Poller, PollOptions
from patience import patient

pytestmark = [pytest.mark.broker, pytest.mark.e2e, pytest.mark.full]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with watched_cluster(tmp_path_factory.mktemp("secured")) as found:
        yield found


@dataclass(frozen=True)
class Seen:
    """One mode, from the brokers to the metrics."""

    job: tuple[int, str]
    scrape: str
    doctor: list[dict[str, str]]
    poll: list[Any]
    canaries: list[str]


def try_mode(cluster: Secured, folder: Path, mode: str) -> Seen:
    client = Client(folder / mode, cluster.settings(mode), is_loud=True)
    job = client.run("run", "--once")
    scrape = client.run("export", "--print")[1]
    doctor = json.loads(
        client.run("doctor", "--json")[1].partition("\n")[0].partition("Picked")[0] or "{}"
    )
    client.run("config", "show", "--json")
    config = load_config(str(client.config), (), {})
    servers = config.cluster.bootstrap_servers
    with closing(Poller(PollOptions(servers, security=config.cluster.security))) as poller:
        poll = poller.poll(1).positions["log_end_offset"].to_pylist()
    return Seen(job, scrape, doctor.get("data", []), poll, client.canaries())


@pytest.fixture(scope="module")
def see(cluster: Secured, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    folder = tmp_path_factory.mktemp("modes")
    return cache(lambda mode: try_mode(cluster, folder, mode))


# a certificate and a password with TLS in CI, all others at night
SOON = ("mTLS", "SCRAM-SHA-512")
EACH_MODE = pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=[] if mode in SOON else pytest.mark.nightly) for mode in MODES],
)


@pytest.mark.spark
@EACH_MODE
def test_job_poll_doctor_and_exporter_work_in_every_mode(
    see: Callable[[str], Seen], mode: str
) -> None:
    found = see(mode)
    assert found.job[0] == 0, found.job[1][-3000:]
    assert found.poll == [10, 10]
    assert re.search(r'laggard_group_lag_records\{[^}]*group="g"[^}]*\} 13\.0', found.scrape), (
        found.scrape[-3000:]
    )
    lines = {line["check"]: line for line in found.doctor}
    rights = (
        f"Read {OFFSETS_TOPIC}",
        "Describe groups spark-kafka-source-*",
        "Describe topics",
        "Describe groups",
    )
    for check in ("brokers", "offsets topic", *rights):
        assert lines[check]["level"] == "ok", lines[check]
    if mode == "SASL_PLAINTEXT":
        assert "SASL_PLAINTEXT: the password" in found.job[1]


@pytest.mark.spark
@EACH_MODE
def test_no_secret_is_anywhere_though_everything_is_logged(
    see: Callable[[str], Seen], mode: str
) -> None:
    assert see(mode).canaries == []
    if mode not in ("PLAINTEXT", "SSL"):  # else nothing would have been found anyway
        key = "ssl.keystore.key" if mode == "mTLS" else "sasl.jaas.config"
        assert f"{key} = [hidden]" in see(mode).job[1]


WRONG = {
    "wrong plain password": ("PLAIN", "a broker refuses the login"),
    "wrong SCRAM-SHA-256 password": ("SCRAM-SHA-256", "a broker refuses the login"),
    "wrong SCRAM-SHA-512 password": ("SCRAM-SHA-512", "a broker refuses the login"),
    "wrong password without TLS": ("SASL_PLAINTEXT", "a broker refuses the login"),
    "wrong client secret": ("OAUTHBEARER", "no token from"),
    "no certificate of ours": ("mTLS", "a broker refuses the TLS connection"),
    "expired certificate": ("SSL", "certificate has expired"),
    "wrong authority": ("SSL", "a broker's certificate is refused"),
    "wrong host name": ("SSL", "a broker's certificate is refused"),
    "mechanism that the broker does not know": ("SASL_PLAINTEXT", "a broker refuses the login"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_login_is_named_within_ten_seconds_with_exit_77(
    cluster: Secured, tmp_path: Path, name: str
) -> None:
    mode, expected = WRONG[name]
    settings = cluster.settings(mode)
    if "password" in name or "secret" in name:
        key = (
            "security.oauth.client_secret_file"
            if mode == "OAUTHBEARER"
            else "security.password_file"
        )
        settings[key] = str(cluster.secret(f"wrong-{mode}", "wrong-CANARY-9"))
    elif name == "no certificate of ours":
        for key in ("cert_file", "key_file", "key_password_file"):
            del settings[f"security.{key}"]
    elif name == "wrong authority":
        settings["security.ca_file"] = str(Authority(tmp_path / "other").ca)
    elif name.startswith("mechanism"):
        settings["security.mechanism"] = "SCRAM-SHA-512"
    else:
        settings["bootstrap_servers"] = cluster.addresses[
            "EXPIRED" if "expired" in name else "OTHERNAME"
        ]
    client = Client(tmp_path / "client", settings, is_loud=True)
    started = now()
    code, output = client.run("run")
    assert (now() - started).total_seconds() < patient(10)
    assert (code, expected in output) == (DENIED, True), output
    assert re.search(r"(?m)^laggard: .+\ncause: .+\nfix: .+$", output), output
    doctor_code, report = client.run("doctor", "--json")
    assert doctor_code == 2
    assert expected in report, report
    assert client.canaries() == []
    assert [*(client.folder / "tables").glob("*/_delta_log")] == []


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["PLAIN", "SASL_PLAINTEXT"])
def test_every_refusal_is_seen_although_the_broker_closes_right_behind_it(
    cluster: Secured, mode: str
) -> None:
    settings = cluster.settings(mode)
    if mode == "SASL_PLAINTEXT":
        settings["security.mechanism"] = "SCRAM-SHA-512"
    else:
        settings["security.password_file"] = str(cluster.secret("refused", "wrong-CANARY-9"))
    security = Security(
        **{key.removeprefix("security."): settings[key] for key in settings if "security." in key}
    )

    for _ in range(20):  # kafka-python alone sees one of fourteen
        brokers = Brokers([settings["bootstrap_servers"]], patient(10), security)
        brokers.begin()
        with closing(brokers), pytest.raises(LaggardError, match="a broker refuses the login"):
            brokers.metadata([])
        assert brokers.failures.total() == 1


def test_a_secret_file_that_others_may_read_ends_the_start_with_78(
    cluster: Secured, tmp_path: Path
) -> None:
    settings = cluster.settings("PLAIN")
    path = cluster.secret("readable", PASSWORDS["plain"])
    path.chmod(0o640)
    client = Client(tmp_path / "client", settings | {"security.password_file": str(path)})
    code, output = client.run("run")
    assert (code, "its group may get at it (mode 0640)" in output) == (CONFIGURATION, True), output
    assert client.canaries() == []


MISSING = {  # right -> what the job says or shows, and the line of the doctor
    RIGHTS[f"topic `{OFFSETS_TOPIC}`"]: (f"cannot read {OFFSETS_TOPIC}", "offsets topic"),
    RIGHTS[f"topic `{OFFSETS_TOPIC}`"][1:]: (
        f"Not authorized to access topics: [{OFFSETS_TOPIC}]",
        f"Read {OFFSETS_TOPIC}",
    ),
    RIGHTS["groups prefixed `spark-kafka-source-`"] + RIGHTS["groups (or cluster)"]: (
        "Not authorized to access group: spark-kafka-source-",
        "Describe groups spark-kafka-source-*",
    ),
    RIGHTS["topics to watch"]: ("", "Describe topics"),
    RIGHTS["groups (or cluster)"]: ("", "Describe groups"),
}


@dataclass(frozen=True)
class Lacking:
    code: int
    output: str
    doctor: dict[str, dict[str, str]]
    statuses: set[str]
    states: set[str | None]


def try_without(cluster: Secured, folder: Path, number: int, lacking: tuple[Right, ...]) -> Lacking:
    user = f"lacking-{number}"
    cluster.set_scram("pw", user)
    kept = [right for right in ALL_RIGHTS if right not in lacking]
    # with Describe on every topic nobody needs that on the offsets topic
    watched = [
        ("TOPIC", "orders", *right[2:]) if right[:2] == ("TOPIC", "*") else right for right in kept
    ]
    cluster.grant(f"User:{user}", *watched)
    settings = cluster.settings("SCRAM-SHA-512") | {"security.username": user}
    settings["security.password_file"] = str(cluster.secret(user, "pw"))
    client = Client(folder / user, settings)
    code, output = client.run("run", "--once")
    doctor = {line["check"]: line for line in json.loads(client.run("doctor", "--json")[1])["data"]}
    if code:
        return Lacking(code, output, doctor, set(), set())
    partitions = (
        DeltaTable(str(folder / user / "tables" / "partition_status"))
        .to_pyarrow_table()
        .to_pylist()
    )
    groups = (
        DeltaTable(str(folder / user / "tables" / "group_status")).to_pyarrow_table().to_pylist()
    )
    return Lacking(
        code,
        output,
        doctor,
        {row["status"] for row in partitions},
        {row["group_state"] for row in groups},
    )


@pytest.fixture(scope="module")
def lacking(
    cluster: Secured, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[Right, ...], Lacking]:
    folder = tmp_path_factory.mktemp("lacking")
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda each: try_without(cluster, folder, *each), enumerate(MISSING))
        return dict(zip(MISSING, found, strict=True))


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("right", MISSING, ids=lambda rights: "-".join(map(str, rights[-1][:3])))
def test_a_right_that_is_missing_is_named_by_job_and_doctor(
    lacking: dict[tuple[Right, ...], Lacking], right: tuple[Right, ...]
) -> None:
    found, (said, check) = lacking[right], MISSING[right]
    assert found.doctor[check]["level"] != "ok", found.doctor
    assert "kafka-acls.sh" in found.doctor[check]["remedy"]
    if said:
        assert (found.code, said in found.output) == (DENIED, True), found.output[-2000:]
    elif right == RIGHTS["topics to watch"]:
        assert (found.code, found.statuses) == (0, {"no_end_offset"})
    else:
        assert (found.code, found.states) == (0, {"Unknown"})


def test_the_principal_of_a_certificate_is_the_brokers_own_word_for_it(
    cluster: Secured, tmp_path: Path
) -> None:
    client = Client(tmp_path / "client", cluster.settings("mTLS"))
    assert principal_of(load_config(str(client.config), (), {}).cluster.security) == PRINCIPALS[1]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["SASL_PLAINTEXT", "OAUTHBEARER"])
def test_no_level_of_kafka_pythons_loggers_shows_a_secret(
    cluster: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("kafka."):
            caplog.set_level(logging.DEBUG, name)
    config = load_config(
        str(Client(tmp_path / mode, cluster.settings(mode)).config), (), {}
    ).cluster
    with closing(Poller(PollOptions(config.bootstrap_servers, security=config.security))) as poller:
        assert poller.poll(1).positions["log_end_offset"].to_pylist() == [10, 10]
    assert "kafka" in {record.name.partition(".")[0] for record in caplog.records}
    assert [
        record.name for record in caplog.records if CANARY.search(record.getMessage().encode())
    ] == []
