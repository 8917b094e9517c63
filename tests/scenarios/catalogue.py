"""All scenarios by name."""

from __future__ import annotations

from scenarios import capacity, healthy, loss, offsets, rebalances, stalls, transactions
from scenarios.labels import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in sorted(
        (
            *capacity.SCENARIOS,
            *stalls.SCENARIOS,
            *loss.SCENARIOS,
            *offsets.SCENARIOS,
            *transactions.SCENARIOS,
            *rebalances.SCENARIOS,
            *healthy.SCENARIOS,
        ),
        key=lambda each: (each.name[:2] == "LA", int("".join(c for c in each.name if c.isdigit())), each.name),
    )
}
