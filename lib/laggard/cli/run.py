"""laggard run: the streaming job, in this process."""

from __future__ import annotations

import argparse
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laggard.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "run", help="run the job", description="Read the offsets topic, write the tables; until SIGTERM or Ctrl-C."
    )
    parser.add_argument("--once", action="store_true", help="read what is there now, publish it, and end")


def run(args: argparse.Namespace, config: Config) -> int:
    """Run the job until it is told to stop."""
    return run_job(config, once=args.once)


def run_job(config: Config, *, once: bool = False) -> int:
    """The job with its signals: SIGTERM and Ctrl-C end it between two batches, with exit code 0."""
    from laggard.config import require_brokers

    require_brokers(config)
    from laggard.stream.query import Job  # brings Spark along
    from laggard.stream.session import start_session

    job = Job(config, once=once)

    def stop(*_: Any) -> None:
        job.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return job.run(lambda: start_session(config.job.master, config.job.spark))
