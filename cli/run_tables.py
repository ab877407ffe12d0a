"""Runs and pages of a run as tables for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDE = {"text", "reasoning", "record", "usage", "tool_calls", "flags"}


def _when(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def print_runs(rows: list[dict[str, Any]]) -> None:
    """One line a run: its denominator first, then what came of it."""
    table = Table(box=None, header_style="bold")
    for heading in (
        "run",
        "name",
        "status",
        "profile",
        "cells",
        "done",
        "failed",
        "left",
        "known USD",
        "created (UTC)",
    ):
        table.add_column(
            heading, justify="right" if heading in {"cells", "done", "failed", "left"} else "left"
        )
    for row in rows:
        state = row["progress"]
        left = state["undispatched"] + state["running"] + state["ambiguous"]
        table.add_row(
            row["id"], row["name"], row["status"], row["profile"],
            str(state["total"]), str(state["completed"]), str(state["failed"]), str(left),
            _cell(row["known_cost_usd"]), _when(row["created_at"]),
        )  # fmt: skip
    Console().print(table)


def print_page(page: dict[str, Any]) -> None:
    """One page of `show`: a table for lists, name and value lines for a single thing."""
    console = Console()
    for name, value in page.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            columns = [column for column in value[0] if column not in _WIDE]
            table = Table(title=name, box=None, header_style="bold", title_justify="left")
            for column in columns:
                table.add_column(column, overflow="fold")
            for row in value:
                table.add_row(*(_cell(row.get(column)) for column in columns))
            console.print(table)
        elif isinstance(value, dict):
            console.print(f"[bold]{name}[/bold]")
            for key, inner in value.items():
                console.print(f"  {key}: {_cell(inner)}", markup=False)
        elif name == "next":
            if value is not None:
                console.print(f"More: --after {value}")
        elif isinstance(value, list):
            console.print(f"{name}: none", markup=False)
        else:
            console.print(f"{name}: {_when(value) if name.endswith('_at') else _cell(value)}", markup=False)
