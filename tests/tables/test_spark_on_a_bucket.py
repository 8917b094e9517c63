"""Analysts' Spark SQL reads a bucket by the commands of docs/storage.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyspark
import pytest

from laggard import storage
from laggard.jars import fetch_jars, jars_dir
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer, create_tables
from laggard.tables.schema.schemas import LAG_WINDOWS
from patience import patient
from s3 import S3Server
from tables.fixtures import NOW

pytestmark = [pytest.mark.spark, pytest.mark.full]
PAGE = Path(__file__).parents[2] / "docs" / "storage.md"


def of_page(language: str) -> str:
    """The page's block of this language in the chapter on Spark."""
    chapter = PAGE.read_text(encoding="utf-8").partition("## Spark's own readers")[2]
    found = re.search(rf"^```{language}\n(.*?)^```", chapter, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_spark_sql_reads_what_the_job_wrote(tmp_path: Path) -> None:
    fetch_jars(("spark", "s3"))
    with S3Server(tmp_path / "s3") as server:
        before = storage.settings()
        storage.use(server.settings)
        try:
            create_tables("s3://lags/prod", [LAG_WINDOWS])
            writer = Writer("s3://lags/prod", "one")
            for number, (topic, lag) in enumerate(
                [("orders", 7), ("orders", 9), ("payments", 0), ("emails", None)]
            ):
                at = NOW + timedelta(minutes=number)
                row = {
                    "date": at.date(),
                    "group": "g",
                    "topic": topic,
                    "window_start": at,
                    "lag": lag,
                }
                writer.write(LAG_WINDOWS, to_arrow(LAG_WINDOWS, [row]), number)
        finally:
            storage.use(before)
        settings = (
            of_page("properties")
            .replace("http://minio:9000", server.endpoint)
            .replace("eu-west-1", "us-east-1")
        )
        (tmp_path / "bucket.conf").write_text(settings)
        (tmp_path / ".jars").symlink_to(jars_dir())
        command = of_page("sh").replace("\\\n", " ").splitlines()[-1]
        assert command.startswith("spark-sql ")
        folders = [Path(pyspark.__file__).parent / "bin", Path(sys.executable).parent]
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
                "SPARK_HOME": str(Path(pyspark.__file__).parent),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "AWS_ACCESS_KEY_ID": server.keys[0],
                "AWS_SECRET_ACCESS_KEY": server.keys[1],
            },
            capture_output=True, text=True, check=False, timeout=patient(120),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == ["emails\tNULL", "orders\t9", "payments\t0"]
