"""Accept headers as scrapers really send them."""

from __future__ import annotations

import pytest

from laggard.exporter.body.negotiate import OPENMETRICS_TYPE, TEXT_TYPE, choose_format, wants_gzip

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT_TYPE),
        ("*/*", TEXT_TYPE),
        ("text/html, */*;q=0.8", TEXT_TYPE),
        ("image/png", TEXT_TYPE),
        ("application/openmetrics-text", OPENMETRICS_TYPE),
        ("application/openmetrics-text; version=2.0.0", OPENMETRICS_TYPE),
        ("application/openmetrics-text;q=0", TEXT_TYPE),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.5", TEXT_TYPE),
        ("application/openmetrics-text;q=soon", TEXT_TYPE),
        ('application/openmetrics-text; escaping="evil\\r\\nX: y"', OPENMETRICS_TYPE),
        (PROMETHEUS_3, OPENMETRICS_TYPE + "; escaping=allow-utf-8"),
    ],
)
def test_the_format_follows_the_accept_header(accept: str, expected: str) -> None:
    assert choose_format(accept)[1] == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("identity", False),
        ("br,*", False),
    ],
)
def test_gzip_is_sent_where_it_is_named_and_not_refused(header: str, expected: bool) -> None:
    assert wants_gzip(header) == expected
