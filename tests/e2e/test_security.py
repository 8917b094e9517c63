"""Every way to log in, live: job, poll, doctor and exporter; what is wrong with it; exchanged secrets; exact rights."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import QUICK_JVM, at, commit_simply, now, produce, wait_until
from e2e.secured import MODES, USER, Authority, Right, Secured, secured
from laggard.conf import conf_file
from laggard.config import load_config
from laggard.doctor.principal import principal_of
from laggard.errors import CONFIGURATION, DENIED
from laggard.sources.poll import Poller, PollOptions
from patience import patient
from test_readme import rights_in

pytestmark = [pytest.mark.broker, pytest.mark.e2e, pytest.mark.slow, pytest.mark.full]

PASSWORDS = {
    "plain": 'pl"a\\in-CANARY-1',
    "scram": "scram CANARY-2 $x",
    "key": "key-CANARY-3",
    "client": "client-CANARY-4",
}
CANARY = re.compile(rb"CANARY-\d|Q0FOQVJZ|eyJhbGciOi")  # plain, in base64, and the begin of a token
OFFSETS_TOPIC = "__consumer_offsets"
RIGHTS: dict[str, tuple[Right, ...]] = {  # the rows of the README
    f"topic `{OFFSETS_TOPIC}`": (
        ("TOPIC", OFFSETS_TOPIC, "DESCRIBE", "LITERAL"),
        ("TOPIC", OFFSETS_TOPIC, "READ", "LITERAL"),
    ),
    "topics to watch": (("TOPIC", "*", "DESCRIBE", "LITERAL"),),
    "topics to watch, cluster": (),
    "groups (or cluster)": (("GROUP", "*", "DESCRIBE", "LITERAL"),),
    "groups prefixed `spark-kafka-source-`": (("GROUP", "spark-kafka-source-", "DESCRIBE", "PREFIXED"),),
}
ALL_RIGHTS = tuple(right for row in rights_in("SECURITY.md") for right in RIGHTS[row[0]])
PRINCIPALS = (f"User:{USER}", f"User:CN={USER},O=Lag\\, Inc.", "User:ANONYMOUS")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured"), PASSWORDS) as found:
        with closing(KafkaAdminClient(bootstrap_servers=found.admin)) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
        produce(found.admin, {at("orders", 0): 10, at("orders", 1): 10})
        commit_simply(found.admin, "g", {at("orders", 0): 7, at("orders", 1): 0})
        for principal in PRINCIPALS:
            found.grant(principal, *ALL_RIGHTS)
        yield found


@dataclass
class Client:
    """Commands of one configuration, and all that they wrote."""

    folder: Path
    settings: Mapping[str, str]
    is_loud: bool = False
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "events").mkdir()
        loud = self.folder / "log4j2.properties"
        quiet = conf_file("log4j2.properties").read_text(encoding="utf-8")
        quiet = (
            re.sub(r"(?m)^.*\.burst\..*\n", "", quiet)
            .replace("%.-500m", "%m")
            .replace("rootLogger.level = warn", "rootLogger.level = info")
        )
        loud.write_text(re.sub(r"(logger\.kafka(conf)?\.level = ).*", r"\1debug", quiet))
        jvm = QUICK_JVM.partition(" -Dlog4j2")[0] + f" -Dlog4j2.configurationFile={loud.as_uri()}"
        spark = {
            "spark.driver.extraJavaOptions": jvm if self.is_loud else QUICK_JVM,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",  # to be searched
            "spark.eventLog.dir": (self.folder / "events").as_uri(),
        }
        self.values = {
            **{f"cluster.{name}": json.dumps(value) for name, value in self.settings.items()},
            "cluster.bootstrap_servers": json.dumps([self.settings["bootstrap_servers"]]),
            "cluster.metadata_seconds": "1",
            "job.tables": json.dumps(str(self.folder / "tables")),
            "job.checkpoint": json.dumps(str(self.folder / "checkpoint")),
            "job.master": '"local[1]"',
            "job.tick_seconds": "2",
            "job.window_seconds": "10",
            "job.spark": "{" + ", ".join(f'"{name}" = "{value}"' for name, value in spark.items()) + "}",
            "exporter.max_age_seconds": "86400",
        }
        self.config.write_text("".join(f"{name} = {value}\n" for name, value in self.values.items()))

    @property
    def config(self) -> Path:
        return self.folder / "laggard.toml"

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and output; a refusal must come within 10 s, everything else within minutes."""
        loud = ["-v"] if self.is_loud else []
        command = [sys.executable, "-m", "laggard", *loud, *words, "--config", str(self.config)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=patient(120),
            check=False,
            cwd=self.folder,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        )
        self.written.append(f"{words}\n{done.stdout}{done.stderr}")
        return done.returncode, done.stdout + done.stderr

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """All output, all files, and the rows of the tables, whose files are compressed."""
        yield from ((text.partition("\n")[0], text.encode()) for text in self.written)
        for path in self.folder.rglob("*"):
            if path.is_file():
                yield str(path), path.read_bytes()
        for log in self.folder.glob("tables/*/_delta_log"):
            yield str(log.parent), repr(DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist()).encode()

    def canaries(self) -> list[str]:
        """Places that hold a secret."""
        return [place for place, content in self.everything() if CANARY.search(content)]


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
    doctor = json.loads(client.run("doctor", "--json")[1].partition("\n")[0].partition("Picked")[0] or "{}")
    client.run("config", "show", "--json")
    config = load_config(str(client.config), (), {})
    servers = config.cluster.bootstrap_servers
    with closing(Poller(PollOptions(servers, security=config.cluster.security))) as poller:
        poll = poller.poll(1).positions["log_end_offset"].to_pylist()
    return Seen(job, scrape, doctor.get("data", []), poll, client.canaries())


