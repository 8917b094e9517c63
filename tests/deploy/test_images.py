"""The images, built as users build them and run with the rights they get: they read a real broker
and are scraped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import at, commit_simply, produce, wait_until
from laggard import __version__
from laggard.demo.broker import Broker
from patience import patient

ROOT = Path(__file__).parent.parent.parent
LAUNCHER = Path(__file__).with_name("container.py")
# with the authority of a proxy, where there is one
HOST_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
USER = "10001:10001"
VOLUME = "/var/lib/laggard"
# folders of a volume, and where each container has it; the exporter read-only
LAYOUTS = {
    "compose": (
        {"tables": f"{VOLUME}/tables", "state": f"{VOLUME}/state"},
        {"tables": f"{VOLUME}/tables"},
    ),
    "kubernetes": ({"one": VOLUME}, {"one": VOLUME}),
}
# with them Spark starts every JVM of its own: Arrow reads memory by classes that Java hides
OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util "
    "java.util.concurrent sun.nio.ch"
)
MODULE_OPTIONS = [
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED.split()),
    "-Dio.netty.tryReflectionSetAccessible=true",
]
pytestmark = [
    pytest.mark.full,
    pytest.mark.release,
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
]


def run(*command: str, limit: float) -> str:
    """What it printed; its whole log where it failed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=patient(limit),
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        pytest.fail(f"{' '.join(command)}: {done.returncode}\n{text[-4000:]}", pytrace=False)
    return text.strip()


