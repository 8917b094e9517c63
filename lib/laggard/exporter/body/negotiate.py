"""Format and encoding that a request asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter

from laggard.exporter.body.render import OPENMETRICS, TEXT

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# echoed; our names are the same in all of them
_ESCAPINGS = ("allow-utf-8", "underscores", "dots", "values")


@dataclass(frozen=True, slots=True)
class _Offer:
    name: str
    quality: float
    parameters: dict[str, str] = field(default_factory=dict)


def choose_format(accept: str) -> tuple[str, str]:
    """Return format and Content-Type: OpenMetrics if named and not less wanted than text."""
    offers = _offers(accept)
    best, text = _best(offers, "application/openmetrics-text"), _best(offers, "text/plain")
    if best.quality <= 0 or best.quality < text.quality:
        return TEXT, TEXT_TYPE
    escaping = best.parameters.get("escaping", "")
    if escaping not in _ESCAPINGS:
        return OPENMETRICS, OPENMETRICS_TYPE
    return OPENMETRICS, f"{OPENMETRICS_TYPE}; escaping={escaping}"


def wants_gzip(accept_encoding: str) -> bool:
    """Return True if the header names gzip and does not refuse it."""
    return any(offer.name == "gzip" and offer.quality > 0 for offer in _offers(accept_encoding))


def _best(offers: list[_Offer], name: str) -> _Offer:
    """Return the most wanted offer of a name; one of quality 0 if there is none."""
    named = (offer for offer in offers if offer.name == name)
    return max(named, key=attrgetter("quality"), default=_Offer(name, 0.0))


def _offers(header: str) -> list[_Offer]:
    return [_offer(part) for part in header.split(",") if part.strip()]


def _offer(part: str) -> _Offer:
    name, *pairs = map(str.strip, part.split(";"))
    parameters: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        parameters[key.strip().lower()] = value.strip().strip('"')
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 0.0  # not a number: what cannot be read is not wanted
    return _Offer(name.lower(), quality, parameters)