@pytest.fixture(scope="module")
def seen(cluster: Secured, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    folder = tmp_path_factory.mktemp("modes")
    with ThreadPoolExecutor(2) as pool:  # most of a start is one thread's work
        return dict(zip(MODES, pool.map(lambda mode: try_mode(cluster, folder, mode), MODES), strict=True))


@pytest.mark.spark
@pytest.mark.parametrize("mode", MODES)
def test_job_poll_doctor_and_exporter_work_in_every_mode(seen: dict[str, Seen], mode: str) -> None:
    found = seen[mode]
    assert found.job[0] == 0, found.job[1][-3000:]
    assert found.poll == [10, 10]
    assert re.search(r'laggard_group_lag_records\{[^}]*group="g"[^}]*\} 13\.0', found.scrape), found.scrape[-3000:]
    lines = {line["check"]: line for line in found.doctor}
    rights = (f"Read {OFFSETS_TOPIC}", "Describe groups spark-kafka-source-*", "Describe topics", "Describe groups")
    for check in ("brokers", "offsets topic", *rights):
        assert lines[check]["level"] == "ok", lines[check]
    if mode == "SASL_PLAINTEXT":
        assert "SASL_PLAINTEXT: the password" in found.job[1]


@pytest.mark.spark
@pytest.mark.parametrize("mode", MODES)
def test_no_secret_is_anywhere_though_everything_is_logged(seen: dict[str, Seen], mode: str) -> None:
    assert seen[mode].canaries == []
    if mode not in ("PLAINTEXT", "SSL"):  # else nothing would have been found anyway
        key = "ssl.keystore.key" if mode == "mTLS" else "sasl.jaas.config"
        assert f"{key} = [hidden]" in seen[mode].job[1]


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
def test_a_wrong_login_is_named_within_ten_seconds_with_exit_77(cluster: Secured, tmp_path: Path, name: str) -> None:
    mode, expected = WRONG[name]
    settings = cluster.settings(mode)
    if "password" in name or "secret" in name:
        key = "security.oauth.client_secret_file" if mode == "OAUTHBEARER" else "security.password_file"
        settings[key] = str(cluster.secret(f"wrong-{mode}", "wrong-CANARY-9"))
    elif name == "no certificate of ours":
        for key in ("cert_file", "key_file", "key_password_file"):
            del settings[f"security.{key}"]
    elif name == "wrong authority":
        settings["security.ca_file"] = str(Authority(tmp_path / "other").ca)
    elif name.startswith("mechanism"):
        settings["security.mechanism"] = "SCRAM-SHA-512"
    else:
        settings["bootstrap_servers"] = cluster.addresses["EXPIRED" if "expired" in name else "OTHERNAME"]
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


def test_a_secret_file_that_others_may_read_ends_the_start_with_78(cluster: Secured, tmp_path: Path) -> None:
    settings = cluster.settings("PLAIN")
    path = cluster.secret("readable", PASSWORDS["plain"])
    path.chmod(0o640)
    client = Client(tmp_path / "client", settings | {"security.password_file": str(path)})
    code, output = client.run("run")
    assert (code, "its group may get at it (mode 0640)" in output) == (CONFIGURATION, True), output
    assert client.canaries() == []


class Watched:
    """A running job, and the marks of its newest tick."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.log = client.folder / "job.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "laggard", "run", "--config", str(client.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=client.folder,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            )

    def lag(self) -> list[Any]:
        """Lag of each partition in the newest published rows, None where it is unknown."""
        from laggard.tables.readers import TableMissing, newest_batch, read_table

        assert self.process.poll() is None, self.log.read_text()[-3000:]
        root = str(self.client.folder / "tables")
        try:
            batch = newest_batch(root)
        except TableMissing:
            return []
        if batch is None:
            return []
        rows = read_table(root, "partition_status", batch.table_versions["partition_status"]).to_pylist()
        return [row["lag"] for row in sorted(rows, key=lambda row: row["partition"]) if row["group"] == "rotated"]

    def says(self) -> str:
        return f"{self.lag()}\n{self.log.read_text()[-3000:]}"

    def await_line(self, *texts: str) -> None:
        wait_until(lambda: any(text in self.log.read_text() for text in texts), 60, texts[0], self.says)

    def await_lag(self, expected: list[Any], limit: float = 60) -> float:
        started = now()
        wait_until(
            lambda: self.lag() == expected,
            limit,
            f"lag {expected}",
            lambda: f"{self.lag()}\n{self.log.read_text()[-3000:]}",
        )
        return (now() - started).total_seconds()


@pytest.mark.spark
def test_an_exchanged_password_and_a_right_taken_away_need_nobody(cluster: Secured, tmp_path: Path) -> None:
    user, orders = "rotated", (at("orders", 0), at("orders", 1))
    cluster.set_scram("first-CANARY-5", user)
    cluster.grant(f"User:{user}", *ALL_RIGHTS)
    file = cluster.secret("rotated", "first-CANARY-5")
    settings = cluster.settings("SCRAM-SHA-256") | {"security.username": user, "security.password_file": str(file)}
    commit_simply(cluster.admin, "rotated", {orders[0]: 1, orders[1]: 1})
    job = Watched(Client(tmp_path / "client", settings))
    try:
        job.await_lag([9, 9], 90)
        cluster.set_scram("second-CANARY-6", user)
        job.await_line("a broker refuses the login")
        file.write_text("second-CANARY-6\n")
        commit_simply(cluster.admin, "rotated", {orders[0]: 2, orders[1]: 2})
        job.await_lag([8, 8])

        read = ("TOPIC", OFFSETS_TOPIC, "READ", "LITERAL")
        cluster.revoke(f"User:{user}", read)
        commit_simply(cluster.admin, "rotated", {orders[0]: 3, orders[1]: 3})  # without records nothing is read
        job.await_line("a broker denied the job's principal")
        cluster.grant(f"User:{user}", read)
        job.await_lag([7, 7])
        job.process.send_signal(signal.SIGTERM)
        assert job.process.wait(patient(20)) == 0
    finally:
        job.process.kill()
        job.process.wait()
    assert job.client.canaries() == []


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
    watched = [("TOPIC", "orders", *right[2:]) if right[:2] == ("TOPIC", "*") else right for right in kept]
    cluster.grant(f"User:{user}", *watched)
    settings = cluster.settings("SCRAM-SHA-512") | {"security.username": user}
    settings["security.password_file"] = str(cluster.secret(user, "pw"))
    client = Client(folder / user, settings)
    code, output = client.run("run", "--once")
    doctor = {line["check"]: line for line in json.loads(client.run("doctor", "--json")[1])["data"]}
    if code:
        return Lacking(code, output, doctor, set(), set())
    partitions = DeltaTable(str(folder / user / "tables" / "partition_status")).to_pyarrow_table().to_pylist()
    groups = DeltaTable(str(folder / user / "tables" / "group_status")).to_pyarrow_table().to_pylist()
    return Lacking(code, output, doctor, {row["status"] for row in partitions}, {row["group_state"] for row in groups})


@pytest.fixture(scope="module")
def lacking(cluster: Secured, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Right, ...], Lacking]:
    folder = tmp_path_factory.mktemp("lacking")
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda each: try_without(cluster, folder, *each), enumerate(MISSING))
        return dict(zip(MISSING, found, strict=True))


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


def test_the_principal_of_a_certificate_is_the_brokers_own_word_for_it(cluster: Secured, tmp_path: Path) -> None:
    client = Client(tmp_path / "client", cluster.settings("mTLS"))
    assert principal_of(load_config(str(client.config), (), {}).cluster.security) == PRINCIPALS[1]
