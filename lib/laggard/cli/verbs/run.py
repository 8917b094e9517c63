"""laggard run: the streaming job, in this process."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from laggard.cli.text.envelope import json_answer
from laggard.errors import CONFIGURATION, INTERRUPTED, OK, LaggardError

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.stream.job.query import Job

_LOOK_SECONDS = 0.2


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "run",
        help="run the job",
        description="Read the offsets topic, write the tables; until SIGTERM or Ctrl-C.",
    )
    ways = parser.add_mutually_exclusive_group()
    text = (
        "read what is there now, publish it, and end; with 75 if the cluster does not answer for "
        "two minutes"
    )
    ways.add_argument("--once", action="store_true", help=text)
    ways.add_argument(
        "--check",
        choices=("live", "ready"),
        help="run nothing: look at job.heartbeat_file, exit with 0 if the job makes progress (and "
        "published), else 1",
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Run the job until stopped, or look at the running job."""
    if args.check:
        return _check(config, ready=args.check == "ready", is_json=args.json)
    return run_job(config, once=args.once)


def _check(config: Config, *, ready: bool, is_json: bool) -> int:
    from laggard.stream.job.heartbeat import check

    if not config.job.heartbeat_file:
        raise LaggardError(
            "there is no heartbeat to look at",
            cause="job.heartbeat_file is empty",
            fix="export LAGGARD_JOB__HEARTBEAT_FILE=/tmp/laggard-heartbeat.json, for the job too",
            exit_code=CONFIGURATION,
        )
    is_good, sentence = check(config.job.heartbeat_file, ready=ready)
    print(json_answer({"sentence": sentence}, is_ok=is_good) if is_json else sentence)
    return OK if is_good else 1


def run_job(config: Config, *, once: bool = False) -> int:
    """Run the job with its signals: SIGTERM (exit 0) and Ctrl-C (130) end it between two batches.

    It runs in a thread of its own: Spark would set its handler for Ctrl-C in the main one, and what
    is late can be cut off from here.
    """
    from laggard.config import require_brokers

    require_brokers(config)
    from laggard.stream.job.query import Job  # brings Spark along
    from laggard.stream.job.session import start_session

    job = Job(config, once=once)
    for number, code in ((signal.SIGTERM, OK), (signal.SIGINT, INTERRUPTED)):
        signal.signal(number, partial(_stop, job, code))
    start = partial(start_session, config.job.master, config.job.spark, config.cluster.security)
    return run_in_thread(job, partial(job.run, start))


def _stop(job: Job, code: int, *_: Any) -> None:
    job.stop(code)


def run_in_thread(job: Job, run: Callable[[], int]) -> int:
    """Run the job and return its exit code.

    A job that is stuck, or does not end in time after a stop, is cut off.
    """
    ended: list[int | BaseException] = []

    def keep() -> None:
        try:
            ended.append(run())
        except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
            ended.append(error)

    thread = Thread(target=keep, name="job", daemon=True)
    thread.start()
    while thread.is_alive() and not job.is_overdue() and not job.is_stuck():
        thread.join(_LOOK_SECONDS)
    if not ended:
        return job.cut_off()
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]
