"""laggard and Kafka on the same bytes: python -m differential.compare --records 100000 --seed 7.

What the two say must be equal, or the listed differences must explain both answers to the last
field.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import encoder
import fuzz
import layouts
import vectors
from differential import reading
from differential.differences import DIFFERENCES, NAMES
from differential.examples import EXAMPLES
from differential.kafka import Kafka, running_kafka
from differential.question import Question
from differential.reading import Answer
from encoder import Piece
from laggard.wire.member_blobs import decode_assignment, decode_subscription
from layouts import Kind, Tag

BATCH = 500
SAMPLES = 5
SAMPLE_CHARACTERS = 600
PROGRESS_SECONDS = 5
BLOB_SHARE = 10  # one mutated blob per so many mutated records


@dataclass
class Report:
    """How often the two agree; `problems` are bounded in number and size."""

    asked: Counter[str] = field(default_factory=Counter)  # by kind
    agreed: Counter[str] = field(default_factory=Counter)  # by kind
    outcomes: Counter[str] = field(default_factory=Counter)  # Kafka's
    differences: Counter[str] = field(default_factory=Counter)
    record_types: set[int] = field(default_factory=set)  # whose value both decoded
    missing_tags: set[tuple[int, str]] = field(default_factory=set)  # that Kafka 4.2 does not have
    unexplained: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def unused(self) -> set[str]:
        """Differences on the list that no record showed."""
        return NAMES - self.differences.keys()

    @property
    def is_good(self) -> bool:
        return not self.unexplained and not self.unused

    def __str__(self) -> str:
        asked, agreed = self.asked.total(), self.agreed.total()
        return (
            f"{asked} asked = {agreed} alike + {asked - agreed - self.unexplained} differ as "
            f"listed + {self.unexplained} unexplained; {self.seconds:.0f} s"
        )

    def problem(self, question: Question, text: str, *answers: Answer) -> None:
        self.unexplained += 1
        if len(self.problems) < SAMPLES:
            shown = [str(question), *(str(answer) for answer in answers)]
            self.problems.append("\n  ".join([text, *(each[:SAMPLE_CHARACTERS] for each in shown)]))


def vector_questions() -> list[Question]:
    records = [Question("record", (vector.key, vector.value)) for vector in vectors.RECORDS]
    return records + [
        Question(blob["kind"], (bytes.fromhex(blob["hex"]),))
        for blob in vectors.VECTORS["consumer_protocol"]
    ]


def mutants(seed: int) -> Iterator[Question]:
    """Damaged records without end, and a damaged blob now and then."""
    blobs = _mutated_blobs(seed)
    for number, record in enumerate(fuzz.mutants(seed), start=1):
        yield Question("record", record)
        if number % BLOB_SHARE == 0:
            yield next(blobs)


def _mutated_blobs(seed: int) -> Iterator[Question]:
    rng = random.Random(seed)
    whole = [
        (blob["kind"], _blob_pieces(blob["kind"], bytes.fromhex(blob["hex"])))
        for blob in vectors.VECTORS["consumer_protocol"]
    ]
    spliced: list[fuzz.Parts] = [([], pieces) for _, pieces in whole]
    while True:
        kind, pieces = rng.choice(whole)
        damaged = fuzz._damage(rng, pieces, spliced) if rng.random() < 0.85 else pieces
        yield Question(kind, (fuzz._bytes(rng, damaged, 0.15),))


def _blob_pieces(kind: str, blob: bytes) -> list[Piece]:
    fields = decode_subscription(blob) if kind == "subscription" else decode_assignment(blob)
    if fields.get("version") is None or fields.get("partial"):
        return [("raw", blob)]
    rest = reading.SUBSCRIPTION_REST[min(fields["version"], 3)]
    layout = (
        {**reading.SUBSCRIPTION_PREFIX, **rest} if kind == "subscription" else reading.ASSIGNMENT
    )
    # the encoder writes null for None anyway
    written = {"version": "int16", **layout, "user_data": "bytes"}
    return list(encoder.pieces(written, fields, flexible=False))


def compare(kafka: Kafka, questions: Sequence[Question], report: Report) -> list[Answer]:
    """Ask Kafka and count; the answers are Kafka's."""
    answers = kafka.ask([str(question) for question in questions])
    for question, answer in zip(questions, answers, strict=True):
        answer.pop("why", None)
        _complete(answer, report)
        _count(question, answer, report)
    return answers


