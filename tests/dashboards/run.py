"""One live run: broker, workload, job, two exporters, Prometheus; panels and alerts as they were at
its end.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dashboards.prometheus import Prometheus
from dashboards.queries import Shown, ask
from dashboards.workload import HEALTHY, REWOUND, WORKLOAD
from laggard.demo.answers import HEALTHY_SECONDS
from laggard.demo.broker import Broker
from laggard.demo.children import Child, stop_children
from laggard.demo.config_text import DRILL_PACE, config_text
from patience import patient

TESTS = Path(__file__).parents[1]
HOT = "fraud"  # its pages are the pictures
START_SECONDS, CALM_SECONDS, DRILL_SECONDS, END_SECONDS = 60, 120, 240, 40
CAUGHT_UP_RECORDS = 2000  # of all groups, as two exporters show them
Children = dict[str, Child]
Look = Callable[[Prometheus, float, float], None]
# at a load of 2 for each core the times of job, rules and drills are twice as long, and so on
SLOWER = int(
    os.environ.get("SLOWER")
    or min(5, max(1, round(os.getloadavg()[0] / len(os.sched_getaffinity(0)))))
)
MORE = f"""
[[policy]]
match = "{HEALTHY}"
slo_time_lag_seconds = {10 * SLOWER}
owner = "ann"
team = "shop"
[[policy]]
match = "billing"
slo_time_lag_seconds = {10 * SLOWER}
"""
SHORT_OF_ROOM = "metrics.max_series=1000"
# who shall fire: alert → groups, or "" where it is about the cluster or a process
SICK: dict[str, set[str]] = {
    "LaggardSloFastBurn": {"billing"},
    "LaggardSloMediumBurn": {"billing"},
    "LaggardDataLost": {"archive", "resetter"},
    "LaggardDataLossNear": {"fraud"},
    "LaggardOffsetsExpireSoon": {"archive", "reporting"},
    "LaggardPartitionStalled": {"shipping"},
    "LaggardCommitsStopped": {"mailer"},
    "LaggardEmptyWithLag": {"reporting"},
    "LaggardConcentratedLag": {"fraud"},
    "LaggardCapacityShort": {"billing"},
    "LaggardRebalanceStorm": {"search"},
    "LaggardPartitionsUnknown": {"traveller"},
    "LaggardSourceBlocked": {""},
    "LaggardDeadLetters": {""},
    "LaggardSeriesShed": {""},
}
AT_THE_END = {"LaggardBlind": {""}, "LaggardExporterAbsent": {""}}
LATER = {"LaggardSloSlowBurn": {"billing"}}  # true as well, if the run takes longer
BEHIND = f'sum(laggard_group_lag_records{{group!="{REWOUND}"}})'
# the small exporter is short of room from the start
AT_START = (
    'ALERTS{alertstate="firing", alertname!="LaggardSeriesShed"} or '
    "absent(laggard_findings_timestamp_seconds)"
)
FIRED = 'max by (alertname, group) (max_over_time(ALERTS{{alertstate="firing"}}[{}s]))'


@dataclass(frozen=True)
class Outcome:
    """What Prometheus said."""

    shown: list[Shown]
    reasons: dict[str, bool]  # expression that explains an empty panel → does it hold
    fired: dict[str, set[str]]  # alert → groups, at any time once all groups had caught up
    logs: str


def fired(server: Prometheus, start: float) -> dict[str, set[str]]:
    """All alerts that have fired since then, with their groups."""
    found: dict[str, set[str]] = {}
    for labels, _ in server.now(FIRED.format(round(time.time() - start))):
        found.setdefault(labels["alertname"], set()).add(labels.get("group", ""))
    return found


def lacks(wanted: dict[str, set[str]], found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Those of `wanted` that are not in `found`."""
    missing = {name: groups - found.get(name, set()) for name, groups in wanted.items()}
    return {name: groups for name, groups in missing.items() if groups}


