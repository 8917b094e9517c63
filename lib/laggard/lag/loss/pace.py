"""The column `pace` of `partition_status`: a reader's rate, and its jump until settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import Doubles, Ints, doubles, numbers, one_chunk, where

PACE = pa.struct(
    [
        ("rate", pa.float64()),
        ("jump_from", pa.int64()),
        ("jump_to", pa.int64()),
        ("jump_seconds", pa.float64()),
        ("jump_excess", pa.int64()),
        ("owed", pa.int64()),
        ("lost", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Jumps:
    """Jumps per row: begin, end, seconds, and records beyond those read; a begin of -1: none."""

    origin: Ints
    to: Ints
    seconds: Doubles
    excess: Ints


@dataclass(frozen=True, slots=True)
class Pace:
    """The column `pace`: rate (NaN: unknown), waiting jump, records owed, and records lost.

    The records are those lost in the window.
    """

    rate: Doubles
    jumps: Jumps
    owed: Ints
    lost: Ints


def read_pace(before: Any, is_comparable: Any) -> Pace:
    """Read the column as it was kept at the tick before."""
    column = one_chunk(before["pace"])

    def pace_field(name: str) -> Any:
        return where(is_comparable, pc.struct_field(column, name))

    origin, has_origin = numbers(pace_field("jump_from"))
    jumps = Jumps(
        np.where(has_origin, origin, -1),
        numbers(pace_field("jump_to"))[0],
        np.fmax(doubles(pace_field("jump_seconds")), 1.0),
        numbers(pace_field("jump_excess"))[0],
    )
    return Pace(
        doubles(pace_field("rate")),
        jumps,
        numbers(pace_field("owed"))[0],
        numbers(pace_field("lost"))[0],
    )


def to_column(pace: Pace) -> pa.StructArray:
    """Write the column. What is not known is null, and so is a jump if there is none."""
    jumps = pace.jumps
    no_jump = jumps.origin < 0
    return pa.StructArray.from_arrays(
        [
            pa.array(pace.rate, mask=np.isnan(pace.rate)),
            *(
                pa.array(values, mask=no_jump)
                for values in (jumps.origin, jumps.to, jumps.seconds, jumps.excess)
            ),
            pa.array(pace.owed),
            pa.array(pace.lost),
        ],
        fields=list(PACE),
    )


def larger(old: Jumps, new: Jumps, is_settled: Any) -> Jumps:
    """Return the faster one of two jumps; the new one if the other is settled."""
    faster = (new.to - new.origin) * old.seconds > (old.to - old.origin) * new.seconds
    is_new = is_settled | (new.origin >= 0) & ((old.origin < 0) | faster)
    return Jumps(
        np.where(is_new, new.origin, old.origin),
        np.where(is_new, new.to, old.to),
        np.where(is_new, new.seconds, old.seconds),
        np.where(is_new, new.excess, old.excess),
    )
