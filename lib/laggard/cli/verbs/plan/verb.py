"""`laggard plan GROUP`: load, drain time and cost after a change of the group.

The change is in members, assignor, rate or partitions.
"""

from __future__ import annotations

import argparse
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from laggard.answers.text.times import HELP, when
from laggard.cli.parser import accept_spans
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import waiting
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE, LaggardError
from laggard.escape import escape_label
from laggard.rebalance.assignors import ASSIGNORS

if TYPE_CHECKING:
    from laggard.answers.explain.rows import Explained
    from laggard.answers.plan.answer import Answer
    from laggard.answers.plan.change import Change
    from laggard.config import Config

_REBALANCES = 100  # newest, by which pauses are known
_MOST = 10_000  # members or partitions: each is laid out
_TIMES = re.compile(r"[x×]?(\d+(?:\.\d+)?)", re.ASCII)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "plan",
        help="what if: load, drain time and cost with other members, assignor, rate or partitions",
        description="Forecast load of each member, drain time and cost of a change, from recorded "
        "history. Nothing is changed.",
    )
    accept_spans(parser)
    parser.add_argument("group", help="name of the group, as `laggard status` prints it")
    parser.add_argument(
        "--members", type=_positive, metavar="N", help="number of members (default: as many as now)"
    )
    parser.add_argument("--assignor", choices=sorted(ASSIGNORS), help="another assignor")
    parser.add_argument(
        "--partitions", type=_positive, metavar="P", help="number of partitions, more than now"
    )
    parser.add_argument(
        "--topic", metavar="TOPIC", help="the topic that gets them, if the group reads several"
    )
    parser.add_argument(
        "--rate",
        type=_times,
        default=1.0,
        metavar="X",
        help="factor on the arrival rate, as 1.5 or x1.5",
    )
    parser.add_argument(
        "--sweep", action="store_true", help="also load and drain time for each number of members"
    )
    parser.add_argument(
        "--at", type=when, metavar="TIME", help=f"start from the group at this time: {HELP}"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the page, or the same as data."""
    from laggard.answers.plan.answer import document_of
    from laggard.cli.text.terminal import warn_if_old
    from laggard.cli.verbs.explain import naming_odd_rows
    from laggard.cli.verbs.plan.page import page_lines

    with naming_odd_rows(args.group):
        with waiting(is_quiet=args.quiet):
            plan = _answer(args, config)
        text = json_answer(document_of(plan)) if args.json else "\n".join(page_lines(plan))
    if args.at is None:
        warn_if_old(plan.explained.batch, config)
    print(text)
    return OK


def _answer(args: argparse.Namespace, config: Config) -> Answer:
    from laggard.answers.explain.asked import Asked
    from laggard.answers.plan.answer import answer
    from laggard.answers.plan.change import partition_count
    from laggard.answers.plan.recorded import read_recorded
    from laggard.stream.evaluation.reading import Options

    root, seconds = config.job.tables, config.job.window_seconds
    asked = Asked(args.group, _REBALANCES, at=args.at)
    explained = asked.read(root, seconds)
    diagnosis = explained.diagnosis
    if not diagnosis.is_current or not diagnosis.windows or diagnosis.evaluated_to is None:
        raise _not_evaluated(explained, seconds, is_past=args.at is not None)
    begin_ms = round((diagnosis.evaluated_to - timedelta(seconds=seconds)).timestamp() * 1000)
    options = Options(
        explained.batch.cluster, seconds, config.diagnosis.thresholds, config.policies.of
    )
    recorded = read_recorded(root, explained.group["group"], begin_ms, options)
    if recorded is None or not recorded.signals.topics:
        raise _not_evaluated(explained, seconds, is_past=args.at is not None)
    counts = {
        topic.frame.topic: partition_count(recorded.signals, topic)
        for topic in recorded.signals.topics
    }
    change = _change(args, counts)
    if change.members is None and not recorded.signals.member_count:
        raise _no_members(explained, recorded.signals.member_count)
    _check_assignor(args.assignor, recorded.signals.frame.fact.get("group_type"))
    return answer(explained, diagnosis.windows[0], recorded, change, is_sweep=args.sweep)


def _change(args: argparse.Namespace, counts: dict[str, int]) -> Change:
    from laggard.answers.plan.change import Change

    topic = args.topic
    if args.partitions is not None:
        topic = _topic_with_more(topic, args.partitions, counts)
    elif topic is not None:
        raise LaggardError(
            f'--topic "{escape_label(topic)}" without --partitions',
            cause="--topic names the topic that gets more partitions",
            fix="--partitions P, or leave --topic out",
            exit_code=USAGE,
        )
    return Change(args.members, args.assignor, args.partitions, topic, args.rate)


def _topic_with_more(topic: str | None, partitions: int, counts: dict[str, int]) -> str:
    """Find the topic that gets so many partitions.

    It is the requested topic, or the only topic of the group.
    """
    if topic is None and len(counts) == 1:
        topic = next(iter(counts))
    if topic is None or topic not in counts:
        named = (
            "of which topic is not said"
            if topic is None
            else f'the group reads no topic "{escape_label(topic)}"'
        )
        names = ", ".join(map(escape_label, sorted(counts)))
        raise LaggardError(
            f"--partitions {partitions}: {named}",
            cause=f"topics of the group: {names}",
            fix=f"--topic {escape_label(min(counts))}",
            exit_code=USAGE if topic is None else NOT_FOUND,
        )
    if partitions <= counts[topic]:
        raise LaggardError(
            f'--partitions {partitions}: topic "{escape_label(topic)}" has {counts[topic]}',
            cause="Kafka adds partitions to a topic and never removes one",
            fix=f"--partitions {counts[topic] + 1} or more",
            exit_code=USAGE,
        )
    return topic


def _no_members(explained: Explained, count: int | None) -> LaggardError:
    return LaggardError(
        f'group "{escape_label(explained.group["group"])}" cannot be planned as it is',
        cause="it has no members" if count == 0 else "its number of members is not recorded",
        fix="--members N says for how many",
        exit_code=USAGE,
    )


def _check_assignor(assignor: str | None, group_type: str | None) -> None:
    """Check that the protocol has the assignor.

    KIP-848 groups have range and uniform, classic groups no uniform.
    """
    if assignor is None or group_type not in {"classic", "consumer"}:
        return
    possible = (
        ("range", "uniform")
        if group_type == "consumer"
        else tuple(sorted(set(ASSIGNORS) - {"uniform"}))
    )
    if assignor not in possible:
        raise LaggardError(
            f"--assignor {assignor}: the group's protocol ({group_type}) has none of that name",
            cause=f"it can have {', '.join(possible)}",
            fix=f"--assignor {possible[0]}",
            exit_code=USAGE,
        )


def _not_evaluated(explained: Explained, window_seconds: int, *, is_past: bool) -> LaggardError:
    from laggard.answers.text.words import short_duration

    evaluated_to = explained.diagnosis.evaluated_to
    # the window that is open may have begun before the group was seen: the next one is whole
    fix = (
        f"ask again in {short_duration(2 * window_seconds)} or a little more: the rules evaluate "
        "whole windows only"
    )
    if is_past:
        fix = "ask for a later moment, or leave --at out"
    elif explained.diagnosis.windows and explained.diagnosis.is_old:
        fix = f"ask for a moment that they have evaluated: --at {evaluated_to:%Y-%m-%dT%H:%M:%S}"
    newest = (
        "the rules have evaluated no window yet"
        if evaluated_to is None
        else f"the rules have evaluated to {evaluated_to}"
    )
    return LaggardError(
        f'nothing can be planned for group "{escape_label(explained.group["group"])}" as of this '
        "moment",
        cause=f"{newest}, and no window of this group near it",
        fix=fix,
        exit_code=TEMPORARY,
    )


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(
            f"expected a number from 1 to {_MOST:,}, got {text[:20]!r}"
        )
    return number


def _times(text: str) -> float:
    plan = _TIMES.fullmatch(text.strip())
    if plan is None or not 0 < float(plan[1]) <= 1e6:
        raise argparse.ArgumentTypeError(f"expected a factor such as 1.5 or x1.5, got {text!r}")
    return float(plan[1])
