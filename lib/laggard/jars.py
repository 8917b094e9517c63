"""The jars laggard runs on: fetched once, checked against conf/jars.sha256, then used offline.

A line of that list is a sum, the configuration, and the path in a Maven repository: nothing has to
be looked up.

A configuration's folder appears by one rename, after its sums were checked: what exists is whole.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from laggard.conf import checkout_root, conf_file
from laggard.download import Wanted, check_base, download
from laggard.errors import CONFIGURATION, DAMAGED, TEMPORARY, LaggardError
from laggard.ivy import find_java, public_repository

# two folders, as they hold different versions of kafka-clients and slf4j
CONFS = ("spark", "broker")
STORAGES = ("s3",)  # a folder each, fetched where it is asked for
FETCH = "python -m laggard.jars"
STAMP = ".verified"
MIRROR = "LAGGARD_JARS_MIRROR"
LOCK_LIMIT_SECONDS = 1800


def jars_dir() -> Path:
    """Return the folder of the jars: $LAGGARD_JARS, else .jars in the checkout, else user cache."""
    if chosen := os.environ.get("LAGGARD_JARS"):
        return Path(chosen).expanduser().absolute()
    root = checkout_root()
    if root:
        return root / ".jars"
    return Path.home() / ".cache" / "laggard" / "jars"


def spark_jars() -> list[Path]:
    """Return the jars for Spark's class path, fetched if they are not here yet."""
    return _jars("spark")


def broker_jars() -> list[Path]:
    """Return the jars a Kafka broker and its tools run on, fetched if they are not here yet."""
    return _jars("broker")


def _jars(conf: str) -> list[Path]:
    fetch_jars((conf,))
    return [jars_dir() / conf / name for name in sorted(expected_sums(conf))]


def fetch_jars(confs: Iterable[str] = CONFS) -> None:
    """Fetch the missing jars of `confs`; verified jars are not hashed or downloaded again."""
    base = jars_dir()
    wanted = [conf for conf in confs if not is_verified(conf)]
    # first without the lock: a read-only folder that holds the right jars is good enough
    if not (wanted := [conf for conf in wanted if not _adopt(base, conf)]):
        return
    try:
        with _locked(base):  # two commands started at once download once
            if wanted := [conf for conf in wanted if not _adopt(base, conf)]:
                _download(wanted, base)
    except OSError as error:
        raise LaggardError(
            f"the jars cannot be stored in {base}",
            cause=str(error),
            fix=f"LAGGARD_JARS=/a/writable/folder {FETCH}",
            exit_code=CONFIGURATION,
        ) from error


def _adopt(base: Path, conf: str) -> bool:
    """Return True if the folder holds the right jars; if so, write its stamp."""
    if not (base / conf).is_dir():
        return False
    problems = sum_problems(base, conf, expected_sums(conf))
    if problems:
        print(f"laggard: fetching the {conf} jars again: {'; '.join(problems)}", file=sys.stderr)
        return False
    with suppress(OSError):  # the stamp only saves time
        (base / conf / STAMP).write_text(_fingerprint(base / conf, conf))
    return True


def repository() -> str:
    """Return the address of the jars: $LAGGARD_JARS_MIRROR, else the public Maven repository."""
    return check_base(os.environ.get(MIRROR) or public_repository(), MIRROR)


def _download(confs: Sequence[str], base: Path) -> None:
    root = repository()
    find_java()  # jars are of no use without it, and this is the time to say so
    work = base / ".download"
    fresh, old = work / "fresh", work / "old"
    shutil.rmtree(old, ignore_errors=True)
    for conf in confs:
        # kept after a failure: the next try goes on from there
        (fresh / conf).mkdir(parents=True, exist_ok=True)
    download([file for conf in confs for file in _missing(root, fresh / conf, conf)])
    problems: list[str] = []
    for conf in confs:
        problems += sum_problems(fresh, conf, expected_sums(conf))
    if problems:
        shutil.rmtree(work)
        raise _wrong_jars("the downloaded jars differ from conf/jars.sha256", problems, FETCH)
    old.mkdir()
    for conf in confs:
        (fresh / conf / STAMP).write_text(_fingerprint(fresh / conf, conf))
        if (base / conf).exists():
            (base / conf).rename(old / conf)
        (fresh / conf).rename(base / conf)
    shutil.rmtree(work)


def _missing(root: str, folder: Path, conf: str) -> Iterator[Wanted]:
    """Yield the files of a configuration that an earlier try did not fetch."""
    sums = expected_sums(conf)
    for file in folder.iterdir():
        if sums.get(file.name) != _sha256(file):
            file.unlink()
    for path, digest in _listed(conf):
        if not (folder / Path(path).name).exists():
            yield Wanted(f"{root}/{path}", folder / Path(path).name, digest)


