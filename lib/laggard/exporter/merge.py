"""One body of several: each family once, with the series of all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from prometheus_client.core import Metric

_FAMILY = re.compile(rb"^(?=# HELP )", re.MULTILINE)  # no series begins so, and no label holds a line break


def merge_text(bodies: Sequence[bytes]) -> bytes:
    """Rendered families of several bodies; both text formats want all series of a family in one place."""
    families: dict[bytes, list[bytes]] = {}
    for body in bodies:
        for text in filter(None, _FAMILY.split(body)):
            head, series = _split_head(text)
            families.setdefault(head, []).append(series)
    return b"".join(head + b"".join(series) for head, series in families.items())


def _split_head(text: bytes) -> tuple[bytes, bytes]:
    end = 0
    while text.startswith(b"# ", end):
        end = text.index(b"\n", end) + 1
    return text[:end], text[end:]


def merge_families(families: Iterable[Metric]) -> list[Metric]:
    """The same before rendering."""
    merged: dict[str, Metric] = {}
    for metric in families:
        if metric.name in merged:
            merged[metric.name].samples.extend(metric.samples)
        else:
            merged[metric.name] = metric
    return list(merged.values())
