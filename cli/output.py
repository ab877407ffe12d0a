"""What commands share: the invocation's context, JSON or human output, and how errors are shown."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from resources.errors import Problems, SrBenchError

if TYPE_CHECKING:
    from rich.console import Console

    from resources.journal.connection import Journal
    from resources.store import Store


@dataclass
class Ctx:
    """Options that stand before the command's name."""

    store_path: str | None = None
    json: bool = False
    debug: bool = False

    @property
    def wants_json(self) -> bool:
        """True when data goes out as one JSON document: on request, or when stdout is not a terminal."""
        return self.json or not sys.stdout.isatty()

    def open_store(self) -> Store:
        from resources.store import Store

        return Store.open(self.store_path)

    def open_journal(self) -> tuple[Store, Journal]:
        from resources.journal.connection import open_journal

        store = self.open_store()
        return store, open_journal(store)


def emit(data: Any) -> None:
    """Print `data` as one indented UTF-8 JSON document on stdout; key order is that of `data`."""
    sys.stdout.buffer.write(orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    sys.stdout.flush()


def stderr_console() -> Console:
    """A rich console for messages and progress, which go to stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """One plain line for the reader on stderr."""
    print(message, file=sys.stderr, flush=True)


def show_error(error: SrBenchError, *, as_json: bool) -> None:
    """Write `error` to stderr: an object with `--json`, else a few plain lines."""
    if as_json:
        sys.stderr.buffer.write(orjson.dumps({"error": error.as_dict()}, option=orjson.OPT_APPEND_NEWLINE))
        sys.stderr.flush()
        return
    lines = [f"Error: {error.message}"]
    parts = error.problems if isinstance(error, Problems) else [error]
    for part in parts:
        if isinstance(error, Problems):
            lines.append(f"  - {part.field + ': ' if part.field else ''}{part.message}")
        elif part.field:
            lines.append(f"  field: {part.field}")
        if part.mend:
            lines.append(f"{'    ' if isinstance(error, Problems) else '  '}mend: {part.mend}")
    say("\n".join(lines))


def plain_terminal() -> bool:
    """True where progress must be plain lines: no terminal on stderr, or `TERM=dumb`."""
    return not sys.stderr.isatty() or os.environ.get("TERM") == "dumb"
