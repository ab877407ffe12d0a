"""`target register|list|remove`: the operator's endpoints."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.output import Ctx, emit, say


@click.group()
def target() -> None:
    """Register and list the endpoints under comparison."""


@target.command()
@click.option("--file", "file", required=True, type=click.Path(path_type=Path), help="Targets, YAML or JSON.")
@click.pass_obj
def register(obj: Ctx, file: Path) -> None:
    """Register a list of targets (or one).

    A target whose id is registered already is replaced; frozen plans keep the definition that they froze.
    Either all targets of the file are registered or, with all problems listed, none.
    """
    from resources.documents import read_document
    from resources.target_registry import parse_targets, register_targets

    targets = parse_targets(read_document(file))
    done = register_targets(obj.open_store(), targets)
    if obj.wants_json:
        emit({"registered": done.registered, "updated": done.updated, "unchanged": done.unchanged})
        return
    for word, ids in (
        ("Registered", done.registered),
        ("Updated", done.updated),
        ("Unchanged", done.unchanged),
    ):
        if ids:
            sys.stdout.write(f"{word}: {', '.join(ids)}\n")
    say('Next: name them in a manifest as {"ref": "<id>"} and freeze it with `sr-bench plan`.')


@target.command("list")
@click.pass_obj
def list_command(obj: Ctx) -> None:
    """List the registered targets. Keys are shown as names of environment variables only."""
    from resources.target_registry import list_targets

    targets = list_targets(obj.open_store())
    if obj.wants_json:
        emit([item.model_dump(mode="json") for item in targets])
        return
    if not targets:
        say("No target is registered. Register some: sr-bench target register --file targets.json")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("id", "kind", "model", "base_url", "key from", "prices for", box=None, pad_edge=False)
    for item in targets:
        cells = (
            item.id,
            item.kind,
            item.model,
            item.base_url,
            item.api_key_env or "-",
            ", ".join(item.prices or ["-"]),
        )
        table.add_row(*(Text(cell) for cell in cells))
    Console(highlight=False).print(table)


@target.command()
@click.argument("target_id", metavar="ID")
@click.pass_obj
def remove(obj: Ctx, target_id: str) -> None:
    """Take a target out of the registry. Plans and runs are not touched."""
    from resources.target_registry import remove_target

    remove_target(obj.open_store(), target_id)
    if obj.wants_json:
        emit({"removed": target_id})
    else:
        sys.stdout.write(f"Removed: {target_id}\n")
