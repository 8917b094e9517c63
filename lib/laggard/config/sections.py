"""The configuration: one frozen dataclass per section, each key with its default and its range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, is_dataclass, replace
from math import inf
from typing import Any

from laggard.config.policy import Policies
from laggard.config.ranges import (
    between,
    globs,
    ignored,
    is_folder_url,
    is_host_port,
    is_origin,
    is_url,
    key,
    one_of,
    path,
    switch,
)
from laggard.config.security import Security
from laggard.diagnosis.parameters import Parameters
from laggard.errors import CONFIGURATION, LaggardError
from laggard.storage import Settings

CONFIG_VERSION = 1
TOOLS = ("burrow", "kafka_exporter", "kafka_lag_exporter", "kminion")  # values of metrics.compat
OFFSETS_TOPIC, ADMIN = "offsets_topic", "admin"  # values of cluster.source
KAFKAS_OWN = "__consumer_offsets"  # the topic that the cluster's own coordinators write


@dataclass(frozen=True)
class Cluster:
    """The watched cluster: where it is, what of it counts, how often it is asked."""

    name: str = key("default", "not empty")
    bootstrap_servers: tuple[str, ...] = key(
        (), "list of host:port", lambda value: all(map(is_host_port, value))
    )
    source: str = one_of(OFFSETS_TOPIC, ADMIN, default=OFFSETS_TOPIC)
    offsets_topic: str = key(KAFKAS_OWN, "not empty")
    groups: tuple[str, ...] = globs("*")
    groups_ignore: tuple[str, ...] = ignored()
    topics: tuple[str, ...] = globs("*")
    topics_ignore: tuple[str, ...] = ignored("__*")
    request_timeout_seconds: int = between(1, 300, 10)
    security: Security = field(default_factory=Security)

    @property
    def is_admin(self) -> bool:
        """True if commits are asked of the coordinators, and the offsets topic is not read."""
        return self.source == ADMIN


@dataclass(frozen=True)
class Job:
    """The streaming job."""

    tables: str = key("./data/tables", "not empty")
    checkpoint: str = key("./data/checkpoint", "not empty")
    master: str = key("local[*]", "not empty")
    tick_seconds: int = between(1, 300, 10)
    window_seconds: int = between(1, 3600, 60)
    max_group_partitions: int = between(1000, 100_000_000, 2_000_000)
    heartbeat_file: str = key("", "path, or empty for none", lambda _: True)
    spark: Mapping[str, str] = key({}, "table of Spark settings", lambda _: True)


@dataclass(frozen=True)
class Storage(Settings):
    """Tables in a bucket."""

    endpoint: str = key(
        "", "URL of http or https, may be empty", lambda value: not value or is_url(value)
    )
    region: str = key("", "text, may be empty", lambda _: True)
    credentials_file: str = path()
    lease_seconds: int = between(5, 600, 30)


@dataclass(frozen=True)
class Retention:
    """Retention of rows and files."""

    windows_days: int = between(1, 3650, 30)
    history_days: int = between(1, 3650, 730)


@dataclass(frozen=True)
class Maintenance:
    """The daily care of the tables, done by the job beside its ticks."""

    enabled: bool = switch(default=True)


_THRESHOLDS = Parameters()


def _threshold(name: str) -> Any:
    """Declare a key for a threshold of the diagnosis, with its default."""
    default = getattr(_THRESHOLDS, name)
    accepts = "1 or more" if type(default) is int else "more than 0"
    return key(default, accepts, lambda value: 0 < value < inf)


@dataclass(frozen=True)
class Diagnosis:
    """The thresholds that users set, and the pace at which drills run."""

    min_group_lag_records: int = _threshold("min_group_lag_records")
    min_group_time_lag_seconds: float = _threshold("min_group_time_lag_seconds")
    stall_min_seconds: float = _threshold("stall_min_seconds")
    loss_page_hours: float = _threshold("loss_page_hours")
    offsets_retention_minutes: float = _threshold("offsets_retention_minutes")
    pace: float = key(1.0, "more than 0", lambda value: 0 < value < inf)

    @property
    def thresholds(self) -> Parameters:
        """Return all thresholds of the diagnosis, those in seconds divided by the pace."""
        values = asdict(self)
        pace = values.pop("pace")
        return replace(_THRESHOLDS, **values).at_pace(pace)


@dataclass(frozen=True)
class Exporter:
    """The process that Prometheus scrapes."""

    listen: str = key("127.0.0.1:8917", "host:port", is_host_port)
    tables: tuple[str, ...] = key((), "list of paths, empty for job.tables alone", all)
    web_config_file: str = key("", "path, or empty for none", lambda _: True)
    max_age_seconds: int = between(0, 86_400, 0)
    api: bool = switch(default=True)
    runbook_base: str = key(
        "", "URL that ends with /, may be empty", lambda url: not url or is_folder_url(url)
    )
    cors_origins: tuple[str, ...] = key(
        (),
        "list of origins such as https://wiki.example.org, or *",
        lambda value: all(map(is_origin, value)),
    )


@dataclass(frozen=True)
class Metrics:
    """Limits of a scrape."""

    max_series: int = between(1000, 500_000, 100_000)
    partition_top_k: int = between(0, 1000, 10)
    distributions: tuple[str, ...] = ignored("*")
    compat: tuple[str, ...] = key(
        (), f"list of {', '.join(TOOLS)}", lambda value: set(value) <= set(TOOLS)
    )
    compat_member_labels: bool = switch(default=False)


@dataclass(frozen=True)
class Logging:
    """The log on standard error."""

    format: str = one_of("json", "text", default="json")
    level: str = one_of("debug", "info", "warning", "error", default="info")


@dataclass(frozen=True)
class Config:
    """Every section, the rules of `[[policy]]`, and where each value came from."""

    config_version: int = key(
        CONFIG_VERSION, str(CONFIG_VERSION), lambda value: value == CONFIG_VERSION
    )
    cluster: Cluster = Cluster()
    job: Job = Job()
    storage: Storage = Storage()
    retention: Retention = Retention()
    maintenance: Maintenance = Maintenance()
    diagnosis: Diagnosis = Diagnosis()
    exporter: Exporter = Exporter()
    metrics: Metrics = Metrics()
    logging: Logging = Logging()
    policies: Policies = field(default_factory=Policies)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)


def _sections(parent: Any, prefix: str = "") -> Iterator[str]:
    for entry in fields(parent):
        inner = getattr(parent, entry.name)
        if is_dataclass(inner) and entry.name != "policies":
            yield f"{prefix}{entry.name}"
            yield from _sections(inner, f"{prefix}{entry.name}.")


SECTIONS = tuple(_sections(Config()))  # a section within another one has a dotted name


def keys() -> dict[str, Field[Any]]:
    """Return every dotted key with its dataclass field, in the order of the reference file."""
    defaults, top = Config(), fields(Config)[0]
    inner = {
        f"{name}.{entry.name}": entry
        for name in SECTIONS
        for entry in fields(value_of(defaults, name))
        if f"{name}.{entry.name}" not in SECTIONS
    }
    return {top.name: top, **inner}


def value_of(config: Config, key: str) -> Any:
    """Return the value of a dotted key, or a section by its name."""
    value: Any = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


def require_brokers(config: Config) -> tuple[str, ...]:
    """Return the brokers to connect to; raise an error if there are none.

    Brokers have no default.
    """
    if not config.cluster.bootstrap_servers:
        raise LaggardError(
            "no Kafka cluster is configured",
            cause="cluster.bootstrap_servers is empty",
            fix="laggard run --set 'cluster.bootstrap_servers=[\"localhost:9092\"]'",
            exit_code=CONFIGURATION,
        )
    return config.cluster.bootstrap_servers
