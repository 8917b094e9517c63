"""What a user is told when something fails: the fact, the cause, the remedy, and the exit code."""

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
    """A failure with a name: what failed, the cause with its exact value, the remedy as a command."""

    def __init__(self, what: str, *, cause: str = "", fix: str = "", exit_code: int = INTERNAL) -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.fix = fix
        self.exit_code = exit_code

    def __str__(self) -> str:
        lines = [f"laggard: {self.what}"]
        if self.cause:
            lines.append(f"cause: {self.cause}")
        if self.fix:
            lines.append(f"fix: {self.fix}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # raised inside Spark's Python workers, so it crosses a process border by pickle
        return (_rebuild, (self.what, self.cause, self.fix, self.exit_code))


def _rebuild(what: str, cause: str, fix: str, exit_code: int) -> LaggardError:
    return LaggardError(what, cause=cause, fix=fix, exit_code=exit_code)
