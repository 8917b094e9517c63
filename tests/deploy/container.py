"""Run an image's command as a container engine would: `unshare --mount python container.py SPEC`.

buildah's own `run` does the same without a read-only root. It needs root, and a mount namespace of
its own to mount in.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from pathlib import Path

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
LAST_CAPABILITY = 40
NAMES = ("/etc/hosts", "/etc/resolv.conf")
libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """The system call."""
    if libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()
    ):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def main(spec: dict[str, object]) -> None:
    """Mount, drop every right, and become the command."""
    root = str(spec["root"])
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    mount(root, root, flags=MS_BIND)
    for folder in ("proc", "dev", "tmp", *dict(spec["volumes"])):  # type: ignore[call-overload]
        Path(root, folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for file in NAMES:  # as every engine gives
        Path(root + file).parent.mkdir(exist_ok=True)
        Path(root + file).touch()
    mount("", root, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    for file in NAMES:
        mount(file, root + file, flags=MS_BIND)
    mount("proc", f"{root}/proc", "proc")
    mount("/dev", f"{root}/dev", flags=MS_BIND | MS_REC)
    mount("tmpfs", f"{root}/tmp", "tmpfs", data="mode=1777")  # noqa: S108 - the container's own
    volumes = dict(spec["volumes"])  # type: ignore[call-overload]
    for inside, (outside, is_read_only) in volumes.items():
        mount(outside, root + inside, flags=MS_BIND)
        if is_read_only:
            mount("", root + inside, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chroot(root)
    os.chdir(str(spec["folder"]))
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    user, group = map(int, str(spec["user"]).split(":"))
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    declared = dict(spec["environment"])  # type: ignore[call-overload]
    environment = {str(key): str(value) for key, value in declared.items()}
    command = [str(word) for word in list(spec["command"])]  # type: ignore[call-overload]
    program = shutil.which(command[0], path=environment.get("PATH", "/usr/bin:/bin"))
    os.execve(program or command[0], command, environment)  # noqa: S606 - no shell, on purpose


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
