"""Pictures of the dashboards, drawn from what Prometheus answered: `make pictures`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.dates as mdates
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

from dashboards.prometheus import Labels
from dashboards.queries import BOARDS, STEP, Samples, Shown

SAYS = "drawn by laggard from Prometheus data, not a Grafana screenshot"
GRID, UNIT_INCHES, WIDTH_INCHES = 24, 0.34, 16
LEGEND_INCHES, NARROW = 1.7, 7  # right of the lines, in panels that are wider
MOST_LEGENDS, MOST_LANES, FEW_ROWS, MOST_ROWS, LONGEST = 14, 24, 3, 14, 34
COLOURS_KEPT = 96  # a picture is a third as large then
OF_A_GROUP = ("laggard-group", "laggard-partition")
GREY = "#999999"
SMALL = {"fontsize": 5.5, "frameon": False, "borderaxespad": 0, "handlelength": 1.2}
COLOURS = [*mpl.colormaps["tab10"].colors, *mpl.colormaps["Dark2"].colors]
Drawn = list[tuple[str, Labels, Samples]]  # legend, labels, samples


def legend(text: str, labels: Labels) -> str:
    """The name of a series as Grafana makes it."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), text).strip()


def number(value: float, unit: str) -> str:
    """A value with its unit, short."""
    if math.isinf(value):
        return "never"
    if unit == "percentunit":
        return f"{value:.0%}"
    if unit == "bool_yes_no":
        return "yes" if value else "no"
    if unit == "s":
        sizes = ((86400, "d"), (3600, "h"), (60, "min"))
        return next(
            (f"{value / size:.3g} {name}" for size, name in sizes if abs(value) >= size),
            f"{value:.3g} s",
        )
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    return next(
        (f"{value / size:.3g}{name}" for size, name in sizes if abs(value) >= size), f"{value:.3g}"
    )


def states(panel: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """Text and colour of the numbers of a lane."""
    options = [each["options"] for each in panel["fieldConfig"]["defaults"]["mappings"]]
    return {
        int(key): (value["text"], value.get("color", GREY))
        for each in options
        for key, value in each.items()
        if key.isdigit()
    }


def times(samples: Samples) -> list[float]:
    """Days since 1970, as matplotlib counts."""
    return [at / 86400 for at, _ in samples]


def with_gaps(samples: Samples) -> Samples:
    """The samples with a NaN for each that is missing: unknown is not a straight line."""
    found: Samples = []
    for at, value in samples:
        if found and at - found[-1][0] > 1.5 * STEP:
            found.append((at - STEP / 2, math.nan))
        found.append((at, value if math.isfinite(value) else math.nan))
    return found


def lines(axes: Axes, panel: dict[str, Any], drawn: Drawn, unit: str) -> None:
    custom = panel["fieldConfig"]["defaults"]["custom"]
    axes.set_prop_cycle(color=COLOURS)
    stacked, bars = custom["stacking"]["mode"] == "normal", custom["drawStyle"] == "bars"
    low: dict[float, float] = {}
    for place, (name, _, samples) in enumerate(drawn):
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        shown = {"label": short if place < MOST_LEGENDS else "_", "linewidth": 1.0}
        if stacked:
            bottoms = [low.get(at, 0.0) for at, _ in samples]
            axes.bar(
                times(samples),
                [value for _, value in samples],
                STEP / 86400,
                bottoms,
                label=shown["label"],
            )
            low |= {at: low.get(at, 0.0) + value for at, value in samples}
        else:
            gapped = with_gaps(samples)
            axes.plot(times(gapped), [value for _, value in gapped], ".-", markersize=1.5, **shown)
    if not bars and not stacked and unit != "s":
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if not any(value for _, _, samples in drawn for _, value in samples):
        axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, unit)))
    if drawn:
        more = f"and {len(drawn) - MOST_LEGENDS} more" if len(drawn) > MOST_LEGENDS else None
        side = {"bbox_to_anchor": (1.01, 1)} if is_wide(panel) else {}
        axes.legend(loc="upper left", title=more, title_fontsize=5.5, **SMALL, **side)


def is_wide(panel: dict[str, Any]) -> bool:
    """True if there is room for the names of its lines beside them."""
    return panel["type"] == "timeseries" and bool(panel["gridPos"]["w"] > NARROW)


def lanes(axes: Axes, panel: dict[str, Any], drawn: Drawn) -> None:
    names, seen = states(panel), dict[str, str]()
    values = [value for _, _, samples in drawn for _, value in samples]
    top = max(values, default=1.0) or 1.0
    for place, (_, _, samples) in enumerate(drawn[:MOST_LANES]):
        found = [
            names.get(int(value), ("", mpl.colormaps["cividis"](value / top)))
            for _, value in samples
        ]
        axes.broken_barh(
            [(at, STEP / 86400) for at in times(samples)],
            (place - 0.4, 0.8),
            facecolors=[each[1] for each in found],
        )
        seen |= {text: colour for text, colour in found if text}
    axes.set_yticks(
        range(len(drawn[:MOST_LANES])), [name for name, _, _ in drawn[:MOST_LANES]], fontsize=5.5
    )
    axes.invert_yaxis()
    if seen:
        patches = [Patch(color=colour, label=text) for text, colour in seen.items()]
        axes.legend(
            handles=patches,
            loc="lower right",
            bbox_to_anchor=(1, 1.02),
            ncols=9,
            columnspacing=1,
            **SMALL,
        )


