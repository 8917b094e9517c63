"""Brokers that are restarted, drawn at random: they are named, and not those that took over their
groups.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from diagnosis.groups import END, GENERATION, PARAMETERS, signals_of, topic_signals
from laggard.diagnosis.rules.cluster import coordinator_correlated
from laggard.diagnosis.signals.cluster import ClusterFrame, cluster_signal

CLUSTERS = 60
TICK_SECONDS = 30.0


def restarted(seed: int) -> tuple[int, list[dict[str, Any]]]:
    """A broker that was restarted, and the signals of all groups in the window after it."""
    chance = random.Random(f"coordinators {seed}")
    brokers, ago = chance.randint(3, 6), chance.uniform(40, 100)  # seconds since it went
    fallen = chance.randrange(brokers)
    returns = chance.random() < 0.3 and ago > 60  # and leads its partitions again
    rejoining = chance.uniform(0.7, 1.0)  # share of its groups
    rows = []
    for number in range(chance.randint(6, 12) * brokers):
        led_by = number % brokers
        leaders, seen_ago = [led_by], [ago]
        if led_by == fallen:
            leaders.append((led_by + chance.randint(1, brokers - 1)) % brokers)
            if returns:
                leaders.append(led_by)
                seen_ago.append(ago - 25)
        events = [
            {
                "kind": "coordinator_changed",
                "event_at": END
                - timedelta(seconds=max(0.0, when - chance.uniform(0, TICK_SECONDS))),
                "detail": [("from", str(one)), ("to", str(two))],
            }
            for one, two, when in zip(leaders, leaders[1:], seen_ago, strict=False)
        ]
        generations = [GENERATION | {"generation": 7, "record_timestamp": END - timedelta(hours=1)}]
        if led_by == fallen and chance.random() < rejoining:
            ends = END - timedelta(seconds=max(1.0, ago - chance.uniform(2, 30)))
            generations.append(GENERATION | {"generation": 8, "record_timestamp": ends})
        signals = signals_of(
            topic_signals([100.0]),
            fact={"coordinator": leaders[-1]},
            generations=generations,
            events=events,
        )
        rows.append(cluster_signal(signals, {}) | {"group": f"group-{number}"})
    return fallen, rows


def test_the_broker_that_was_restarted_is_named_and_not_the_one_that_took_over() -> None:
    cluster, wrong = ClusterFrame("prod", 0, 60), []
    for seed in range(CLUSTERS):
        fallen, rows = restarted(seed)
        named = [
            each.subject for each in coordinator_correlated.check_all(cluster, rows, PARAMETERS)
        ]
        if named != [str(fallen)]:
            wrong.append((seed, fallen, named))
    assert wrong == []
