"""Simulated clusters behind a real exporter and a real Prometheus: which alerts fire for which of
them.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from dashboards.prometheus import Prometheus
from dashboards.queries import Shown, ask
from dashboards.simulated import KEPT_TICKS, SimulatedRoot, simulate_all
from laggard.demo.guard import await_end, start_guarded
from patience import patient

TICK_SECONDS, FIRE_SECONDS = 6, 90
FIRED = 'max by (alertname, cluster) (max_over_time(ALERTS{alertstate="firing"}[1h]))'
# columns of `batches` that rise with each tick
TROUBLES = {
    "dead_letters_total": {"truncated": 2},
    "unknown_records_total": [{"record_type": 99, "version": 0, "records": 1}],
    "gaps_total": {"job_down": 1},
    "shed_keys_total": 3,
    "reconcile_corrections_total": 1,
    "poll_errors_total": [{"api": "list_offsets", "error": "NOT_LEADER_OR_FOLLOWER", "errors": 3}],
}


_BUSY_SECONDS, _UNREAD = 2 * TICK_SECONDS, 200_000


def _published_late(row: Mapping[str, Any], _: int) -> Any:
    return row["started_at"] + timedelta(seconds=_BUSY_SECONDS)


def _unread(row: Mapping[str, Any], number: int) -> dict[int, int]:
    """Ends of the offsets partitions that run away from the job."""
    return {part: end + _UNREAD * (1 + number) for part, end in row["source_to"].items()}


# of a job that does not keep up with the offsets topic
BUSY = {"published_at": _published_late, "source_high_watermark": _unread}


@dataclass(frozen=True)
class Case:
    """A scenario of the simulator up to a minute, and the alerts that fire for it."""

    name: str
    scenario: str
    minutes: float
    fires: frozenset[str] = frozenset()
    # true as well, and silenced by the inhibitions, or later than the run
    may: frozenset[str] = frozenset()
    troubles: Mapping[str, Any] = field(default_factory=dict)
    # ticks go on while Prometheus scrapes: only counters need that, and it costs a busy machine
    # much
    moves: bool = False
    is_evaluated: bool = True  # by the rules


def _case(
    name: str, scenario: str, minutes: float, *fires: str, may: Collection[str] = (), **more: Any
) -> Case:
    names = [frozenset(f"Laggard{each}" for each in group) for group in (fires, may)]
    return Case(name, scenario, minutes, *names, **more)


CASES = (
    _case("healthy", "LA13", 30, moves=True),
    _case("deploy", "SC17", 33),
    _case("capacity", "SC70", 30, "CapacityShort"),
    _case("hot-partition", "SC03b", 35, "ConcentratedLag"),
    _case("slow-member", "SC06", 40, "SlowMember"),
    _case("broker", "SC08", 36, "CoordinatorTrouble", may=["ConcentratedLag"]),
    _case("coordinator", "SC45", 20, "CoordinatorTrouble"),
    _case("stalled", "SC10", 25, "PartitionStalled"),
    _case(
        "poison",
        "SC12",
        40,
        "PoisonPill",
        "PollTimeoutEviction",
        may=["PartitionStalled", "RebalanceStorm"],
    ),
    _case("evictions", "SC13", 35, "PollTimeoutEviction", may=["RebalanceStorm"], moves=True),
    _case("storm", "SC16", 31, "RebalanceStorm", moves=True),
    _case("crashing", "SC15", 34, "CrashLoop", may=["RebalanceStorm"]),
    _case("restarts", "SC29", 60),  # a member leaves and returns each eight minutes
    _case("revoking", "SC30", 30, "RebalanceStuck", may=["PartitionStalled", "RebalanceStorm"]),
    _case("duplicate", "SC21", 32, "StaticDuplicate", may=["RebalanceStorm"]),
    _case("unowned", "SC36", 32, "PartitionUnowned"),
    _case("transaction", "SC42", 34, "TransactionStuck"),
    _case("static", "SC20", 22, "StaticMemberExpired"),
    _case("stopped", "SC33", 36, "EmptyWithLag"),
    _case("silent", "SC34", 26, "CommitsStopped"),
    _case("expiring", "SC25", 24, "OffsetsExpireSoon"),
    _case("futile", "SC04", 65, "ScaleOutFutile", "ConcentratedLag"),
    _case("ahead", "SC40", 19, "PartitionsUnknown"),
    _case("losing", "SC41a", 30, "DataLossNear", "PartitionStalled"),
    _case("lost", "SC41a", 36, "DataLost", "PartitionStalled", may=["DataLossNear"]),
    _case("blocked", "SC43", 24, "SourceBlocked"),
    _case(
        "late",
        "SC72",
        28,
        "SloFastBurn",
        "SloMediumBurn",
        "PartitionStalled",
        may=["SloSlowBurn"],
        moves=True,
    ),
    _case(
        "troubles",
        "LA13",
        30,
        "DeadLetters",
        "Gap",
        "KeysShed",
        "PollErrors",
        troubles=TROUBLES,
        moves=True,
    ),
    _case("busy", "LA13", 30, "BatchSlow", "SourceFallingBehind", troubles=BUSY, moves=True),
    _case("no-rules", "LA13", 30, "RulesBehind", is_evaluated=False),
)


@dataclass(frozen=True)
class History:
    """What Prometheus said."""

    shown: list[Shown]
    fired: dict[str, set[str]]  # cluster → alerts
    reasons: dict[str, bool]


def fired(server: Prometheus) -> dict[str, set[str]]:
    """Alerts that have fired until now, by cluster; those without one under an empty name."""
    found: dict[str, set[str]] = {}
    for labels, _ in server.now(FIRED):
        found.setdefault(labels.get("cluster", ""), set()).add(labels["alertname"])
    # by these shortened rules one scrape that a busy machine missed is five minutes without an
    # exporter
    return {cluster: alerts - {"LaggardExporterAbsent"} for cluster, alerts in found.items()}


def missing(found: Mapping[str, set[str]], cases: Collection[Case]) -> dict[str, set[str]]:
    """Alerts that have not fired yet."""
    lacks = {each.name: set(each.fires - found.get(each.name, set())) for each in cases}
    return {name: alerts for name, alerts in lacks.items() if alerts}


def config_text(roots: Collection[SimulatedRoot]) -> str:
    """The exporter's configuration."""
    lines = [
        "[job]", "tick_seconds = 2", "[exporter]", ("tables = "
            f"{json.dumps([str(each.folder) for each in roots])}"),
        "max_age_seconds = 86400", "[logging]", 'format = "text"',
    ]  # fmt: skip
    for each in roots:
        if each.slo:
            lines += [
                "[[policy]]",
                f'cluster = "{each.name}"',
                'match = "*"',
                f"slo_time_lag_seconds = {each.slo}",
            ]
    return "\n".join([*lines, ""])


