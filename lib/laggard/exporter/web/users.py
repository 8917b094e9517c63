"""Passwords: bcrypt off the serving loop, bounded in parallel, each right password only once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import bcrypt

MAX_UNDER_WAY = 64
MAX_PER_ADDRESS = 16  # so that one guessing client does not take every place
_THREADS = 2
_NICENESS = 10  # behind the serving loop, which shares the cores
_MAX_KNOWN = 1024
_MAX_BYTES = 72  # all that bcrypt takes of a password; htpasswd and Go cut it too


class Busy(Exception):  # noqa: N818 - a fact, answered with 429
    """As many passwords are being checked as may be."""


class Users:
    """The users of one web-config file, and which of their passwords were right before."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self.hashes = {name.encode(): hashed for name, hashed in hashes.items()}
        costs = [int(hashed[4:6]) for hashed in self.hashes.values()]
        # for an unknown user, and for what a cheap hash lacks: each wrong answer takes the time of
        # the dearest hash
        self._stand_ins = {
            cost: bcrypt.hashpw(b"", bcrypt.gensalt(4))
            for cost in range(min(costs), max(costs) + 1)
        }
        self._stand_ins = {
            cost: stand_in.replace(b"$04$", b"$%02d$" % cost, 1)
            for cost, stand_in in self._stand_ins.items()
        }
        self._key = secrets.token_bytes(32)
        self._known: set[bytes] = set()

    def is_known(self, user: bytes, password: bytes) -> bool:
        """Return True if the pair was right before, without the cost of bcrypt."""
        return self._digest(user, password) in self._known

    def check(self, user: bytes, password: bytes) -> bool:
        """Return True if the password is the user's.

        Wrong passwords and unknown users take equally long.
        """
        dearest = max(self._stand_ins)
        hashed = self.hashes.get(user)
        if hashed is None:
            bcrypt.checkpw(password[:_MAX_BYTES], self._stand_ins[dearest])
            return False
        if bcrypt.checkpw(password[:_MAX_BYTES], hashed):
            if len(self._known) < _MAX_KNOWN:
                self._known.add(self._digest(user, password))
            return True
        # they add up: one step costs as much as all below it and one
        for cost in range(int(hashed[4:6]), dearest):
            bcrypt.checkpw(password[:_MAX_BYTES], self._stand_ins[cost])
        return False

    def _digest(self, user: bytes, password: bytes) -> bytes:
        # no user's name has a colon
        return hashlib.blake2b(user + b":" + password, key=self._key).digest()


class Authenticator:
    """Checks passwords for the serving loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "passwords", _step_back)
        self._under_way: Counter[str] = Counter()

    async def admits(
        self, users: Users, header: str, address: str, is_waiting: Callable[[], bool]
    ) -> bool:
        """Return True if the header has a valid user and password.

        Raise `Busy` if that cannot be checked now.
        """
        pair = credentials(header)
        if pair is None:
            return False
        if users.is_known(*pair):
            return True
        if self._under_way.total() >= MAX_UNDER_WAY or self._under_way[address] >= MAX_PER_ADDRESS:
            raise Busy
        self._under_way[address] += 1
        try:
            # nothing is computed for a client that has gone
            work = asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: is_waiting() and users.check(*pair)
            )
            return await work
        finally:
            self._under_way[address] -= 1
            self._under_way += Counter()  # drops the addresses at 0

    def close(self) -> None:
        """Forget what waits; a hash under way ends with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def credentials(header: str) -> tuple[bytes, bytes] | None:
    """Return the user and password of an Authorization header; None if it has none."""
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(coded, validate=True).partition(b":")
    except ValueError:
        return None
    return (user, password) if colon else None


def _step_back() -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
