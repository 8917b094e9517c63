"""Collect the files of the exporter's image beside its packages.

These are Python, its library, and every shared library in use.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# of Python's own library: what builds, tests, draws or documents
UNUSED = (
    "__pycache__ config-* ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo turtle* "
    "distutils"
)
# of pyarrow: remote calls, other file formats, and what only a compiler reads
UNUSED_ARROW = (
    "libarrow_flight* _flight* libarrow_python.so libarrow_python.so.*.* include tests src *.pyx "
    "*.pxd *.h"
)
USER = "laggard:x:10001:10001::/tmp:/\n"


def main(image: Path) -> None:
    """Complete the image below this folder, which holds the packages already."""
    python = Path(sysconfig.get_config_var("BINDIR"), f"python3.{sys.version_info.minor}").resolve()
    library = Path(sysconfig.get_path("stdlib"))
    packages = image / "opt" / "laggard"
    place(python, image / "usr/bin/python3")
    print(library / "os.py")
    shutil.copytree(
        library,
        below(image, library),
        ignore=shutil.ignore_patterns(*UNUSED.split(), "dist-packages"),
    )
    for pattern in UNUSED_ARROW.split():
        remove((packages / "pyarrow").glob(pattern))
    remove(packages.glob("*/tests"))
    remove(packages.glob("numpy/*/tests"))
    remove([packages / "bin"])
    # names of Arrow's symbols for a debugger: 15 MB
    subprocess.run(
        ["/usr/bin/strip", "--strip-unneeded", *(packages / "pyarrow").glob("*.so*")], check=True
    )
    for binary in [image / "usr/bin/python3", *image.rglob("*.so"), *image.rglob("*.so.*")]:
        for needed in libraries(binary):
            if not below(image, needed).exists() and not needed.is_relative_to(image):
                place(needed, below(image, needed))
    place(Path("/etc/ssl/certs/ca-certificates.crt"), image / "etc/ssl/certs/ca-certificates.crt")
    (image / "etc/passwd").write_text(USER, encoding="ascii")
    (image / "etc/group").write_text("laggard:x:10001:\n", encoding="ascii")
    (image / "tmp").mkdir()
    (image / "tmp").chmod(0o1777)
    tables = image / "var/lib/laggard/tables"
    tables.mkdir(parents=True)
    os.chown(tables, 10001, 10001)
    compileall.compile_dir(str(packages), quiet=2, stripdir=str(image))
    compileall.compile_dir(str(below(image, library)), quiet=2, stripdir=str(image))


def below(image: Path, path: Path) -> Path:
    """Give the place of a file of this machine in the image."""
    return image / path.relative_to("/")


def place(source: Path, target: Path) -> None:
    """Copy one file, with the folders above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    print(source)  # for the list of Debian packages that the image has files of


def remove(paths: object) -> None:
    """Remove files and folders."""
    for path in list(paths):  # type: ignore[call-overload]
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def libraries(binary: Path) -> list[Path]:
    """Return a binary's shared libraries by the loader, without those of its own package."""
    done = subprocess.run(
        ["/usr/bin/ldd", str(binary)], capture_output=True, text=True, check=False
    )
    return [
        Path(found) for found in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE)
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