def is_verified(conf: str) -> bool:
    """Return True if the folder was checked against the current sums and is unchanged since.

    A change is a new size or time of any file.
    """
    folder = jars_dir() / conf
    try:
        return (folder / STAMP).read_text() == _fingerprint(folder, conf)
    except OSError:
        return False


def verify_jars(confs: Iterable[str] = CONFS) -> None:
    """Check the hash of every jar; raise an error naming missing, changed and unexpected files."""
    problems: list[str] = []
    for conf in confs:
        problems += sum_problems(jars_dir(), conf, expected_sums(conf))
    if problems:
        what = f"the jars in {jars_dir()} differ from conf/jars.sha256"
        raise _wrong_jars(what, problems, f"rm -r {jars_dir()} && {FETCH}")


def sum_problems(base: Path, conf: str, sums: Mapping[str, str]) -> list[str]:
    """Return a sentence per file of base/conf that is missing, unexpected or differs in SHA-256."""
    present = {path.name for path in (base / conf).glob("*") if path.name != STAMP}
    problems = [f"missing: {conf}/{name}" for name in sorted(sums.keys() - present)]
    problems += [f"unexpected: {conf}/{name}" for name in sorted(present - sums.keys())]
    for name in sorted(present & sums.keys()):
        if (actual := _sha256(base / conf / name)) != sums[name]:
            problems.append(f"changed: {conf}/{name} has sum {actual}, expected {sums[name]}")
    return problems


def expected_sums(conf: str) -> dict[str, str]:
    """Return a dict from file name to SHA-256 sum in hex, from the committed list."""
    return {Path(path).name: digest for path, digest in _listed(conf)}


def _listed(conf: str) -> list[tuple[str, str]]:
    """Return the path in a Maven repository and the sum of each jar of a configuration."""
    lines = (line.split(maxsplit=1) for line in conf_file("jars.sha256").read_text().splitlines())
    return [
        (path.partition("/")[2], digest) for digest, path in lines if path.startswith(f"{conf}/")
    ]


def _wrong_jars(what: str, problems: Sequence[str], fix: str) -> LaggardError:
    return LaggardError(what, cause="\n  ".join(problems), fix=fix, exit_code=DAMAGED)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _fingerprint(folder: Path, conf: str) -> str:
    """Return a text that changes with the committed sums and any file's name, size or time.

    Times are in whole seconds.
    """
    # whole seconds: image layers and archives do not keep more
    files = sorted((path.name, path.stat()) for path in folder.iterdir() if path.name != STAMP)
    lines = [f"{name} {stat.st_size} {int(stat.st_mtime)}" for name, stat in files]
    sums = sorted(expected_sums(conf).items())
    return "\n".join([hashlib.sha256(repr(sums).encode()).hexdigest(), *lines]) + "\n"


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    """Hold the folder's lock."""
    base.mkdir(parents=True, exist_ok=True)
    fd = os.open(base / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take_lock(fd, base)
        yield
    finally:
        os.close(fd)


def _take_lock(fd: int, base: Path) -> None:
    deadline = time.monotonic() + LOCK_LIMIT_SECONDS
    is_announced = False
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LaggardError(
                    "another process is still fetching the jars",
                    cause=f"{base / '.lock'} was held for {LOCK_LIMIT_SECONDS} s",
                    fix=f"fuser -v {base / '.lock'}",
                    exit_code=TEMPORARY,
                ) from None
        if not is_announced:
            print("laggard: waiting for another process that fetches the jars", file=sys.stderr)
            is_announced = True
        time.sleep(0.2)


def main() -> int:
    """Fetch the named folders, or those every machine needs, and print one line on the result."""
    start = time.monotonic()
    chosen = sys.argv[1:] or CONFS
    try:
        if unknown := set(chosen) - {*CONFS, *STORAGES}:
            raise LaggardError(
                f"there are no jars called {', '.join(sorted(unknown))}",
                cause=f"{FETCH} {' '.join(sys.argv[1:])}",
                fix="make jars; for Spark's own readers of a bucket make jars "
                f"STORAGE={STORAGES[0]}",
                exit_code=CONFIGURATION,
            )
        fetch_jars(chosen)
        paths = list(chain.from_iterable(map(_jars, chosen)))
    except LaggardError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    print(
        f"laggard: {len(paths)} jars, {megabytes:.0f} MB, in {jars_dir()} "
        f"({time.monotonic() - start:.1f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
