"""What can be configured: one frozen dataclass per section, each key with its default and its range."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from laggard.config.policy import Policies
from laggard.config.values import CODES, is_code
from laggard.diagnosis.parameters import Parameters
from laggard.errors import CONFIGURATION, LaggardError

CONFIG_VERSION = 1


def _key(default: Any, accepts: str, holds: Callable[[Any], object] = bool) -> Any:
    """A key with its default and its range, which errors and conf/reference.toml print in the same words."""
    metadata = {"accepts": accepts, "holds": holds}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def _between(low: int, high: int, default: int) -> Any:
    return _key(default, f"{low} to {high}", lambda value: low <= value <= high)


def _one_of(*values: str, default: str) -> Any:
    return _key(default, f"{', '.join(values[:-1])} or {values[-1]}", values.__contains__)


def _switch(*, default: bool) -> Any:
    return _key(default, "true or false", lambda _: True)


def _globs(*default: str) -> Any:
    """Names to take; without one nothing would be watched."""
    return _key(default, "list of globs, not empty", lambda value: value and all(value))


def _ignored(*default: str) -> Any:
    return _key(default, "list of globs", all)


def is_host_port(text: str) -> bool:
    """Whether the text is host:port; an IPv6 address stands in brackets."""
    host, _, port = text.rpartition(":")
    is_host = re.fullmatch(r"\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+", host) is not None
    return is_host and re.fullmatch(r"[0-9]{1,5}", port) is not None and int(port) <= 65535


@dataclass(frozen=True)
class Cluster:
    """The watched cluster: where it is, what of it counts, how often it is asked."""

    name: str = _key("default", "not empty")
    bootstrap_servers: tuple[str, ...] = _key((), "list of host:port", lambda value: all(map(is_host_port, value)))
    offsets_topic: str = _key("__consumer_offsets", "not empty")
    groups: tuple[str, ...] = _globs("*")
    groups_ignore: tuple[str, ...] = _ignored()
    topics: tuple[str, ...] = _globs("*")
    topics_ignore: tuple[str, ...] = _ignored("__*")
    request_timeout_seconds: int = _between(1, 300, 10)
    metadata_seconds: int = _between(1, 3600, 60)
    state_poll_seconds: int = _between(0, 3600, 10)


@dataclass(frozen=True)
class Job:
    """The streaming job."""

    tables: str = _key("./data/tables", "not empty")
    checkpoint: str = _key("./data/checkpoint", "not empty")
    master: str = _key("local[*]", "not empty")
    tick_seconds: int = _between(1, 300, 10)
    window_seconds: int = _between(1, 3600, 60)
    max_records_per_batch: int = _between(1000, 100_000_000, 500_000)
    stop_seconds: int = _between(1, 600, 20)
    spark: Mapping[str, str] = _key({}, "table of Spark settings", lambda _: True)


@dataclass(frozen=True)
class Retention:
    """How long rows and files are kept."""

    windows_days: int = _between(1, 3650, 30)
    history_days: int = _between(1, 3650, 730)
    dead_letters_days: int = _between(1, 3650, 14)
    batches_days: int = _between(1, 3650, 90)
    status_files_hours: int = _between(1, 168, 1)


@dataclass(frozen=True)
class Maintenance:
    """The daily care of the tables, done by the job beside its ticks."""

    enabled: bool = _switch(default=True)
    hour_utc: int = _between(0, 23, 3)
    optimize: bool = _switch(default=True)
    vacuum_hours: int = _between(1, 8760, 168)


@dataclass(frozen=True)
class Diagnosis(Parameters):
    """Every threshold of the diagnosis, declared there, and which findings are not reported."""

    mute_codes: tuple[str, ...] = _key((), CODES, lambda value: all(map(is_code, value)))


@dataclass(frozen=True)
class Exporter:
    """The process that Prometheus scrapes."""

    listen: str = _key("127.0.0.1:8917", "host:port", is_host_port)
    web_config_file: str = _key("", "path, or empty for none", lambda _: True)
    refresh_seconds: int = _between(1, 300, 5)
    max_age_seconds: int = _between(0, 86_400, 0)


@dataclass(frozen=True)
class Metrics:
    """What a scrape may hold."""

    max_series: int = _between(1000, 500_000, 100_000)
    partition_top_k: int = _between(0, 1000, 10)


@dataclass(frozen=True)
class Logging:
    """The log on standard error."""

    format: str = _one_of("json", "text", default="json")
    level: str = _one_of("debug", "info", "warning", "error", default="info")


@dataclass(frozen=True)
class Config:
    """Every section, the rules of `[[policy]]`, and where each value came from."""

    config_version: int = _key(CONFIG_VERSION, str(CONFIG_VERSION), lambda value: value == CONFIG_VERSION)
    cluster: Cluster = Cluster()
    job: Job = Job()
    retention: Retention = Retention()
    maintenance: Maintenance = Maintenance()
    diagnosis: Diagnosis = Diagnosis()
    exporter: Exporter = Exporter()
    metrics: Metrics = Metrics()
    logging: Logging = Logging()
    policies: Policies = field(default_factory=Policies)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)


SECTIONS = tuple(each.name for each in fields(Config) if each.name not in ("config_version", "policies", "origins"))


def keys() -> dict[str, Field[Any]]:
    """Every dotted key with its dataclass field, in the order of the reference file."""
    defaults, top = Config(), fields(Config)[0]
    inner = {f"{name}.{each.name}": each for name in SECTIONS for each in fields(getattr(defaults, name))}
    return {top.name: top, **inner}


def value_of(config: Config, key: str) -> Any:
    """The value of a dotted key."""
    section, _, name = key.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def require_brokers(config: Config) -> tuple[str, ...]:
    """The brokers to connect to, which have no default."""
    if not config.cluster.bootstrap_servers:
        raise LaggardError(
            "no Kafka cluster is configured",
            cause="cluster.bootstrap_servers is empty",
            fix="laggard run --set 'cluster.bootstrap_servers=[\"localhost:9092\"]'",
            exit_code=CONFIGURATION,
        )
    return config.cluster.bootstrap_servers
