"""Executors on other machines, which read the files of the login for themselves, or name the one
that is missing.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from e2e.secured import Secured
from e2e.secured_client import CANARY, Client, watched_cluster
from e2e.standalone import OWN_MOUNTS, WORKERS, Cluster, standalone_cluster
from laggard.config import load_config
from laggard.errors import DENIED, LaggardError
from laggard.sources.login.spark_security import spark_options
from laggard.sources.offsets_topic import OffsetsSource, begin_positions, next_positions
from laggard.sources.poll import Poller, PollOptions
from laggard.stream.job.session import start_session

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.nightly,
]
HERE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.cores.max": str(WORKERS),
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # else one executor could have all tasks
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if subprocess.run([*OWN_MOUNTS, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not give a process its own mounts")
    with watched_cluster(tmp_path_factory.mktemp("secured")) as found:
        yield found


def source_of(cluster: Secured, folder: Path, mode: str) -> OffsetsSource:
    """The source in one mode; executors would take a line break at the end of a password for a part
    of it.
    """
    client = Client(folder / mode, cluster.settings(mode))
    for file in (cluster.folder / "secrets").iterdir():
        file.write_text(file.read_text().rstrip("\n"))
    return OffsetsSource.of(load_config(str(client.config), (), {}).cluster)


def count(spark: SparkSession, source: OffsetsSource) -> int:
    with closing(Poller(PollOptions(source.bootstrap_servers, security=source.security))) as poller:
        snapshot = poller.poll(1)
    ends = next_positions({}, snapshot.offsets_partitions, 1000)
    begins = begin_positions({}, ends, snapshot.offsets_partitions)
    return source.read(spark, begins, ends, snapshot).dropna(subset=["offset"]).count()


def test_each_node_reads_its_own_files_and_one_that_lacks_a_file_is_named(
    cluster: Secured, tmp_path: Path
) -> None:
    modes = ("OAUTHBEARER", "SCRAM-SHA-512", "mTLS")
    sources = {mode: source_of(cluster, tmp_path, mode) for mode in modes}
    owns = [
        Path(shutil.copytree(cluster.folder, tmp_path / f"worker-{number}.own"))
        for number in range(WORKERS)
    ]
    with standalone_cluster(tmp_path, Path(sys.executable), cluster.folder) as workers:
        spark = start_session(workers.url, HERE, sources["OAUTHBEARER"].security)
        try:
            assert all(count(spark, sources[mode]) >= 2 for mode in modes)
            say_which_is_missing(spark, cluster, sources["SCRAM-SHA-512"], owns[1])
        finally:
            spark.stop()
        assert are_without_secrets(workers)


def say_which_is_missing(
    spark: SparkSession, cluster: Secured, source: OffsetsSource, own: Path
) -> None:
    """Exchange the password here and on one node only, while another one has none."""
    cluster.set_scram("other-CANARY-5")
    path = cluster.secret("scram", "other-CANARY-5")
    path.write_text("other-CANARY-5")
    missing = own / "secrets" / "scram"
    missing.unlink()
    with pytest.raises(LaggardError) as caught:
        count(spark, source)
    assert (caught.value.what, caught.value.exit_code) == (
        f"cannot use the secret file {path}",
        DENIED,
    )
    assert "password_file: No such file or directory, on the node" in caught.value.cause
    for number in range(WORKERS):
        shutil.copy(path, own.with_name(f"worker-{number}.own") / "secrets")
    assert count(spark, source) >= 2


def are_without_secrets(workers: Cluster) -> bool:
    return not any(CANARY.search(log.encode()) for log in workers.executor_logs())


def test_a_password_that_executors_elsewhere_cannot_quote_is_refused(
    cluster: Secured, tmp_path: Path
) -> None:
    with pytest.raises(LaggardError, match="executors on other machines") as caught:
        spark_options(source_of(cluster, tmp_path, "PLAIN").security, is_local=False)
    assert "a quote or a backslash" in caught.value.cause
