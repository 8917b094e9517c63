"""A Spark cluster as its users have one: a master, two workers, and an interpreter that has
everything but laggard.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

from e2e.kit import wait_until
from laggard.jars import jars_dir, spark_jars

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
MASTER_ON_PAGES = "spark://master:7077"
# Loopback as well, and not what the job takes in local mode: executors reach a driver there only if
# they were given so.
DRIVER_ADDRESS = "127.0.0.2"
STOP_LIMIT = 10
OWN_MOUNTS = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'
# these JVMs live for a minute, five of them on two cores
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def command_of_page(part: str) -> str:
    """The one command in docs/deploy.md that has this part."""
    (command,) = [each for each in readme_commands(ROOT / "docs" / "deploy.md") if part in each]
    return command


def readme_commands(page: Path = README) -> list[str]:
    """Every command of a page's shell blocks, comments and line breaks taken out."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [
        " ".join(command.split()) for line in lines if (command := re.sub(r"(^|\s+)# .*", "", line))
    ]


def readme_command(start: str) -> str:
    """The one command of the README that begins like this, word for word."""
    (command,) = [each for each in readme_commands() if f"{each} ".startswith(f"{start} ")]
    return command


def copy_checkout(folder: Path) -> None:
    """What a fresh checkout has and the README's commands use; no file of ours is written."""
    for name in ("lib", "jobs", "conf"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    shutil.copy(ROOT / "Makefile", folder)
    spark_jars()  # fetched if they are not here yet
    (folder / ".jars").symlink_to(jars_dir())


def make_bare_interpreter(folder: Path) -> Path:
    """An interpreter with our packages and without laggard, which the environment under test has as
    an editable one.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60
    )
    python = folder / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    own = subprocess.run(
        [str(python), "-c", ask], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    paths = sysconfig.get_paths()
    # a folder that a .pth names is searched, but its own .pth files are not obeyed: the editable
    # one stays out
    Path(own.strip(), "packages.pth").write_text(f"{paths['purelib']}\n{paths['platlib']}\n")
    return python


def environment(python: Path, address: str) -> dict[str, str]:
    """Nothing of ours: no PYTHONPATH, no LAGGARD_ variables; commands by name as with an active
    .venv.
    """
    kept = {
        name: os.environ[name]
        for name in ("HOME", "JAVA_HOME", "LANG", "TMPDIR")
        if name in os.environ
    }
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": address,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


@dataclass
class Child:
    """A process with its own group, so that what it started can be ended with it."""

    process: subprocess.Popen[bytes]
    log: Path

    def printed(self) -> str:
        return self.log.read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join([f"--- {self.log} ---", *self.printed().splitlines()[-60:]])

    def wait(self, limit: float) -> int:
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {limit:.0f} s\n{self.tail()}", pytrace=False)

    def terminate(self) -> None:
        """SIGTERM to the process alone, as a service manager sends it."""
        self.process.terminate()

    def has_group(self) -> bool:
        """True if the process or anything it started still lives."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def end(self) -> None:
        """End it and what it started, whatever state it is in."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_LIMIT)  # a worker ends its executors
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start(command: list[str], folder: Path, log: Path, env: Mapping[str, str]) -> Child:
    """Start a process that is the leader of its own group."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=env,
            start_new_session=True,
        )
    return Child(process, log)


@dataclass
class Cluster:
    """A running master with its workers' folders."""

    url: str
    page: str
    python: Path
    settings: Path
    folders: list[Path]

    def state(self) -> dict[str, Any]:
        """What the master knows."""
        # our own address
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:  # noqa: S310
            known: dict[str, Any] = json.load(answer)
        return known

    def submit(
        self,
        folder: Path,
        *options: str,
        master: str = "",
        job: str = "track_lag",
        deploy_mode: str = "client",
    ) -> Child:
        """Submit as docs/deploy.md says to this master, in a folder that has laggard.toml and a
        copied checkout.
        """
        command = command_of_page(" jobs/track_lag.py ").replace(
            MASTER_ON_PAGES, master or self.url
        )
        command = command.replace("jobs/track_lag.py", f"--deploy-mode {deploy_mode} jobs/{job}.py")
        return self.run(folder, " ".join([command, *options]))

    def run(self, folder: Path, command: str) -> Child:
        """A spark-submit of our pages with this master."""
        # a signal is for it and not for the shell
        words = "exec " + command.replace(MASTER_ON_PAGES, self.url)
        env = environment(self.python, DRIVER_ADDRESS) | {"SPARK_CONF_DIR": str(self.settings)}
        return start(["bash", "-c", words], folder, folder / "job.log", env)

    def driver_logs(self) -> str:
        """All that drivers printed which the workers ran."""
        found = [path for folder in self.folders for path in sorted(folder.glob("driver-*/std*"))]
        return "\n".join(path.read_text(errors="replace")[-5000:] for path in found)

    def executor_logs(self) -> list[str]:
        """Per worker all that its executors printed."""
        return [
            "\n".join(
                path.read_text(errors="replace") for path in sorted(folder.glob("app-*/*/std*"))
            )
            for folder in self.folders
        ]


@contextmanager
def standalone_cluster(folder: Path, python: Path, own: Path | None = None) -> Iterator[Cluster]:
    """A master and two workers of one core each, all on loopback and on ports that were free.

    At the path `own` a worker sees a folder of its own, worker-0.own or worker-1.own, as on a
    machine of its own.
    """
    env = environment(python, "127.0.0.1")
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    children: list[Child] = []
    try:
        master = start(
            [spark_class, f"{deploy}.master.Master", *here], folder, folder / "master.log", env
        )
        children.append(master)

        def address(pattern: str) -> str:
            found = wait_until(
                lambda: re.search(pattern, master.printed()), 60, pattern, master.tail
            )
            return str(found.group(1))

        url = address(r"Starting Spark master at (spark://\S+)")
        page = address(r"MasterWebUI.* started at (http://\S+)").rstrip("/")
        folders = [folder / f"worker-{number}" for number in range(WORKERS)]
        for work in folders:
            work.mkdir()
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            command = [spark_class, f"{deploy}.worker.Worker", *here, *size, url]
            if own:
                command = [
                    *OWN_MOUNTS,
                    "sh",
                    "-c",
                    MOUNT,
                    str(work.with_suffix(".own")),
                    str(own),
                    *command,
                ]
            children.append(start(command, folder, work.with_suffix(".log"), env))
        settings = folder / "settings"
        settings.mkdir()
        defaults = {
            "spark.executor.extraJavaOptions": QUICK_START,
            # a run of few tasks would be over before the slower of two executors has started
            "spark.cores.max": str(WORKERS),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        }
        lines = [f"{name} {value}\n" for name, value in defaults.items()]
        (settings / "spark-defaults.conf").write_text("".join(lines))
        cluster = Cluster(url, page, python, settings, folders)

        def are_registered() -> bool:
            return [worker["state"] for worker in cluster.state()["workers"]] == ["ALIVE"] * WORKERS

        wait_until(
            are_registered,
            60,
            "registered workers",
            lambda: "\n".join(each.tail() for each in children),
        )
        yield cluster
    finally:
        for child in reversed(children):
            child.end()