def _complete(answer: Answer, report: Report) -> None:
    """Give the fields that came after Kafka 4.2 their defaults, as laggard does where their tag is
    absent.
    """
    record_type = answer.get("record_type")
    if record_type not in reading.LATER_TAGS or "value" not in answer:
        return
    added = set(
        _add_later(answer["value"], layouts.VALUES[record_type, 0], reading.LATER_TAGS[record_type])
    )
    report.missing_tags |= {(record_type, name) for name in added}


def _add_later(value: Any, kind: Kind, names: AbstractSet[str]) -> Iterator[str]:
    match kind:
        case [item]:
            for each in value:
                yield from _add_later(each, item, names)
        case dict():
            for name, inner in kind.items():
                if name in names and name not in value and isinstance(inner, Tag):
                    value[name] = inner.default
                    yield name
                elif isinstance(inner, list):
                    yield from _add_later(value[name], inner, names)


def _count(question: Question, kafkas: Answer, report: Report) -> None:
    report.asked[question.kind] += 1
    report.outcomes[kafkas["outcome"]] += 1
    ours = question.laggard()
    if _without_error(ours) == kafkas:
        report.agreed[question.kind] += 1
        if question.kind == "record" and "value" in ours:
            report.record_types.add(ours["record_type"])
        return
    met: set[str] = set()
    if _without_error(question.read(NAMES, met)) != kafkas:
        report.problem(question, "Kafka reads it as no listed difference explains", ours, kafkas)
    elif question.read(frozenset(), set()) != ours:
        report.problem(question, "laggard reads it otherwise than the format says", ours, kafkas)
    else:
        report.differences.update(_causes(question, kafkas, met))


def _without_error(answer: Answer) -> Answer:
    return {name: part for name, part in answer.items() if name != "error"}


def _causes(question: Question, kafkas: Answer, met: set[str]) -> Iterable[str]:
    """Those of the differences without which the answer would not be Kafka's; all, where each of
    several is enough.
    """
    alone = [name for name in met if _without_error(question.read(NAMES - {name}, set())) != kafkas]
    return alone or met


def run(kafka: Kafka, records: int, seed: int, *, progress: bool = False) -> Report:
    """All vectors and examples, so many damaged records, and a tenth as many damaged blobs."""
    report = Report()
    start = shown = time.monotonic()
    compare(kafka, [*vector_questions(), *EXAMPLES.values()], report)
    made = islice(mutants(seed), records + records // BLOB_SHARE)
    while batch := list(islice(made, BATCH)):
        compare(kafka, batch, report)
        report.seconds = time.monotonic() - start
        if progress and time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            print(report, flush=True)
    return report


def _print_summary(report: Report, seed: int) -> None:
    print(f"{'good' if report.is_good else 'BAD'} (seed {seed}): {report}")
    for kind, asked in sorted(report.asked.items()):
        print(f"  {asked:>8} {kind}s, {report.agreed[kind]} alike")
    print(
        "  Kafka:",
        ", ".join(f"{number} {outcome}" for outcome, number in sorted(report.outcomes.items())),
    )
    for difference in DIFFERENCES:
        print(f"  {report.differences[difference.name]:>8} {difference.name}")
    for problem in report.problems:
        print(problem)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Compare laggard's decoder with Kafka's own classes."
    )
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with running_kafka() as kafka:
        report = run(kafka, options.records, options.seed, progress=True)
    _print_summary(report, options.seed)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
