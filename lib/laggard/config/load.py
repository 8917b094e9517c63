"""Find the values in force: default, then file, then environment, then --set.

Every mistake is reported at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from laggard.config.policy import Policies, PolicyFile, PolicyRule
from laggard.config.sections import CONFIG_VERSION, SECTIONS, Config, keys, value_of
from laggard.config.security import mistakes
from laggard.config.sources import (
    FILE,
    POLICY_FILE,
    Given,
    TomlFile,
    find_file,
    from_environment,
    from_file,
    from_sets,
    policy_files,
    read_toml,
    refused,
)
from laggard.config.values import shown, suggestion, typed
from laggard.diagnosis.parameters import Policy
from laggard.storage import S3, SCHEMES

SECURITY = "cluster.security."
SPARK_FIXED = (  # the job is wrong with any other value, see stream/job/session.py
    "spark.sql.adaptive.enabled",
    "spark.databricks.delta.retentionDurationCheck.enabled",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.extensions",
    "spark.sql.session.timeZone",
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching",
    "spark.sql.sources.useV1SourceList",
    "spark.sql.streaming.noDataMicroBatches.enabled",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart",
)


def load_config(path: str | None, sets: Sequence[str], environ: Mapping[str, str]) -> Config:
    """Return the effective configuration, with where each value came from in `origins`."""
    file = find_file(path, environ)
    main = read_toml(file) if file else None
    givens = [
        *(from_file(main, SECTIONS) if main else ()),
        *from_environment(environ),
        *from_sets(sets),
    ]
    values: dict[str, Any] = {}
    winners: dict[str, Given] = {}
    problems: list[tuple[tuple[int, int], str]] = []
    for given in sorted(givens, key=lambda setting: setting.order):
        try:
            values[given.key] = _checked(given)
            winners[given.key] = given
        except ValueError as error:
            problems.append((given.order, given.says(str(error))))
    rules, wrong = _policy_rules(main)
    config = _with_values(values, {key: given.place for key, given in winners.items()})
    problems += [*_across(config, winners), *_only_for_s3(config, winners), *wrong]
    if problems:
        raise refused([text for _, text in sorted(problems)])
    target = config.diagnosis.thresholds.drain_target_seconds
    policies = Policies(rules, Policy(drain_target_seconds=target))
    return dataclasses.replace(config, policies=policies)


def _policy_rules(
    main: TomlFile | None,
) -> tuple[tuple[PolicyRule, ...], list[tuple[tuple[int, int], str]]]:
    """Return the rules of the main file, then those of policy.d beside it, and their problems."""
    if main is None:
        return (), []
    policies = PolicyFile(main)
    rules, problems = policies.rules, [((FILE, line), text) for line, text in policies.problems]
    for path in policy_files(main.path):
        file = read_toml(path)
        policies = PolicyFile(file)
        rules += policies.rules
        others = [
            (0, f"{path}: {key}: only [[policy]] may stand here")
            for key in file.tree
            if key != "policy"
        ]
        problems += [
            ((POLICY_FILE, len(problems)), text) for _, text in sorted(others + policies.problems)
        ]
    return tuple(rules), problems


def _checked(given: Given) -> Any:
    """Return the value in the type of its dataclass; raise a ValueError that says what is wrong."""
    known = keys()
    if given.key in SECTIONS:
        raise ValueError(f"expected table, got {shown(given.value)}")
    if given.key not in known:
        raise ValueError(f"unknown key{suggestion(given.key, [*known, *SECTIONS])}")
    value = typed(given.value, value_of(Config(), given.key), given.text)
    if isinstance(value, dict):
        value = dict(_dotted(value))
        if fixed := [name for name in value if name in SPARK_FIXED]:
            raise ValueError(f"{', '.join(fixed)}: fixed by the job")
    if given.key == "config_version" and value > CONFIG_VERSION:
        raise ValueError(
            f"{value} needs a later release of laggard; this one reads {CONFIG_VERSION}"
        )
    rules = known[given.key].metadata
    if not rules["holds"](value):
        raise ValueError(f"expected {rules['accepts']}, got {shown(value)}")
    return value


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted names with their values.

    A name may be quoted or not, as TOML reads unquoted dots as tables.
    """
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else shown(value)


def _across(config: Config, winners: Mapping[str, Given]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield conflicts between values that are each valid alone."""
    window, tick = config.job.window_seconds, config.job.tick_seconds
    if window % tick:
        given = winners.get("job.window_seconds") or winners["job.tick_seconds"]
        yield (
            given.order,
            given.says(f"window of {window} s is not a multiple of job.tick_seconds ({tick})"),
        )
    for name, problem in mistakes(config.cluster.security):
        key = f"{SECURITY}{name}"
        # a key that is missing is missing for the protocol's sake
        culprit = (
            winners.get(key)
            or winners.get("cluster.security.mechanism")
            or winners.get("cluster.security.protocol")
        )
        if culprit is not None:
            yield culprit.order, culprit.says(problem if culprit.key == key else f"{key} {problem}")
    if config.job.checkpoint.partition(":")[0].lower() in SCHEMES:
        given = winners["job.checkpoint"]
        yield (
            given.order,
            given.says(
                "expected a folder of this machine: it need not last, as the tables are enough"
            ),
        )


def _only_for_s3(
    config: Config, winners: Mapping[str, Given]
) -> Iterator[tuple[tuple[int, int], str]]:
    scheme = config.job.tables.partition("://")[0].lower()
    if scheme in set(SCHEMES) - set(S3):
        for key in ("storage.endpoint", "storage.region", "storage.credentials_file"):
            if (given := winners.get(key)) is not None and given.value:
                yield (
                    given.order,
                    given.says(f"is for S3 only; for {scheme}:// set what docs/storage.md names"),
                )


def _with_values(values: Mapping[str, Any], places: Mapping[str, str]) -> Config:
    config = Config(origins={key: places.get(key, "default") for key in keys()})
    for key, value in values.items():
        config = _replaced(config, key.split("."), value)
    return config


def _replaced(section: Any, names: Sequence[str], value: Any) -> Any:
    """Return the section with one of its values replaced."""
    name, *inner = names
    return dataclasses.replace(
        section, **{name: _replaced(getattr(section, name), inner, value) if inner else value}
    )
