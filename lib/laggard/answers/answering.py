"""From a question to its answer: the clusters, the freshness of their data, earlier answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from threading import Lock
from traceback import walk_tb
from typing import Any, TypeVar

from laggard.answers import lists, one_group
from laggard.answers.document import encode, head, named
from laggard.answers.groups import ClusterGroups, groups_of
from laggard.answers.history import GroupSeries
from laggard.answers.questions import ApiError, Glob, read_parameters, refuse_long
from laggard.answers.schema.openapi import PARAMETERS, openapi
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from laggard.escape import escape_label
from laggard.exporter.api import Answer, Question
from laggard.exporter.published import Shown
from laggard.exporter.snapshot import Snapshot

log = logging.getLogger("laggard.exporter")
MAX_KEPT = 200
MAX_BYTES = 16 * 1024 * 1024
_OF_USER = {NOT_FOUND: (404, "not_found"), USAGE: (400, "bad_parameter")}
Found = dict[str, Any]
Key = tuple[object, ...]
T = TypeVar("T")


class Kept:
    """Answers by question and batch.

    The oldest answers go first when there are too many, or they are too large.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[Key, Answer] = {}
        self._bytes = 0
        self._of: tuple[Snapshot, ...] = ()

    def before(self, key: Key, newest: tuple[Snapshot, ...]) -> Answer | None:
        """Give the answer of before; those of other batches are dropped."""
        with self._lock:
            if [*map(id, newest)] != [*map(id, self._of)]:
                self._answers, self._bytes, self._of = {}, 0, newest
            return self._answers.get(key)

    def keep(self, key: Key, answer: Answer) -> None:
        """Keep an answer, unless it alone is too large."""
        with self._lock:
            if key in self._answers or _size(key, answer) > MAX_BYTES:
                return
            self._answers[key] = answer
            self._bytes += _size(key, answer)
            while len(self._answers) > MAX_KEPT or self._bytes > MAX_BYTES:
                oldest = next(iter(self._answers))
                self._bytes -= _size(oldest, self._answers.pop(oldest))


def _size(key: Key, answer: Answer) -> int:
    return len(repr(key)) + len(answer.body) + len(answer.zipped)


class Answering:
    """Answer questions of several threads; what one batch says is worked out once."""

    def __init__(self, window_seconds: int) -> None:
        self._window_seconds = window_seconds
        self._lock = Lock()
        self._groups: dict[str, ClusterGroups] = {}
        self._series: dict[str, GroupSeries] = {}
        self._kept = Kept()
        self._logged: set[tuple[object, ...]] = set()

    def __call__(self, question: Question) -> Answer:
        try:
            return self._answer(question)
        except ApiError as error:
            return Answer(encode(error.document), error.status)
        except LaggardError as error:
            status, code = _OF_USER.get(error.exit_code, (503, "tables_unreadable"))
            return Answer(encode(ApiError(status, code, error.sentence).document), status)
        except Exception as error:
            if self._is_new(error):  # a client may ask for it a thousand times a second
                log.exception(
                    "a question could not be answered; the same failure is not logged again"
                )
            refusal = ApiError(
                503,
                "tables_unreadable",
                "the rows hold values that no job writes; the log says which",
            )
            return Answer(encode(refusal.document), 503)

    def _answer(self, question: Question) -> Answer:
        path, name = _route(question.path)
        parameters = read_parameters(question.parameters, PARAMETERS[path])
        if path == OPENAPI:
            return Answer(encode(openapi()))
        is_label = path == BY_LABEL
        if is_label:
            name = parameters.pop("group")
        shown = _chosen(question.roots, parameters.get("cluster"), is_label=is_label)
        if path == CLUSTERS:
            return Answer(
                encode({"api": "v1", "clusters": _clusters(shown, question.now)}), 200, _ids(shown)
            )
        fresh = [
            (root, root.snapshot)
            for root in shown
            if root.snapshot and not root.reason_at(question.now)
        ]
        if not fresh:
            raise _stale(shown, question.now)
        return self._of_rows(question, path, name, parameters, shown, fresh)

    def _of_rows(
        self,
        question: Question,
        path: str,
        name: str | None,
        parameters: Found,
        shown: Sequence[Shown],
        fresh: Sequence[tuple[Shown, Snapshot]],
    ) -> Answer:
        """Return the answer from the rows of the newest batches, or the same answer of before."""
        # with the batch: a question that began at the batch before may end after the first one
        # about this
        of = [(root.root, snapshot.batch.batch_id, snapshot.polled_at) for root, snapshot in fresh]
        key = (question.path, *question.parameters, *of)
        kept = self._kept.before(
            key, tuple(root.snapshot for root in question.roots if root.snapshot)
        )
        if kept is not None:
            return kept
        clusters = [self._groups_of(root.root, snapshot) for root, snapshot in fresh]
        if name is None:
            for cluster in clusters:
                refuse_long(parameters.get("since"), cluster.batch.polled_at)
            body = ROUTES[path](clusters, parameters, self._window_seconds)
        else:
            cluster, group = _named(clusters, name, shown, question.now, is_label=path == BY_LABEL)
            at, end = parameters.get("at"), cluster.batch.polled_at
            refuse_long(parameters.get("since"), at(end) if at else end)
            clusters = [cluster]
            body = ROUTES[path](cluster, group, parameters, self._window_seconds)
        top = head([cluster.batch for cluster in clusters], _clusters(shown, question.now))
        answer = Answer(encode(top | body), 200, _ids([root for root, _ in fresh]))
        self._kept.keep(key, answer)
        return answer

    def _is_new(self, error: Exception) -> bool:
        """Tell a failure from those of before by the line that raised it."""
        *_, (frame, line) = walk_tb(error.__traceback__)
        origin = type(error), frame.f_code.co_filename, line
        is_new = origin not in self._logged
        self._logged.add(origin)
        return is_new

    def _groups_of(self, root: str, snapshot: Snapshot) -> ClusterGroups:
        with self._lock:
            cluster = self._groups.get(root)
            if cluster is None or cluster.snapshot is not snapshot:
                series = self._series.setdefault(root, GroupSeries(root, self._window_seconds))
                cluster = self._groups[root] = groups_of(
                    snapshot, root, self._window_seconds, series
                )
            return cluster


