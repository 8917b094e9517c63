"""A real Prometheus with laggard's rules, at the pace of a drill."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from laggard.demo.guard import await_end, start_guarded
from patience import patient

RULES = Path(__file__).parents[2] / "conf" / "rules"
# a scrape may take as long as the time between two: a busy machine needs it
SCRAPE_SECONDS, EVALUATE_SECONDS = 5, 2
PACE = 30  # so many times faster than production are the times of the rules, on a machine at rest
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
Labels = dict[str, str]


def quicker(rules: str, slower: int = 1) -> str:
    """The same rules with every time divided by PACE: `for`, `keep_firing_for` and the ranges of
    all selectors.
    """

    def shorter(found: re.Match[str]) -> str:
        seconds = max(1, int(found["number"]) * _UNITS[found["unit"]] * slower // PACE)
        return f"{found['before']}{seconds}s"

    return re.sub(
        r"(?P<before>\[| (?:for|keep_firing_for): )(?P<number>\d+)(?P<unit>[smhd])\b",
        shorter,
        rules,
    )


class Prometheus:
    """Scrapes the targets as long as its `with` block lasts; the data stays in the folder."""

    def __init__(self, folder: Path, targets: Collection[str], slower: int) -> None:
        folder.mkdir(exist_ok=True)
        for path in RULES.glob("laggard-*.yaml"):
            (folder / path.name).write_text(
                quicker(path.read_text(encoding="utf-8"), slower), encoding="utf-8"
            )
        config = {
            "global": {
                "scrape_interval": f"{SCRAPE_SECONDS}s",
                "evaluation_interval": f"{EVALUATE_SECONDS}s",
            },
            "rule_files": [str(folder / "laggard-*.yaml")],
            "scrape_configs": [
                {"job_name": "laggard", "static_configs": [{"targets": [*targets]}]}
            ],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._folder = folder
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{found.getsockname()[1]}"

    def __enter__(self) -> Prometheus:  # noqa: PYI034 - typing has no Self before Python 3.11
        options = {
            "config.file": self._folder / "prometheus.yaml",
            "storage.tsdb.path": self._folder / "data",
            "web.listen-address": self.address,
        }
        with (self._folder / "log").open("wb") as log:
            self._process = start_guarded(
                ["prometheus", *(f"--{key}={value}" for key, value in options.items())], log
            )
        limit = time.monotonic() + patient(20)
        while True:
            try:
                self._get("/-/ready")
            except OSError as error:
                if time.monotonic() > limit or self._process.poll() is not None:
                    raise AssertionError((self._folder / "log").read_text()) from error
                time.sleep(0.1)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        await_end(self._process, patient(20))

    def now(self, expression: str, moment: float | None = None) -> list[tuple[Labels, float]]:
        """Labels and value of each series that an instant query gives."""
        more = {} if moment is None else {"time": moment}
        found = self._ask("query", query=expression, **more)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def over(
        self, expression: str, start: float, end: float, step: float
    ) -> list[tuple[Labels, list[tuple[float, float]]]]:
        """Labels and samples of each series that a range query gives."""
        found = self._ask("query_range", query=expression, start=start, end=end, step=step)[
            "result"
        ]
        return [
            (each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in found
        ]

    def label_values(self, selector: str, label: str) -> list[str]:
        """Values of a label over the series of a selector, as Grafana's label_values()."""
        found = self._ask(f"label/{label}/values", **{"match[]": selector})
        return [str(each) for each in found]

    def _ask(self, path: str, **words: Any) -> Any:
        try:
            return json.loads(self._get(f"/api/v1/{path}?{urllib.parse.urlencode(words)}"))["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{words}: {error.read().decode()}") from error

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=patient(10)) as answer:
            return bytes(answer.read())
