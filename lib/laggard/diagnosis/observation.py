"""What a rule says about one window, and how a rule is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

HOLDS, FAILS, ABSTAINS = "holds", "fails", "abstains"
PAGE, WARN, INFO = "page", "warn", "info"
META, SYMPTOM, CAUSE, HYGIENE, EVENT = "meta", "symptom", "cause", "hygiene", "event"
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"  # results of guards


@dataclass(frozen=True, slots=True)
class Observation:
    """A rule's condition at the end of a window, for one scope.

    `topic`, `partitions` and `subject` (a member's slot, host or broker) make the scope: what is "" or empty is the
    whole group. A scope that a rule is silent about does not hold; `state` abstains where inputs are missing.
    """

    code: str
    state: str = HOLDS
    severity: str = WARN
    topic: str = ""
    partitions: tuple[int, ...] = ()
    subject: str = ""
    confidence: float = 0.9
    evidence: Mapping[str, float] = field(default_factory=dict)  # numbers, with the unit in the name
    evidence_text: Mapping[str, str] = field(default_factory=dict)
    guards: Mapping[str, str] = field(default_factory=dict)  # name -> pass, fail or unknown; a fail vetoes
    explained: float = 0.0  # share of the group's material lag that this explains, 0 if it names none
    is_falsified: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as data. `condition` takes what the window is judged by and gives observations."""

    number: str  # D10
    code: str
    kind: str  # META ... EVENT
    condition: Callable[..., list[Observation]]
    says: str  # one sentence: what it means
    advice: tuple[str, ...]  # what to do, first thing first; "kind: ..." where only one kind in the evidence needs it
    avoid: tuple[str, ...] = ()  # what not to do
    falsifier: str = "one of its guards fails"
    uses: tuple[str, ...] = ()  # names of parameters
    open_after: int | None = None  # windows; None: the parameter
    close_after: int | None = None
    version: int = 1


Conditions: TypeAlias = list[Observation]
