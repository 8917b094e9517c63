"""A secured cluster with something to watch, and laggard as one of its clients."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import QUICK_JVM, at, commit_simply, now, produce, wait_until
from e2e.secured import USER, Right, Secured, secured
from laggard.conf import conf_file
from laggard.tables.published import newest_batch
from laggard.tables.readers import TableMissing, read_table
from patience import patient
from test_readme import rights_in

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
    "groups prefixed `spark-kafka-source-`": (
        ("GROUP", "spark-kafka-source-", "DESCRIBE", "PREFIXED"),
    ),
}
ALL_RIGHTS = tuple(right for row in rights_in("SECURITY.md") for right in RIGHTS[row[0]])
PRINCIPALS = (f"User:{USER}", f"User:CN={USER},O=Lag\\, Inc.", "User:ANONYMOUS")


@contextmanager
def watched_cluster(folder: Path) -> Iterator[Secured]:
    """Two partitions of ten records, one group, and the rights of the README for each principal."""
    with secured(folder, dict(PASSWORDS)) as found:
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
            "job.tables": json.dumps(str(self.folder / "tables")),
            "job.checkpoint": json.dumps(str(self.folder / "checkpoint")),
            "job.master": '"local[1]"',
            "job.tick_seconds": "2",
            "job.window_seconds": "10",
            "job.spark": "{"
            + ", ".join(f'"{name}" = "{value}"' for name, value in spark.items())
            + "}",
            "exporter.max_age_seconds": "86400",
        }
        self.config.write_text(
            "".join(f"{name} = {value}\n" for name, value in self.values.items())
        )

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
            yield (
                str(log.parent),
                repr(DeltaTable(str(log.parent)).to_pyarrow_table().to_pylist()).encode(),
            )

    def canaries(self) -> list[str]:
        """Places that hold a secret."""
        return [place for place, content in self.everything() if CANARY.search(content)]


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
        """Lag of each partition in the newest published rows, None if it is unknown."""
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        root = str(self.client.folder / "tables")
        try:
            batch = newest_batch(root)
        except TableMissing:
            return []
        if batch is None:
            return []
        rows = read_table(
            root, "partition_status", batch.table_versions["partition_status"]
        ).to_pylist()
        return [
            row["lag"]
            for row in sorted(rows, key=lambda row: row["partition"])
            if row["group"] == "rotated"
        ]

    def says(self) -> str:
        return f"{self.lag()}\n{self.log.read_text()[-3000:]}"

    def await_line(self, *texts: str) -> None:
        wait_until(
            lambda: any(text in self.log.read_text() for text in texts), 60, texts[0], self.says
        )

    def await_lag(self, expected: list[Any], limit: float = 60) -> float:
        started = now()
        wait_until(
            lambda: self.lag() == expected,
            limit,
            f"lag {expected}",
            lambda: f"{self.lag()}\n{self.log.read_text()[-3000:]}",
        )
        return (now() - started).total_seconds()
