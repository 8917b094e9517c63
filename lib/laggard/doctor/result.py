"""Result of a check: ok, warn or fail, the fact, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from laggard.errors import LaggardError

Level = Literal["ok", "warn", "fail"]
LEVELS: tuple[Level, ...] = get_args(Level)  # the index is the exit code
NEXT_START = "next start"  # the check whose fact is printed even if it is ok, and first of all


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report; no remedy where all is well."""

    level: Annotated[Level, "result"]
    check: Annotated[str, "name of the check"]
    fact: Annotated[str, "what was found"]
    remedy: Annotated[str, 'what to do; "" if all is well'] = ""
    # as before the first start
    is_ahead: Annotated[bool, "true: no fault, it has not happened yet"] = False


Check = Callable[[], Iterable[Result]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> list[Result]:
    """Run all checks in order; one that raises is a failed line and does not stop the others."""
    results: list[Result] = []
    for name, check in checks:
        try:
            results += check()
        except LaggardError as error:
            fact = f"{error.what}: {error.cause}" if error.cause else error.what
            results.append(Result("fail", name, fact, error.fix))
        # whatever is broken here, the other checks still tell something
        except Exception as error:  # noqa: BLE001
            fact = f"{type(error).__name__}: {error}"
            results.append(Result("fail", name, fact, "report this as a bug of laggard"))
    return results


def exit_code(results: Iterable[Result]) -> int:
    """Return 0 if all is well, 1 with a warning, 2 with a failure."""
    return max((LEVELS.index(result.level) for result in results), default=0)
