"""What the exporter is told when it starts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExporterOptions:
    """Options with the defaults of the configuration."""

    tables: str
    cluster: str = ""  # shown while there is no batch; then the rows say it
    listen: str = "127.0.0.1:8917"  # host:port; an IPv6 address in brackets, port 0 takes a free one
    refresh_seconds: float = 5.0
    max_age_seconds: int = 0  # 0: max(3 ticks, 90 s)
    tick_seconds: int = 10
    max_series: int = 100_000
    partition_top_k: int = 10
    max_connections: int = 1024
    header_seconds: float = 5.0
    response_seconds: float = 30.0
    once: bool = False  # one body to stdout instead of a server

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])
