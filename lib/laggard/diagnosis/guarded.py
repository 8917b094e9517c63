"""Observations by their guards, and which kinds of groups a rule about members may judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from laggard.diagnosis.frames import GroupFrame
from laggard.diagnosis.observation import FAIL, FAILS, PASS, UNKNOWN, Observation
from laggard.diagnosis.view import View


def guarded(observation: Observation) -> list[Observation]:
    """The observation, which does not hold if one of its guards fails."""
    is_vetoed = FAIL in observation.guards.values()
    return [replace(observation, state=FAILS) if is_vetoed else observation]


def passes(fine: bool | None) -> str:  # noqa: FBT001  the name of the function is the question
    """Result of a guard; None is unknown."""
    return UNKNOWN if fine is None else PASS if fine else FAIL


def group_kind(frame: GroupFrame) -> str:
    """Group type, of a classic group its protocol type: consumers of both protocols are `consumer`; "" unknown."""
    newest = frame.generations[-1] if frame.generations else {}
    group_type = frame.fact.get("group_type") or newest.get("group_type") or ""
    if group_type == "classic":
        return frame.fact.get("protocol_type") or newest.get("protocol_type") or "consumer"
    return str(group_type)


def has_members(view: View) -> bool:
    """Whether rebalances and members of the group can be judged."""
    return group_kind(view.frame) not in {"share", "simple"}


def has_assignments(view: View) -> bool:
    """Whether its members own partitions: not so Connect workers, nor tasks of the streams protocol."""
    return group_kind(view.frame) in {"consumer", ""}


def burns_slo(frame: GroupFrame, objective: float, windows: Sequence[int] = (5, 60)) -> bool:
    """Whether too many records were late, both of late and for long; under 100 matured ones say nothing."""
    for count in windows:
        matured, late = (
            sum(float(np.nansum(topic[name][:, -count:])) for topic in frame.topics) for name in ("matured", "late")
        )
        if matured < 100 or late <= (1 - objective) * matured:
            return False
    return True
