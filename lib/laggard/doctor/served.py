"""Checks of a running exporter from its responses: readiness, age of data, data not shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from laggard.doctor.result import Result
from laggard.escape import printable
from laggard.exporter.body import families as fam

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

CHECK = "exporter"
Ask = Callable[[str], tuple[int, bytes]]  # path to status and body
# of the exporter itself, so also there while its data is too old to be shown
_TROUBLES = (fam.REFRESH_ERRORS, fam.ROWS_SKIPPED, fam.WEB_CONFIG_ERRORS)
_READ = (fam.BUILD_INFO, fam.DATA_TIMESTAMP, fam.SERIES, fam.SERIES_WITHHELD, *_TROUBLES)


def check_exporter(ask: Ask, clock: Callable[[], float] = time.time) -> Iterable[Result]:
    """Ask for its metrics and its readiness; what cannot be asked raises."""
    status, body = ask("/metrics")
    samples = _samples(body) if status == 200 else []
    version = next(
        (sample.labels["version"] for sample in samples if sample.name == fam.BUILD_INFO.name), None
    )
    if version is None:
        fact = f"/metrics answers {status}"
        if status == 200:
            fact += " without metrics of laggard"
        remedy = "look at the address, and at its log"
        if status in (401, 403):
            remedy = "--user and --password-file"
        yield Result("fail", CHECK, fact, remedy)
        return
    yield Result("ok", CHECK, f"laggard {version} answers")
    yield from _readiness(ask)
    for sample in samples:
        if sample.name == fam.DATA_TIMESTAMP.name:
            age = clock() - sample.value
            yield Result(
                "ok",
                "age of data",
                f"{sample.labels['cluster']}: polled {age:.0f} s ago by our clock",
            )
    yield from _troubles(samples)
    yield from _series(samples)


def _samples(body: bytes) -> list[Sample]:
    """Return the samples that are read here; a body may have a hundred thousand others."""
    names = tuple(map(attrgetter("name"), _READ))
    lines = [
        line for line in body.decode("utf-8", "replace").splitlines() if line.startswith(names)
    ]
    families = text_string_to_metric_families("\n".join([*lines, ""]))
    return [sample for family in families for sample in family.samples]


def _readiness(ask: Ask) -> Iterator[Result]:
    status, body = ask("/-/ready")
    for line in body.decode("utf-8", "replace").splitlines():
        cluster, _, reason = printable(line).rpartition(": ")
        if status not in (200, 503):
            yield Result(
                "fail", "ready", f"/-/ready answers {status}", "look at the log of the exporter"
            )
        elif reason == "ready":
            yield Result("ok", "ready", f"{cluster}: its data is served")
        else:
            yield Result(
                "fail",
                "ready",
                f"{cluster}: {reason}",
                "laggard doctor, where the job of that cluster runs",
            )


def _troubles(samples: list[Sample]) -> Iterator[Result]:
    names = list(map(attrgetter("name"), _TROUBLES))
    troubles = []
    for sample in samples:
        if sample.name in names and sample.value:
            name = sample.name.removeprefix("laggard_exporter_")
            troubles.append(f"{name} {sample.value:.0f} ({', '.join(sample.labels.values())})")
    if troubles:
        fact = f"since it started: {'; '.join(troubles)}"
        yield Result(
            "warn",
            "errors",
            fact,
            "look at the log of the exporter; docs/metrics.md says what each one counts",
        )
    else:
        yield Result("ok", "errors", "none since it started")


def _series(samples: list[Sample]) -> Iterator[Result]:
    total = sum(sample.value for sample in samples if sample.name == fam.SERIES.name)
    withheld = [
        f"{sample.value:,.0f} of {sample.labels['level']}"
        for sample in samples
        if sample.name == fam.SERIES_WITHHELD.name and sample.value
    ]
    if withheld:
        remedy = "raise metrics.max_series, or limit metrics.distributions (docs/exporter.md)"
        yield Result("warn", "series", f"{total:,.0f}; withheld: {', '.join(withheld)}", remedy)
    else:
        yield Result("ok", "series", f"{total:,.0f}, none withheld")
