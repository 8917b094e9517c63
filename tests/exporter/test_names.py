"""Names that clients invent: they reach Prometheus unharmed, and two of them never become one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from laggard.escape import MAX_BYTES, escape_label
from laggard.exporter.body.families import GROUP_MEMBERS
from laggard.exporter.body.render import _openmetrics, _text
from laggard.exporter.body.samples import filled

# every code point, lone surrogates included, and the letters that matter often
NAMES = st.text(
    st.one_of(st.characters(codec=None), st.sampled_from('\\"\n\r\x00x#‮\u2028\ud800a ')),
    max_size=300,
)


@given(NAMES)
def test_an_escaped_name_prints_fits_and_survives_both_formats(name: str) -> None:
    escaped = escape_label(name)
    assert escaped.isprintable()
    assert len(escaped.encode()) <= MAX_BYTES
    families = [filled(GROUP_MEMBERS, [({"cluster": "c", "group": escaped}, 1)])]
    for body, parse in (
        (_text(families), parse_text),
        (_openmetrics(families) + b"# EOF\n", parse_openmetrics),
    ):
        (family,) = parse(body.decode())
        assert family.samples[0].labels["group"] == escaped


@given(NAMES, NAMES)
def test_two_names_never_become_one(one: str, other: str) -> None:
    assert (escape_label(one) == escape_label(other)) == (one == other)


@given(NAMES)
def test_an_escaped_name_is_not_what_another_name_escapes_to(name: str) -> None:
    escaped = escape_label(name)
    assert escaped == name or escape_label(escaped) != escaped


def test_ordinary_names_stay_as_they_are() -> None:
    assert [escape_label(name) for name in ("billing-v2", "über straße", "注文")] == [
        "billing-v2",
        "über straße",
        "注文",
    ]


def test_control_bidirectional_and_backslash_are_written_as_bytes() -> None:
    assert escape_label("a\\b\n‮c") == r"a\x5cb\x0a\xe2\x80\xaec"


def test_names_that_differ_behind_the_cut_stay_apart() -> None:
    assert escape_label("x" * 300) != escape_label("x" * 299 + "y")
    assert len(escape_label("x" * 257)) == MAX_BYTES
