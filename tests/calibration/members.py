"""Parts of a workload: members that a driver runs, a script, and the progress of its execution.

A script says what happens and, between that, yields what it waits for: seconds, or a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from simulator.world import Config

PARTITIONS, RATE = 6, 10  # of each workload's topic; records per second and partition
LIMIT_SECONDS = 120.0  # for a condition

Condition = Callable[[], bool]
Script = Iterator[float | Condition]


class Driver(Protocol):
    """Run members, each known by its client id."""

    def start(self, config: Config, *, is_modern: bool, is_doomed: bool) -> None: ...
    def close(self, config: Config) -> None: ...
    def crash(self, config: Config) -> None: ...
    def hang(self, config: Config, seconds: float) -> None: ...
    def expand(self, topic: str, partitions: int) -> None: ...
    def held(self, config: Config) -> int:
        """How many partitions the member has."""


@dataclass
class Members:
    """The members of one workload, by number."""

    driver: Driver
    settings: Config
    is_static: bool
    is_modern: bool
    doomed: int | None
    living: set[int] = field(default_factory=set)
    partitions: int = PARTITIONS

    def member(self, number: int) -> Config:
        client_id = f"{self.settings.group}-{number}"
        return replace(
            self.settings, client_id=client_id, instance_id=client_id if self.is_static else None
        )

    def start(self, *numbers: int, is_modern: bool | None = None) -> None:
        self.living |= set(numbers)
        for number in numbers:
            speaks_modern = self.is_modern if is_modern is None else is_modern
            self.driver.start(
                self.member(number), is_modern=speaks_modern, is_doomed=number == self.doomed
            )

    def close(self, number: int) -> None:
        self.living.remove(number)
        self.driver.close(self.member(number))

    def crash(self, number: int) -> None:
        self.living.remove(number)
        self.driver.crash(self.member(number))

    def hang(self, number: int, seconds: float) -> None:
        self.driver.hang(self.member(number), seconds)

    def expand(self, more: int) -> None:
        self.partitions += more
        self.driver.expand(self.settings.group, self.partitions)

    def hold_all(self, *numbers: int) -> Condition:
        """True if these members share all partitions and each has some."""

        def is_so() -> bool:
            held = [self.driver.held(self.member(number)) for number in numbers]
            return 0 not in held and sum(held) == self.partitions

        return is_so

    def settled(self) -> Condition:
        return self.hold_all(*self.living)


@dataclass(frozen=True)
class Workload:
    """Its name is that of its group and of its topic."""

    script: Callable[[Members], Script]
    settings: Config
    is_static: bool = False
    is_modern: bool = False
    doomed: int | None = None  # a member that will crash, and needs a process of its own
    is_mixed: bool = False  # members of both protocols

    @property
    def name(self) -> str:
        return self.settings.group


class Execution:
    """One workload in one driver; the owner of the clock asks it repeatedly to go on."""

    def __init__(self, workload: Workload, driver: Driver, now: float) -> None:
        self._workload, self._since = workload, now
        members = Members(
            driver, workload.settings, workload.is_static, workload.is_modern, workload.doomed
        )
        self._script = workload.script(members)
        self._wait: float | Condition | None = 0.0
        self._step = 0

    def is_over(self, now: float) -> bool:
        """Do all that is due."""
        while self._wait is not None:
            waited = now - self._since
            if not (waited >= self._wait if isinstance(self._wait, (int, float)) else self._wait()):
                assert waited < LIMIT_SECONDS, (
                    f"{self._workload.name} waits in vain at its step {self._step}"
                )
                break
            self._wait, self._since, self._step = next(self._script, None), now, self._step + 1
        return self._wait is None
