"""Format and encoding that a request asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    best = max(
        (offer for offer in offers if offer.name == "application/openmetrics-text"),
        key=lambda o: o.quality,
        default=None,
    )
    text = max((offer.quality for offer in offers if offer.name == "text/plain"), default=0.0)
    if best is None or best.quality <= 0 or best.quality < text:
        return TEXT, TEXT_TYPE
    escaping = best.parameters.get("escaping", "")
    return OPENMETRICS, OPENMETRICS_TYPE + (
        f"; escaping={escaping}" if escaping in _ESCAPINGS else ""
    )


def wants_gzip(accept_encoding: str) -> bool:
    """Return True if the header names gzip and does not refuse it."""
    return any(offer.name == "gzip" and offer.quality > 0 for offer in _offers(accept_encoding))


def _offers(header: str) -> list[_Offer]:
    return [_offer(part) for part in header.split(",") if part.strip()]


def _offer(part: str) -> _Offer:
    name, *pairs = (piece.strip() for piece in part.split(";"))
    split = (pair.partition("=") for pair in pairs)
    parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in split}
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 0.0  # not a number: what cannot be read is not wanted
    return _Offer(name.lower(), quality, parameters)
