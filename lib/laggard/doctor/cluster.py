"""The brokers, the offsets topic, and whether our position in it can still be read."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laggard.doctor.result import Result
from laggard.errors import TEMPORARY, LaggardError
from laggard.sources.brokers import EARLIEST, LATEST, READ_COMMITTED, Brokers, error_name
from laggard.sources.offsets_topic import check_resolved, positions_of, read_offsets_topic
from laggard.stream import files
from laggard.stream.identity import identity_path
from laggard.tables.readers import TableMissing, newest_batch

if TYPE_CHECKING:
    from laggard.config import Config

TRIAL_SECONDS = 120
_MOST_NAMED = 5


@dataclass(frozen=True)
class Cluster:
    """The brokers of a configuration, asked anew by each check."""

    config: Config
    brokers: Brokers

    def check_reach(self) -> Iterable[Result]:
        """Brokers answer, and they are the ones the checkpoint was made with."""
        answer = self.brokers.metadata([])
        cluster_id = answer.get("cluster_id") or ""
        yield Result("ok", "brokers", f"cluster {cluster_id or 'without an id'}, {len(answer['brokers'])} brokers")
        path = identity_path(self.config.job.checkpoint)
        if not files.exists(path):
            return
        stored = json.loads(files.read_text(path)).get("cluster_id")
        if stored == cluster_id:
            yield Result("ok", "cluster id", f"the one in {path}")
        else:
            remedy = "point cluster.bootstrap_servers at that cluster, or set another job.tables and job.checkpoint"
            yield Result("fail", "cluster id", f"{cluster_id}, but {path} says {stored}", remedy)

    def check_source(self) -> Iterable[Result]:
        """The offsets topic, its log start against our position, and open transactions."""
        name = self.config.cluster.offsets_topic
        topic = self.brokers.metadata([name])["topics"][0]
        problem = error_name(topic["error_code"])
        if problem is not None:
            remedy = "Kafka creates it with the first commit of a group; or allow Describe and Read on it"
            yield Result("fail", "offsets topic", f"{name}: {problem}", remedy)
            return
        yield Result("ok", "offsets topic", f"{name} has {len(topic['partitions'])} partitions")
        by_leader: dict[int, list[tuple[str, int]]] = {}
        for part in topic["partitions"]:
            by_leader.setdefault(part["leader_id"], []).append((name, part["partition_index"]))
        leaderless = by_leader.pop(-1, [])
        if leaderless:
            fact = f"no leader for partitions {_some(part for _, part in leaderless)}"
            yield Result("fail", "offsets topic leaders", fact, "start the brokers that hold them")
        stable = _offsets(self.brokers.list_offsets(by_leader, LATEST, READ_COMMITTED))
        high = _offsets(self.brokers.list_offsets(by_leader, LATEST))
        yield judge_transactions(high, stable)
        starts = _offsets(self.brokers.list_offsets(by_leader, EARLIEST))
        try:
            batch = newest_batch(self.config.job.tables)
        except TableMissing:
            return
        if batch is not None:
            yield judge_position(starts, batch.values["source_to"] or {})

    def check_trial(self) -> Iterable[Result]:
        """One batch of Spark's source must resolve every partition."""
        from laggard.stream.session import start_session

        cluster = self.config.cluster
        partitions = len(self.brokers.metadata([cluster.offsets_topic])["topics"][0]["partitions"])
        spark = start_session(self.config.job.master, self.config.job.spark)
        with tempfile.TemporaryDirectory() as folder:
            frame = read_offsets_topic(spark, cluster.bootstrap_servers, cluster.offsets_topic, partitions, 1000)
            query = frame.writeStream.format("noop").option("checkpointLocation", folder).start()
            try:
                resolved = _first_positions(Path(folder, "offsets", "0"), cluster.offsets_topic)
            finally:
                query.stop()
                spark.stop()
        check_resolved(resolved, partitions, cluster.offsets_topic)
        yield Result("ok", "trial query", f"Spark reads all {partitions} partitions")


def judge_transactions(high: Mapping[int, int], stable: Mapping[int, int]) -> Result:
    """Open transactions freeze the groups of their offsets partition."""
    behind = {part: high[part] - stable[part] for part in high.keys() & stable.keys() if high[part] > stable[part]}
    if not behind:
        return Result("ok", "open transactions", "the last stable offset is the high watermark everywhere")
    fact = "records behind open transactions: " + _some(f"{part}: {number}" for part, number in sorted(behind.items()))
    remedy = "ask again; if they stay: kafka-transactions.sh find-hanging, then abort"
    return Result("warn", "open transactions", fact, remedy)


def judge_position(starts: Mapping[int, int], positions: Mapping[int, int]) -> Result:
    """Whether the records after the newest batch are all still there."""
    lost = sorted(part for part, position in positions.items() if starts.get(part, 0) > position)
    if not lost:
        return Result("ok", "position", "everything after the newest batch can still be read")
    fact = f"the log starts after our position in offsets partitions {_some(lost)}"
    return Result("warn", "position", fact, "start the job: it writes gap rows for what was removed")


def _offsets(answers: Mapping[tuple[str, int], Any]) -> dict[int, int]:
    return {part: answer.offset for (_, part), answer in answers.items() if answer.offset is not None}


def _some(values: Iterable[Any]) -> str:
    shown = [str(value) for value in values]
    return ", ".join(shown[:_MOST_NAMED]) + (" …" if len(shown) > _MOST_NAMED else "")


def _first_positions(wal: Path, topic: str) -> dict[int, int]:
    deadline = time.monotonic() + TRIAL_SECONDS
    while time.monotonic() < deadline:
        if wal.exists():
            return positions_of(wal.read_text(encoding="utf-8"), topic)
        time.sleep(0.2)
    raise LaggardError(
        "the trial query made no batch",
        cause=f"{TRIAL_SECONDS} s have passed",
        fix="check the brokers' load",
        exit_code=TEMPORARY,
    )
