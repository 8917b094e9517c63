"""Queries that return nothing in the run, each with a query that returns something if the reason
holds.
"""

from __future__ import annotations

_PIPELINE = "laggard-pipeline"
# dashboard, panel, query → expression that explains it, in words
EMPTY: dict[tuple[str, str, str], tuple[str, str]] = {
    (_PIPELINE, "Errors and skipped rows", "A"): (
        "sum(laggard_exporter_refresh_errors_total) == 0",
        "the exporter could read every table",
    ),
    (_PIPELINE, "Errors and skipped rows", "B"): (
        "(sum(laggard_exporter_rows_skipped_total) or vector(0)) == 0",
        "the job wrote no row that cannot be shown",
    ),
    (_PIPELINE, "Series shown and withheld", "B"): (
        "sum(laggard_series_withheld) == 0",
        "there is room for all series; the live run has an exporter without",
    ),
    (_PIPELINE, "Requests per second", "B"): (
        "sum(laggard_http_refused_total) == 0",
        "no connection was refused",
    ),
}
