"""Which plans a store holds, newest first, by their files alone: for whoever must not know what a plan means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from resources.store import Store


def newest_plan_file(store: Store, benchmark: str, profile: str) -> Path | None:
    """The file of the plan frozen last (or again last) with this benchmark and profile; None without one.

    Of the plans only profile and benchmarks are looked at; the reader of the file verifies its hash.
    """
    for path in _newest_first(store):
        document: dict[str, Any] = orjson.loads(path.read_bytes())
        if document.get("profile") == profile and benchmark in document.get("benchmarks", {}):
            return path
    return None


def _newest_first(store: Store) -> Iterator[Path]:
    if not store.plans_dir.is_dir():
        return
    entries = [(entry.stat().st_mtime_ns, entry) for entry in store.plans_dir.glob("*.json")]
    for _, path in sorted(entries, key=lambda pair: (-pair[0], pair[1].name)):
        yield path
