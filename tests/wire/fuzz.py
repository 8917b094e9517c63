"""Damaged records by the million: python tests/wire/fuzz.py --records 1000000 --seed 7.

Mutations know the structure: lengths, counts, markers, tags and sizes of the vectors are replaced
by hostile ones, parts are dropped, doubled, swapped and spliced, keys meet values of other types.
Every record must have one outcome, in the pure decoder and in the columnar one alike, and the
memory must stay where it was.
"""

import argparse
import random
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

import encoder
import vectors
from encoder import Piece
from laggard.wire import columnar
from laggard.wire.columnar import decode_columns
from laggard.wire.decode import Outcome, decode

Record = tuple[bytes | None, bytes | None]
Parts = tuple[list[Piece], list[Piece] | None]  # key and value
Count = tuple[str, int | None, str | None]  # outcome, record type, error

BATCH = 200  # small, since the longest strings of a batch are in memory together
WARM_UP = 20_000  # records after which the process has reached its size
MEMORY_LIMIT_MB = 16
SAMPLES = 5
SAMPLE_BYTES = 200
PROGRESS_SECONDS = 5
NAMES = {
    "record": "decoded",
    "tombstone": "tombstones",
    "unsupported": "unknown",
    "malformed": "dead",
}
NUMBERS = (
    -(2**31),
    -(2**15),
    -129,
    -128,
    -2,
    -1,
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    16_383,
    32_767,
    32_768,
    65_535,
    2**31 - 1,
)
VARINTS: tuple[bytes, ...] = (
    *(
        encoder.uvarint(number)
        for number in (*NUMBERS[6:], 16_384, 2**31, 2**32 - 1, 2**32, 2**35 - 1)
    ),
    b"\x80\x00",
    b"\x83\x80\x80\x00",
    b"\xff\xff\xff\xff\xff\x01",
)
CONTENTS = (b"", b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\0", b"x" * 32_767, b"x" * 32_768)


def corpus() -> list[Parts]:
    """Key and value of every vector in pieces, or in one piece where it is no record; also with
    more tags.
    """
    found: list[Parts] = []
    for vector in vectors.RECORDS:
        known = decode(vector.key, vector.value)
        if known.record_type is None or known.key is None:
            found.append(([("raw", vector.key or b"")], _raw(vector.value)))
            continue
        key = list(encoder.key_pieces(known.record_type, known.key))
        if known.value is None or known.value_version is None:
            found.append((key, _raw(vector.value)))
            continue
        place = (known.record_type, known.value_version)
        found += [
            (key, list(encoder.value_pieces(*place, known.value, tags, all_tags=bool(tags))))
            for tags in ((), ((9, b"later"), (2**31, b"")))
        ]
    return found


def _raw(value: bytes | None) -> list[Piece] | None:
    return None if value is None else [("raw", value)]


def mutants(seed: int) -> Iterator[Record]:
    """Records without end, the same for the same seed; a few of them whole."""
    rng = random.Random(seed)
    whole = corpus()
    while True:
        key, value = rng.choice(whole)
        if rng.random() < 0.1:
            value = rng.choice(whole)[1]
        damaged_key = _damage(rng, key, whole) if rng.random() < 0.2 else key
        damaged_value = (
            _damage(rng, value, whole) if value is not None and rng.random() < 0.85 else value
        )
        new_key = None if rng.random() < 0.01 else _bytes(rng, damaged_key, 0.03)
        new_value = None
        if damaged_value is not None and rng.random() >= 0.02:
            new_value = _bytes(rng, damaged_value, 0.15)
        yield new_key, new_value


def _damage(rng: random.Random, pieces: list[Piece], whole: list[Parts]) -> list[Piece]:
    pieces = list(pieces)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not pieces:
            break
        at = rng.randrange(len(pieces))
        other = rng.randrange(len(pieces))
        match rng.randrange(8):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, pieces[other])
            case 2:
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 3:
                spliced = rng.choice(whole)[1] or []
                pieces[at:] = spliced[rng.randrange(len(spliced) + 1) :]
            case _:
                pieces[at] = (pieces[at][0], _hostile(rng, *pieces[at]))
    return pieces


def _hostile(rng: random.Random, role: str, part: bytes) -> bytes:
    if role in ("raw", "content"):
        # the last two cost time and memory
        contents = CONTENTS if rng.random() < 0.05 else CONTENTS[:-2]
        return rng.choice([*contents, part[1:], part + b"x", rng.randbytes(3)])
    if len(part) in (2, 4, 8) and rng.random() < 0.7:
        number = int.from_bytes(part, "big", signed=True)
        wanted = rng.choice([*NUMBERS, number - 1, number + 1]) & ((1 << 8 * len(part)) - 1)
        return wanted.to_bytes(len(part), "big")
    if len(part) == 1 and rng.random() < 0.7:
        return struct.pack("B", (part[0] + rng.choice((-2, -1, 1, 2, 128))) & 0xFF)
    return rng.choice(VARINTS)


