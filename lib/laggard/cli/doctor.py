"""`laggard doctor`: can it run here, is it safe to resume, and what to do if not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from laggard.escape import printable_json

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.doctor.result import Check, Result


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "doctor",
        help="can it run here, and what to do if not",
        description="Check machine, configuration, cluster and tables; exit 0 ok, 1 warnings, 2 failures.",
    )
    parser.add_argument("--trial", action="store_true", help="also run one batch of Spark's source (half a minute)")
    parser.add_argument(
        "--repair", action="store_true", help="give the tables a new checkpoint if theirs is damaged or missing"
    )
    parser.add_argument("--yes", action="store_true", help="repair without asking")


def run(args: argparse.Namespace, config: Config) -> int:
    """Print one line per finding; the worst of them is the exit code."""
    if args.repair:
        return _repair(config, is_agreed=args.yes)
    from laggard.doctor.result import exit_code, run_checks

    results = run_checks(checks(config, with_trial=args.trial))
    code = exit_code(results)
    if args.json:
        print(printable_json({"v": 1, "ok": code == 0, "data": [asdict(result) for result in results]}))
    else:
        print("\n".join(line for result in results for line in _lines(result)))
    return code


def _repair(config: Config, *, is_agreed: bool) -> int:
    """Print the plan, ask, and carry it out; 0 if nothing is left to repair, 1 if it was not agreed to."""
    from laggard.config import require_brokers
    from laggard.stream.repair import plan_repair
    from laggard.tables.lock import claim_tables, writer_lock

    require_brokers(config)
    with writer_lock(config.job.tables) as lease:
        claim_tables(config.job.tables, lease)
        repair = plan_repair(config, lease)
        if repair is None:
            print("nothing to repair: the checkpoint is whole and belongs to the tables")
            return 0
        print("\n".join([f"to repair: {repair.reason}", *(f"  - {step}" for step in repair.steps)]))
        if not is_agreed and not _agrees():
            print("nothing was changed; laggard doctor --repair --yes does it")
            return 1
        for line in repair.carry_out():
            print(line)
    return 0


def _agrees() -> bool:
    return sys.stdin.isatty() and input("go on? [y/N] ").strip().lower() in ("y", "yes")


def checks(config: Config, *, with_trial: bool = False) -> Iterator[tuple[str, Check]]:
    """Every check with its name, in the order of the report."""
    from laggard.doctor import principal, runtime, tables
    from laggard.tables.lock import local_path
    from laggard.tables.schemas import TABLES

    yield "java", runtime.check_java
    yield "packages", runtime.check_packages
    yield "PYSPARK_PYTHON", runtime.check_workers
    yield "jars", runtime.check_jars
    yield "memory", runtime.check_memory
    folder = local_path(config.job.tables)
    if folder is not None:
        yield "disk", partial(runtime.check_disk, folder)
    yield "bootstrap servers", partial(tables.check_bootstrap, config)
    yield principal.CHECK, partial(principal.check_security, config)
    yield "folders", partial(tables.check_folders, config)
    yield "exporter.listen", partial(tables.check_listen, config)
    yield "exporter.tables", partial(tables.check_roots, config)
    if config.cluster.bootstrap_servers:
        from laggard.doctor import clock, cluster, coordinators, rights, trial
        from laggard.sources.brokers import Brokers

        brokers = Brokers.of(config.cluster)
        asked = cluster.Cluster(config, brokers)
        is_admin = config.cluster.is_admin
        source = (coordinators.CHECK, coordinators.check_coordinators)
        if not is_admin:
            source = ("offsets topic", cluster.check_source)
        yield "brokers", asked.check_reach
        for name, check in {
            "advertised listeners": cluster.check_listeners,
            source[0]: source[1],
            "rights": rights.check_rights,
            clock.CHECK: clock.check_clock,
            **({"trial query": trial.check_trial} if with_trial and not is_admin else {}),
        }.items():
            yield name, partial(cluster.if_reached, asked, name, check)
        brokers.close()
    for name in TABLES:
        yield name, partial(tables.check_table, config, name)
    yield "newest batch", partial(tables.check_published, config)
    yield "maintenance", partial(tables.check_maintained, config)


def _lines(result: Result) -> Iterator[str]:
    yield f"{result.level:<4}  {result.check}: {result.fact}"
    if result.remedy:
        yield f"      fix: {result.remedy}"
