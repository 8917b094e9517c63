"""The JSON of a document that is declared as a class."""

from __future__ import annotations

import json
from math import inf, nan

from laggard.answers.plan.outcome import Span
from laggard.audit.result import Violation
from laggard.cli.text.envelope import json_answer


def test_nan_is_null_only_where_null_is_declared_as_unknown() -> None:
    violation = Violation("lag_windows", {"lag": nan}, "lag", expected=5, found=nan)
    answer = json.loads(json_answer({"span": Span(nan, 1.0, inf), "rows": [violation]}))
    assert answer["data"]["span"] == {"value": None, "p10": 1.0, "p90": "Infinity"}
    (row,) = answer["data"]["rows"]
    assert (row["key"], row["found"]) == ({"lag": "NaN"}, "NaN")
