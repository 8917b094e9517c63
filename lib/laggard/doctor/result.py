"""Result of a check: ok, warn or fail, the fact, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from laggard.errors import CONFIGURATION, INTERNAL, OK, LaggardError

LEVELS = ("ok", "warn", "fail")  # the place in this list is the exit code


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report; no remedy where all is well."""

    level: str
    check: str
    fact: str
    remedy: str = ""
    is_ahead: bool = False  # no fault: it has not happened yet, as before the first start
    run_code: int = CONFIGURATION  # with which `laggard run --dry-run` ends for this failure


Check = Callable[[], Iterable[Result]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> list[Result]:
    """Run all checks in order; one that raises is a failed line and does not stop the others."""
    results: list[Result] = []
    for name, check in checks:
        try:
            results += check()
        except LaggardError as error:
            fact = f"{error.what}: {error.cause}" if error.cause else error.what
            results.append(Result("fail", name, fact, error.fix, run_code=error.exit_code))
        # whatever is broken here, the other checks still tell something
        except Exception as error:  # noqa: BLE001
            fact = f"{type(error).__name__}: {error}"
            results.append(
                Result("fail", name, fact, "report this as a bug of laggard", run_code=INTERNAL)
            )
    return results


def exit_code(results: Iterable[Result]) -> int:
    """Return 0 if all is well, 1 with a warning, 2 with a failure."""
    return max((LEVELS.index(result.level) for result in results), default=0)


def run_code(results: Iterable[Result]) -> int:
    """Return the exit code of `laggard run --dry-run`: that of the first failure, 0 without one."""
    return next((result.run_code for result in results if result.level == "fail"), OK)


def to_data(result: Result) -> dict[str, object]:
    """Return a result as `--json` prints it."""
    return {name: value for name, value in asdict(result).items() if name != "run_code"}
