"""A fault that lasts for hours is reported at the end as at the beginning, by a job that restarted
on the way.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scenarios.catalogue import SCENARIOS
from scenarios.cluster import ScenarioCluster
from scenarios.diagnosed import diagnose
from scenarios.labels import Labels
from scenarios.runs import place_of, record, simulate
from scenarios.scoring import opened

# beyond the workload's end: what an event has proven is long out of the hour that the rules look
# back
HOURS = 2.0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        ("SC53", "SCALE_OUT_FUTILE", "NO_DOWNSTREAM"),
        ("SC09", "COSTLY_PARTITION", "NO_COSTLY_PARTITION"),
    ],
)
def test_what_an_event_has_proven_is_not_forgotten(name: str, code: str, verdict: str) -> None:
    workload = SCENARIOS[name].workload

    def lasts(cluster: ScenarioCluster) -> Labels:
        labels = workload(cluster)
        return replace(labels, minutes=labels.minutes + 60 * HOURS)

    scenario = replace(SCENARIOS[name], workload=lasts)
    (recorded,) = record([simulate(scenario, 61000, place_of(scenario, 61000))])
    diagnosed = diagnose(recorded, is_restarted=True)
    end = recorded.run.end_ms
    causes = {each.code: each.role_at(end) for each in opened(diagnosed.findings)}
    last = [row["scale_verdict"] for row in diagnosed.windows[-60:]]
    assert causes[code] == "primary"
    assert set(last) == {verdict}
