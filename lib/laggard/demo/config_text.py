"""The configuration that the demo writes for its job and its exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from laggard.conf import conf_file

TIMINGS = {"tick_seconds": 3, "window_seconds": 15}  # short, so that something is to be seen at once
JOB_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def config_text(folder: Path, bootstrap: str) -> str:
    """The configuration of job and exporter, as TOML."""
    log_settings = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
    sections: dict[str, dict[str, Any]] = {
        "cluster": {
            "name": "demo",
            "bootstrap_servers": bootstrap.split(","),
            "metadata_seconds": 5,
            "state_poll_seconds": 3,
        },
        "job": {
            "tables": str(folder / "tables"),
            "checkpoint": str(folder / "checkpoint"),
            "master": "local[2]",
            **TIMINGS,
            # for a JVM that lives a minute: what compilers would win back later, it never sees
            "spark": {
                "spark.driver.extraJavaOptions": " ".join([*JOB_JVM, log_settings]),
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            },
        },
        "exporter": {"refresh_seconds": 2},
        "logging": {"format": "text"},
    }
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in section.items())
        for name, section in sections.items()
    )


def toml_value(value: Any) -> str:
    """The value as TOML: as JSON, but for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
