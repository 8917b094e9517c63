"""Options of the exporter at its start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from laggard.diagnosis.parameters import Policy

if TYPE_CHECKING:
    from laggard.config.sections import Metrics

PolicyOf: TypeAlias = Callable[[str, str, datetime], Policy]  # cluster, group, time


class Answers(Protocol):
    """Function from a `Question` to the API to its `Answer`; both are of exporter.api."""

    def __call__(self, question: Any, /) -> Any: ...


def no_policy(_cluster: str, _group: str, _at: datetime) -> Policy:
    """Return the default policy, for a configuration without rules."""
    return Policy()


@dataclass(frozen=True, slots=True)
class Selection:
    """Series that are wanted, as `[metrics]` says."""

    partition_top_k: int = 10
    distributions: tuple[str, ...] = ("*",)  # globs on groups that have them
    compat: tuple[str, ...] = ()  # tools whose names are served too
    compat_member_labels: bool = False

    @property
    def needs_members(self) -> bool:
        """True if a name or label of another tool is about the members that have partitions."""
        return "kminion" in self.compat or (
            "kafka_lag_exporter" in self.compat and self.compat_member_labels
        )

    @classmethod
    def of(cls, metrics: Metrics) -> Selection:
        """Return the selection that a configuration declares."""
        return cls(**{option.name: getattr(metrics, option.name) for option in fields(cls)})


@dataclass(frozen=True, slots=True)
class ExporterOptions:
    """Options with the defaults of the configuration."""

    tables: tuple[str, ...]  # the roots, each of another cluster
    cluster: str = ""  # shown while one root has no batch; then the rows say it
    # host:port; an IPv6 address in brackets, port 0 takes a free one
    listen: str = "127.0.0.1:8917"
    web_config_file: str = ""  # TLS, passwords and rate limit; empty: none of them
    max_age_seconds: int = 0  # 0: max(3 ticks, 90 s)
    tick_seconds: int = 10
    window_seconds: int = 60
    max_series: int = 100_000
    selection: Selection = Selection()
    max_connections: int = 1024
    header_seconds: float = 5.0
    response_seconds: float = 30.0
    policy: PolicyOf = no_policy
    # longest idle time after which a policy lets a group sleep; 0: none does
    idle_seconds: float = 0.0
    answers: Answers | None = None  # of the API; without it, none is served
    cors_origins: tuple[str, ...] = ()  # whose pages may read it; "*": those of all
    # URL before the paths of runbooks in the page; empty: the path alone is shown
    runbook_base: str = ""
    once: bool = False  # one body to stdout instead of a server

    @property
    def refresh_seconds(self) -> float:
        """Seconds between two looks for a new batch."""
        return min(5.0, self.tick_seconds / 2)

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])
