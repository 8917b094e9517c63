"""Lag and rebalances of a group in a notebook: `marimo edit docs/notebooks/lag.py`.

LAGGARD_TABLES must be set.
"""

import marimo

app = marimo.App(width="medium", app_title="Lag of a consumer group")


@app.cell
def _():
    import os

    import marimo as mo

    from laggard.cli.query.notes import gaps_in
    from laggard.cli.query.range import Range
    from laggard.cli.query.verb import open_session
    from laggard.tables.published import newest_batch

    return Range, gaps_in, mo, newest_batch, open_session, os


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
def _(batch, lag_hourly, mo, span):
    from laggard.cli.report.charts import Span, by_bin, line

    # an hour with a window whose lag is not known in whole is a hole in the line, never 0
    hourly = [
        (row["hour_start"], None if row["windows_unknown"] else row["lag_max"])
        for row in lag_hourly
    ]
    drawn = Span(span.begin.replace(minute=0, second=0, microsecond=0), batch.polled_at, 3600)
    chart = str(
        line(
            drawn,
            by_bin(drawn, hourly),
            "Largest lag of a topic by hour",
            lambda value: f"{value:,.0f}",
        )
    )
    style = (
        "<style>.line{fill:none;stroke:#0072b2} .grid{stroke:#ddd} .unwatched{fill:#ccc} "
        ".partial{fill:#f1e3c6}</style>"
    )
    mo.Html(style + chart)
    return (chart,)


@app.cell
def _(cost, mo):
    mo.vstack(
        [mo.md("## Rebalances by day and cause, and their cost"), mo.ui.table(cost, selection=None)]
    )


@app.cell
def _(batch, gaps_in, mo, root, span):
    gaps = gaps_in(root, batch, span)
    mo.vstack(
        [
            mo.md("## Time without observation: no row above covers it"),
            mo.ui.table(gaps, selection=None),
        ]
    )
    return (gaps,)


if __name__ == "__main__":
    app.run()
