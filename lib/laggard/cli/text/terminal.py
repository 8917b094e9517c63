"""Output on a terminal: colour by severity, fitting width, live screen; a pipe gets plain text."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from laggard.answers.text.words import duration
from laggard.cli.text.table import GAP, Table
from laggard.tables.freshness import is_fresh, max_age
from laggard.tables.published import Batch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from laggard.config import Config

T = TypeVar("T")
STYLES = {
    "page": "bold red", "fail": "bold red", "warn": "yellow", "behind": "yellow",
    "unknown": "magenta",
    "info": "cyan", "ok": "green",
}  # fmt: skip
_COLORED = ("HEALTH", "SEVERITY")  # their words choose the color, of the next column too
_LOOK_SECONDS = 0.2  # between two looks at the size
_NEW_LINE = "\r\x1b[K"


def console(*, no_color: bool) -> Console | None:
    """Return the terminal; None if the output is none, or a dumb one: it gets plain text."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, no_color=no_color or None)


def show(tables: Sequence[Table], *, no_color: bool) -> None:
    """Print tables, for a terminal only the columns that fit."""
    terminal = console(no_color=no_color)
    for table in tables:
        if terminal is None:
            print("\n".join(table.lines()))
        else:
            for line in fitted(table, terminal.width):
                terminal.print(line, no_wrap=True)


def show_lines(lines: Iterable[str], style_of: Callable[[str], str], *, no_color: bool) -> None:
    """Print lines, for a terminal each in its style."""
    terminal = console(no_color=no_color)
    for line in lines:
        if terminal is None:
            print(line)
        else:
            terminal.print(line, style=style_of(line) or None, soft_wrap=True)


def watch(read: Callable[[], Table], seconds: float, *, no_color: bool) -> None:
    """Show a table again and again until Ctrl-C; a terminal keeps what it showed before."""
    terminal = console(no_color=no_color)
    if terminal is None:
        while True:
            print("\n".join(read().lines()), flush=True)
            time.sleep(seconds)
    from rich.live import Live
    from rich.text import Text

    with (
        Live(
            Text("reading the tables …"), console=terminal, screen=True, auto_refresh=False
        ) as live,
        _ended_by(live),
    ):
        live.refresh()
        while True:
            with redirect_stderr(io.StringIO()) as notes:  # a warning would tear the screen
                table = read()
            size, until = None, time.monotonic() + seconds
            while time.monotonic() < until:
                if size != terminal.size:
                    size = terminal.size
                    lines = fitted(table, size.width, size.height, notes.getvalue().splitlines())
                    live.update(Text("\n").join(lines), refresh=True)
                time.sleep(_LOOK_SECONDS)


def fitted(table: Table, columns: int, height: int = 0, notes: Sequence[str] = ()) -> list[Text]:
    """Return lines that fit the terminal's width and height.

    Hidden columns and rows are counted or named.
    """
    from rich.text import Text

    if not table.titles:
        return [Text(table.sentence, style="bold")]
    titles = table.fitting(columns)
    hidden = [title for title in table.titles if title not in titles]
    notes = [*notes, *([f"too narrow for: {', '.join(hidden)}"] if hidden else [])]
    limit = _rows_within(table, height - len(notes) - 3) if height else table.limit
    lines = [Text(table.sentence, style="bold"), *_colored_rows(table, titles, limit)]
    lines += [Text(line, style="dim") for line in (*table.more(limit), *notes)]
    for line in lines:
        line.truncate(columns, overflow="ellipsis")
    return lines[:height] if height else lines


def _rows_within(table: Table, room: int) -> int:
    """Limit the rows to those that have room, one at least; 0 is no limit."""
    room = max(1, room)
    if len(table.rows) <= room:
        return table.limit
    return min(table.limit, room) if table.limit else room


def _colored_rows(table: Table, titles: Sequence[str], limit: int) -> Iterator[Text]:
    """Yield the head and the rows; the health of a row colours its cell and the next one."""
    from rich.text import Text

    head, *rows = table.padded(titles, limit)
    yield Text(GAP.join(head), style="dim")
    colored = next((titles.index(name) for name in _COLORED if name in titles), None)
    for cells in rows:
        style = "" if colored is None else STYLES.get(cells[colored].strip(), "")
        parts = [
            Text(
                cell,
                style=style if colored is not None and colored <= column <= colored + 1 else "",
            )
            for column, cell in enumerate(cells)
        ]
        yield Text(GAP).join(parts)


def progress(steps: Iterable[T], total: int, unit: str, *, no_color: bool) -> Iterator[T]:
    """Give the steps of a long work.

    A terminal shows the number, the speed, and the remaining time.
    """
    from rich import progress as shown
    from rich.console import Console
    from rich.text import Text

    class Rate(shown.ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.1f} {unit}/s")

    to = Console(stderr=True, no_color=no_color or None)
    bar = (
        shown.BarColumn(),
        shown.MofNCompleteColumn(),
        Rate(),
        "left",
        shown.TimeRemainingColumn(),
    )
    with shown.Progress(
        unit, *bar, console=to, transient=True, disable=not sys.stderr.isatty()
    ) as bar_shown:
        yield from bar_shown.track(steps, total=total)


@contextmanager
def waiting(*, is_quiet: bool = False, after_seconds: float = 2.0) -> Iterator[None]:
    """Show on a terminal the elapsed time of a read once it takes longer than `after_seconds`.

    The end of such a read is unknown.
    """
    if is_quiet or not sys.stderr.isatty():
        yield
        return
    done, to, begun = Event(), sys.stderr, time.monotonic()

    def show() -> None:
        if done.wait(after_seconds):
            return
        while True:
            to.write(
                f"{_NEW_LINE}laggard: reading the tables, {time.monotonic() - begun:.0f} s; "
                "Ctrl-C ends it"
            )
            to.flush()
            if done.wait(1.0):
                break
        to.write(_NEW_LINE)
        to.flush()

    shown = Thread(target=show, daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()


@contextmanager
def _ended_by(live: Any) -> Iterator[None]:
    """Give the terminal back when a signal ends the process."""

    def end(number: int, _: object) -> None:
        live.stop()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def warn_if_old(batch: Batch, config: Config) -> bool:
    """Return True if the numbers are current; else print a warning to standard error."""
    now, polled_at = time.time(), batch.clock_at.timestamp()
    limit = max_age(config.job.tick_seconds, config.exporter.max_age_seconds)
    is_current = is_fresh(polled_at, now, limit)
    if not is_current:
        age = duration(abs(now - polled_at))
        side = "old" if now > polled_at else "in the future"
        print(
            f"laggard: these numbers are {age} {side}: does the job run? (laggard doctor)",
            file=sys.stderr,
        )
    return is_current
