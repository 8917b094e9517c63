"""One key of a section: its default, and its range in words.

Errors and conf/reference.toml print these words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit


def key(default: Any, accepts: str, holds: Callable[[Any], object] = bool) -> Any:
    """Declare a key with its default and its range."""
    metadata = {"accepts": accepts, "holds": holds}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def between(low: int, high: int, default: int) -> Any:
    """Declare a key that is a number from `low` to `high`."""
    return key(default, f"{low} to {high}", lambda value: low <= value <= high)


def one_of(*values: str, default: str) -> Any:
    """Declare a key that is one of these words."""
    return key(default, f"{', '.join(values[:-1])} or {values[-1]}", values.__contains__)


def switch(*, default: bool) -> Any:
    """Declare a key that is true or false."""
    return key(default, "true or false", lambda _: True)


def globs(*default: str) -> Any:
    """Declare a key for names to watch, as globs.

    It may not be empty, as nothing would be watched.
    """
    return key(default, "list of globs, not empty", lambda value: value and all(value))


def ignored(*default: str) -> Any:
    """Declare a key for names to leave out, as globs."""
    return key(default, "list of globs", all)


def path() -> Any:
    """Declare a key for the path of a file; empty means none."""
    return key("", "path, may be empty", lambda value: value.isprintable())


def is_host_port(text: str) -> bool:
    """Return True if the text is host:port; an IPv6 address is in brackets."""
    host, _, port = text.rpartition(":")
    is_host = re.fullmatch(r"\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+", host) is not None
    return is_host and re.fullmatch(r"[0-9]{1,5}", port) is not None and int(port) <= 65535


def is_url(text: str) -> bool:
    """Return True if the text is an HTTP or HTTPS URL without a user, a password or a fragment."""
    if not re.fullmatch(r"[!-~]+", text):
        return False
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # http://[::1 and ports that are none
        return False
    plain = not (parts.username or parts.password or "@" in parts.netloc or parts.fragment)
    return (
        parts.scheme in ("http", "https")
        and bool(host)
        and port != 0
        and plain
        and "\\" not in text
    )


def is_folder_url(text: str) -> bool:
    """Return True if a path can be appended to the URL."""
    return is_url(text) and text.endswith("/") and "?" not in text


def is_origin(text: str) -> bool:
    """Return True if the text is the origin of a web page, as browsers send it, or * for all."""
    return text == "*" or (is_url(text) and re.fullmatch(r"https?://[^/?]+", text) is not None)
