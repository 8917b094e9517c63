"""Groups and topics that are watched: globs, no regular expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


def matches(name: str, globs: Iterable[str]) -> bool:
    """Return True if a name matches one of the globs, which are case-sensitive."""
    return any(fnmatchcase(name, glob) for glob in globs)


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Globs of `[cluster]`: what is wanted, less what is ignored."""

    groups: tuple[str, ...] = ("*",)
    groups_ignore: tuple[str, ...] = ()
    topics: tuple[str, ...] = ("*",)
    topics_ignore: tuple[str, ...] = ("__*",)

    def watches_group(self, group: str) -> bool:
        return matches(group, self.groups) and not matches(group, self.groups_ignore)

    def watches_topic(self, topic: str) -> bool:
        return matches(topic, self.topics) and not matches(topic, self.topics_ignore)

    def watches(self, group: str, topic: str) -> bool:
        return self.watches_group(group) and self.watches_topic(topic)
