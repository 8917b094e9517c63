"""The lease of a root in a bucket: who holds it may write, and nobody else.

One object beside the tables, taken and renewed by conditional put. The clocks of machines are never
compared: a lease is over when its object did not change for `lease_seconds` by the clock of the one
who waits for it. The epoch goes up with each holder; every commit carries it, so that a writer that
resumes after a pause cannot commit (docs/decisions/0023-checkpoint-and-lease.md).
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from laggard import storage
from laggard.errors import CONFIGURATION, DAMAGED, REFUSED, TEMPORARY, LaggardError
from laggard.failures import classify

log = logging.getLogger("laggard.lease")
NAME = "_laggard/lease.json"
_EPOCH = "laggard/epoch"
_SAY_EVERY_SECONDS = 10.0
_REQUEST_SECONDS = 5.0


def awake_seconds() -> float:
    """Return the seconds of a clock that runs during sleep and that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@contextmanager
def fenced(delta: DeltaTable, lease: Lease | None) -> Iterator[None]:
    """Commit to a table within it: refused where another holder has, before or at the same moment.

    Two commits with the epoch's transaction at once conflict (Delta protocol, `txn`), so none slips
    in between.
    """
    if lease is None:
        yield
        return
    lease.check()
    _check_epoch(delta, lease)
    try:
        yield
    except CommitFailedError:
        delta.update_incremental()
        _check_epoch(delta, lease)
        raise


def signed(lease: Lease | None, *transactions: Transaction) -> CommitProperties:
    """Return the metadata of a commit: these transactions and the epoch of the lease."""
    own = [] if lease is None else [Transaction(_EPOCH, lease.epoch)]
    return CommitProperties(app_transactions=[*transactions, *own])


def claim(tables: Sequence[DeltaTable], lease: Lease) -> None:
    """Raise the epoch above all that these tables have, and commit it to each.

    No earlier holder commits after that.
    """
    lease.raise_epoch(1 + max((_epoch_of(table) for table in tables), default=0))

    def commit(delta: DeltaTable) -> None:
        partitions = delta.metadata().partition_columns or None
        with fenced(delta, lease):
            delta.create_write_transaction(
                [],
                mode="append",
                schema=delta.schema(),
                partition_by=partitions,
                commit_properties=signed(lease),
            )

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(commit, tables))


def _epoch_of(delta: DeltaTable) -> int:
    return int(delta.transaction_version(_EPOCH) or 0)


def _check_epoch(delta: DeltaTable, lease: Lease) -> None:
    if (epoch := _epoch_of(delta)) > lease.epoch:
        raise lease.taken(f"the holder of epoch {epoch}; this one has {lease.epoch}")


class _Found(NamedTuple):
    tag: dict[str, str]
    epoch: int
    holder: str
    says: str  # host and process
    is_free: bool


