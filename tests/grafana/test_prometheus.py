"""Every panel in a real Prometheus, with what two replicas of an exporter say about
two clusters.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from grafana import lint
from patience import patient

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "exporter" / "golden" / "text.txt"
BOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "conf" / "grafana").glob("*.json")
}
STEP, COUNT = 15, 20
CLUSTERS, REPLICAS = ("prod", "spare"), ("one:8917", "two:8917")
SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
COUNTS = re.compile(r"_(total|bucket|sum|count)$")
ANNOTATIONS = {"Alerts", "Rebalances", "Deploys", "Findings"}
WITHHELD = "laggard_series_withheld"  # nothing is, in the golden scrape
pytestmark = pytest.mark.full


def samples(start: int) -> Iterator[str]:
    """Lines of OpenMetrics: the golden scrape, in which every counter rises by 1 each time."""
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        found = SAMPLE.match(line)
        if line.startswith("#") or found is None:
            continue
        value = 1.0 if "…" in found["value"] else float(found["value"])
        rises = COUNTS.search(found["name"]) and "distribution" not in found["name"]
        labels = (found["labels"] or "").replace("…", 'version="0"')
        for cluster in CLUSTERS if 'cluster="prod"' in labels else CLUSTERS[:1]:
            for replica in REPLICAS:
                text = f'instance="{replica}"' + (f",{labels}" if labels else "")
                text = text.replace('cluster="prod"', f'cluster="{cluster}"')
                for number in range(COUNT):
                    yield (
                        f"{found['name']}{{{text}}} {value + (number if rises else 0)} "
                        f"{start + number * STEP}"
                    )


class Server:
    """A Prometheus over a folder, and how it answers at the newest sample."""

    def __init__(self, folder: Path, end: int) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{found.getsockname()[1]}"
        self.end = end
        (folder / "empty.yaml").write_text("{}\n")
        options = {
            "config.file": folder / "empty.yaml",
            "storage.tsdb.path": folder / "data",
            "web.listen-address": self.address,
        }
        words = [f"--{key}={value}" for key, value in options.items()]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=patient(10)) as answer:
            return bytes(answer.read())

    def wait(self) -> None:
        limit = time.monotonic() + patient(20)
        while True:
            try:
                self.get("/-/ready")
            except OSError:
                assert time.monotonic() < limit, "Prometheus does not start"
                time.sleep(0.1)
            else:
                return

    def ask(self, expression: str, **chosen: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Labels to value, with the variables filled in."""
        text = expression.replace("$__rate_interval", "1m").replace("$__range", "5m")
        text = re.sub(r"\$(\w+)", lambda name: chosen.get(name[1], ".*"), text)
        query = urllib.parse.urlencode({"query": text, "time": self.end})
        found = json.loads(self.get(f"/api/v1/query?{query}"))["data"]["result"]
        return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in found}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        pytest.skip("needs prometheus and promtool: make tools")
    folder = tmp_path_factory.mktemp("prometheus")
    start = int(time.time()) - STEP * COUNT
    (folder / "samples").write_text("\n".join([*samples(start), "# EOF", ""]))
    load = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(folder / "samples"),
        str(folder / "data"),
    ]
    subprocess.run(load, check=True, capture_output=True, timeout=patient(60))
    server = Server(folder, start + STEP * (COUNT - 1))
    try:
        server.wait()
        yield server
    finally:
        server.process.terminate()
        server.process.wait(patient(20))


def queries() -> list[tuple[str, str, str]]:
    return [
        (name, *each) for name, board in sorted(BOARDS.items()) for each in lint.expressions(board)
    ]


def test_every_panel_shows_what_an_exporter_serves(server: Server) -> None:
    empty = [(name, title, text) for name, title, text in queries() if not server.ask(text)]
    assert [each for each in empty if each[1] not in ANNOTATIONS and WITHHELD not in each[2]] == []


def test_a_second_replica_changes_no_number(server: Server) -> None:
    shared = [each for each in queries() if "$exporter" not in each[2]]
    alone = [
        (text, re.sub(r"(\b(?:laggard_\w+)\{)", rf'\1instance="{REPLICAS[0]}", ', text))
        for _, _, text in shared
    ]
    assert server.ask("sum(laggard_ready)") == {(): float(len(CLUSTERS) * len(REPLICAS))}
    assert [both for both, one in alone if server.ask(both) != server.ask(one)] == []


def test_clusters_do_not_mix(server: Server) -> None:
    for name, title, text in queries():
        both = server.ask(text)
        for cluster in CLUSTERS:
            chosen = {
                labels: value for labels, value in both.items() if ("cluster", cluster) in labels
            }
            if title in ANNOTATIONS or "topk(" in text or "bottomk(" in text or "$exporter" in text:
                continue
            assert chosen == server.ask(text, cluster=cluster) != {}, (name, title)
