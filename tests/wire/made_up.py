"""Made-up values of every record type, drawn from the layouts."""

from typing import Any

from hypothesis import strategies as st

import layouts
from layouts import Kind, Nullable, Tag

EDGE_TEXT = st.sampled_from([126, 127, 128, 16_383, 16_384]).map(lambda length: "x" * length)
TEXT = st.text(max_size=12) | st.sampled_from(["", "a:b:1", "ä-группа-群組", "😀grp"]) | EDGE_TEXT
BLOB = st.binary(max_size=12) | EDGE_TEXT.map(str.encode)
UUID = st.sampled_from(
    ["MKXx1fIkQy2J9jXHhK8m1w", "jxTkX87qRn-mscDeEqs0zQ", "_____________________w"]
)
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "string?": st.none() | TEXT,
    "bytes": BLOB,
    "uuid": UUID,
    "uint16": st.integers(0, 65_535),
    **{name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in BITS.items()},
}


def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case str():
            return PRIMITIVES[kind]
        case [item]:
            return st.lists(values_of(item), max_size=3)
        case Nullable():
            return st.none() | values_of(kind.kind)
        case Tag():
            return st.just(kind.default) | values_of(kind.kind)
        case dict():
            return st.fixed_dictionaries({name: values_of(field) for name, field in kind.items()})
    raise AssertionError(kind)


KEYS = {record_type: values_of(kind) for record_type, kind in layouts.KEYS.items()}
VALUES = {place: values_of(kind) for place, kind in layouts.VALUES.items()}


def with_defaults(record_type: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Add what the decoder says of fields that the version of these has no place for."""
    whole = layouts.DEFAULTS.get(record_type, {}) | fields
    if record_type == 2:
        whole["members"] = [layouts.MEMBER_DEFAULTS | member for member in fields["members"]]
    return whole
