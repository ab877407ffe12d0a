"""Composing datasets: whole benchmark groups of one profile and seed; conflicts are named, never merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from resources.errors import SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.registry import benchmark_ids
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    Preparation,
    lines_sha256,
    publish,
    read_lines,
)


def combine(
    store: Store, parts: Sequence[DatasetManifest], *, only: Iterable[str] | None = None
) -> DatasetManifest:
    """One dataset of all benchmarks of `parts` (of those in `only`, where given), in the catalogue's order.

    One part that already is what is wanted keeps its identity. Equal groups may occur in several parts; raises
    SrBenchError where profile, seed or split differ, or where two parts hold different tasks of one benchmark.
    """
    if not parts:
        raise SrBenchError("Nothing to combine.", mend="Name at least one prepared dataset.")
    _same(parts, "profile")
    _same(parts, "seed")
    _same(parts, "split")
    owners = _owners(parts, None if only is None else set(only))
    unique = {part.id: part for part in owners.values()}
    if len(unique) == 1:
        (part,) = unique.values()
        if set(part.benchmarks) == set(owners):
            read_lines(part.path, part.sha256)
            return part
    groups = {part.id: _groups(part) for part in unique.values()}
    lines = [line for name, part in owners.items() for line in groups[part.id][name]]
    return publish(store, lines, _facts(owners, groups))


def _same(parts: Sequence[DatasetManifest], member: str) -> None:
    values = {str(getattr(part, member)): part.id for part in parts}
    if len(values) > 1:
        stated = ", ".join(f"{part.id[:12]} has {getattr(part, member)}" for part in parts)
        raise SrBenchError(
            f"The datasets differ in {member}: {stated}.",
            code=f"{member}_conflict",
            field=member,
            mend=f"Prepare all of them with the same {member}; a combined set has one.",
        )


def _owners(parts: Sequence[DatasetManifest], only: set[str] | None) -> dict[str, DatasetManifest]:
    """Benchmark → the part that it is taken from, in catalogue order."""
    owners: dict[str, DatasetManifest] = {}
    for part in parts:
        for name in part.benchmarks:
            if only is not None and name not in only:
                continue
            other = owners.setdefault(name, part)
            differing = [
                what for what, value in _group(part, name).items() if _group(other, name)[what] != value
            ]
            if differing:
                raise SrBenchError(
                    f"{name} is in {other.id[:12]} and in {part.id[:12]}, with a different {', '.join(differing)}.",
                    code="source_conflict" if "source" in differing else "selection_conflict",
                    field=name,
                    mend="Leave one of the two out: which of them is meant is for you to say.",
                )
    order = {name: place for place, name in enumerate(benchmark_ids())}
    return {
        name: owners[name] for name in sorted(owners, key=lambda name: (order.get(name, len(order)), name))
    }


def _group(part: DatasetManifest, name: str) -> dict[str, Any]:
    """What must be equal for two parts to hold the same group of tasks."""
    return {
        "source": part.sources[name],
        "selection": part.selection[name],
        "set of cases": part.case_sha256[name],
        "exclusion": part.exclusions.get(name),
        "evaluation role": part.evaluation_roles.get(name),
    }


def _groups(part: DatasetManifest) -> dict[str, list[bytes]]:
    groups: dict[str, list[bytes]] = {name: [] for name in part.benchmarks}
    for line in read_lines(part.path, part.sha256):
        groups[orjson.loads(line)["benchmark"]].append(line)
    return groups


def _facts(owners: dict[str, DatasetManifest], groups: dict[str, dict[str, list[bytes]]]) -> dict[str, Any]:
    first = next(iter(owners.values()))
    samples = {name: part.sources[name].sample_data for name, part in owners.items()}
    labels = dict.fromkeys(label for label in samples.values() if label is not None)
    disclosures = dict.fromkeys(text for part in owners.values() for text in part.disclosures)
    return {
        "profile": first.profile,
        "split": first.split,
        "seed": first.seed,
        "benchmarks": tuple(owners),
        "counts": {name: part.counts[name] for name, part in owners.items()},
        "case_sha256": {name: lines_sha256(groups[part.id][name]) for name, part in owners.items()},
        "sources": {name: part.sources[name] for name, part in owners.items()},
        "selection": {name: part.selection[name] for name, part in owners.items()},
        "custom_subset": any(part.selection[name].limit is not None for name, part in owners.items()),
        "sample_data": "; ".join(labels) or None,
        "exclusions": {n: p.exclusions[n] for n, p in owners.items() if n in p.exclusions},
        "evaluation_roles": {n: p.evaluation_roles[n] for n, p in owners.items() if n in p.evaluation_roles},
        "disclosures": tuple(
            text for text in disclosures if any(text.startswith(f"{name}:") for name in owners)
        ),
        "preparation": Preparation(
            method="combine", components=tuple(dict.fromkeys(part.id for part in owners.values()))
        ),
    }
