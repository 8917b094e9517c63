"""The document of `diagnose`; those of `status`, `findings` and `explain` are the API's."""

from __future__ import annotations

from cli_json_parts import said
from laggard.answers.schema_parts import (
    TEXT,
    TIME,
    WHOLE,
    list_of,
    object_of,
    or_null,
    without,
)
from laggard.tables.schema.schemas import FINDINGS

DIAGNOSED = object_of(
    {
        "windows_evaluated": said(WHOLE, "windows of the range"),
        "remembered_at": said(
            or_null(TIME), "end of the window before, whose memory it began with; null: with none"
        ),
        "findings": said(
            list_of(object_of(without(FINDINGS, "date"))), "rows as they would be, in their order"
        ),
        "output": said(or_null(TEXT), "place that --output wrote to; null: nothing was written"),
    }
)
