"""Which tasks of a source a profile takes: stratified by hash, so the same for everybody with the same seed.

Everything here is pure. A position is the index of a task in its source (`CaseIndex.keys`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from resources.canonical import selection_hash
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import CaseKey, Profile

SELECTION_RULE = "stratified-hash-v1"
Order = Literal["stratified", "round_robin"]


@dataclass(frozen=True)
class Selection:
    """The tasks one profile takes of one source."""

    positions: tuple[int, ...]
    """In the order of `cases.jsonl`."""
    strata: Mapping[str, tuple[int, int]]
    """Stratum → (tasks in the source, tasks selected)."""
    excluded: int
    """Tasks that the standard window passed over because history names them and quick does not."""


def order_keys(keys: Sequence[CaseKey], seed: int, order: Order = "stratified") -> list[int]:
    """All positions of `keys` in selection order.

    Within a stratum by SHA-256 of `[seed, case id]`. `stratified`: one task of each stratum by stratum name, then
    the rest merged by `(k + 0.5) / (stratum size - 1)` (k: 0-based place among the stratum's rest), ties by
    stratum name. `round_robin`: one task of each stratum in turn while it has any. Independent of source order.
    Raises `SrBenchError` for ids that occur twice.
    """
    _refuse_duplicates(keys)
    strata: dict[str, list[tuple[str, int]]] = {}
    for position, key in enumerate(keys):
        strata.setdefault(key.stratum, []).append((selection_hash([seed, key.id]), position))
    placed: list[tuple[float, str, int]] = []
    for name, members in strata.items():
        members.sort()
        for rank, (_, position) in enumerate(members):
            placed.append((_place(rank, len(members), order), name, position))
    placed.sort()
    return [position for _, _, position in placed]


def _place(rank: int, size: int, order: Order) -> float:
    """Sort key of a stratum's `rank`-th task among all strata. Equal fractions give equal floats, and different
    ones differ for any stratum below 2**26 tasks, because numerator and denominator are exact."""
    if order == "round_robin":
        return float(rank)
    return -1.0 if rank == 0 else (rank - 0.5) / (size - 1)


def select(
    keys: Sequence[CaseKey],
    *,
    seed: int,
    profile: Profile,
    counts: Mapping[Profile, int],
    order: Order = "stratified",
    excluded_ids: Collection[str] = frozenset(),
    limit: int | None = None,
) -> Selection:
    """The tasks that `profile` takes of the source `keys`.

    smoke and quick are prefixes of the order, standard the window after quick. `excluded_ids` (case ids of a
    history snapshot) are passed over once, together with quick; smoke and quick refuse them, for they would no
    longer be everybody's smoke and quick. `limit` takes only so many (a custom subset, for which
    a smaller source is enough). Raises `SrBenchError` when the source has fewer tasks than are wanted; nothing
    ever fills a shortfall.
    """
    ordered = order_keys(keys, seed, order)
    quick, wanted = counts["quick"], counts[profile]
    if profile == "standard":
        window = ordered[quick:]
        pool = [position for position in window if keys[position].id not in excluded_ids]
    elif excluded_ids:
        raise SrBenchError(
            f"history can be excluded from standard only, not from {profile}",
            field="exclusion_snapshot",
            mend="prepare profile standard, or leave the snapshot out",
        )
    else:
        window = pool = ordered
    excluded = len(window) - len(pool)
    if limit is not None:
        if not 1 <= limit <= wanted:
            raise SrBenchError(
                f"a limit of {limit} is outside 1 to {wanted}, the size of profile {profile}",
                field="limit",
                mend=f"choose a limit from 1 to {wanted}, or a larger profile",
            )
        wanted = limit
    if len(pool) < wanted:
        raise SrBenchError(
            _shortfall(profile, wanted, len(keys), quick, excluded, len(pool)), field="profile"
        )
    positions = tuple(pool[:wanted])
    sizes = Counter(key.stratum for key in keys)
    taken = Counter(keys[position].stratum for position in positions)
    strata = {name: (sizes[name], taken[name]) for name in sorted(sizes)}
    return Selection(positions, strata, excluded)


def _shortfall(profile: Profile, wanted: int, size: int, quick: int, excluded: int, left: int) -> str:
    message = f"profile {profile} needs {wanted} tasks, the source has {size}"
    if profile == "standard":
        message += f", of which {left} are left after {quick} for quick"
    if excluded:
        message += f" and {excluded} excluded by history"
    return message


def _refuse_duplicates(keys: Sequence[CaseKey]) -> None:
    ids = Counter(key.id for key in keys)
    if len(ids) == len(keys):
        return
    twice = sorted(id for id, times in ids.items() if times > 1)
    raise SrBenchError(
        f"{len(twice)} task ids occur more than once in the source, first {twice[0]!r}",
        mend="give every task of the source an id of its own",
    )
