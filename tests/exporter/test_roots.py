"""Several table roots, one exporter: one body with the series of all, and a root that is ill costs
its own only.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from demo.processes import comes_true
from exporter.harness import LIMIT_SECONDS, POLLED, Clock, ask, samples
from exporter.stops import REPOSITORY
from laggard.errors import CONFIGURATION, LaggardError
from laggard.exporter.body.render import TEXT, merge_text
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.options import ExporterOptions
from laggard.exporter.publish import Publisher
from patience import patient
from tables.fixtures import NOW, batch_row, partition_row, write_batch, write_rows


def write_root(
    root: Path, cluster: str, number: int = 1, seconds: float = 0, groups: int = 2
) -> Path:
    """A root with lag of `groups` groups in a cluster, polled so many seconds after NOW."""
    rows = [partition_row(f"g{n}", "t", 0, cluster=cluster) for n in range(groups)]
    write_batch(root, number, NOW + timedelta(seconds=seconds), partitions=rows, cluster=cluster)
    return root


class Several:
    """A publisher on roots of the test, its clock moved by hand."""

    def __init__(self, *roots: Path, **options: int) -> None:
        self.clock, self.stats = Clock(), SelfStats()
        self.publisher = Publisher(
            ExporterOptions(tuple(map(str, roots)), **options), self.stats, self.clock
        )

    def refresh(self, *places: int) -> None:
        for place in places or range(len(self.publisher.refreshers)):
            self.publisher.refreshers[place].refresh()

    def clusters(self, family: str = "laggard_partition_lag_records") -> set[str]:
        """Clusters with series of a family; both formats agree and no series comes twice."""
        found = samples(self.publisher.published, self.clock())
        return {dict(labels)["cluster"] for name, labels in found if name == family}

    def reasons(self) -> dict[str, str]:
        return self.publisher.published.reasons(self.clock())


def test_one_body_has_the_series_of_every_root_and_each_family_once(tmp_path: Path) -> None:
    several = Several(*(write_root(tmp_path / name, name) for name in ("a", "b", "c")))
    several.refresh()
    assert several.clusters() == several.clusters("laggard_ready") == {"a", "b", "c"}
    body = several.publisher.published.bodies(several.clock())[TEXT].plain.decode()
    heads = [line for line in body.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))
    assert body.count("\nlaggard_build_info{") == body.count("\nlaggard_series ") == 1
    (number,) = (
        line.split()[1] for line in body.splitlines() if line.startswith("laggard_series ")
    )
    others = ("#", "process_")  # what the body says it has, but for the process's own series
    lines = [line for line in body.splitlines() if not line.startswith(others)]
    own = sum(line.startswith("process_") for line in body.splitlines())
    assert float(number) == len(lines) + own
    assert several.publisher.published.etag(several.clock()) == 'W/"1.1.1"'


def test_a_missing_root_costs_its_own_series_and_is_named_by_its_place(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "a", "a"), tmp_path / "secret-place")
    several.refresh()
    assert several.clusters() == {"a"}
    assert several.reasons() == {"a": "", "tables 2": "table_missing"}
    write_root(tmp_path / "secret-place", "b")
    several.refresh(1)
    assert (several.clusters(), several.reasons()) == ({"a", "b"}, {"a": "", "b": ""})


def test_a_root_that_becomes_too_old_leaves_also_while_it_hangs(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "a", "a"), write_root(tmp_path / "b", "b", seconds=60))
    several.clock.now = POLLED + 60
    several.refresh()
    several.clock.now = POLLED + 95  # a is older than 90 s
    several.refresh(1)
    assert (several.clusters(), several.reasons()) == ({"b"}, {"a": "stale", "b": ""})


def test_a_body_that_nobody_makes_again_does_not_outlive_its_age_for_long(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "a", "a"), write_root(tmp_path / "b", "b", seconds=60))
    several.clock.now = POLLED + 60
    several.refresh()
    several.clock.now = POLLED + 106
    assert several.clusters() == set()


def test_of_two_roots_of_one_cluster_the_later_one_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    several = Several(
        write_root(tmp_path / "1", "a", groups=1), write_root(tmp_path / "2", "a", groups=3)
    )
    with caplog.at_level(logging.ERROR):
        several.refresh(1, 0, 1, 0)
    assert several.reasons() == {"a": "", "tables 2": "duplicate_cluster"}
    found = samples(several.publisher.published, several.clock())
    assert sum(name == "laggard_partition_lag_records" for name, _ in found) == 1
    assert [record.message.count(str(tmp_path / "2")) for record in caplog.records] == [1]
    assert several.publisher.refreshers[1].stats.refresh_errors["duplicate_cluster"] == 1


def test_a_name_is_free_again_when_its_root_has_another(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "1", "a"), write_root(tmp_path / "2", "a"))
    several.refresh()
    shutil.rmtree(tmp_path / "1")
    write_root(tmp_path / "1", "b", number=2)
    several.refresh()
    assert several.reasons() == {"b": "", "a": ""}
    assert several.clusters() == {"a", "b"}


def test_a_cluster_called_like_a_place_is_no_twin_of_it(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "1", "tables 2"), tmp_path / "none")
    several.refresh()
    assert several.reasons() == {"tables 2": "", "tables 2'": "table_missing"}


def test_whatever_the_order_of_looks_no_series_comes_twice(tmp_path: Path) -> None:
    several = Several(*(write_root(tmp_path / f"{n}", "ab"[n % 2]) for n in range(4)))
    order = random.Random(3).choices(range(4), k=40)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(several.refresh, order):
            assert several.clusters() <= {"a", "b"}  # samples() finds a series that comes twice
    several.refresh()
    assert list(several.reasons().values()) == ["", "", "duplicate_cluster", "duplicate_cluster"]


def test_an_odd_row_of_one_root_costs_no_series_of_the_others(tmp_path: Path) -> None:
    several = Several(write_root(tmp_path / "a", "a"), write_root(tmp_path / "b", "b"))
    several.refresh()
    odd = batch_row(2, {}, NOW, cluster="a", kind="backfill", poll_errors_total=[None])
    write_rows(tmp_path / "a", "batches", [odd])
    several.refresh()
    assert (several.clusters(), several.reasons()) == ({"b"}, {"a": "catching_up", "b": ""})
    assert several.publisher.refreshers[0].stats.refresh_errors["internal"] > 0


def test_each_root_has_its_share_of_the_series(tmp_path: Path) -> None:
    several = Several(
        write_root(tmp_path / "a", "a", groups=300),
        write_root(tmp_path / "b", "b", groups=2),
        max_series=2000,
    )
    several.refresh()
    assert several.clusters() >= {"b"}
    assert len(samples(several.publisher.published, several.clock())) <= 2000


def test_a_root_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(LaggardError) as refused:
        Several(tmp_path / "a", Path(f"{tmp_path}/b/../a"))
    assert refused.value.exit_code == CONFIGURATION


def test_families_that_only_one_body_has_are_kept_in_order() -> None:
    first = b"# HELP a A.\n# TYPE a gauge\na 1\n# HELP b B.\n# TYPE b gauge\nb 1\n"
    second = b"# HELP b B.\n# TYPE b gauge\nb 2\n# HELP c # HELP\n# TYPE c gauge\nc 2\n"
    third = b"# HELP c # HELP\n# TYPE c gauge\nc 2\n"
    assert merge_text([first, second]) == first + b"b 2\n" + third
    assert merge_text([b"", first]) == first


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "laggard", *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "lib")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def now_root(root: Path, cluster: str) -> Path:
    """A root of this moment, for a real process."""
    write_batch(
        root,
        1,
        datetime.now(timezone.utc),
        partitions=[partition_row("g", "t", 0)],
        cluster=cluster,
    )
    return root


@pytest.mark.full
def test_a_root_that_hangs_holds_up_neither_the_others_nor_the_end(tmp_path: Path) -> None:
    hanging = now_root(tmp_path / "hangs", "hangs")
    (data,) = (hanging / "batches").glob("date=*/*.parquet")
    data.unlink()
    os.mkfifo(data)  # who opens it to read waits for a writer
    good = [now_root(tmp_path / name, name) for name in ("a", "b")]
    roots = [
        word for root in (hanging, *good, tmp_path / "missing") for word in ("--tables", str(root))
    ]
    with start("export", "--listen", "127.0.0.1:0", *roots) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            port = int(line.split("127.0.0.1:")[1].split("/")[0])
            wanted = b"tables 1: starting\na: ready\nb: ready\ntables 4: table_missing\n"
            assert comes_true(lambda: ask(port, "/-/ready")[1] == wanted, LIMIT_SECONDS)
            body = ask(port)[1]
            assert [
                f'laggard_partition_lag_records{{cluster="{name}"'.encode() in body for name in "ab"
            ] == [True] * 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(patient(5)) == 0
        finally:
            process.kill()


def test_printing_roots_of_one_cluster_is_an_error(tmp_path: Path) -> None:
    roots = [now_root(tmp_path / name, "same") for name in ("one", "two")]
    text = "[exporter]\ntables = [" + ", ".join(f'"{root}"' for root in roots) + "]\n"
    (tmp_path / "laggard.toml").write_text(text, encoding="utf-8")
    with start("--config", str(tmp_path / "laggard.toml"), "export", "--print") as process:
        out, error = process.communicate(timeout=LIMIT_SECONDS)
    assert (out, process.returncode) == ("", CONFIGURATION)
    assert "two table roots are of one cluster" in error
    assert str(roots[1]) in error
