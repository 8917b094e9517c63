"""Errors as a user sees them: the fact, the cause, the remedy, and the exit code."""

import re
from collections.abc import Iterable

OK = 0
USAGE = 64
NOT_FOUND = 66
UNREACHABLE = 69
INTERNAL = 70
REFUSED = 73
DAMAGED = 74
TEMPORARY = 75
DENIED = 77
CONFIGURATION = 78
INTERRUPTED = 130


class LaggardError(Exception):
    """A named failure: what failed, the cause with its exact value, the remedy as a command."""

    def __init__(
        self, what: str, *, cause: str = "", fix: str = "", exit_code: int = INTERNAL
    ) -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code
        self.is_logged = False  # its traceback stands in the log already

    def __str__(self) -> str:
        lines = [f"laggard: {self.what}"]
        if self.cause:
            lines.append(f"cause: {self.cause}")
        if self.fix:
            lines.append(f"fix: {self.fix}")
        return "\n".join(lines)

    @property
    def sentence(self) -> str:
        """The failure and its cause in one line of the log."""
        if not self.cause:
            return self.what
        return f"{self.what} ({self.cause})"

    def __reduce__(self) -> tuple[object, ...]:
        # raised inside Spark's Python workers, so it crosses a process border by pickle
        return (_rebuild, (self.what, self.cause, self.fix, self.exit_code))


def _rebuild(what: str, cause: str, fix: str, exit_code: int) -> LaggardError:
    return LaggardError(what, cause=cause, fix=fix, exit_code=exit_code)


def first_line(error: BaseException) -> str:
    """Return the most useful line of an error: a Python worker's own error, else the first line."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()] or [
        type(error).__name__
    ]
    inner = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[1][:300]  # py4j's first line names only its handle
    return (inner[-1] if "Traceback" in lines[0] and inner else lines[0])[:300]


def hint(word: str, known: Iterable[str]) -> str:
    """Return a clause that names the most similar known word; "" if none is similar."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), 1)
    if not near:
        return ""
    return f"; did you mean {near[0]}?"
