"""Lag and rebalances of a group in a notebook: `marimo edit docs/notebooks/lag.py`.

LAGGARD_TABLES must be set.
"""

import marimo

app = marimo.App(width="medium", app_title="Lag of a consumer group")


@app.cell
def _():
    import os

    import marimo as mo

    from laggard.answers.history import gaps_between
    from laggard.cli.verbs.query.range import Range
    from laggard.cli.verbs.query.verb import open_session
    from laggard.tables.published import newest_batch

    return Range, gaps_between, mo, newest_batch, open_session, os


@app.cell
def _(mo, newest_batch, os):
    root = os.environ.get("LAGGARD_TABLES", "")
    mo.stop(
        not root,
        mo.md(
            "Set `LAGGARD_TABLES` to the folder or bucket of the tables (`job.tables`), and run "
            "it again."
        ),
    )
    batch = newest_batch(root)
    mo.stop(batch is None, mo.md(f"Nothing is published in `{root}` yet: `laggard run`."))
    return batch, root


@app.cell
def _(mo):
    hours = mo.ui.slider(1, 168, value=24, label="hours back from the newest tick", show_value=True)
    hours
    return (hours,)


@app.cell
def _(Range, batch, hours, open_session, root):
    from datetime import timedelta

    # the versions that the newest tick published; of tables of history only the rows of this range
    span = Range(batch.polled_at - timedelta(hours=hours.value), batch.polled_at)
    ask = open_session(root, span)
    worst = ask("select * from worst_groups order by place").to_pylist()
    return ask, span, worst


@app.cell
def _(mo, worst):
    mo.stop(not worst, mo.md("No group has a row."))
    mo.vstack([mo.md("## Groups, worst first"), mo.ui.table(worst, selection=None)])


@app.cell
def _(mo, worst):
    mo.stop(not worst)
    # two clusters may have a group of one name
    several = len({row["cluster"] for row in worst}) > 1
    choices = {
        f"{row['cluster']}: {row['group']}" if several else row["group"]: row for row in worst
    }
    group = mo.ui.dropdown(choices, value=next(iter(choices)), label="group")
    group
    return (group,)


@app.cell
def _(ask, group):
    def of_group(sql):
        """Rows of one group of one cluster; names are values, whatever they look like."""
        cluster, name = (
            "'" + group.value[key].replace("'", "''") + "'" for key in ("cluster", "group")
        )
        return ask(sql.format(own=f'cluster = {cluster} and "group" = {name}')).to_pylist()

    lag_hourly = of_group("select * from lag_hourly where {own} order by hour_start, topic")
    cost = of_group("select * from rebalance_cost where {own} order by date, cause")
    return cost, lag_hourly


@app.cell
def _(lag_hourly, mo):
    mo.vstack([mo.md("## Lag by hour"), mo.ui.table(lag_hourly, selection=None)])


@app.cell
def _(lag_hourly, mo):
    from itertools import groupby

    largest = {}
    for row in lag_hourly:
        lag = None if row["windows_unknown"] else row["lag_max"]
        known = largest.setdefault(row["hour_start"], lag)
        largest[row["hour_start"]] = None if None in (known, lag) else max(known, lag)
    most = max((lag for lag in largest.values() if lag), default=1)
    first = min(largest, default=None)
    points = [
        (4 * (hour - first).total_seconds() / 3600, None if lag is None else 95 - 90 * lag / most)
        for hour, lag in sorted(largest.items())
    ]
    drawn = ""
    for is_known, part in groupby(points, lambda point: point[1] is not None):
        if is_known:
            line = " ".join(f"{x:.0f},{y:.1f}" for x, y in part)
            drawn += f'<polyline points="{line}" fill="none" stroke="#0072b2"/>'
        else:  # an hour with a window whose lag is not known in whole is never 0
            left, *_, right = [x for x, _ in part] * 2
            drawn += (
                f'<rect class="partial" x="{left:.0f}" width="{right - left + 4:.0f}" '
                'height="100" fill="#f1e3c6"/>'
            )
    title = "<title>Largest lag of a topic by hour</title>"
    chart = f'<svg width="700" height="100">{title}{drawn}</svg>'
    mo.Html(chart)
    return (chart,)


@app.cell
def _(cost, mo):
    mo.vstack(
        [mo.md("## Rebalances by day and cause, and their cost"), mo.ui.table(cost, selection=None)]
    )


@app.cell
def _(batch, gaps_between, mo, root, span):
    gaps = gaps_between(root, batch, span.begin, span.end)
    mo.vstack(
        [
            mo.md("## Time without observation: no row above covers it"),
            mo.ui.table(gaps, selection=None),
        ]
    )
    return (gaps,)


if __name__ == "__main__":
    app.run()
