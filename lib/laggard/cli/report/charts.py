"""Charts of the HTML report as inline SVG: pure functions from values by time to text.

The same values give the same text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 170, 70, 10, 10, 22
STRIP = 30
_INNER = HEIGHT - TOP - BOTTOM
BINS = 480  # values of one chart: two pixels each
_SETTLING = 3  # windows at the end that may not have closed
MARK = 2  # pixels: marks that would lie on each other are one
UNWATCHED, PARTIAL, NOTHING = "unwatched", "partial", "nothing"
# those of the dashboards, by Okabe and Ito: safe for colour-blind readers
COLOURS = {
    "none": "#009E73",
    "single": "#56B4E9",
    "spread": "#0072B2",
    "mixed": "#F0E442",
    "concentrated": "#E69F00",
}
# read without colours
HEIGHTS = {shape: (place + 1) / len(COLOURS) for place, shape in enumerate(COLOURS)}


@dataclass(frozen=True, slots=True)
class Span:
    """Time of a page, cut into bins of whole windows; it begins where a window does."""

    begin: datetime
    end: datetime
    window_seconds: int
    most: int = BINS

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), self.window_seconds)

    @property
    def step(self) -> int:
        return math.ceil(self.seconds / self.most / self.window_seconds) * self.window_seconds

    @property
    def count(self) -> int:
        return max(1, -int(-self.seconds // self.step))

    def place(self, at: datetime) -> int:
        """Return the number of the bin that contains a moment."""
        return int((at - self.begin).total_seconds() // self.step)

    def x(self, seconds: float) -> float:
        """Return the x coordinate in pixels of a time, given in seconds after the start."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(seconds / self.seconds, 0), 1), 1)

    def edges(self, first: int, last: int) -> tuple[float, float]:
        """Return the x coordinates in pixels of the start of one bin and of the end of another."""
        return self.x(first * self.step), self.x((last + 1) * self.step)


# by bin: a number or text, None if not fully known, UNWATCHED, or NOTHING if there was nothing to
# measure
Values = Sequence[float | str | None]


def on_grid(at: datetime, window_seconds: int) -> datetime:
    """Return the start of the window that contains a moment, so that no window is split."""
    return at - timedelta(seconds=at.timestamp() % window_seconds)


def drawn_to(windows: Sequence[Mapping[str, Any]], end: datetime, window_seconds: int) -> datetime:
    """Return the end of the newest window, unless a later window may have closed."""
    newest = max((row["window_end"] for row in windows), default=end)
    return newest if end - newest <= timedelta(seconds=_SETTLING * window_seconds) else end


def by_bin(
    span: Span, rows: Sequence[tuple[datetime, float | str | None]]
) -> list[float | str | None]:
    """Return the largest value of each bin.

    A bin is None if a value in it is unknown, UNWATCHED if it has no rows.
    """
    found: list[float | str | None] = [UNWATCHED] * span.count
    for at, value in rows:
        place = span.place(at)
        if 0 <= place < span.count:
            before = found[place]
            if before in (UNWATCHED, NOTHING):
                found[place] = value
            elif before is not None and value != NOTHING:
                found[place] = None if value is None else max(float(before), float(value))
    return found


def line(
    span: Span,
    values: Values,
    title: str,
    label: Callable[[float], str],
    nice: Callable[[float], float] | None = None,
    bounds: Collection[int] = (),
) -> Markup:
    """Return values over time as a line, broken at unknown values.

    The line is dashed in bins whose value is a lower bound.
    """
    top = (nice or _nice)(
        max((value for value in values if isinstance(value, (int, float))), default=1.0)
    )
    body = [*_bands(span, values, TOP, _INNER), *_grid(top, label)]
    for first, run in _runs(values, bounds):
        if isinstance(run[0], (int, float)):
            left, right = span.edges(first, first + len(run) - 1)
            middle = [sum(span.edges(first + n, first + n)) / 2 for n in range(len(run))]
            points = [(left, run[0]), *zip(middle, run, strict=True), (right, run[-1])]
            path = " ".join(f"{x:.1f},{_y(float(value or 0), top)}" for x, value in points)
            kind = "line bound" if first in bounds else "line"
            body.append(f'<polyline class="{kind}" points="{path}"/>')
    return _svg(span, body, title, HEIGHT)


def _grid(top: float, label: Callable[[float], str]) -> Iterator[str]:
    """Yield lines across the chart at nothing, half of the top and the top, each with its label."""
    for value in (0.0, 0.5 * top, top):
        y = _y(value, top)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{escape(label(value))}</text>'


def _y(value: float, top: float) -> float:
    return round(TOP + _INNER * (1 - min(value / top, 1)), 1)


def strip(span: Span, values: Values, title: str) -> Markup:
    """Return named states over time as bars, each with its colour and height.

    The title of a stretch is its state.
    """
    body = list(_bands(span, values, 2, STRIP))
    for first, run in _runs(values):
        state = run[0]
        if isinstance(state, str) and state != UNWATCHED:
            left, right = span.edges(first, first + len(run) - 1)
            high = round(STRIP * HEIGHTS.get(state, 1), 1)
            body.append(
                f'<rect x="{left}" y="{round(2 + STRIP - high, 1)}" width="{right - left:.1f}" '
                f'height="{high}" '
                f'fill="{COLOURS.get(state, "#999999")}"><title>{escape(state)}</title></rect>'
            )
    return _svg(span, body, title, STRIP + 2 + BOTTOM)