def _bytes(rng: random.Random, pieces: list[Piece], chance: float) -> bytes:
    encoded = b"".join(part for _, part in pieces)
    if rng.random() >= chance:
        return encoded
    at = rng.randrange(len(encoded) + 1)
    match rng.randrange(4):
        case 0:
            return encoded[:at]
        case 1:
            return encoded + rng.randbytes(rng.randrange(1, 9))
        case 2:
            return encoded[:at] + rng.randbytes(rng.randrange(3)) + encoded[at + 1 :]
        case _:
            return rng.randbytes(rng.randrange(40))


@dataclass
class Report:
    """What came of the records; `problems` is bounded in number and size."""

    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    record_types: set[int | None] = field(default_factory=set)
    crashes: int = 0
    problems: list[str] = field(default_factory=list)
    slowest_ms: float = 0.0
    growth_mb: float = 0.0
    seconds: float = 0.0  # of this process

    def problem(self, text: str) -> None:
        if len(self.problems) < SAMPLES:
            self.problems.append(text)

    @property
    def is_good(self) -> bool:
        return (
            not self.crashes and not self.problems and self.records == sum(self.outcomes.values())
        )

    def __str__(self) -> str:
        parts = " + ".join(f"{self.outcomes[name]} {name}" for name in NAMES.values())
        return (
            f"{self.records} records = {parts}; {self.crashes} crashes; {len(self.errors)} kinds "
            f"of error; {self.growth_mb:.1f} MB more; slowest {self.slowest_ms:.1f} ms; "
            f"{self.records / max(self.seconds, 1e-9):,.0f} records/s"
        )


def _is_consistent(outcome: Outcome, record: Record) -> bool:
    return (
        (outcome.error is not None) == (outcome.outcome in ("unsupported", "malformed"))
        and (outcome.value is not None) == (outcome.outcome == "record")
        and (outcome.key is not None or outcome.error is not None)
        and (outcome.outcome != "tombstone" or record[1] is None)
    )


def _decode(record: Record, report: Report) -> Outcome | None:
    start = time.thread_time()  # and not by the clock on the wall, which other processes move on
    try:
        outcome = decode(*record)
    except Exception as error:  # noqa: BLE001  the decoder promises to raise nothing at all
        report.crashes += 1
        report.problem(f"{error!r} at {_shown(record)}")
        return None
    report.slowest_ms = max(report.slowest_ms, 1000 * (time.thread_time() - start))
    if not _is_consistent(outcome, record):
        report.problem(f"{outcome.outcome} and {outcome.error} at {_shown(record)}")
    return outcome


def _shown(record: Record) -> str:
    return " ".join(
        "null" if part is None else part[:SAMPLE_BYTES].hex() or "empty" for part in record
    )


def _columnar_counts(batch: list[Record]) -> Counter[Count]:
    columns = decode_columns(*(pa.array(cells, pa.binary()) for cells in zip(*batch, strict=True)))
    counts: Counter[Count] = Counter()
    for row, is_commit in enumerate(columns.is_commit.tolist()):
        key = columns.keys[columns.key_index[row]]
        if row in columns.others:
            other = columns.others[row]
            counts[other.outcome, other.record_type, other.error] += 1
        else:
            counts["record" if is_commit else "tombstone", key.record_type, None] += 1
    return counts


def _check(batch: list[Record], report: Report) -> None:
    counts: Counter[Count] = Counter()
    for record in batch:
        outcome = _decode(record, report)
        if outcome is not None:
            counts[outcome.outcome, outcome.record_type, outcome.error] += 1
    report.records += len(batch)
    for (name, record_type, error), number in counts.items():
        report.outcomes[NAMES[name]] += number
        report.record_types.add(record_type if record_type in range(25) else None)
        if error is not None:
            report.errors[error] += number
    if counts != _columnar_counts(batch):
        report.problem(
            f"the columnar path counts otherwise in the batch before record {report.records}"
        )
    # a bounded number of keys is kept on purpose; nothing else may stay
    columnar._known_key.cache_clear()


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(records: int, seed: int, *, progress: bool = False) -> Report:
    """Decode so many mutants and report; growth is that of the peak of memory after the warm-up."""
    report = Report()
    start = time.process_time()
    shown = time.monotonic()
    made = mutants(seed)
    base_mb = None
    while report.records < records:
        _check([next(made) for _ in range(min(BATCH, records - report.records))], report)
        if base_mb is None and report.records >= min(WARM_UP, records // 2):
            base_mb = _peak_mb()
        report.seconds = time.process_time() - start
        report.growth_mb = 0.0 if base_mb is None else _peak_mb() - base_mb
        if progress and time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            print(f"{report.seconds:.0f} s: {report}", flush=True)
    if report.growth_mb > MEMORY_LIMIT_MB:
        report.problem(f"memory grew by {report.growth_mb:.1f} MB")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description="Decode damaged records of the offsets topic.")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    report = run(options.records, options.seed, progress=True)
    print(f"{'good' if report.is_good else 'BAD'} (seed {options.seed}): {report}")
    for problem in report.problems:
        print(problem)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
