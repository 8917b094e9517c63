"""`laggard doctor`: can it run here, is it safe to resume, and what to do if not."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from laggard.answers.text.words import count, paragraph
from laggard.cli.asking.client import Remote, add_address
from laggard.cli.text import terminal
from laggard.cli.text.envelope import json_answer
from laggard.errors import OK, USAGE, LaggardError

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.doctor.result import Check, Result

RUNS = ("laggard can run here", "laggard cannot run here yet")  # without a failure, and with one


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "doctor",
        help="can it run here, and what to do if not",
        description="Check machine, configuration, cluster and tables; exit 0 ok, 1 warnings or "
        "not yet, 2 failures.",
    )
    parser.add_argument(
        "--trial", action="store_true", help="also run one batch of Spark's source (half a minute)"
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="give the tables a new checkpoint if theirs is damaged or missing",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="a line for each check, also for those that are all right",
    )
    parser.add_argument("--yes", action="store_true", help="repair without asking")
    add_address(
        parser.add_argument_group("a running exporter, in place of this machine and its cluster")
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print failures, pending results and a summary; the worst result is the exit code."""
    if args.url and (args.repair or args.trial):
        raise LaggardError(
            f"--url and {'--repair' if args.repair else '--trial'} exclude each other",
            cause="with --url only the exporter is looked at",
            fix=f"laggard doctor --url {args.url}",
            exit_code=USAGE,
        )
    if args.repair and args.json:
        raise LaggardError(
            "--repair has no answer in JSON", fix="laggard doctor --repair --yes", exit_code=USAGE
        )
    if args.repair:
        return _repair(config, is_agreed=args.yes)
    from laggard.doctor.result import exit_code, run_checks

    results = run_checks(served(args) if args.url else checks(config, with_trial=args.trial))
    code = exit_code(results)
    verdicts = ("the exporter serves", "the exporter does not serve all") if args.url else RUNS
    show(results, args, is_ok=code == OK, verdicts=verdicts)
    return code


def served(args: argparse.Namespace) -> Iterator[tuple[str, Check]]:
    """Yield the checks of the exporter at an address."""
    from laggard.doctor.served import CHECK, check_exporter

    yield CHECK, partial(check_exporter, Remote(args).ask)


def show(
    results: Sequence[Result],
    args: argparse.Namespace,
    *,
    is_ok: bool,
    verdicts: tuple[str, str],
) -> None:
    """Print the report, or the same as data."""
    if args.json:
        print(json_answer(results, is_ok=is_ok))
        return
    lines = report_lines(results, with_all=args.all)
    style = terminal.STYLES.get
    terminal.show_lines(
        [*lines, summary(results, verdicts)],
        lambda line: style(line.split(" ")[0], ""),
        no_color=args.no_color,
    )


def _repair(config: Config, *, is_agreed: bool) -> int:
    """Print the plan, ask, and carry it out.

    Return 0 if nothing is left to repair, 1 if the user did not agree.
    """
    from laggard.config import require_brokers
    from laggard.doctor.repair import plan_repair
    from laggard.tables.lock import claim_tables, writer_lock

    require_brokers(config)
    with writer_lock(config.job.tables) as lease:
        claim_tables(config.job.tables, lease)
        repair = plan_repair(config, lease)
        if repair is None:
            print("nothing to repair: the checkpoint is whole and belongs to the tables")
            return 0
        print("\n".join([f"to repair: {repair.reason}", *(f"  - {step}" for step in repair.steps)]))
        if not is_agreed and not (
            sys.stdin.isatty() and input("go on? [y/N] ").strip().lower() in {"y", "yes"}
        ):
            print("nothing was changed; laggard doctor --repair --yes does it")
            return 1
        for line in repair.carry_out():
            print(line)
    return 0


def checks(config: Config, *, with_trial: bool = False) -> Iterator[tuple[str, Check]]:
    """Yield every check with its name, in the order of the report."""
    from laggard.doctor import principal, runtime, tables
    from laggard.doctor.result import NEXT_START
    from laggard.tables.lock import local_path
    from laggard.tables.schema.schemas import TABLES

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
            NEXT_START: trial.check_next_start,
            **({"trial query": trial.check_trial} if with_trial and not is_admin else {}),
        }.items():
            yield name, partial(cluster.if_reached, asked, name, check)
        yield coordinators.ESTIMATE, partial(coordinators.check_estimate, asked)
        brokers.close()
    for name in TABLES:
        yield name, partial(tables.check_table, config, name)
    yield "newest batch", partial(tables.check_published, config)
    yield "quarantine", partial(tables.check_quarantine, config)
    yield "series", partial(tables.check_series, config)
    yield "maintenance", partial(tables.check_maintained, config)


def report_lines(results: Sequence[Result], *, with_all: bool = False) -> list[str]:
    """Return what the next start makes, failures and warnings one by one.

    Below them pending checks in one line, and passed checks by name; or each check `with_all`.
    """
    from laggard.doctor.result import NEXT_START

    of_kind: dict[str, list[Result]] = {"next": [], "fail": [], "warn": [], "ok": [], "ahead": []}
    for result in results:
        level = "next" if (result.level, result.check) == ("ok", NEXT_START) else result.level
        of_kind["ahead" if result.is_ahead else level].append(result)
    if with_all:
        rest = (result for result in results if result not in of_kind["next"])
        return [*chain.from_iterable(map(_lines, chain(of_kind["next"], rest)))]
    lines = [
        *chain.from_iterable(
            _lines(result) for kind in ("next", "fail", "warn") for result in of_kind[kind]
        )
    ]
    ahead, good = of_kind["ahead"], [result.check for result in of_kind["ok"]]
    if ahead:
        facts = "; ".join(f"{result.check}: {result.fact}" for result in ahead)
        lines += [*paragraph(facts, "later ", "      "), f"      fix: {ahead[0].remedy}"]
    return [*lines, *paragraph(", ".join(good), "ok    ", "      ")]


def summary(results: Sequence[Result], verdicts: tuple[str, str] = RUNS) -> str:
    """Count the results, and say where to begin."""
    faults = [result for result in results if result.level != "ok" and not result.is_ahead]
    failures = sum(result.level == "fail" for result in faults)
    ahead, good = (
        sum(result.is_ahead for result in results),
        sum(result.level == "ok" for result in results),
    )
    counted = (
        f"{count(failures, 'failure')}, {count(len(faults) - failures, 'warning')}, {ahead} not "
        f"yet, {good} ok"
    )
    worst = min(faults, key=lambda result: result.level != "fail", default=None)
    return f"{counted}: {verdicts[failures > 0]}" + (f"; begin with {worst.check}" if worst else "")


def _lines(result: Result) -> Iterator[str]:
    yield f"{result.level:<4}  {result.check}: {result.fact}"
    if result.remedy:
        yield f"      fix: {result.remedy}"
