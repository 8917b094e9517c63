"""The configuration that the demo writes for its job and its exporter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laggard.conf import conf_file
from laggard.demo.scenarios import EVERYDAY, Scenario

# short, so that something is to be seen at once
TIMINGS = {"tick_seconds": 3, "window_seconds": 15}
# A drill runs ten times as fast as production: its windows last 6 s instead of 60 s.
DRILL_TIMINGS = {"tick_seconds": 2, "window_seconds": 6}
DRILL_PACE = 10.0
JOB_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def config_text(
    folder: Path, bootstrap: str, scenario: Scenario = EVERYDAY, slower: int = 1
) -> str:
    """Return the configuration of job and exporter, as TOML.

    `slower` stretches all times of a drill.
    """
    log_settings = f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
    timings: Mapping[str, float] = TIMINGS
    if scenario.group:
        timings = {name: slower * seconds for name, seconds in DRILL_TIMINGS.items()}
    sections: dict[str, dict[str, Any]] = {
        "cluster": {
            "name": "demo",
            "bootstrap_servers": bootstrap.split(","),
        },
        "job": {
            "tables": str(folder / "tables"),
            "checkpoint": str(folder / "checkpoint"),
            "master": "local[2]",
            **timings,
            # for a JVM that lives a minute: what compilers would win back later, it never sees
            "spark": {
                "spark.driver.extraJavaOptions": " ".join([*JOB_JVM, log_settings]),
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            },
        },
        "logging": {"format": "text"},
    }
    if scenario.group:
        sections["diagnosis"] = {"pace": DRILL_PACE / slower}
    text = "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in section.items())
        for name, section in sections.items()
    )
    if scenario.scales_to_zero:
        text += f"\n[[policy]]\nmatch = {toml_value(scenario.group)}\nscale_to_zero = true\n"
    return text


def toml_value(value: Any) -> str:
    """Return the value as TOML, which is JSON except for tables."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key)} = {toml_value(item)}" for key, item in value.items())
            + "}"
        )
    return json.dumps(value, ensure_ascii=False)
