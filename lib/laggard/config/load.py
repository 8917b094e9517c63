"""What is in force: default, then file, then environment, then --set; every mistake told at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from laggard.config.sections import CONFIG_VERSION, SECTIONS, Config, keys, value_of
from laggard.config.sources import Given, find_file, from_environment, from_file, from_sets, refused

SPARK_FIXED = (  # the job is wrong with any other value, see stream/session.py
    "spark.databricks.delta.retentionDurationCheck.enabled",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.extensions",
    "spark.sql.session.timeZone",
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching",
    "spark.sql.streaming.noDataMicroBatches.enabled",
)
_TYPE_NAMES = {bool: "boolean", int: "integer", str: "string", tuple: "list of strings", dict: "table"}


def load_config(path: str | None, sets: Sequence[str], environ: Mapping[str, str]) -> Config:
    """The effective configuration, with where each value came from in `origins`."""
    file = find_file(path, environ)
    givens = [*(from_file(file, SECTIONS) if file else ()), *from_environment(environ), *from_sets(sets)]
    values: dict[str, Any] = {}
    winners: dict[str, Given] = {}
    problems: list[tuple[tuple[int, int], str]] = []
    for given in sorted(givens, key=lambda each: each.order):
        try:
            values[given.key] = _checked(given)
            winners[given.key] = given
        except ValueError as error:
            problems.append((given.order, given.says(str(error))))
    config = _with_values(values, {key: given.place for key, given in winners.items()})
    problems += _across(config, winners)
    if problems:
        raise refused([text for _, text in sorted(problems)])
    return config


def _checked(given: Given) -> Any:
    """The value as its dataclass holds it; a ValueError says what is wrong."""
    known = keys()
    if given.key in SECTIONS:
        raise ValueError(f"expected table, got {_shown(given.value)}")
    if given.key not in known:
        raise ValueError(f"unknown key{_suggestion(given.key)}")
    value = _typed(given, value_of(Config(), given.key))
    if given.key == "config_version" and value > CONFIG_VERSION:
        raise ValueError(f"{value} needs a later release of laggard; this one reads {CONFIG_VERSION}")
    rules = known[given.key].metadata
    if not rules["holds"](value):
        raise ValueError(f"expected {rules['accepts']}, got {_shown(value)}")
    return value


def _typed(given: Given, default: Any) -> Any:
    """The value in the default's type."""
    value = given.value
    if isinstance(default, str) and given.text is not None and not isinstance(value, str):
        return given.text  # a cluster called 2024 has a name, not a number
    if isinstance(default, tuple) and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if type(value) is not type(default):
        got = "list" if isinstance(value, list) else _TYPE_NAMES.get(type(value), type(value).__name__)
        raise ValueError(f"expected {_TYPE_NAMES[type(default)]}, got {got} {_shown(value)}")
    return _spark_settings(value) if isinstance(default, dict) else value


def _spark_settings(tree: Mapping[str, Any]) -> dict[str, str]:
    settings = dict(_dotted(tree))
    if fixed := [name for name in settings if name in SPARK_FIXED]:
        raise ValueError(f"{', '.join(fixed)}: fixed by the job")
    return settings


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A setting's name may be quoted or not: without quotes TOML reads its dots as tables."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    import json  # here and below: only needed when something is wrong, and the command line starts often

    return json.dumps(value, default=str, ensure_ascii=False)


def _suggestion(key: str) -> str:
    """The nearest key: by its full name, else by its last part in any section."""
    import difflib

    by_name = {known.rpartition(".")[2]: known for known in keys()}
    near = difflib.get_close_matches(key, [*keys(), *SECTIONS], n=1, cutoff=0.85)
    near = near or [
        by_name[name] for name in difflib.get_close_matches(key.rpartition(".")[2], by_name, n=1, cutoff=0.7)
    ]
    return f" (did you mean {near[0]}?)" if near else ""


def _across(config: Config, winners: Mapping[str, Given]) -> Iterator[tuple[tuple[int, int], str]]:
    """What is wrong between values that are right alone."""
    window, tick = config.job.window_seconds, config.job.tick_seconds
    if window % tick:
        given = winners.get("job.window_seconds") or winners["job.tick_seconds"]
        yield given.order, given.says(f"window of {window} s is not a multiple of job.tick_seconds ({tick})")


def _with_values(values: Mapping[str, Any], places: Mapping[str, str]) -> Config:
    config = Config(origins={key: places.get(key, "default") for key in keys()})
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:  # config_version has but one right value
            config = dataclasses.replace(
                config, **{section: dataclasses.replace(getattr(config, section), **{name: value})}
            )
    return config
