"""The closed list of ways in which bytes can fail to be a record."""

from typing import Literal, TypeAlias, get_args

ErrorKind: TypeAlias = Literal[
    "unknown_record_type",
    "unknown_value_version",
    "null_key",
    "truncated",
    "null_not_allowed",
    "bad_length",
    "bad_varint",
    "bad_utf8",
    "bad_tag",
    "bad_marker",
    "trailing_bytes",
    # a partition below 0, or a record timestamp outside the calendar: set by the decode stage
    "out_of_range",
    "decoder_failed",  # an error in the decoder itself
    # only in the consumer protocol: a subscription or assignment of negative version
    "bad_version",
]


# not malformed, or not of a record
_NEVER_DEAD = ("unknown_record_type", "unknown_value_version", "bad_version")
DEAD_LETTER_REASONS: tuple[ErrorKind, ...] = tuple(
    kind for kind in get_args(ErrorKind) if kind not in _NEVER_DEAD
)


class WireError(Exception):
    """Bytes that do not follow the format: the fault and the dotted name of the field."""

    def __init__(self, kind: ErrorKind, field: str | None = None) -> None:
        super().__init__(kind, field)
        self.kind: ErrorKind = kind
        self.field = field

    def inside(self, name: str) -> "WireError":
        """Return the same fault as seen from the enclosing field."""
        return WireError(self.kind, name if self.field is None else f"{name}.{self.field}")