def marks(
    span: Span,
    rows: Sequence[tuple[datetime, float | None, str]],
    title: str,
    label: Callable[[float], str],
) -> Markup:
    """Return a chart of events with the value as height.

    An unknown value is a dashed line of full height.

    Of several at one place the highest is drawn.
    """
    top, inner = (
        _nice(max((value for _, value, _ in rows if value is not None), default=1.0)),
        _INNER,
    )
    body = [
        f'<text x="{LEFT - 6}" y="{TOP + 8}" text-anchor="end">{escape(label(top))}</text>',
        (
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{TOP + inner}" '
            f'y2="{TOP + inner}"/>'
        ),
    ]
    places: dict[tuple[bool, float], list[tuple[float | None, str]]] = defaultdict(list)
    for at, value, text in rows:
        x = span.x((at - span.begin).total_seconds())
        places[value is None, round(x / MARK) * MARK].append((value, text))
    for (is_unknown, x), found in sorted(places.items(), reverse=True):  # what is known in front
        value, text = max(found, key=lambda each: each[0] or 0)
        text += f" and {len(found) - 1} more here" if len(found) > 1 else ""
        high = inner if value is None else max(2.0, inner * min(value / top, 1))
        kind = "mark unknown" if is_unknown else "mark"
        body.append(
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP + inner}" '
            f'y2="{TOP + inner - high:.1f}">'
            f"<title>{escape(text)}</title></line>"
        )
    return _svg(span, body, title, HEIGHT)


def spark(values: Values) -> Markup:
    """Return a small line chart without axes, in which an unknown value is a gap."""
    top = max((value for value in values if isinstance(value, (int, float))), default=0.0) or 1.0
    body = []
    for first, run in _runs(values):
        if isinstance(run[0], (int, float)):
            points = " ".join(
                f"{first + n},{round(18 - 16 * float(value or 0) / top, 1)}"
                for n, value in enumerate(run)
            )
            more = (
                f" {first + 0.9},{round(18 - 16 * float(run[0] or 0) / top, 1)}"
                if len(run) == 1
                else ""
            )
            body.append(f'<polyline class="line" points="{points}{more}"/>')
    return Markup(  # noqa: S704 - numbers only
        f'<svg class="spark" viewBox="0 0 {len(values)} 20" preserveAspectRatio="none" '
        'aria-hidden="true">' + "".join(body) + "</svg>"
    )


def _runs(
    values: Values, bounds: Collection[int] = ()
) -> Iterator[tuple[int, list[float | str | None]]]:
    """Yield runs of neighbours of one kind.

    The kinds are numbers, lower bounds, equal texts, and unknown values.
    """

    def kind(numbered: tuple[int, float | str | None]) -> tuple[bool, float | str | None]:
        place, value = numbered
        return (place in bounds, "number") if isinstance(value, (int, float)) else (False, value)

    first = 0
    for _, members in groupby(enumerate(values), key=kind):
        run = [value for _, value in members]
        yield first, run
        first += len(run)


def _bands(span: Span, values: Values, top: int, high: int) -> Iterator[str]:
    for first, run in _runs(values):
        if run[0] is None or run[0] == UNWATCHED:
            left, right = span.edges(first, first + len(run) - 1)
            kind, says = (
                (PARTIAL, "not fully known") if run[0] is None else (UNWATCHED, "not watched")
            )
            begin = span.begin + timedelta(seconds=first * span.step)
            yield (
                f'<rect class="{kind}" x="{left}" y="{top}" width="{right - left:.1f}" '
                f'height="{high}">'
                f"<title>{says} from {begin:%Y-%m-%d %H:%M} UTC</title></rect>"
            )


def _svg(span: Span, body: Sequence[str], title: str, height: int) -> Markup:
    return Markup(  # noqa: S704 - numbers and texts that `escape` has seen
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
        + "".join([*body, *_times(span, height)])
        + "</svg>"
    )


def _times(span: Span, height: int) -> Iterator[str]:
    form = "%H:%M" if span.seconds <= 86_400 else "%m-%d %H:%M"
    for part in range(6):
        seconds = span.seconds * part / 5
        anchor = {0: "start", 5: "end"}.get(part, "middle")
        at = span.begin + timedelta(seconds=seconds)
        yield (
            f'<text x="{span.x(seconds)}" y="{height - 6}" '
            f'text-anchor="{anchor}">{at:{form}}</text>'
        )


def nice_seconds(value: float) -> float:
    """Return the next round duration of at least this many seconds."""
    known = (1, 2, 5, 10, 20, 60, 120, 300, 600, 1200, 3600, 7200, 14_400, 43_200, 86_400)
    return next((float(each) for each in known if each >= value), 86_400 * _nice(value / 86_400))


def _nice(value: float) -> float:
    """Return the next number of 1, 2, 5, 10, 20, … that is at least the value."""
    size = 1.0
    while size * 10 <= value:
        size *= 10
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= value)
