"""Identity of a member."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """By what a member is known again."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
