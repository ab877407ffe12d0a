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
    table.add_column("kind", no_wrap=True)
    for heading in ("smoke", "quick", "standard", "weight"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        counts = (str(entry["counts"][profile]) for profile in ("smoke", "quick", "standard"))
        table.add_row(entry["id"], entry["kind"].replace("_", " "), *counts, entry["weight"])
    console = Console(highlight=False)
    console.print(table)
    for entry in entries:
        console.print(f"{entry['id']} ({entry['adapter_version']}): {_about(entry)}", markup=False)


def _about(entry: dict[str, Any]) -> str:
    needs = [*entry["needs"], *(["HF_TOKEN"] if entry["source"]["gated"] else [])]
    sentences = [
        entry["title"],
        entry["capability"],
        f"Licence: {entry['licence']}",
        entry["access_note"],
        *([f"Needs: {', '.join(needs)}"] if needs else []),
        *([] if entry["runnable"] else ["This version prepares and shows it, but cannot run it"]),
    ]
    return " ".join(f"{sentence.rstrip('.')}." for sentence in sentences)