def run(folder: Path, cases: Collection[Case] = CASES, reasons: Collection[str] = ()) -> History:
    """Simulate all clusters, then serve and scrape them until everything expected has fired."""
    begun = time.monotonic()
    seen = simulate_all((each.scenario, each.minutes) for each in cases)
    print(f"{len(seen)} simulated clusters, {time.monotonic() - begun:.0f} s", file=sys.stderr)
    roots = [
        SimulatedRoot(
            folder / each.name,
            seen[each.scenario, each.minutes],
            each.troubles,
            each.name,
            each.is_evaluated,
        )
        for each in cases
    ]
    moving = [root for root, case in zip(roots, cases, strict=True) if case.moves]
    for each in roots:
        each.play(0 if each in moving else KEPT_TICKS - 1)
    (folder / "laggard.toml").write_text(config_text(roots), encoding="utf-8")
    words = [sys.executable, "-m", "laggard", "export", "--config", str(folder / "laggard.toml")]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "exporter.log").open("wb"))
        exporter = start_guarded([*words, "--listen", "127.0.0.1:0"], log)
        stack.callback(await_end, exporter, 10)
        stack.callback(exporter.terminate)
        limit, found = time.monotonic() + patient(30), None
        while not found:
            assert time.monotonic() < limit, (folder / "exporter.log").read_text()
            time.sleep(0.2)
            found = re.search(r"http://(\S+)/metrics", (folder / "exporter.log").read_text())
        server = stack.enter_context(Prometheus(folder / "prometheus", [found[1]], 1))
        while len(server.now("laggard_ready == 1")) < len(roots):
            assert time.monotonic() < limit + patient(30), (folder / "exporter.log").read_text()
            time.sleep(1)
        start = time.time()
        for number in range(1, KEPT_TICKS):
            time.sleep(max(0.0, start + number * TICK_SECONDS - time.time()))
            for each in moving:
                each.play(number)
        shown_at = time.time()
        limit = time.monotonic() + patient(FIRE_SECONDS)
        while missing(fired(server), cases) and time.monotonic() < limit:
            time.sleep(1)
        shown = list(ask(server, start, shown_at))
        return History(
            shown, fired(server), {each: bool(server.now(each, shown_at)) for each in reasons}
        )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        chosen = [each for each in CASES if not sys.argv[2:] or each.name in sys.argv[2:]]
        history = run(Path(sys.argv[1] if sys.argv[1:] else made), chosen)
    for case in chosen:
        have = history.fired.get(case.name, set())
        print(f"{case.name:16} lacks {sorted(case.fires - have)} more {sorted(have - case.fires)}")
    print("no cluster:", history.fired.get(""))
    for each in history.shown:
        if not each.series:
            print(each.board, each.title, each.letter, each.expression[:150])