def heat(axes: Axes, drawn: Drawn, unit: str) -> None:
    """Counts per bucket and time, from cumulative buckets."""
    by_bound = {
        float(labels["le"].replace("+Inf", "inf")): dict(samples) for _, labels, samples in drawn
    }
    bounds = sorted(by_bound)
    moments = sorted({at for samples in by_bound.values() for at in samples})
    cells = [
        [
            by_bound[bound].get(at, 0.0)
            - (by_bound[bounds[place - 1]].get(at, 0.0) if place else 0.0)
            for at in moments
        ]
        for place, bound in enumerate(bounds)
    ]
    shown = [[value or math.nan for value in row] for row in cells]
    if moments:
        axes.pcolormesh(
            [at / 86400 for at in moments],
            range(len(bounds)),
            shown,
            cmap="cividis",
            shading="nearest",
        )
    axes.set_yticks(
        range(len(bounds)),
        ["more" if math.isinf(bound) else f"≤ {number(bound, unit)}" for bound in bounds],
        fontsize=5.5,
    )


def words(axes: Axes, rows: Sequence[str], size: float) -> None:
    axes.set_axis_off()
    cut = [
        *rows[:MOST_ROWS],
        *([f"and {len(rows) - MOST_ROWS} more"] if len(rows) > MOST_ROWS else []),
    ]
    axes.text(
        0.01,
        0.97,
        "\n".join(cut),
        va="top",
        fontsize=size,
        family="monospace",
        transform=axes.transAxes,
    )


def table(axes: Axes, drawn: Drawn, unit: str) -> None:
    columns = sorted({label for _, labels, _ in drawn for label in labels} - {"__name__"})
    texts = [
        [
            *(labels.get(each, "") for each in columns),
            *([number(samples[-1][1], unit)] if unit != "none" else []),
        ]
        for _, labels, samples in drawn
    ]
    heads = [*columns, *(["time left"] if unit != "none" else [])]
    widths = [max(len(row[place]) for row in [heads, *texts]) for place in range(len(heads))]
    both = [heads, *texts]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in both
    ]
    words(axes, lines, 8)


def panel_of(axes: Axes, panel: dict[str, Any], drawn: Drawn) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axes.set_title(
        panel["title"].removesuffix(": $cluster"), fontsize=8, loc="left", fontweight="bold"
    )
    axes.tick_params(labelsize=6, length=2)
    axes.spines[["top", "right"]].set_visible(False)
    if panel["type"] == "timeseries":
        axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    if not drawn:
        words(axes, ["No data"], 8)
    elif panel["type"] == "timeseries":
        lines(axes, panel, drawn, unit)
    elif panel["type"] in ("state-timeline", "status-history"):
        lanes(axes, panel, drawn)
    elif panel["type"] == "heatmap":
        heat(axes, drawn, panel["options"]["yAxis"]["unit"])
    elif panel["type"] == "bargauge":
        ranked = sorted(drawn, key=lambda each: -each[2][-1][1])
        axes.barh(
            [name for name, _, _ in ranked],
            [samples[-1][1] for _, _, samples in ranked],
            color="#0072B2",
        )
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, unit)))
        return
    elif panel["type"] == "table":
        table(axes, drawn, unit)
    else:
        rows = [f"{number(samples[-1][1], unit):>8}  {name}" for name, _, samples in drawn]
        words(axes, rows, 14 if len(rows) <= FEW_ROWS else 8)
    if axes.axison:
        axes.xaxis_date()
        axes.xaxis.set_major_formatter(mdates.DateFormatter("%H:%M:%S"))
        # a locator of dates finds no steps in a run of minutes
        axes.xaxis.set_major_locator(MaxNLocator(5))


def picture(uid: str, shown: Sequence[Shown], folder: Path, group: str = "") -> Path:
    """One dashboard as a PNG with the layout of Grafana; of this group alone, where the dashboard
    is about groups.
    """
    board = BOARDS[uid]
    group = group if uid in OF_A_GROUP else ""
    deepest = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in board["panels"])
    height = (deepest + 2) * UNIT_INCHES
    figure = plt.figure(figsize=(WIDTH_INCHES, height), dpi=75)
    head = board["title"] + (f", group {group}" if group else "")
    figure.text(0.01, 1 - 0.6 * UNIT_INCHES / height, f"{head} — {SAYS}", fontsize=10, va="top")
    for panel in board["panels"]:
        place = panel["gridPos"]
        left, top = place["x"] / GRID, 1 - (place["y"] + 2) * UNIT_INCHES / height
        if panel["type"] == "row":
            figure.text(
                left + 0.01,
                top - 0.02 / height,
                panel["title"],
                fontsize=10,
                va="top",
                color="#0072B2",
            )
            continue
        lane = panel["type"] in ("state-timeline", "status-history", "bargauge")
        margin = 2.4 if lane else 0.6  # inches left of the axes, for names
        size = place["h"] * UNIT_INCHES
        box = (
            left + margin / WIDTH_INCHES,
            top - (size - 0.3) / height,
            place["w"] / GRID - (margin + 0.15 + LEGEND_INCHES * is_wide(panel)) / WIDTH_INCHES,
            (size - 0.62) / height,
        )
        mine = [each for each in shown if (each.board, each.title) == (uid, panel["title"])]
        drawn = [
            (legend(each.legend, labels), labels, samples)
            for each in mine
            for labels, samples in each.series
            if group in ("", labels.get("group", group))
        ]
        panel_of(figure.add_axes(box), panel, drawn)
    path = folder / f"{uid}.png"
    figure.savefig(path)
    plt.close(figure)
    with Image.open(path) as full:
        full.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS_KEPT).save(
            path, optimize=True
        )
    return path
