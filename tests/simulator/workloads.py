"""All workloads by name."""

from __future__ import annotations

from collections.abc import Callable

from simulator.cluster import Cluster
from simulator.workloads_faults import FAULTS
from simulator.workloads_mixed import MIXED
from simulator.workloads_modern import MODERN
from simulator.workloads_offsets import OFFSETS
from simulator.workloads_planned import PLANNED

WORKLOADS: dict[str, Callable[[Cluster], int]] = {
    workload.__name__: workload for workload in (*PLANNED, *FAULTS, *OFFSETS, *MODERN, *MIXED)
}
