"""Tables that Kafka's command line tools print about groups of every kind."""

from collections.abc import Iterable
from dataclasses import dataclass

from e2e.live.clients import Clients
from e2e.oracle import DESCRIBE, GROUP_TOOL, Described, read_description

SHARE_TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS_TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
BLANK = ("ASSIGNMENT-STRATEGY", "GROUP-INSTANCE-ID")
Line = dict[str, str]
Places = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Described:
    """What the tools say at one moment: a line per group, a line per member, a line
    per partition.
    """

    states: dict[str, Line]
    members: dict[str, Line]  # by client id; of consumer groups
    partitions: dict[tuple[str, str, int], Described]


def ask_tools(clients: Clients) -> Described:
    states = [
        line
        for tool in (GROUP_TOOL, SHARE_TOOL, STREAMS_TOOL)
        for line in table(clients, tool, "--state")
    ]
    members = table(clients, GROUP_TOOL, "--members")
    partitions = read_description(clients.tool(GROUP_TOOL, *DESCRIBE))
    return Described(
        {line["GROUP"]: line for line in states}, {line["CLIENT-ID"]: line for line in members},
        partitions
    )  # fmt: skip


def share_members(clients: Clients) -> list[Line]:
    return table(clients, SHARE_TOOL, "--members")


def table(clients: Clients, tool: str, *what: str) -> list[Line]:
    """Lines under the newest heading; two columns, and the last one, are blank where there is
    nothing to tell.
    """
    found: list[Line] = []
    names: list[str] = []
    for words in (
        line.split() for line in clients.tool(tool, *DESCRIBE, "--verbose", *what).splitlines()
    ):
        if words[:1] == ["GROUP"]:
            names = words
        elif words and words[0].islower():  # sentences begin with a capital
            reported = (
                names if len(words) == len(names) else [name for name in names if name not in BLANK]
            )
            found.append(dict.fromkeys(reported, "") | dict(zip(reported, words, strict=False)))
    return found


def places(text: str) -> Places:
    """`letters:0,1;parcels:0` as pairs."""
    parts: Iterable[str] = text.split(";") if ":" in text else ()
    split = (part.partition(":") for part in parts)
    return frozenset(
        (topic, int(number)) for topic, _, numbers in split for number in numbers.split(",")
    )


def number(text: str) -> int | None:
    return None if text == "-" else int(text)
