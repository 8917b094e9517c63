"""A drill in the demo: health first, then the trouble, then what the diagnosis says of it."""

from __future__ import annotations

from collections.abc import Callable

from laggard.demo.answers import Answers, typed
from laggard.demo.config_text import DRILL_TIMINGS
from laggard.demo.scenarios import Scenario

HEALTHY_SECONDS = 5.0 * DRILL_TIMINGS["window_seconds"]  # what is usual has to be seen before what is not
REST_SECONDS = 2.0 * DRILL_TIMINGS["window_seconds"]  # so that the end shows a window evaluated with the finding open
LIMIT_SECONDS = 300.0
SHOWN_FINDINGS = 4
FINDINGS = (
    "select at, event, severity, code, role, topic, partitions, subject from findings"
    " where \"group\" = '{}' order by at desc, role desc"
)
VERDICT = (
    "select window_end, primary_code, scale_verdict from group_windows"
    " where \"group\" = '{}' order by window_end desc limit 1"
)


class Drill:
    """Follows one drill; seconds are those since the demo began."""

    def __init__(self, scenario: Scenario, answers: Answers, tables: str, give_cue: Callable[[], None]) -> None:
        self._scenario = scenario
        self._answers = answers
        self._tables = tables
        self._give_cue = give_cue
        self._seen_at: float | None = None
        self._cue_at: float | None = None
        self._said_at: float | None = None
        self._findings: list[str] = []

    def watch(self, seconds: float) -> str:
        """Look at the tables, and give the cue when it is time; a sentence when something has happened."""
        self._seen_at = seconds if self._seen_at is None else self._seen_at
        self._findings = self._ask(FINDINGS)
        if self._cue_at is None:
            if seconds - self._seen_at < HEALTHY_SECONDS:
                return ""
            self._cue_at = seconds
            self._give_cue()
            return f"the trouble begins: {self._scenario.help}"
        if self._said_at is None and all(any(code in line for line in self._findings) for code in self._scenario.codes):
            self._said_at = seconds
            return f"the diagnosis has said {' and '.join(self._scenario.codes)} after {seconds - self._cue_at:.0f} s"
        return ""

    def is_over(self, seconds: float) -> bool:
        """True if the diagnosis has answered, or has had long enough."""
        if self._said_at is not None:
            return seconds - self._said_at >= REST_SECONDS
        return self._cue_at is not None and seconds - self._cue_at >= LIMIT_SECONDS

    def lines(self) -> list[str]:
        """The newest findings of the group in trouble."""
        if len(self._findings) < 2:  # the header alone
            return ["", f"no finding about {self._scenario.group} yet", ""]
        return ["", *self._findings[: 1 + SHOWN_FINDINGS], ""]

    def end_lines(self, command: str) -> list[str]:
        """The last window's verdict, and the page of `laggard explain`."""
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
