"""Failures of Spark that have a name of ours and a remedy."""

from __future__ import annotations

from laggard import errors
from laggard.errors import LaggardError


class SlowStartError(LaggardError):
    """Spark gave up waiting for a Python worker; it grants 10 s (PythonWorkerFactory), and no setting changes that."""

    def __init__(self) -> None:
        super().__init__(
            "a Python worker did not start within the 10 s that Spark gives it",
            cause="the machine is too busy",
            fix="start again when less else runs, or give the job more CPU",
            exit_code=errors.TEMPORARY,
        )


def with_remedy(error: Exception) -> Exception:
    """The error itself, or what it means to a user and what to do."""
    return SlowStartError() if "Python worker failed to connect back" in str(error) else error
