"""Answers of the demo at its end: three questions in SQL, and some lines of a scrape."""

from __future__ import annotations

import http.client
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from laggard.exporter.snapshot import Snapshot

SAMPLES = (
    re.compile(r'laggard_group_lag_records\{.*group="reporting"'),
    re.compile(r'laggard_partition_lag_records\{.*group="fraud".*partition="2"'),
    re.compile(r'laggard_group_generation\{.*group="mailer"'),
)
QUESTIONS = {
    "Which groups are worst now?": (
        'select "group", group_state, members, lag, round(max_time_lag_seconds, 1) as time_lag_seconds'
        " from group_status order by lag desc nulls last limit 5"
    ),
    "Is fraud behind everywhere, or on one partition?": (
        "select topic, partition, count(*) as windows, max(lag_max) as lag_max,"
        " round(avg(arrival_rate), 1) as arrival_rate, round(avg(consume_rate), 1) as consume_rate"
        " from lag_windows where \"group\" = 'fraud' group by topic, partition order by lag_max desc"
    ),
    "Why does mailer rebalance, and what does it cost?": (
        "select date_trunc('second', ended_at) as ended_at, cause, members_before, members_after, moved,"
        " paused_partitions, round(pause_max_seconds, 1) as pause_max_seconds"
        " from rebalances where \"group\" = 'mailer' order by ended_at desc limit 8"
    ),
}


@dataclass(frozen=True)
class Answers:
    """Functions that read the tables: those behind `laggard status`, `laggard query` and `laggard explain`."""

    snapshot: Callable[[str], Snapshot]
    status_lines: Callable[[Snapshot], list[str]]
    query_lines: Callable[[str, str], list[str]]  # tables, SQL
    explain_lines: Callable[[str], list[str]]  # group


def has_answers(answers: Answers, tables: str) -> bool:
    """True if every question has a row by now, below the titles."""
    return all(len(answers.query_lines(tables, sql)) > 1 for sql in QUESTIONS.values())


def question_lines(answers: Answers, tables: str) -> list[str]:
    """Each question, the command that asks it, and the answer."""
    lines = []
    for question, sql in QUESTIONS.items():
        lines += ["", question, "  laggard query " + shlex.quote(sql), ""]
        lines += [f"  {line}" for line in answers.query_lines(tables, sql)]
    return lines


def sample_lines(url: str) -> list[str]:
    """Some lines of a scrape."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except OSError as error:
        return [f"no answer: {error}"]
    finally:
        connection.close()
    return [line for wanted in SAMPLES if (line := next(filter(wanted.match, lines), ""))]
