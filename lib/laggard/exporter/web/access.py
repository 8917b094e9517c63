"""Protection of the exporter's HTTP: the web-config file in force, and its watcher."""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from laggard.errors import CONFIGURATION, LaggardError
from laggard.exporter.collectors.own import SelfStats

if TYPE_CHECKING:
    from laggard.exporter.web.config import WebConfig
    from laggard.exporter.web.users import Users
    from laggard.exporter.web.yaml import Node

log = logging.getLogger("laggard.exporter")
MAX_FILE_BYTES = 1024 * 1024
_LOOK_SECONDS = 1.0
_NEEDS = "pip install 'laggard[web]'"


class RateLimit:
    """Token bucket: a burst of requests, then one per interval; faster requests are refused."""

    def __init__(
        self, interval_seconds: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval_seconds
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def allows(self) -> bool:
        """Return True if a request may be answered now, and count it."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) / self._interval)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(frozen=True)
class Web:
    """One web-config file in force; without one, plain HTTP for everybody."""

    tls: ssl.SSLContext | None = None
    access: object = None  # who may connect: connections of another time are closed when it changes
    allowed_sans: frozenset[str] = frozenset()
    users: Users | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    limit: RateLimit | None = None

    @property
    def asks_who(self) -> bool:
        """True if a client must have a password or a certificate."""
        return self.users is not None or (
            self.tls is not None and self.tls.verify_mode == ssl.CERT_REQUIRED
        )

    def exposure(self, host: str) -> str:
        """Say what others than this machine could see; empty if nothing."""
        if is_loopback(host):
            return ""
        if not self.asks_who:
            return (
                "without password or client certificate: everyone who reaches it sees group and "
                "topic names"
            )
        return "" if self.tls else "without TLS: passwords and names travel unencrypted"


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class WebFile:
    """The file by its path, and what it and the files it names were when they were last read."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._seen: dict[Path, str] = {}
        self._changed: dict[Path, str] = {}
        self._expected: dict[Path, str] = {}
        self._config: WebConfig | None = None
        self.web = Web()

    def load(self) -> Web:
        """Read it and what it names; a LaggardError has every reason to refuse it."""
        try:
            from laggard.exporter.web.config import parse_web_config
            from laggard.exporter.web.tls import make_context
            from laggard.exporter.web.users import Users
            from laggard.exporter.web.yaml import read_yaml
        except ImportError as error:
            raise LaggardError(
                "a web-config file needs packages that are not installed",
                cause=str(error),
                fix=_NEEDS,
                exit_code=CONFIGURATION,
            ) from error
        self._seen = {}
        try:
            root = read_yaml(self._read(self._path))
            self._refuse_empty(root)
            config = parse_web_config(root, lambda name: self._read(self._path.parent / name))
            context = make_context(config.tls) if config.tls else None
        except (OSError, ValueError) as error:
            raise self._refused(error) from error
        # the same users keep what is known of their passwords
        is_same = self._config is not None and self._config.users == config.users
        if is_same:
            users = self.web.users
        elif config.users:
            users = Users(config.users)
        else:
            users = None
        self._config = config
        self.web = _web(config, context, users)
        return self.web

    def _refuse_empty(self, root: Node) -> None:
        """Refuse an empty file in place of a protecting file; its writer may empty it first."""
        if root.value is None and self._config and (self._config.tls or self._config.users):
            raise ValueError("1: the file is empty; {} takes all protection away")

    def _refused(self, error: OSError | ValueError) -> LaggardError:
        reason = (
            f" {error.strerror}" if isinstance(error, OSError) and error.strerror else f"{error}"
        )
        return LaggardError(
            "the web-config file is refused",
            cause="\n  ".join(f"{self._path}:{line.strip()}" for line in reason.splitlines()),
            fix="mend the file; docs/exporter.md has every key",
            exit_code=CONFIGURATION,
        )

    def look(self) -> Web | None:
        """Return the file loaded again, once changed and then unchanged for two checks; else None.

        Who writes a file may empty it first, and an empty file asks for nothing.
        """
        now = {path: _digest(path) for path in self._seen}
        if now == self._seen:
            self._changed = {}
            return None
        if now != self._changed:
            self._changed = now
            return None
        self._changed, self._expected = {}, now
        return self.load()

    def _read(self, path: Path) -> bytes:
        try:
            content = read_small(path)
        except (OSError, ValueError) as error:
            self._seen[path] = repr(error)
            raise
        self._seen[path] = hashlib.sha256(content).hexdigest()
        if self._expected.get(path, self._seen[path]) != self._seen[path]:
            self._seen[path] = ""  # so that the next look sees the change, too
            raise ValueError("changed again while it was read")
        return content


def _web(config: WebConfig, context: ssl.SSLContext | None, users: Users | None) -> Web:
    tls = config.tls
    limit = RateLimit(config.interval_seconds, config.burst) if config.interval_seconds else None
    return Web(
        tls=context,
        access=tls and (tls.client_auth, tls.client_ca, tls.allowed_sans, tls.min_version),
        allowed_sans=tls.allowed_sans if tls else frozenset(),
        users=users,
        headers=config.headers,
        limit=limit,
    )


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_small(path)).hexdigest()
    except (OSError, ValueError) as error:
        return repr(error)


def read_small(path: Path) -> bytes:
    """Return the content of a small regular file.

    Raise an error for a pipe, which would block, or a larger file.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ValueError("no regular file")
        with os.fdopen(number, "rb", closefd=False) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(number)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES // 1024} KB")
    return content


class WebWatch:
    """A thread that looks at the file; what it loads is handed to `use`."""

    def __init__(self, file: WebFile, stats: SelfStats, use: Callable[[Web], None]) -> None:
        self._file = file
        self._stats = stats
        self._use = use
        self._stop = Event()
        # a disk that hangs must not stop us
        self._thread = Thread(target=self._run, name="web-config", daemon=True)

    def start(self) -> None:
        self._stats.web_config_current = True
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Look once; a broken file is counted, and the one before stays in force."""
        try:
            web = self._file.look()
        except Exception as error:  # noqa: BLE001 - whatever it is, what was in force stays
            sentence = error.sentence if isinstance(error, LaggardError) else repr(error)
            # the sentence says it all
            log.error("%s; what was in force before stays", sentence)  # noqa: TRY400
            self._stats.web_config_errors += 1
            self._stats.web_config_current = False
            return
        if web is not None:
            log.info("the web-config file was read again")
            self._stats.web_config_current = True
            self._use(web)