def wait(
    condition: Callable[[], object],
    seconds: float,
    children: dict[str, Child],
    says: Callable[[], object],
) -> bool:
    """Wait until it holds or the time is over; an ended child is an error."""
    limit = time.monotonic() + seconds
    while not condition():
        for child in children.values():
            child.check()
        if time.monotonic() > limit:
            print("not in time:", says(), file=sys.stderr)
            return False
        time.sleep(1)
    return True


@contextmanager
def everything(folder: Path) -> Iterator[tuple[Prometheus, Children]]:
    """Start all of it, in the folder."""
    with ExitStack() as stack:
        properties = {"group.initial.rebalance.delay.ms": "0", "offsets.retention.minutes": "600"}
        broker = stack.enter_context(Broker(folder / "kafka", properties=properties))
        config = folder / "laggard.toml"
        text = config_text(folder, broker.bootstrap_servers, WORKLOAD, SLOWER)
        # rebalances less than 10 s apart are one, at any pace: five of them do not fit into a
        # minute
        pace = DRILL_PACE / SLOWER
        text = text.replace(f"pace = {pace}\n", f"pace = {pace / 2}\n")
        text += f"{MORE}[exporter]\nmax_age_seconds = {30 * SLOWER}\n"
        config.write_text(text, encoding="utf-8")
        # of the children
        os.environ["PYTHONPATH"] = os.pathsep.join(str(path) for path in (TESTS, TESTS / "wire"))
        children = Children()
        stack.callback(stop_children, children, 20.0)
        export = ["laggard", "export", "--config", str(config), "--listen", "127.0.0.1:0"]
        for name, words in (
            ("exporter", export),
            ("small", [*export, "--set", SHORT_OF_ROOM]),
            ("load", ["dashboards.workload", broker.bootstrap_servers]),
            ("job", ["laggard", "run", "--config", str(config)]),
        ):
            children[name] = Child(name, words, folder, None)
        targets: list[str] = []

        def served() -> bool:
            found = [
                re.search(r"http://(\S+)/metrics", children[name].printed())
                for name in ("exporter", "small")
            ]
            targets[:] = [each[1] for each in found if each]
            return len(targets) == 2

        wait(served, patient(30), children, lambda: "the exporters' addresses")
        yield stack.enter_context(Prometheus(folder / "prometheus", targets, SLOWER)), children


def run(folder: Path, reasons: Collection[str] = (), look: Look | None = None) -> Outcome:
    """Run all of it; `look` is called with the server when all trouble is on the screen."""
    with everything(folder) as (server, children):
        healthy = f'laggard_group_lag_records{{group="{HEALTHY}"}}'
        is_up = wait(
            lambda: server.now(healthy),
            patient(START_SECONDS),
            children,
            children["job"].last_words,
        )
        assert is_up, f"no lag of {HEALTHY} yet"
        # what piled up while the consumers started, and alerts on a job that had shown nothing yet
        calm = f"({BEHIND} < {CAUGHT_UP_RECORDS}) unless on () ({AT_START})"
        wait(
            lambda: server.now(calm),
            SLOWER * CALM_SECONDS,
            children,
            lambda: server.now(f"{AT_START} or {BEHIND}"),
        )
        start = time.time()
        time.sleep(SLOWER * HEALTHY_SECONDS)  # what is usual has to be seen before what is not
        children["load"].send(signal.SIGUSR1)

        def missing() -> dict[str, set[str]]:
            return lacks(SICK, fired(server, start))

        wait(lambda: not missing(), SLOWER * DRILL_SECONDS, children, missing)
        end = time.time()
        shown = list(ask(server, start, end))
        holds = {each: bool(server.now(each)) for each in reasons}
        if look:
            look(server, start, end)
        for name, alert in (("job", "LaggardBlind"), ("exporter", "LaggardExporterAbsent")):
            stopped = {name: children.pop(name)}
            stopped |= {"small": children.pop("small")} if name == "exporter" else {}
            stop_children(stopped, 20.0)
            wait(
                lambda alert=alert: alert in fired(server, start),
                SLOWER * END_SECONDS,
                children,
                lambda alert=alert: alert,
            )
        logs = "\n".join(path.read_text(errors="replace")[-3000:] for path in folder.glob("*.log"))
        return Outcome(shown, holds, fired(server, start), logs)