_GROUP = "{group}"
CLUSTERS, OPENAPI, BY_LABEL = "/api/v1/clusters", "/api/v1/openapi.json", "/api/v1/group"
ROUTES: Mapping[str, Callable[..., Found]] = {
    CLUSTERS: dict,
    "/api/v1/groups": lists.groups,
    BY_LABEL: one_group.group,
    f"/api/v1/groups/{_GROUP}": one_group.group,
    f"/api/v1/explain/{_GROUP}": one_group.explain,
    "/api/v1/findings": lists.findings,
    OPENAPI: dict,
}


def _route(path: str) -> tuple[str, str | None]:
    """Return the route of a path, and the group's name if the path has a group.

    The name is all text behind the prefix.
    """
    if path in ROUTES:
        return path, None
    for route in ROUTES:
        prefix, is_of_group, _ = route.partition(_GROUP)
        if is_of_group and path.startswith(prefix):
            return route, _decoded(path.removeprefix(prefix))
    raise ApiError(404, "unknown_path", f"nothing is at {escape_label(path)}", list(ROUTES))


def _decoded(text: str) -> str:
    from urllib.parse import unquote_to_bytes

    try:
        return unquote_to_bytes(text).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ApiError(
            400, "bad_name", "the group's name is not UTF-8, percent-encoded once"
        ) from None


def _of_name(
    all_of: Sequence[T], name_of: Callable[[T], str], name: str, *, is_label: bool
) -> list[T]:
    """Return items by name, exact or as in labels.

    One text may be both, so `is_label` says which is tried first.
    """
    forms = ("label", "name") if is_label else ("name", "label")
    for form in forms:
        matches = [
            candidate
            for candidate in all_of
            if (escape_label(name_of(candidate)) if form == "label" else name_of(candidate)) == name
        ]
        if matches:
            return matches
    return []


def _chosen(roots: Sequence[Shown], cluster: str | Glob | None, *, is_label: bool) -> list[Shown]:
    if isinstance(cluster, Glob):
        chosen = [root for root in roots if cluster.fits(root.cluster)]
    elif cluster is None:
        chosen = list(roots)
    else:
        chosen = _of_name(roots, lambda root: root.cluster, cluster, is_label=is_label)
    if not chosen:
        names = [escape_label(root.cluster) for root in roots]
        raise ApiError(
            404, "no_such_cluster", f"no cluster {escape_label(str(cluster or ''))!r}", names
        )
    return chosen


def _named(
    clusters: Sequence[ClusterGroups],
    name: str,
    shown: Sequence[Shown],
    now: float,
    *,
    is_label: bool,
) -> tuple[ClusterGroups, str]:
    """Return the cluster that has the group, and its name there."""
    known = [(cluster, group) for cluster in clusters for group in cluster.groups]
    exact = _of_name(known, lambda pair: pair[1], name, is_label=is_label)
    if len(exact) > 1:
        names = [escape_label(cluster.snapshot.cluster) for cluster, _ in exact]
        raise ApiError(
            400,
            "ambiguous_cluster",
            f"several clusters have a group {escape_label(name)!r}",
            names,
        )
    if exact:
        return exact[0]
    if any(root.reason_at(now) for root in shown):
        raise _stale(shown, now)
    from laggard.answers.explain.rows import near_names

    near = near_names(name, (group for _, group in known))
    raise ApiError(
        404, "no_such_group", f"no group {escape_label(name)!r}", [*map(escape_label, near)]
    )


def _stale(shown: Sequence[Shown], now: float) -> ApiError:
    reasons = ", ".join(f"{escape_label(root.cluster)}: {root.reason_at(now)}" for root in shown)
    return ApiError(
        503, "no_fresh_data", f"no fresh data: {reasons}", clusters=_clusters(shown, now)
    )


def _clusters(shown: Sequence[Shown], now: float) -> list[Found]:
    """Return each cluster with the time of its newest batch.

    Its `reason` says why its groups are not shown.
    """
    return [
        {
            **named("cluster", root.cluster),
            "batch_id": root.batch_id,
            "data_timestamp": None
            if root.batch_id is None
            else datetime.fromtimestamp(root.polled_at, timezone.utc).isoformat(),
            "is_fresh": not root.reason_at(now),
            "reason": root.reason_at(now) or None,
        }
        for root in shown
    ]


def _ids(shown: Sequence[Shown]) -> str:
    return ".".join(str(root.batch_id) for root in shown if root.batch_id is not None)
