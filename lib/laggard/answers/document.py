"""Answers as JSON that every reader takes: no Infinity, no NaN, names that print."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from laggard.escape import escape_label
from laggard.tables.published import Batch

REASONS = {"infinite": math.inf, "minus_infinite": -math.inf, "not_a_number": math.nan}
NULL_REASONS = "null_reasons"


def encode(document: Mapping[str, Any]) -> bytes:
    """Write JSON; a number that JSON has not is null, and `null_reasons` says which one it was."""
    try:
        text = json.dumps(document, default=_plain, allow_nan=False, separators=(",", ":"))
    except ValueError:
        reasons: dict[str, str] = {}
        finite = _finite(document, "", reasons)
        text = json.dumps(
            {**finite, NULL_REASONS: reasons},
            default=_plain,
            allow_nan=False,
            separators=(",", ":"),
        )
    return text.encode() + b"\n"


def decode(body: bytes) -> dict[str, Any]:
    """Read such JSON, with the infinite numbers where they were."""
    document: dict[str, Any] = json.loads(body)
    for pointer, reason in document.pop(NULL_REASONS, {}).items():
        steps = pointer.split("/")[1:]
        *path, last = [step.replace("~1", "/").replace("~0", "~") for step in steps]
        parent: Any = document
        for step in path:
            parent = parent[int(step) if isinstance(parent, list) else step]
        parent[int(last) if isinstance(parent, list) else last] = REASONS[reason]
    return document


def head_of(batch: Batch, reason: str | None) -> dict[str, Any]:
    """Return the head of an answer from the tables; `reason` says why it is not of now."""
    cluster = {
        **named("cluster", batch.cluster),
        "batch_id": batch.batch_id,
        "data_timestamp": batch.polled_at,
        "is_fresh": reason is None,
        "reason": reason,
    }
    return head([batch], [cluster])


def head(batches: Sequence[Batch], clusters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what every answer begins with; of several clusters the oldest time and no batch."""
    return {
        "api": "v1",
        "batch_id": batches[0].batch_id if len(batches) == 1 else None,
        "data_timestamp": min(batch.polled_at for batch in batches),
        "clusters": clusters,
    }


def named(key: str, name: str | None) -> dict[str, Any]:
    """Give a name in the form of the labels; with its bytes, where that is another one."""
    if name is None:
        return {key: None}
    shown = escape_label(name)
    if shown == name:
        return {key: name}
    return {
        key: shown,
        f"{key}_bytes": base64.b64encode(name.encode("utf-8", "surrogatepass")).decode(),
    }


def name_of(row: Mapping[str, Any], key: str) -> Any:
    """Give back the name that `named` was given."""
    coded = row.get(f"{key}_bytes")
    return row[key] if coded is None else base64.b64decode(coded).decode("utf-8", "surrogatepass")


def _finite(value: Any, pointer: str, reasons: dict[str, str]) -> Any:
    if isinstance(value, Mapping):
        finite = {}
        for name, entry in value.items():
            step = str(name).replace("~", "~0").replace("/", "~1")
            finite[name] = _finite(entry, f"{pointer}/{step}", reasons)
        return finite
    if isinstance(value, (list, tuple)):
        return [_finite(entry, f"{pointer}/{row}", reasons) for row, entry in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            reasons[pointer] = "not_a_number"
        else:
            reasons[pointer] = "infinite" if value > 0 else "minus_infinite"
        return None
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    raise TypeError(f"no JSON for {type(value).__name__}")
