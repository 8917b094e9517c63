"""What docker/ says, held against the code and against the rules for containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from laggard import __version__
from laggard.config.sections import Config, keys
from laggard.stream.job.query import STOP_SECONDS

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
DOCKERFILES = ("Dockerfile", "exporter.Dockerfile")
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
OURS = ("job", "exporter")


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((DOCKER / "compose.yaml").read_text())


def environment_names(text: str) -> set[str]:
    """Names of ours in a text."""
    return set(re.findall(r"\bLAGGARD_[A-Z0-9_]+", text))


def known_names() -> set[str]:
    """The environment names that the code reads."""
    overlay = {f"LAGGARD_{key.replace('.', '__').upper()}" for key in keys() if "." in key}
    return overlay | {"LAGGARD_JARS", "LAGGARD_JARS_MIRROR", "LAGGARD_CONFIG"}


NAMES = [
    str(each.relative_to(DOCKER)) for each in (*DOCKER.rglob("*.yaml"), *DOCKER.glob("*Dockerfile"))
]


@pytest.mark.parametrize("name", NAMES)
def test_every_environment_name_is_one_that_the_code_reads(name: str) -> None:
    assert environment_names((DOCKER / name).read_text()) - known_names() == set()


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_has_a_pinned_base_and_a_numeric_user_and_fetches_nothing_at_start(
    name: str,
) -> None:
    lines = (DOCKER / name).read_text().splitlines()
    said = [line.split(maxsplit=1) for line in lines if re.match(r"[A-Z]+ ", line)]
    bases = [rest.split()[0] for word, rest in said if word == "FROM"]
    stages = {rest.split()[2] for word, rest in said if word == "FROM" and " AS " in rest}

    assert DIGEST.search(next(line for line in lines if line.startswith("ARG BASE=")))
    assert set(bases) <= {"${BASE}", "scratch", *stages}
    assert [rest for word, rest in said if word == "USER"] == ["10001:10001"]
    assert all(rest.startswith("[") for word, rest in said if word in ("ENTRYPOINT", "CMD"))
    assert not [rest for word, rest in said if word == "ADD"]
    installs = [line for line in lines if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)


def test_the_exporters_image_begins_empty_and_has_no_java() -> None:
    text = (DOCKER / "exporter.Dockerfile").read_text()
    assert text.count("FROM scratch") == 1
    assert "jre" not in text
    assert "pyspark" not in (DOCKER / "requirements-exporter.txt").read_text()


def test_the_image_for_spark_operators_is_the_jobs_with_an_entry_point() -> None:
    lines = (DOCKER / "spark.Dockerfile").read_text().splitlines()
    assert f"ARG JOB=laggard:{__version__}" in lines
    assert [line for line in lines if line.startswith("FROM")] == ["FROM ${JOB}"]
    assert [line for line in lines if line.startswith("USER")] == ["USER 0:0", "USER 10001:10001"]
    assert os.access(DOCKER / "spark-entrypoint.sh", os.X_OK)
    assert (ROOT / "jobs" / "track_lag.py").exists()
    assert "!jobs" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.full
def test_compose_holds_to_the_schema_of_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(DOCKER / "compose.yaml")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_service_is_limited_and_has_no_rights_it_does_not_need(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "pids_limit", "restart"} <= service.keys(), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    for name in OURS:
        assert compose["services"][name]["read_only"] is True
        assert "healthcheck" in compose["services"][name]


def test_images_of_others_are_pinned_by_digest_and_ours_by_version(compose: Any) -> None:
    images = {name: service["image"] for name, service in compose["services"].items()}
    assert {name: images.pop(name) for name in OURS} == {
        "job": f"laggard:{__version__}",
        "exporter": f"laggard-exporter:{__version__}",
    }
    assert [image for image in images.values() if not DIGEST.search(image)] == []


def test_kafka_has_the_version_that_the_tests_run(compose: Any) -> None:
    jars = {
        line.split("/")[-1] for line in (ROOT / "conf" / "jars.sha256").read_text().splitlines()
    }
    version = re.match(r"apache/kafka:([\d.]+)@", compose["services"]["kafka"]["image"])
    assert version is not None
    assert f"kafka_2.13-{version[1]}.jar" in jars


def test_ports_and_places_are_those_of_the_code(compose: Any) -> None:
    port = Config().exporter.listen.rpartition(":")[2]
    job, exporter = (compose["services"][name] for name in OURS)
    scrape = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())["scrape_configs"]
    text = (DOCKER / "Dockerfile").read_text()

    assert exporter["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"0.0.0.0:{port}" in (DOCKER / "exporter.Dockerfile").read_text()
    assert scrape[0]["static_configs"] == [{"targets": [f"exporter:{port}"]}]
    assert job["volumes"] == ["tables:/var/lib/laggard/tables", "state:/var/lib/laggard/state"]
    assert exporter["volumes"] == ["tables:/var/lib/laggard/tables:ro"]
    for name in (
        "LAGGARD_JOB__TABLES=/var/lib/laggard/tables",
        "CHECKPOINT=/var/lib/laggard/state/checkpoint",
    ):
        assert name in text
    assert int(job["stop_grace_period"].rstrip("s")) > STOP_SECONDS


def test_files_that_compose_mounts_are_here_and_rules_and_dashboards_are_mounted_once_they_are(
    compose: Any,
) -> None:
    mounts = [
        volume for service in compose["services"].values() for volume in service.get("volumes", [])
    ]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert [file for file in files if not (DOCKER / file).exists()] == []
    for folder in ("rules", "grafana"):
        assert (ROOT / "conf" / folder).exists() == (f"../conf/{folder}" in files)


def test_grafana_reads_the_dashboards_from_where_compose_mounts_them(compose: Any) -> None:
    grafana = compose["services"]["grafana"]
    mounts = dict(mount.split(":")[:2] for mount in grafana["volumes"] if mount.startswith("."))
    provider = yaml.safe_load((DOCKER / "grafana" / "dashboards.yaml").read_text())["providers"][0]
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])

    assert provider["options"]["path"] == mounts["../conf/grafana"] == str(home.parent)
    assert (ROOT / "conf" / "grafana" / home.name).exists()


def pinned(name: str) -> dict[str, str]:
    """Package to version of a file of hashed requirements."""
    text = (DOCKER / f"requirements-{name}.txt").read_text()
    return dict(re.findall(r"(?m)^([a-z0-9._-]+)==(\S+) ", text))


def test_pins_fit_setup_cfg() -> None:
    """If this fails: make pins."""
    sys.path.insert(0, str(DOCKER))
    try:
        from pins import wanted  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(DOCKER))
    for name, requirements in wanted().items():
        found = pinned(name)
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate(
                {"python_version": "3.11"}
            ):
                assert requirement.specifier.contains(found[requirement.name.lower()]), (
                    name,
                    str(requirement),
                )


@pytest.mark.parametrize("name", ["build", "job", "exporter"])
def test_every_pin_has_hashes(name: str) -> None:
    text = (DOCKER / f"requirements-{name}.txt").read_text()
    entries = re.split(r"(?m)^(?=[a-z])", text)[1:]
    assert len(entries) == len(pinned(name))
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "http" not in text
