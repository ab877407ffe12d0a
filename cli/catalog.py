"""`catalog`: the benchmarks that are installed."""

from __future__ import annotations

from typing import Any

import click

from cli.output import Ctx, emit


@click.command()
@click.pass_obj
def catalog(obj: Ctx) -> None:
    """List the benchmarks: kinds, sizes, versions, licences and access notes."""
    from sr_bench_assets.datasets.catalogue import catalogue

    entries = catalogue()
    if obj.wants_json:
        emit(entries)
        return
    _show(entries)


def _show(entries: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Benchmarks (tasks per target)", title_justify="left")
    table.add_column("id", no_wrap=True)
    for heading in ("capability", "kind"):
        table.add_column(heading)
    for heading in ("smoke", "quick", "standard", "weight"):
        table.add_column(heading, justify="right")
    table.add_column("adapter")
    table.add_column("needs")
    for entry in entries:
        needs = list(entry["needs"]) + (["HF_TOKEN"] if entry["source"]["gated"] else [])
        if not entry["runnable"]:
            needs.append("(prepare only)")
        counts = (str(entry["counts"][profile]) for profile in ("smoke", "quick", "standard"))
        table.add_row(
            entry["id"],
            entry["capability"],
            entry["kind"],
            *counts,
            entry["weight"],
            entry["adapter_version"],
            ", ".join(needs),
        )
    console = Console()
    console.print(table)
    for entry in entries:
        console.print(f"{entry['id']}: {entry['licence']}. {entry['access_note']}", markup=False)
