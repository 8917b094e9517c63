"""An exporter with its API on tables of a test, asked over a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporter.harness import Clock, Exporter, ask, serving
from exporter.test_roots import Several
from laggard.answers.answering import Answering
from laggard.exporter.collectors.own import SelfStats


@dataclass(frozen=True)
class Asker:
    """Ask for paths below /api/v1."""

    port: int
    stats: SelfStats

    def raw(self, path: str, method: str = "GET", **headers: str) -> Any:
        return ask(self.port, f"/api/v1/{path}", method, **headers)

    def __call__(self, path: str, expected: int = 200) -> dict[str, Any]:
        answer, body = self.raw(path)
        assert answer.status == expected, body
        assert answer.getheader("Content-Type") == "application/json; charset=utf-8"
        found: dict[str, Any] = json.loads(body, parse_constant=_refuse)
        return found


@contextmanager
def serving_api(
    exporter: Exporter | Several, clock: Clock | None = None, **more: Any
) -> Iterator[Asker]:
    """The server with what the exporter has read last; a busy machine has time enough."""
    answers = more.pop("answers", None) or Answering(60)
    published = exporter.publisher.published
    with serving(published, clock or exporter.clock, answers=answers, **more) as (port, stats):
        yield Asker(port, stats)


def api_of(root: Path, **more: Any) -> Any:
    """Read the tables as an exporter does, and serve."""
    exporter = Exporter(root, **more)
    exporter.refresh()
    return serving_api(exporter)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
