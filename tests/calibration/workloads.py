"""The workloads that real and simulated consumers run, each with the settings of its members."""

from __future__ import annotations

from typing import Any

from calibration import scripts, scripts_faults, scripts_modern
from calibration.members import Workload
from simulator.world import Config

HEARTBEAT_MS = COMMIT_MS = 1_000
COOPERATIVE = ("cooperative-sticky",)


def _settings(name: str, **changes: Any) -> Config:
    # a session far above the heartbeat, except where it is to run out: the machine may be busy
    usual: dict[str, Any] = {
        "session_ms": 20_000,
        "heartbeat_ms": HEARTBEAT_MS,
        "commit_ms": COMMIT_MS,
    }
    return Config(name, name, "/127.0.0.1", (name,), **usual | changes)


WORKLOADS = (
    Workload(scripts.scale_out, _settings("scale-out")),
    Workload(scripts.scale_out, _settings("sticky", assignors=("sticky",))),
    # two rounds take a heartbeat, which must not look like a pause of what is kept
    Workload(
        scripts.scale_out, _settings("cooperative", assignors=COOPERATIVE, commit_ms=2 * COMMIT_MS)
    ),
    Workload(scripts.leave, _settings("leave")),
    Workload(scripts.leave, _settings("roundrobin", assignors=("roundrobin",))),
    Workload(
        scripts.leave,
        _settings("cooperative-leave", assignors=COOPERATIVE, commit_ms=2 * COMMIT_MS),
    ),
    Workload(scripts_faults.crash, _settings("crash", session_ms=6_000), doomed=2),
    Workload(scripts_faults.eviction, _settings("eviction", poll_interval_ms=8_000)),
    Workload(scripts_faults.straggler, _settings("straggler", poll_interval_ms=8_000)),
    Workload(scripts.to_zero, _settings("to-zero")),
    Workload(scripts.partitions_added, _settings("partitions-added", metadata_ms=3_000)),
    Workload(scripts_faults.restarts, _settings("restarts"), is_static=True),
    Workload(scripts_faults.expiry, _settings("expiry", session_ms=6_000), is_static=True),
    Workload(
        scripts_modern.modern, _settings("modern", assignors=(), session_ms=45_000), is_modern=True
    ),
    Workload(
        scripts_faults.restarts,
        _settings("modern-restarts", assignors=(), session_ms=45_000),
        is_static=True,
        is_modern=True,
    ),
    Workload(scripts_modern.upgrade, _settings("upgrade"), is_mixed=True),
    Workload(scripts_modern.downgrade, _settings("downgrade"), is_mixed=True),
)
WARM_UPS = tuple(
    Workload(
        scripts.warm_up, _settings(f"warm-up-{name}", assignors=()), is_modern=True, doomed=doomed
    )
    for name, doomed in (("clients", None), ("doomed", 0))
)
