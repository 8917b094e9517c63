"""laggard's decoder and the classes Kafka's own coordinator and clients read with, on the same
bytes.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import layouts
import made_up
import vectors
from differential import compare, question, reading
from differential.compare import Report
from differential.differences import NAMES
from differential.examples import EXAMPLES, GOOD_COMMIT, a_record, with_fields
from differential.kafka import Kafka, NoCompilerError, running_kafka
from differential.question import Question
from laggard.wire.schemas import RECORD_TYPES

pytestmark = [pytest.mark.broker, pytest.mark.full]  # needs a Java compiler


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with running_kafka() as program:
        try:
            program.ask(["types"])
        except NoCompilerError:
            pytest.skip(
                "java has no compiler here (Debian: apt-get install openjdk-17-jdk-headless)"
            )
        yield program


def test_types_and_their_newest_versions_are_kafkas(kafka: Kafka) -> None:
    (types,) = kafka.ask(["types"])
    ours = {
        str(number): [constant(record.name), record.newest]
        for number, record in RECORD_TYPES.items()
    }
    assert ours.pop("24")
    ours["0"][1] = 0  # the difference `legacy_key_with_newer_value`
    assert ours == types


def constant(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def test_kafka_gives_the_verdict_that_each_record_vector_says(kafka: Kafka) -> None:
    answers = kafka.ask(
        [str(Question("record", (vector.key, vector.value))) for vector in vectors.RECORDS]
    )
    for vector, written, answer in zip(
        vectors.RECORDS, vectors.VECTORS["records"], answers, strict=True
    ):
        verdict = written.get("kafka", {}).get("verdict", vector.expect["outcome"])
        assert answer["outcome"] in (
            ("unsupported", "malformed") if verdict == "error" else (verdict,)
        ), vector.name


def test_kafka_gives_the_verdict_that_each_blob_vector_says(kafka: Kafka) -> None:
    blobs = vectors.VECTORS["consumer_protocol"]
    answers = kafka.ask(
        [str(Question(blob["kind"], (bytes.fromhex(blob["hex"]),))) for blob in blobs]
    )
    for blob, answer in zip(blobs, answers, strict=True):
        is_error = blob.get("kafka", {}).get("verdict") == "error" or "error" in blob["expect"]
        is_refused = answer["outcome"] == "malformed" or answer["value"].get("partial") is True
        assert is_refused is is_error, blob["name"]


def test_every_vector_is_read_alike_or_as_the_list_explains(kafka: Kafka) -> None:
    report = Report()
    compare.compare(kafka, compare.vector_questions(), report)
    assert report.problems == []
    assert report.asked.total() == len(vectors.RECORDS) + len(vectors.VECTORS["consumer_protocol"])


@pytest.mark.parametrize("place", sorted(layouts.VALUES), ids="type {0[0]} version {0[1]}".format)
@settings(max_examples=25)
@given(st.data(), st.booleans())
def test_made_up_records_are_read_alike(
    kafka: Kafka, place: tuple[int, int], data: st.DataObject, all_tags: bool
) -> None:
    key = encoder.record_key(place[0], data.draw(made_up.KEYS[place[0]]))
    value = encoder.record_value(*place, data.draw(made_up.VALUES[place]), all_tags=all_tags)
    report = Report()
    (answer,) = compare.compare(kafka, [Question("record", (key, value))], report)
    assert report.problems == []
    is_unknown = place[0] == 24 or (place[0] == 0 and place[1] > 0)
    assert answer["outcome"] == ("unsupported" if is_unknown else "record")


def test_every_difference_has_an_example() -> None:
    assert EXAMPLES.keys() == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_example_shows_its_difference_and_no_other(kafka: Kafka, name: str) -> None:
    report = Report()
    compare.compare(kafka, [EXAMPLES[name]], report)
    assert report.problems == []
    assert report.differences == {name: 1}


def test_damaged_records_and_blobs_are_read_alike_or_as_the_list_explains(kafka: Kafka) -> None:
    report = compare.run(kafka, 100_000, seed=7)
    assert report.problems == []
    assert report.unused == set()
    assert report.is_good
    assert report.asked.total() == len(compare.vector_questions()) + len(EXAMPLES) + 110_000
    assert report.record_types == layouts.KEYS.keys() - {0, 24}
    assert report.missing_tags == {
        (number, name) for number, names in reading.LATER_TAGS.items() for name in names
    }


def test_a_slip_of_the_decoder_is_seen(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    def slips(key: bytes | None, value: bytes | None) -> Any:
        decoded = question._our_record(key, value)
        decoded.get("value", {}).pop("leader_epoch", None)
        return decoded

    monkeypatch.setitem(question.OURS, "record", slips)
    report = Report()
    compare.compare(kafka, [a_record(1, GOOD_COMMIT), a_record(11, with_fields(11))], report)
    assert report.unexplained == 1
    assert not report.is_good
    assert str(a_record(1, GOOD_COMMIT)) in report.problems[0]


def test_an_answer_of_kafka_that_the_list_does_not_explain_is_seen(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "NAMES", NAMES - {"trailing_bytes"})
    report = Report()
    compare.compare(kafka, [EXAMPLES["trailing_bytes"]], report)
    assert report.unexplained == 1
