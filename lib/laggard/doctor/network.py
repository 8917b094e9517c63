"""Which addresses of a list take no connection from this machine, and why."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from threading import Thread


def find_unreachable(addresses: Iterable[str], seconds: float) -> dict[str, str]:
    """The host:port addresses that were not connected to in time, each with its reason; all are tried at once."""
    reasons = dict.fromkeys(addresses, f"no connection within {seconds:g} s")
    # a thread for each, left behind when late: looking up a name takes as long as the resolver likes
    threads = [Thread(target=_connect, args=(address, seconds, reasons), daemon=True) for address in reasons]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    return {address: reason for address, reason in reasons.items() if reason}


def _connect(address: str, seconds: float, reasons: dict[str, str]) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, UnicodeError, OverflowError) as error:  # a name or a port that cannot be is as unreachable
        reasons[address] = getattr(error, "strerror", None) or str(error)
    else:
        reasons[address] = ""
