"""Questions about one group: the same for the verb and for the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from shlex import quote

from laggard.answers.explain.now import lag_of
from laggard.answers.explain.rows import Explained, read_group
from laggard.answers.explain.since import read_past
from laggard.answers.reading import Row
from laggard.answers.text.times import When
from laggard.answers.text.words import listed, short
from laggard.errors import NOT_FOUND, LaggardError
from laggard.escape import escape_label
from laggard.tables.published import Batch

FEW, ALL = 5, 1_000_000  # rebalances


@dataclass(frozen=True, slots=True)
class Asked:
    """A group and the extent of the page.

    Unless said otherwise, that is all topics, the newest batch and few rebalances.
    """

    group: str  # as the tables have it, or as `laggard status` prints it
    limit: int | None = None  # rebalances; None: few, or with `since` all from then on
    topic: str | None = None
    at: When | None = None
    since: When | None = None

    def read(self, root: str, window_seconds: int, batch: Batch | None = None) -> Explained:
        """Read the rows from the tables that a batch names; the newest one if it is None."""
        limit = self.limit or (ALL if self.since else FEW)
        explained = read_group(root, self.group, limit, self.at, window_seconds, self.since, batch)
        if explained.since is not None:
            past = read_past(
                root, explained.group["group"], explained.since, explained.batch.polled_at
            )
            explained = replace(explained, past=past)
        return explained if self.topic is None else _of_topic(explained, self.topic)


def _of_topic(explained: Explained, name: str) -> Explained:
    """Return the same for one topic; facts of the whole group stay.

    These are state, rebalances, verdict and the group's own findings.
    """
    chosen = _topic_named(explained, name)
    partitions = [row for row in explained.partitions if row["topic"] == chosen]
    diagnosis = explained.diagnosis
    return replace(
        explained,
        topic=chosen,
        group=explained.group | lag_of(partitions),
        partitions=partitions,
        diagnosis=replace(
            diagnosis,
            windows=[row for row in diagnosis.windows if row["topic"] == chosen],
            findings=_and_of_group(diagnosis.findings, chosen),
        ),
        past=explained.past and _and_of_group(explained.past, chosen),
    )


def _and_of_group(findings: Sequence[Row], topic: str) -> list[Row]:
    return [row for row in findings if row["topic"] in (None, topic)]


def _topic_named(explained: Explained, name: str) -> str:
    """Find the topic of the group with this name, as it is or as it is shown."""
    topics: list[str] = sorted(
        {*(explained.group["topics"] or ()), *(row["topic"] for row in explained.partitions)}
    )
    for topic in topics:
        if name in (topic, escape_label(topic)):
            return topic
    group = short(explained.group["group"], 1000)
    cause, fix = "no topic of it is known", f"laggard explain {quote(group)}"
    if topics:
        cause = f"it reads {listed(map(short, topics))}"
        fix += f" --topic {quote(escape_label(topics[0]))}"
    raise LaggardError(
        f'group "{group}" has no topic "{escape_label(name)}"',
        cause=cause,
        fix=fix,
        exit_code=NOT_FOUND,
    )
