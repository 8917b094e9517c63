"""Parts of PromQL from the exporter's declarations, so that panels name only existing metrics.

The same holds for labels.

Each part is a maximum by the metric's own labels. That drops instance, pod and the like: several
replicas of an exporter serve the same numbers, and a sum over them would double.
"""

from __future__ import annotations

from laggard.exporter.body.families import FAMILIES, Family

BY_NAME = {family.name.removeprefix("laggard_"): family for family in FAMILIES}
VARIABLES = ("cluster", "group", "topic")
INTERVAL = "$__rate_interval"


def is_of_the_exporter(family: Family) -> bool:
    """Return True if replicas of an exporter have different values, shown side by side."""
    return family.name.startswith("laggard_exporter_") or "cluster" not in family.labels


def _series(name: str, more: str, skip: tuple[str, ...], function: str = "", span: str = "") -> str:
    family = BY_NAME[name]
    labels, sample = list(family.labels), family.name
    matchers = [
        f'{label}=~"${label}"' for label in VARIABLES if label in labels and label not in skip
    ]
    if is_of_the_exporter(family):
        labels.append("instance")
        matchers.append('instance=~"$exporter"')
    if family.type in {"histogram", "gaugehistogram"}:
        labels.append("le")
        sample += "_bucket"
    if family.type == "stateset":
        labels.append(family.name)
    selected = f"{sample}{{{', '.join([*matchers, *([more] if more else [])])}}}"
    if function:
        selected = f"{function}({selected}[{span}])"
    return f"max by ({', '.join(labels)}) ({selected})"


def now(name: str, more: str = "", skip: tuple[str, ...] = ()) -> str:
    """Read a gauge; `more` holds further matchers, `skip` the variables that do not apply."""
    return _series(name, more, skip)


def rate(name: str, span: str = INTERVAL, more: str = "") -> str:
    """Read a counter per second."""
    return _series(name, more, (), "rate", span)


def increase(name: str, span: str = INTERVAL, more: str = "") -> str:
    """Read by how much a counter rose."""
    return _series(name, more, (), "increase", span)


def slope(name: str) -> str:
    """Read a gauge per second, such as an offset.

    An offset may fall, and rate() takes a fall for a restart from 0.
    """
    return _series(name, "", (), "deriv", INTERVAL)


def total(labels: str, part: str) -> str:
    """Sum by some of the labels."""
    return f"sum by ({labels}) ({part})"


def happened(part: str) -> str:
    """Leave zeros out.

    Closed sets of labels are served at 0 from the start and would fill every legend.
    """
    return f"{part} > 0"


def states(name: str) -> str:
    """Read which state of a stateset holds, as its number, so that each group has one lane."""
    family = BY_NAME[name]
    labels = ", ".join(family.labels)
    matchers = ", ".join(f'{label}=~"${label}"' for label in VARIABLES if label in family.labels)
    return " or ".join(
        f'max by ({labels}) ({family.name}{{{matchers}, {family.name}="{state}"}} == 1) * {number}'
        for number, state in enumerate(family.states)
    )


_LATE = total("cluster, group", rate("group_slo_late_records_total", "1h"))
_MATURED = total("cluster, group", rate("group_slo_matured_records_total", "1h"))
LATE_SHARE = f"{_LATE} / ({_MATURED} > 0)"
BURN = f"{LATE_SHARE} / (1 - {now('group_slo_objective_ratio')})"


def findings(more: str = "") -> str:
    """Read open findings. One about a whole group has no topic, so that variable does not apply."""
    return f"{now('finding_active', more, skip=('topic',))} > 0"


FINDINGS = findings()
_PAGES, _WARNINGS = findings('severity="page"'), findings('severity="warn"')
WORST_FIRST = f"sort_desc(({_PAGES}) * 3 or ({_WARNINGS}) * 2 or {FINDINGS})"
