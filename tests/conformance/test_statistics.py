"""The statistics vectors, one test a vector."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sr_bench_assets.reports.statistics import (
    Candidate,
    PairedStratum,
    Stratum,
    hoeffding,
    mcnemar_exact,
    non_inferior,
    percentile,
    saving_percent,
    strongest,
    weighted_accuracy,
    wilson,
    wins_losses_ties,
)

CASES = json.loads((Path(__file__).parent / "data" / "statistics.json").read_bytes())["cases"]
close = pytest.approx


def strata(rows: list[dict[str, Any]]) -> tuple[Stratum, ...]:
    return tuple(Stratum(row["id"], Fraction(row["weight"]), row["n"], row["correct"]) for row in rows)


def money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def solve(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "wilson":
            low, high = wilson(given["successes"], given["n"]) or (None, None)
            return {"low": low, "high": high}
        case "macro":
            quality = weighted_accuracy(strata(given["benchmarks"]))
            return {"fraction": quality, "value": float(quality)}
        case "strongest":
            found = strongest(
                [
                    Candidate(c["id"], money(c["cost_usd"]), strata(c["benchmarks"]))
                    for c in given["candidates"]
                ]
            )
            return {
                "quality": found.quality,
                "tied": list(found.tied),
                "selected": found.selected,
                "baseline_cost_usd": found.baseline_cost_usd,
                "savings_basis": found.savings_basis,
            }
        case "savings":
            saved = saving_percent(money(given["baseline_usd"]), money(given["candidate_usd"]))
            return {"status": "unknown" if saved is None else "known", "saving_percent": saved}
        case "hoeffding":
            interval = hoeffding(
                [
                    PairedStratum(s["id"], Fraction(s["weight"]), s["n"], Fraction(s["sum_difference"]))
                    for s in given["strata"]
                ],
                alpha=float(given["alpha"]),
            )
            return {name: getattr(interval, name) for name in ("difference", "radius", "low", "high")}
        case "percentile":
            return {"results": percentile(given["values"], given["percents"])}
        case "wins_losses_ties":
            found = wins_losses_ties(*([c == "1" for c in given[side]] for side in ("candidate", "baseline")))
            return {"wins": found.wins, "losses": found.losses, "ties": found.ties}
        case "mcnemar":
            p = mcnemar_exact(given["wins"], given["losses"])
            return {"p_exact": p, "p_value": float(p)}
        case "non_inferior":
            return {"non_inferior": non_inferior(money(given["interval_low"]), Decimal(given["margin"]))}
        case _:
            raise AssertionError(f"unknown kind {kind}")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_vector(case: dict[str, Any]) -> None:
    found, expect = solve(case["kind"], case["input"]), case["expect"]
    assert set(found) == set(expect)
    for key, value in expect.items():
        if isinstance(found[key], Fraction):
            assert found[key] == Fraction(value), key
        elif isinstance(found[key], Decimal):
            assert found[key] == Decimal(value), key
        elif isinstance(value, float):
            assert found[key] == close(value, abs=1e-9, rel=0), key
        elif key == "results":
            for ours, theirs in zip(found[key], value, strict=True):
                assert ours == (None if theirs is None else close(theirs, abs=1e-9, rel=0))
        else:
            assert found[key] == value, key
