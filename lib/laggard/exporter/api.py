"""JSON API for the server: questions computed in two separate threads, answers as bytes."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from laggard.exporter.published import Shown

API_PREFIX = "/api/"
API_PATHS = (
    "/api/v1/clusters",
    "/api/v1/groups",
    "/api/v1/group",
    "/api/v1/groups/{group}",
    "/api/v1/explain/{group}",
    "/api/v1/findings",
    "/api/v1/openapi.json",
)
_ERRORS = (400, 404, 405, 413, 429, 431, 503)
API_ANSWERS = dict.fromkeys(API_PATHS, (200, 304, *_ERRORS)) | {"/api/other": (404, 405, 413, 431)}
MAX_UNDER_WAY = 64
ANSWER_SECONDS = 20.0  # a table that hangs must not hold a client for ever
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Question:
    """One request: what is asked, and of which batches."""

    path: str  # with percent signs, as it came
    parameters: Sequence[tuple[str, str]]
    roots: Sequence[Shown]
    now: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes of JSON, and what they are of."""

    body: bytes
    status: int = 200
    batches: str = ""  # their ids; empty if no batch is shown
    zipped: bytes = field(default=b"", repr=False)

    @property
    def etag(self) -> str:
        """Return the batches and a digest as a weak tag, as the answer may be zipped.

        The digest is needed because rules may say more about a batch that was shown before.
        """
        digest = blake2b(self.body, digest_size=8).hexdigest()
        if self.batches:
            return f'W/"{self.batches}-{digest}"'
        return f'W/"{digest}"'


class Busy(Exception):  # noqa: N818 - a fact, answered with 429
    """As many questions are under way as may be."""


class Late(Exception):  # noqa: N818 - a fact, answered with 503
    """The tables did not answer in time."""


class Api:
    """API that keeps the serving loop free: threads do slow work, and every wait ends."""

    def __init__(
        self, answers: Callable[[Question], Answer], cors_origins: Sequence[str] = ()
    ) -> None:
        self.cors_origins = frozenset(cors_origins)
        self._answers = answers
        self._pool = ThreadPoolExecutor(_THREADS, "api")
        self._under_way = 0

    async def ask(self, question: Question, *, is_zipped: bool) -> Answer:
        """Compute an answer; `Busy` or `Late` when there is none."""
        if self._under_way >= MAX_UNDER_WAY:
            raise Busy
        self._under_way += 1
        loop = asyncio.get_running_loop()
        work = self._pool.submit(self._answer, question, is_zipped)
        # counted until the thread is free again, also when nobody waits any more
        work.add_done_callback(lambda _: _call_soon(loop, self._end))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work), ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise Late from None

    def close(self) -> None:
        """Forget what waits; a read under way ends with the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    # handed on by the pool
    def _answer(self, question: Question, is_zipped: bool) -> Answer:  # noqa: FBT001
        answer = self._answers(question)
        if not is_zipped:
            return answer
        return replace(answer, zipped=gzip.compress(answer.body, 1))

    def _end(self) -> None:
        self._under_way -= 1


def counted_path(path: str) -> str:
    """Return the entry of the closed list under which a path is counted."""
    if path in API_PATHS:
        return path
    for known in API_PATHS:
        if known.endswith("{group}") and path.startswith(known.removesuffix("{group}")):
            return known
    return "/api/other"


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_not_allowed",
    429: "too_many_requests",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
}
