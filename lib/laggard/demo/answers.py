"""Answers of the demo: three SQL questions, lines of a scrape at its end, results of a drill.

The results of a drill are those of the rules.
"""

from __future__ import annotations

import http.client
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from laggard.demo.config_text import DRILL_TIMINGS
from laggard.demo.scenarios import Scenario
from laggard.exporter.snapshot import Snapshot

SAMPLES = (
    re.compile(r'laggard_group_lag_records\{.*group="reporting"'),
    re.compile(r'laggard_partition_lag_records\{.*group="fraud".*partition="2"'),
    re.compile(r'laggard_group_generation\{.*group="mailer"'),
)
QUESTIONS = {
    "Which groups are worst now?": (
        'select "group", group_state, members, lag, round(max_time_lag_seconds, 1) as '
        "time_lag_seconds"
        " from group_status order by lag desc nulls last limit 5"
    ),
    "Is fraud behind everywhere, or on one partition?": (
        "select topic, partition, count(*) as windows, max(lag_max) as lag_max,"
        " round(avg(arrival_rate), 1) as arrival_rate, round(avg(consume_rate), 1) as consume_rate"
        " from lag_windows where \"group\" = 'fraud' group by topic, partition order by lag_max "
        "desc"
    ),
    "Why does mailer rebalance, and what does it cost?": (
        "select date_trunc('second', ended_at) as ended_at, cause, members_before, members_after, "
        "moved, paused_partitions, round(pause_max_seconds, 1) as pause_max_seconds from "
        "rebalances where \"group\" = 'mailer' order by ended_at desc limit 8"
    ),
}

# what is usual has to be seen before what is not
HEALTHY_SECONDS = 5.0 * DRILL_TIMINGS["window_seconds"]
# so that the end shows a window evaluated with the finding open
REST_SECONDS = 2.0 * DRILL_TIMINGS["window_seconds"]
LIMIT_SECONDS = 300.0
SHOWN_FINDINGS = 4
FINDINGS = (
    "select at, event, severity, code, role, topic, partitions, subject from findings"
    " where \"group\" = '{}' order by at desc, role desc"
)
VERDICT = (
    "select window_end, primary_code, scale_verdict from group_windows where \"group\" = '{}' "
    "order by window_end desc limit 1"
)


@dataclass(frozen=True)
class Answers:
    """Functions that read the tables: those behind the verbs."""

    snapshot: Callable[[str], Snapshot]
    status_lines: Callable[[Snapshot], list[str]]
    query_lines: Callable[[str, str], list[str]]  # tables, SQL
    explain_lines: Callable[[str], list[str]]  # group
    worst_group: Callable[[Snapshot], str]
    finding_lines: Callable[[], list[str]]  # those that are open


def has_answers(answers: Answers, tables: str) -> bool:
    """Return True if every question has a row by now, below the titles."""
    return all(len(answers.query_lines(tables, sql)) > 1 for sql in QUESTIONS.values())


def verb_lines(answers: Answers, snapshot: Snapshot, command: str) -> list[str]:
    """Return the page of the worst group and the open findings, each below its command.

    The command is the one that prints it.
    """
    worst = answers.worst_group(snapshot)
    lines = ["", f"What is wrong with {worst}, and what to do?", *typed(command, "explain", worst)]
    lines += [f"  {line}".rstrip() for line in answers.explain_lines(worst)]
    lines += ["", "What did the rules find in all groups?", *typed(command, "findings", "--open")]
    return lines + [f"  {line}" for line in answers.finding_lines()]


def typed(command: str, *words: str) -> list[str]:
    """Return the command line that prints an answer; none if its tables will have been removed."""
    if command:
        return [f"  {command} {shlex.join(words)}", ""]
    return [""]


def command_of(folder: Path) -> str:
    """Return a command that runs laggard on the demo's tables, from where the demo was started."""
    script = Path(sys.executable).with_name("laggard")
    if shutil.which("laggard") == str(script):
        words = ["laggard"]
    else:
        words = [_from_here(script)]
        if not script.exists():
            words = [_from_here(Path(sys.executable)), "-m", "laggard"]
    return shlex.join([*words, "--config", _from_here(folder / "laggard.toml")])


def _from_here(path: Path) -> str:
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def question_lines(answers: Answers, tables: str, command: str) -> list[str]:
    """Return each question, the command that asks it, and the answer."""
    lines = []
    for question, sql in QUESTIONS.items():
        lines += ["", question, *typed(command, "query", sql)]
        lines += [f"  {line}" for line in answers.query_lines(tables, sql)]
    return lines


def sample_lines(url: str) -> list[str]:
    """Return some lines of a scrape."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except OSError as error:
        return [f"no answer: {error}"]
    finally:
        connection.close()
    return [line for wanted in SAMPLES if (line := next(filter(wanted.match, lines), ""))]


class Drill:
    """Follows one drill; seconds are those since the demo began."""

    def __init__(
        self, scenario: Scenario, answers: Answers, tables: str, give_cue: Callable[[], None]
    ) -> None:
        self._scenario = scenario
        self._answers = answers
        self._tables = tables
        self._give_cue = give_cue
        self._seen_at: float | None = None
        self._cue_at: float | None = None
        self._said_at: float | None = None
        self._findings: list[str] = []

    def watch(self, seconds: float) -> str:
        """Look at the tables, and give the cue when it is time.

        Return a sentence after an event, else "".
        """
        if self._seen_at is None:
            self._seen_at = seconds
        self._findings = self._ask(FINDINGS)
        if self._cue_at is None:
            if seconds - self._seen_at < HEALTHY_SECONDS:
                return ""
            self._cue_at = seconds
            self._give_cue()
            return f"the trouble begins: {self._scenario.help}"
        findings = "\n".join(self._findings)
        if self._said_at is None and all(code in findings for code in self._scenario.codes):
            self._said_at = seconds
            return (
                f"the diagnosis has said {' and '.join(self._scenario.codes)} after "
                f"{seconds - self._cue_at:.0f} s"
            )
        return ""

    def is_over(self, seconds: float) -> bool:
        """Return True if the diagnosis has answered, or has had enough time to."""
        if self._said_at is not None:
            return seconds - self._said_at >= REST_SECONDS
        return self._cue_at is not None and seconds - self._cue_at >= LIMIT_SECONDS

    def lines(self) -> list[str]:
        """Return the newest findings of the group in trouble."""
        if len(self._findings) < 2:  # the header alone
            return ["", f"no finding about {self._scenario.group} yet", ""]
        return ["", *self._findings[: 1 + SHOWN_FINDINGS], ""]

    def end_lines(self, command: str) -> list[str]:
        """Return the last window's verdict, and the page of `laggard explain`."""
        group = self._scenario.group
        return [
            "",
            *self._ask(VERDICT),
            "",
            f"laggard explain {group}",
            *typed(command, "explain", group),
            *self._answers.explain_lines(group),
        ]

    def _ask(self, sql: str) -> list[str]:
        return self._answers.query_lines(self._tables, sql.format(self._scenario.group))
