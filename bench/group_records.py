"""Group records: decoded and described records per second, and a tick's cost of one large group."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from common import report

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/wire")]

import encoder  # noqa: E402 - the tests' own encoder, which shares no code with the decoder
from laggard.names import NameFilter  # noqa: E402
from laggard.stream.tick.advance_stage import spare_modules  # noqa: E402
from laggard.stream.tick.decode import decode_records  # noqa: E402
from stream.simulation import NOON, Record, Simulation, end, generation  # noqa: E402

GROUPS, MEMBERS, PER_MEMBER = 2_000, 4, 3
LARGE_MEMBERS = 1_000
ROUNDS = 7


def main() -> None:
    """Decode many small groups; decode and fold one of 1,000 members and 3,000 partitions."""
    spare_modules()  # as the job's worker does
    small = [group(f"group-{number}", 1 + number % 9, MEMBERS) for number in range(GROUPS)]
    seconds = median(lambda: decode(small))
    large = [group("large", number, LARGE_MEMBERS, shift=number) for number in range(1, ROUNDS + 2)]
    report(
        "group_records",
        [
            {
                "what": f"records/s/core, {MEMBERS} members each",
                "value": GROUPS / seconds,
                "target": 5_000,
            },
            {
                "what": "ms to decode one of 1,000 members",
                "value": 1e3 * median(lambda: decode(large[:1])),
                "target": 50,
            },
            {
                "what": "ms more for the tick that folds it",
                "value": 1e3 * fold(large),
                "target": 200,
            },
        ],
    )


def group(name: str, number: int, members: int, shift: int = 0) -> Record:
    """Return a generation that gives each member three partitions; `shift` hands them on."""
    blobs = {}
    for place in range(members):
        first = PER_MEMBER * ((place + shift) % members)
        held = [{"topic": "t", "partitions": list(range(first, first + PER_MEMBER))}]
        blobs[f"member-{place:04d}"] = (
            encoder.subscription({"version": 0, "topics": ["t"], "user_data": None}),
            encoder.assignment({"version": 0, "assigned_partitions": held, "user_data": None}),
        )
    state_ms = round(NOON.timestamp() * 1000) + 10_000 * number
    return generation(
        number, dict.fromkeys(blobs, ("t",)), group=name, blobs=blobs, state_ms=state_ms
    )


def decode(records: list[Record]) -> None:
    """Decode bytes to described rows, as a task does it."""
    table = pa.table(
        {
            "partition": pa.array([0] * len(records), pa.int32()),
            "offset": pa.array(range(len(records)), pa.int64()),
            "timestamp": pa.array([NOON] * len(records), pa.timestamp("us", tz="UTC")),
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
        }
    )
    list(decode_records(table, NameFilter()))


def fold(records: list[Record]) -> float:
    """Return the median seconds that a new generation of the large group adds to a tick."""
    job = Simulation()
    # the job keeps no row that it wrote: to collect them would cost as much again
    job.history.clear()
    ends = [end(100, partition=partition) for partition in range(PER_MEMBER * LARGE_MEMBERS)]
    job.tick(ends, records[:1])
    job.tick(ends, seconds=2_000)  # nothing is under way any more
    quiet = [timed(lambda: job.tick(ends)) for _ in records]
    folding = []
    for record in records[1:]:
        decoding = timed(lambda: decode([record]))  # noqa: B023 - called at once
        folding.append(timed(lambda: job.tick(ends, [record])) - decoding)  # noqa: B023
    return statistics.median(folding) - statistics.median(quiet)


def median(run: Callable[[], None]) -> float:
    """Return seconds of the median of some rounds, after one to warm up."""
    run()
    return statistics.median(timed(run) for _ in range(ROUNDS))


def timed(run: Callable[[], object]) -> float:
    """Return CPU-seconds of this process: others on the machine do not count."""
    started = time.process_time()
    run()
    return time.process_time() - started


if __name__ == "__main__":
    main()