class Lease:
    """Take it with `take`, ask `check` before each commit, end with `give_back`."""

    def __init__(self, root: str, seconds: float) -> None:
        self.root = root
        self.epoch = 0
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._tag: dict[str, str] = {}  # of the object: e-tag, and on Google's store its generation
        self._valid_until = 0.0
        self._renewals = 0
        self._is_over = threading.Event()
        self._lost: LaggardError | None = None
        self._lock = threading.Lock()  # one put at a time: each needs the e-tag of the one before
        self._thread: threading.Thread | None = None

    def take(self, is_stopping: Callable[[], bool] = lambda: False) -> None:
        """Take it, after the wait for a holder that does not renew it; refused (73) if one does."""
        holder = self._read()
        if holder is not None and not holder.is_free:
            holder = self._wait_for(holder, is_stopping)
        self.epoch = 1 + (holder.epoch if holder else 0)
        self._put(holder.tag if holder else {})
        self._check_store()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def raise_epoch(self, epoch: int) -> None:
        """Go on under a higher epoch."""
        if epoch > self.epoch:
            with self._lock:
                # a put would create it once more, and the next holder would have to wait for its
                # end
                if not self._tag:
                    raise _given_back()
                self.epoch = epoch
                self._put(self._tag)

    def check(self) -> None:
        """Raise unless this process may commit now: 73 if another took it, 75 if unknown."""
        if self._lost is None and awake_seconds() >= self._valid_until:
            self.renew()
        if self._lost is not None:
            raise self._lost
        if awake_seconds() >= self._valid_until:
            raise _given_back()

    def renew(self) -> None:
        """Put it once more, unless another thread has done so meanwhile."""
        until = self._valid_until
        with self._lock:
            if not self._is_over.is_set() and self._valid_until == until:
                self._put(self._tag)

    def give_back(self) -> None:
        """Free the lease for the next job; if that fails, it expires after its seconds."""
        self._is_over.set()
        with self._lock:  # a renewal in flight would take it again
            if self._lost is not None or not self._tag:
                return
            try:
                self._put(self._tag, is_free=True)
            except LaggardError as error:
                log.info("the lease ends by itself in %.0f s: %s", self._seconds, error.sentence)
            self._tag, self._valid_until = {}, 0.0

    def taken(self, by: str) -> LaggardError:
        """Return the error that another process holds the lease, and keep it."""
        self._lost = LaggardError(
            f"another process writes to {self.root}",
            cause=f"{self.root}/{NAME} was taken by {by}",
            fix="stop one of them, or give this job its own job.tables and job.checkpoint",
            exit_code=REFUSED,
        )
        return self._lost

    def _wait_for(self, holder: _Found, is_stopping: Callable[[], bool]) -> _Found | None:
        began, said_at = awake_seconds(), 0.0
        while (waited := awake_seconds() - began) < self._seconds:
            if is_stopping():
                raise LaggardError("stopped while waiting for the lease", exit_code=TEMPORARY)
            if time.monotonic() - said_at >= _SAY_EVERY_SECONDS:
                left = self._seconds - waited
                log.info(
                    "waiting up to %.0f s: %s held the lease of %s last",
                    left,
                    holder.says,
                    self.root,
                )
                said_at = time.monotonic()
            time.sleep(min(1.0, self._seconds / 10))
            now = self._read()
            if now is None or now.is_free:
                return now
            if now.tag != holder.tag:
                raise self.taken(now.says)
        return holder

    def _keep(self) -> None:
        said = False
        while not self._is_over.wait(1.0 if said else self._seconds / 3):
            try:
                self.renew()
                said = False
            except LaggardError as error:
                if self._lost is not None:
                    # no traceback for what is no fault of ours
                    log.error("%s", error.sentence)  # noqa: TRY400
                    return
                if not said:
                    log.warning("the lease cannot be renewed, tried again: %s", error.sentence)
                said = True

    def _put(self, tag: dict[str, str], *, is_free: bool = False) -> None:
        """Create it (no tag) or replace what the tag names."""
        import obstore

        self._renewals += 1
        host = f"{socket.gethostname()}, process {os.getpid()}"
        values = {
            "epoch": self.epoch,
            "holder": self._holder,
            "says": host,
            "is_free": is_free,
            "n": self._renewals,
        }
        content = json.dumps(values).encode()
        for _ in range(2):
            until = awake_seconds() + self._seconds  # from before the request
            try:
                self._tag = _tag_of(obstore.put(self._store(), NAME, content, mode=_mode(tag)))
            except (
                obstore.exceptions.PreconditionError,
                obstore.exceptions.AlreadyExistsError,
            ) as error:
                tag = self._tag_after(tag, error)
            except Exception as error:
                raise _failure(error) from error
            else:
                self._valid_until = until
                return
        raise LaggardError(
            "the lease of the tables cannot be renewed", cause=self.root, exit_code=TEMPORARY
        )

    def _tag_after(self, tag: dict[str, str], error: Exception) -> dict[str, str]:
        """Return the object's tag after a refused put.

        It is our own tag if the answer to an earlier put was lost.
        """
        now = self._read()
        if now is not None and now.tag == tag:  # refused for another reason, as two puts at once
            raise LaggardError(
                "the lease of the tables cannot be renewed",
                cause=storage.without_answer(str(error)),
                fix="none needed if it passes",
                exit_code=TEMPORARY,
            ) from None
        if now is None or now.holder != self._holder:
            raise self.taken(now.says if now else "nobody: it was deleted") from None
        return now.tag

    def _check_store(self) -> None:
        """Refuse a store that takes a second creation: on such a one two jobs would write."""
        import obstore

        try:
            obstore.put(self._store(), NAME, b"", mode="create")
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            return
        except Exception as error:
            raise _failure(error) from error
        raise LaggardError(
            f"the object store of {self.root} has no conditional writes",
            cause="it created an object that was there already, so it cannot refuse a second job",
            fix="take a store that knows If-None-Match and If-Match (docs/storage.md)",
            exit_code=CONFIGURATION,
        )

    def _read(self) -> _Found | None:
        import obstore

        try:
            answer = obstore.get(self._store(), NAME)
            content, tag = bytes(answer.bytes()), _tag_of(answer.meta)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise _failure(error) from error
        try:
            values = json.loads(content)
            return _Found(
                tag,
                int(values["epoch"]),
                values["holder"],
                str(values["says"]),
                bool(values["is_free"]),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise LaggardError(
                "the lease of the tables is damaged",
                cause=f"{self.root}/{NAME} is not what laggard writes",
                fix="delete it when no job writes to these tables; the next start makes it again",
                exit_code=DAMAGED,
            ) from error

    def _store(self) -> Any:
        return storage.open_store(
            self.root, request_seconds=min(_REQUEST_SECONDS, self._seconds / 5)
        )


def _given_back() -> LaggardError:
    return LaggardError("the lease of the tables was given back", exit_code=TEMPORARY)


def _tag_of(meta: Any) -> dict[str, str]:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name)}


def _mode(tag: dict[str, str]) -> Any:
    return tag or "create"


def _failure(error: Exception) -> LaggardError:
    if isinstance(error, FileNotFoundError):  # of a put: there is no bucket
        error = OSError(f"NoSuchBucket: {error}")
    return storage.of_store(error) or classify(error)