@dataclass
class Store:
    """buildah's images in a folder of the test."""

    folder: Path

    @property
    def buildah(self) -> tuple[str, ...]:
        return (
            "buildah",
            "--root",
            str(self.folder / "root"),
            "--runroot",
            str(self.folder / "run"),
        )

    def make_base(self) -> str:
        """Debian 12 by debootstrap: the same packages as the official image,
        without its registry.
        """
        root = self.folder / "base"
        run("debootstrap", "--variant=minbase", "bookworm", str(root), limit=120)
        (root / "usr/local/share/ca-certificates").mkdir()
        shutil.copy(HOST_BUNDLE, root / "usr/local/share/ca-certificates/host.crt")
        shutil.rmtree(root / "var/cache/apt/archives")
        container = run(*self.buildah, "from", "scratch", limit=10)
        run(*self.buildah, "add", container, str(root), "/", limit=60)
        run(*self.buildah, "commit", "--disable-compression", "--rm", container, "base", limit=60)
        shutil.rmtree(root)
        return "localhost/base"

    def unpack(self, image: str) -> Path:
        """The image's files."""
        container = run(
            *self.buildah, "from", "--pull-never", f"localhost/{image}:{__version__}", limit=20
        )
        return Path(run(*self.buildah, "mount", container, limit=20))

    def says(self, image: str) -> dict[str, Any]:
        """The image's own command, environment and user."""
        text = run(
            *self.buildah,
            "inspect",
            "--type",
            "image",
            f"localhost/{image}:{__version__}",
            limit=20,
        )
        found: dict[str, Any] = json.loads(text)["OCIv1"]["config"]
        return found

    def remove(self) -> None:
        for words in (("rm", "--all"), ("rmi", "--all", "--force")):
            subprocess.run(
                [*self.buildah, *words], stdout=subprocess.DEVNULL, timeout=120, check=False
            )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The images, built by the command that users are given."""
    missing = [name for name in ("buildah", "debootstrap", "unshare") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"images are built and run by root with {', '.join(missing) or 'its rights'}: make "
            "tools"
        )
    store = Store(tmp_path_factory.mktemp("images"))
    try:
        base = store.make_base()
        options = f"--isolation chroot --network host --pull-never --build-arg BASE={base}"
        run(
            "make",
            "--jobs=2",
            "images",
            f"ENGINE={' '.join(store.buildah)}",
            f"ARGS={options}",
            limit=240,
        )
        yield store
    finally:
        store.remove()


class Container:
    """A running image: its own command, as its own user, on a read-only root."""

    def __init__(
        self,
        store: Store,
        image: str,
        folder: Path,
        environment: dict[str, str],
        volumes: dict[str, Any],
        *words: str,
    ) -> None:
        says = store.says(image)
        assert says["User"] == USER
        self.root = store.unpack(image)
        self.log = folder / f"{image}-{words[0] if words else ''}.log"
        self.environment = dict(each.split("=", 1) for each in says["Env"]) | environment
        self.entrypoint: list[str] = says["Entrypoint"]
        spec = {
            "root": str(self.root),
            "folder": says["WorkingDir"],
            "user": says["User"],
            "environment": self.environment,
            "command": [*self.entrypoint, *(words or says["Cmd"])],
            "volumes": volumes,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", sys.executable, str(LAUNCHER), json.dumps(spec)],
                stdout=log,
                stderr=log,
            )

    def probe(self, *words: str) -> tuple[int, str]:
        """Run a command beside it, as a probe does: exit code and what it said."""
        user, group = USER.split(":")
        inside = [
            "nsenter",
            f"--target={self.process.pid}",
            "--mount",
            "--root",
            f"--setuid={user}",
            f"--setgid={group}",
        ]
        done = subprocess.run(
            [*inside, *self.entrypoint, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patient(30),
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def status(self) -> dict[str, str]:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> int | None:
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patient(40))
        code = self.process.poll()
        self.process.kill()
        self.process.wait()
        return code


def scrape(port: int) -> str:
    """The metrics, or nothing yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def connects(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def megabytes(root: Path) -> int:
    return int(
        run(
            "du", "--one-file-system", "--summarize", "--block-size=1000000", str(root), limit=60
        ).split()[0]
    )


@pytest.mark.parametrize(
    ("image", "kinds"),
    [
        (
            "laggard",
            {
                "pkg:deb": "openjdk-17-jre-headless",
                "pkg:pypi": "pyspark",
                "pkg:maven": "kafka-clients",
            },
        ),
        ("laggard-exporter", {"pkg:deb": "libssl3", "pkg:pypi": "deltalake"}),
    ],
)
def test_an_image_lists_what_it_holds(store: Store, image: str, kinds: dict[str, str]) -> None:
    root = store.unpack(image)
    text = (root / "opt/laggard/sbom.cdx.json").read_text()
    components = json.loads(text)["components"]
    names: dict[str, set[str]] = {}
    for component in components:
        names.setdefault(component["purl"].split("/")[0], set()).add(component["name"])

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert names.keys() == kinds.keys()
    assert all(name in names[kind] for kind, name in kinds.items())
    jars = {hashlib.sha256(path.read_bytes()).hexdigest() for path in root.glob("opt/**/*.jar")}
    assert jars == {
        each["hashes"][0]["content"] for each in components if each["purl"].startswith("pkg:maven")
    }
    pins = (
        ROOT / "docker" / f"requirements-{'job' if image == 'laggard' else 'exporter'}.txt"
    ).read_text()
    pinned = {line.split("==")[0] for line in pins.splitlines() if "==" in line}
    assert pinned | {"laggard"} <= names["pkg:pypi"]
    assert [
        each["name"] for each in components if "pypi" in each["purl"] and "licenses" not in each
    ] == []


def watched(broker: Broker, topic: str, group: str) -> str:
    """Make a group with a lag of 7; gives its line in /metrics."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    produce(broker.bootstrap_servers, {at(topic, 0): 40})
    commit_simply(broker.bootstrap_servers, group, {at(topic, 0): 33})
    return f'laggard_group_lag_records{{cluster="default",group="{group}",topic="{topic}"}} 7.0'


def volumes(folder: Path, places: dict[str, str], *, read_only: bool = False) -> dict[str, Any]:
    """Mount folders of the test, which belong to the images' user."""
    for name in places:
        (folder / name).mkdir(exist_ok=True)
        os.chown(folder / name, 10001, 10001)
    return {inside: (str(folder / name), read_only) for name, inside in places.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_images_work_with_no_right_on_a_read_only_root(
    store: Store, broker: Broker, tmp_path: Path, layout: str
) -> None:
    expected = watched(broker, f"from-{layout}", f"image-{layout}")
    port = free_port()
    places, shown = LAYOUTS[layout]
    exporter = Container(
        store,
        "laggard-exporter",
        tmp_path,
        {"LAGGARD_JOB__TICK_SECONDS": "2"},
        volumes(tmp_path, shown, read_only=True),
        *("export", "--listen", f"127.0.0.1:{port}"),
    )
    job = Container(
        store,
        "laggard",
        tmp_path,
        {
            "LAGGARD_CLUSTER__BOOTSTRAP_SERVERS": f'["{broker.bootstrap_servers}"]',
            "LAGGARD_JOB__TICK_SECONDS": "2",
        },
        volumes(tmp_path, places),
    )
    try:

        def said() -> str:
            return f"{job.tail()}\n{exporter.tail()}\n{scrape(port)[-3000:]}"

        wait_until(
            lambda: expected in scrape(port) or job.process.poll() is not None, 150, expected, said
        )
        assert job.process.poll() is None, said()

        assert job.probe("run", "--check", "ready")[0] == 0
        assert exporter.probe("export", "--check", "--listen", f"127.0.0.1:{port}")[0] == 0
        for each in (job, exporter):
            status = each.status()
            assert (
                status["Uid"].split()[0],
                status["CapBnd"].strip("0"),
                status["NoNewPrivs"],
            ) == ("10001", "", "1")
        assert not list(exporter.root.rglob("sh")) + list(exporter.root.rglob("java"))
        sizes = {"job": megabytes(job.root), "exporter": megabytes(exporter.root)}
        print(f"sizes in MB: {sizes}")
        assert sizes["job"] < 1200
        assert sizes["exporter"] < 400
    finally:
        codes = (job.stop(), exporter.stop())
    assert codes == (0, 0), f"{job.tail()}\n{exporter.tail()}"


def test_the_image_for_spark_operators_is_a_driver_and_an_executor(
    store: Store, broker: Broker, tmp_path: Path
) -> None:
    """Spark gives a container these words, variables and files. Instead of Kubernetes, the test
    starts the executor.
    """
    watched(broker, "from-spark", "image-spark")
    port, place = free_port(), "127.0.0.1"
    settings = {
        # a cluster without workers: the executor below is its only one
        "spark.master": "local-cluster[0,1,1024]",
        "spark.driver.host": place,
        "spark.driver.port": port,
        "spark.driver.extraClassPath": "/opt/laggard/jars/spark/*",
        "spark.driver.extraJavaOptions": "-Xss4m",
        "spark.executor.memory": "1g",
    }
    mounts = volumes(tmp_path, {"one": VOLUME}) | volumes(
        tmp_path, {"conf": "/opt/spark/conf"}, read_only=True
    )
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    (tmp_path / "conf" / "spark.properties").write_text(text)
    spark = {"SPARK_CONF_DIR": "/opt/spark/conf", "SPARK_USER": "laggard"}
    driver = Container(
        store,
        "laggard-spark",
        tmp_path,
        {
            "LAGGARD_CLUSTER__BOOTSTRAP_SERVERS": f'["{broker.bootstrap_servers}"]',
            "LAGGARD_JOB__TICK_SECONDS": "2",
        }
        | {"SPARK_DRIVER_BIND_ADDRESS": place}
        | spark,
        mounts,
        *("driver", "--properties-file", "/opt/spark/conf/spark.properties"),
        *(
            "--class",
            "org.apache.spark.deploy.PythonRunner",
            "local:///opt/laggard/jobs/track_lag.py",
        ),
    )
    running = [driver]
    try:
        wait_until(
            lambda: connects(port) or driver.process.poll() is not None, 60, "a driver", driver.tail
        )
        executor = {
            "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@{place}:{port}",
            "SPARK_EXECUTOR_ID": "1",
            "SPARK_EXECUTOR_CORES": "2",
            "SPARK_EXECUTOR_MEMORY": "1g",
            "SPARK_APPLICATION_ID": "spark-1",
            "SPARK_EXECUTOR_POD_IP": place,
            "SPARK_EXECUTOR_POD_NAME": "laggard-exec-1",
            "SPARK_RESOURCE_PROFILE_ID": "0",
            "SPARK_CLASSPATH": "/opt/laggard/jars/spark/*",
        }
        options = [f"-Dspark.driver.port={port}", "-Xss4m", *MODULE_OPTIONS]
        executor |= {f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(options)}
        running.append(
            Container(store, "laggard-spark", tmp_path, spark | executor, mounts, "executor")
        )

        def is_ready() -> bool:
            return driver.probe("run", "--check", "ready")[0] == 0

        def said() -> str:
            return "\n".join(each.tail() for each in running)

        wait_until(
            lambda: is_ready() or driver.process.poll() is not None, 150, "a published tick", said
        )
        assert [each.process.poll() for each in running] == [None, None], said()
        assert list((tmp_path / "one/tables/partition_status").glob("**/*.parquet"))
    finally:
        for each in running:
            each.stop()
