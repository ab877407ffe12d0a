"""The errors that people see: each names what is wrong, where, and how to mend it."""

from __future__ import annotations

from typing import Any


class SrBenchError(Exception):
    """A failure with a message for the user; `exit_code` is the exit code of the command it ends.

    `field` is the path of the offending input (for example `targets[1].prices`), `mend` one sentence that
    says what to do about it. Neither may hold a secret's value.
    """

    exit_code = 2
    default_code = "invalid_input"

    def __init__(
        self, message: str, *, code: str | None = None, field: str | None = None, mend: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.mend = mend
        # Shown under the message by whatever prints the exception as such: tracebacks, Dagster's run page.
        if mend:
            self.add_note(f"{field}: {mend}" if field else mend)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object printed under `error` with `--json`."""
        return {"code": self.code, "message": self.message, "field": self.field, "mend": self.mend}


class Incomplete(SrBenchError):
    """The evaluation ended but is incomplete or failed."""

    exit_code = 1
    default_code = "incomplete"


class NotFound(SrBenchError):
    """A run, dataset, target or other thing that was named does not exist."""

    exit_code = 3
    default_code = "not_found"


class Unavailable(SrBenchError):
    """A service (hub, endpoint, database, engine) cannot be reached or refuses us."""

    exit_code = 4
    default_code = "unavailable"


class IntegrityError(SrBenchError):
    """Stored bytes do not have the hash they are known by, or evidence contradicts itself."""

    default_code = "integrity"


class Problems(SrBenchError):
    """Several problems found at once, each a `SrBenchError` of its own."""

    default_code = "invalid_input"

    def __init__(self, summary: str, problems: list[SrBenchError]) -> None:
        super().__init__(summary)
        self.problems = problems
        for problem in problems:
            self.add_note("- " + "\n  ".join([problem.message, *getattr(problem, "__notes__", [])]))

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "problems": [problem.as_dict() for problem in self.problems]}
