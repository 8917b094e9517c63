"""Offsets of a topic that no member subscribes to any more: nobody stalls there, and a note says
so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diagnosis.fluid import Fluid, evaluate, tables_of

WINDOWS = 20
UNREAD = {"topic": "returns", "owner": None, "slot": None, "client_id": None, "client_host": None}


def group(topic_partitions: dict[str, int], members: int = 2) -> Fluid:
    """Members that read `orders`; the offsets of `returns` stand while 50 records/s arrive on each
    partition.
    """
    facts: dict[str, Any] = {"topic_partitions": topic_partitions, "topics": list(topic_partitions)}
    read = Fluid(np.full((4, WINDOWS), 100.0), np.full((members, WINDOWS), 600.0), facts=facts)
    unread = Fluid(np.full((2, WINDOWS), 50.0), np.zeros((1, WINDOWS)))
    read.lag_rows += [{**row, **UNREAD} for row in unread.lag_rows]
    return read


def test_a_topic_that_nobody_subscribes_to_is_a_note_and_no_stall() -> None:
    found = evaluate(tables_of([group({"orders": 4})]))
    assert found.open_codes() == {"TOPIC_LEFT_BEHIND"}
    (opened,) = [row for row in found.findings if row["event"] == "opened"]
    assert (opened["topic"], opened["severity"]) == ("returns", "info")
    # 17 minutes after the first window: the finding opens in the third, 10,080 minutes after the
    # last commit it is gone
    assert opened["evidence"]["lag_records"] > 2 * 50 * 60 * 2
    assert opened["evidence"]["expiry_seconds"] + opened["evidence"]["quiet_seconds"] == 60 * 10_080
    assert {row["scale_verdict"] for row in found.windows} == {"NOT_NEEDED"}
    assert {row["partitions_stalled"] for row in found.windows} == {0}
    # its lag stays on record
    assert {row["topic"] for row in found.windows} == {"orders", "returns"}
    assert {row["topic"] for row in found.windows if "left" in row["flags"]} == {"returns"}


def test_the_same_offsets_are_a_stall_while_a_member_subscribes() -> None:
    found = evaluate(tables_of([group({"orders": 4, "returns": 2})]))
    assert "PARTITION_STALLED" in found.open_codes()
    assert found.last()["scale_verdict"] == "NO_STALLED"
