"""Secrets, which are read from files only: whoever may read such a file has the secret."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from laggard.errors import DENIED, LaggardError

MAX_BYTES = 64 * 1024


class Secret(str):
    """A text that shows itself to no log: kafka-python writes its whole configuration at DEBUG."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def read_secret(path: str, key: str) -> Secret:
    """Read the secret that a configuration key names, without the line break at its end."""
    raw = _read(path, key)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(
            path, key, f"it is not UTF-8 at byte {error.start}", "write the secret as text"
        ) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise _refused(path, key, "it is empty", "write the secret into it")
    return Secret(text)


def read_password(path: str, key: str) -> Secret:
    """Read a secret of one line."""
    secret = read_secret(path, key)
    if not secret.isprintable():
        raise _refused(
            path,
            key,
            "it holds a line break or another control character",
            "write one line into it",
        )
    return secret


def _read(path: str, key: str) -> bytes:
    try:
        # without waiting for a writer, should it be a pipe
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        fix = f"let this user, and no other, read it: chmod 600 {path}"
        raise _refused(path, key, error.strerror or str(error), fix) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, key, "it is not a regular file", "name a file")
        if who := _others(status):
            raise _refused(
                path, key, f"{who} (mode {stat.S_IMODE(status.st_mode):04o})", f"chmod 600 {path}"
            )
        raw = b""
        while len(raw) <= MAX_BYTES and (part := os.read(file, MAX_BYTES + 1 - len(raw))):
            raw += part
    except OSError as error:
        raise _refused(
            path, key, error.strerror or str(error), "look at the disk that holds it"
        ) from error
    finally:
        os.close(file)
    if len(raw) > MAX_BYTES:
        raise _refused(
            path,
            key,
            f"it is larger than {MAX_BYTES // 1024} KB",
            "name the file of the secret alone",
        )
    return raw


def _others(status: os.stat_result) -> str:
    """Say who else may get at the file; empty if nobody.

    Kubernetes gives a pod's secrets to root and the group of `fsGroup`, mode 0440: that group is
    the pod's own.
    """
    rights = stat.S_IMODE(status.st_mode)
    if rights & 0o007:
        return "everybody may get at it"
    ours = status.st_gid != 0 and status.st_gid in (os.getegid(), *os.getgroups())
    if rights & 0o070 and not (status.st_uid == 0 and ours and not rights & 0o030):
        return "its group may get at it"
    if status.st_uid in (0, os.geteuid()):
        return ""
    return f"it belongs to another user, {status.st_uid}"


def _refused(path: str, key: str, cause: str, fix: str) -> LaggardError:
    return LaggardError(
        f"cannot use the secret file {path}", cause=f"{key}: {cause}", fix=fix, exit_code=DENIED
    )


def fingerprint(paths: tuple[str, ...]) -> str:
    """Return a text that changes when a file is written or replaced, and hides its content."""
    states = []
    for path in paths:
        try:
            state = Path(path).stat()
        except OSError:
            states.append("none")
        else:
            states.append(f"{state.st_ino}-{state.st_mtime_ns}-{state.st_size}")
    return ",".join(states)
