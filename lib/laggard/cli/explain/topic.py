"""One topic of a group, for `laggard explain --topic`: its partitions, lag, members' shares and findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from laggard.cli.explain.now import lag_of
from laggard.cli.explain.rows import Explained
from laggard.cli.published import Row
from laggard.cli.words import listed, short
from laggard.errors import NOT_FOUND, LaggardError
from laggard.escape import escape_label


def of_topic(explained: Explained, name: str) -> Explained:
    """The same of one topic; what is said of the whole group stays: state, rebalances, verdict, its own findings."""
    topics = sorted({*(explained.group["topics"] or ()), *(row["topic"] for row in explained.partitions)})
    chosen = next((each for each in topics if name in (each, escape_label(each))), None)
    if chosen is None:
        raise _no_such_topic(explained, topics, name)
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
            findings=_of(diagnosis.findings, chosen),
        ),
        past=None if explained.past is None else _of(explained.past, chosen),
    )


def _of(findings: Sequence[Row], topic: str) -> list[Row]:
    return [row for row in findings if row["topic"] in (None, topic)]


def _no_such_topic(explained: Explained, topics: Sequence[str], name: str) -> LaggardError:
    group = short(explained.group["group"], 1000)
    return LaggardError(
        f'group "{group}" has no topic "{escape_label(name)}"',
        cause=f"it reads {listed(map(short, topics))}" if topics else "no topic of it is known",
        fix=f"laggard explain {quote(group)}" + (f" --topic {quote(escape_label(topics[0]))}" if topics else ""),
        exit_code=NOT_FOUND,
    )
