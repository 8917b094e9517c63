"""The stories that real and simulated consumers play, each with the settings of its members."""

from __future__ import annotations

from typing import Any

from calibration import scripts, scripts_faults, scripts_modern
from calibration.cast import Story
from simulator.world import Config

HEARTBEAT_MS = COMMIT_MS = 1_000
COOPERATIVE = ("cooperative-sticky",)


def _settings(name: str, **changes: Any) -> Config:
    # a session far above the heartbeat, except where it is to run out: the machine may be busy
    usual: dict[str, Any] = {"session_ms": 20_000, "heartbeat_ms": HEARTBEAT_MS, "commit_ms": COMMIT_MS}
    return Config(name, name, "/127.0.0.1", (name,), **usual | changes)


STORIES = (
    Story(scripts.scale_out, _settings("scale-out")),
    Story(scripts.scale_out, _settings("sticky", assignors=("sticky",))),
    # two rounds take a heartbeat, which must not look like a pause of what is kept
    Story(scripts.scale_out, _settings("cooperative", assignors=COOPERATIVE, commit_ms=2 * COMMIT_MS)),
    Story(scripts.leave, _settings("leave")),
    Story(scripts.leave, _settings("roundrobin", assignors=("roundrobin",))),
    Story(scripts.leave, _settings("cooperative-leave", assignors=COOPERATIVE, commit_ms=2 * COMMIT_MS)),
    Story(scripts_faults.crash, _settings("crash", session_ms=6_000), doomed=2),
    Story(scripts_faults.eviction, _settings("eviction", poll_interval_ms=8_000)),
    Story(scripts_faults.straggler, _settings("straggler", poll_interval_ms=8_000)),
    Story(scripts.to_zero, _settings("to-zero")),
    Story(scripts.partitions_added, _settings("partitions-added", metadata_ms=3_000)),
    Story(scripts_faults.restarts, _settings("restarts"), is_static=True),
    Story(scripts_faults.expiry, _settings("expiry", session_ms=6_000), is_static=True),
    Story(scripts_modern.modern, _settings("modern", assignors=(), session_ms=45_000), is_modern=True),
    Story(
        scripts_faults.restarts,
        _settings("modern-restarts", assignors=(), session_ms=45_000),
        is_static=True,
        is_modern=True,
    ),
    Story(scripts_modern.upgrade, _settings("upgrade"), is_mixed=True),
    Story(scripts_modern.downgrade, _settings("downgrade"), is_mixed=True),
)
WARM_UPS = tuple(
    Story(scripts.warm_up, _settings(f"warm-up-{name}", assignors=()), is_modern=True, doomed=doomed)
    for name, doomed in (("troupe", None), ("doomed", 0))
)
