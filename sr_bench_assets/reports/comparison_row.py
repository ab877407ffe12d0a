"""One candidate target against the baseline target: paired quality, savings, verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from resources.errors import IntegrityError
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.reports.paired_intervals import (
    BOOTSTRAP_RESAMPLES,
    PairCounts,
    bootstrap_interval,
    paired_score_interval,
)
from sr_bench_assets.reports.statistics import (
    DifferenceInterval,
    PairedStratum,
    Stratum,
    hoeffding,
    mcnemar_exact,
    non_inferior,
    saving_percent,
    weighted_accuracy,
    wins_losses_ties,
)
from sr_bench_assets.usage.call_accounting import decimal_or_none

HOEFFDING_METHOD = "stratified Hoeffding, 95 %, conservative"
SCORE_METHOD = "asymptotic: Tango's paired score interval per benchmark, combined by MOVER"
SHOWN_FIGURES = (
    "tokens",
    "tokens_reason",
    "judge_cost_usd",
    "judge_cost_usd_reason",
    "simulator_cost_usd",
    "simulator_cost_usd_reason",
    "ttft_p50_s",
    "ttft_p50_s_reason",
    "latency_p50_s",
    "latency_p50_s_reason",
    "latency_p95_s",
    "latency_p95_s_reason",
    "request_time_sum_s",
    "request_time_sum_s_reason",
    "selected_models",
)


@dataclass(frozen=True)
class Side:
    """One target of one completed run."""

    run_id: str
    figures: Mapping[str, Any]
    """The target's row of the report."""
    strata: tuple[Stratum, ...]
    outcomes: Mapping[str, bool]
    """Case id → counts as correct."""
    wall_time_s: float | None


def comparison_row(
    base: Side, candidate: Side, *, savings_basis: Literal["known", "unknown"], plan: FrozenPlan, lab: bool
) -> dict[str, Any]:
    """The row of `comparisons` for one candidate; `plan` is the candidate's (seed, margin, split)."""
    if set(base.outcomes) != set(candidate.outcomes):
        raise IntegrityError(f"Runs {base.run_id} and {candidate.run_id} hold results of different cases.")
    pairs = paired_strata(base, candidate)
    interval = hoeffding([PairedStratum(p.id, p.weight, p.n, Fraction(p.wins - p.losses)) for p in pairs])
    bootstrap = bootstrap_interval(pairs, seed=plan.seed)
    quality = weighted_accuracy(candidate.strata)
    return {
        "run_id": candidate.run_id,
        "target_id": candidate.figures["id"],
        "kind": candidate.figures["kind"],
        "baseline_target_id": base.figures["id"],
        "paired_cases": sum(p.n for p in pairs),
        "wins": sum(p.wins for p in pairs),
        "losses": sum(p.losses for p in pairs),
        "ties": sum(p.n - p.wins - p.losses for p in pairs),
        "quality": float(quality),
        "quality_fraction": str(quality),
        "quality_delta": float(interval.difference),
        "quality_delta_fraction": str(interval.difference),
        "quality_delta_ci95": [interval.low, interval.high],
        "quality_delta_ci95_method": HOEFFDING_METHOD,
        "bootstrap_ci95": list(bootstrap),
        "bootstrap": {"method": "stratified percentile", "resamples": BOOTSTRAP_RESAMPLES, "seed": plan.seed},
        "score_ci95": list(paired_score_interval(pairs)),
        "score_ci95_method": SCORE_METHOD,
        "quality_reading": quality_reading(interval),
        **savings(base, candidate, savings_basis),
        **verdict(interval, plan, lab=lab),
        "cost_usd": candidate.figures["cost_usd"],
        **_reason(candidate, "cost_usd"),
        "total_cost_usd": candidate.figures["total_cost_usd"],
        **_reason(candidate, "total_cost_usd"),
        "cache_neutral_cost_usd": candidate.figures["cache_neutral_cost_usd"],
        **_reason(candidate, "cache_neutral_cost_usd"),
        **{key: candidate.figures[key] for key in SHOWN_FIGURES if key in candidate.figures},
        "wall_time_s": candidate.wall_time_s,
        **({"wall_time_s_reason": "not recorded"} if candidate.wall_time_s is None else {}),
        "benchmarks": [_benchmark(p, base, candidate) for p in pairs],
    }


def paired_strata(base: Side, candidate: Side) -> list[PairCounts]:
    """Wins and losses per benchmark over the identical cases."""
    cases = sorted(base.outcomes)
    counts: list[PairCounts] = []
    for stratum in base.strata:
        ids = [case_id for case_id in cases if case_id.startswith(f"{stratum.id}/")]
        found = wins_losses_ties([candidate.outcomes[i] for i in ids], [base.outcomes[i] for i in ids])
        counts.append(PairCounts(stratum.id, stratum.weight, len(ids), found.wins, found.losses))
    return counts


def quality_reading(interval: DifferenceInterval) -> Literal["better", "worse", "no difference shown"]:
    """What the claim interval says; an interval that holds zero shows nothing, however large the delta."""
    if interval.low > 0:
        return "better"
    return "worse" if interval.high < 0 else "no difference shown"


def savings(base: Side, candidate: Side, basis: Literal["known", "unknown"]) -> dict[str, Any]:
    """Subject, total and cache-neutral savings in percent of the baseline; None with a reason when
    unknown."""
    fields: dict[str, Any] = {}
    for name, cost in (
        ("subject_cost_saving_percent", "cost_usd"),
        ("total_cost_saving_percent", "total_cost_usd"),
        ("cache_neutral_cost_saving_percent", "cache_neutral_cost_usd"),
    ):
        ours, theirs = base.figures[cost], candidate.figures[cost]
        saved = None
        if basis == "known":
            saved = saving_percent(decimal_or_none(ours), decimal_or_none(theirs))
        fields[name] = saved
        if saved is None:
            fields[f"{name}_reason"] = _why_unknown(base, candidate, cost, basis)
    return fields


def verdict(interval: DifferenceInterval, plan: FrozenPlan, *, lab: bool) -> dict[str, Any]:
    """The verdict on the plan's pre-registered margin, and whether it may be claimed beyond this data."""
    if plan.non_inferiority is None:
        return {"verdict": None, "verdict_reason": "the candidate's plan registers no non-inferiority margin"}
    margin = plan.non_inferiority.margin
    shown = non_inferior(interval.low, margin)
    blocks = [
        reason
        for reason, applies in (
            ("lab models", lab),
            ("sample data", bool(plan.dataset_provenance.get("sample_data"))),
            ("custom subset", bool(plan.dataset_provenance.get("custom_subset"))),
            ("development split", plan.dataset_split == "dev"),
        )
        if applies
    ]
    return {
        "verdict": "non_inferior" if shown else "not_shown",
        "margin": str(margin),
        "claimable": not blocks,
        **({"claimable_reason": f"no claim beyond this data: {', '.join(blocks)}"} if blocks else {}),
    }


def _benchmark(pair: PairCounts, base: Side, candidate: Side) -> dict[str, Any]:
    ours = next(s for s in base.strata if s.id == pair.id)
    theirs = next(s for s in candidate.strata if s.id == pair.id)
    return {
        "benchmark": pair.id,
        "weight": str(pair.weight),
        "paired_cases": pair.n,
        "wins": pair.wins,
        "losses": pair.losses,
        "ties": pair.n - pair.wins - pair.losses,
        "baseline_accuracy": ours.correct / ours.n,
        "candidate_accuracy": theirs.correct / theirs.n,
        "delta": float(Fraction(pair.wins - pair.losses, pair.n)),
        "mcnemar_p": float(mcnemar_exact(pair.wins, pair.losses)),
    }


def _why_unknown(base: Side, candidate: Side, cost: str, basis: str) -> str:
    if basis == "unknown":
        return "a best single has no complete cost"
    for side in (base, candidate):
        if side.figures[cost] is None:
            return f"{side.figures['id']}: {side.figures.get(f'{cost}_reason', 'unknown cost')}"
    return f"{base.figures['id']} cost nothing; there is nothing to save from"


def _reason(side: Side, key: str) -> dict[str, Any]:
    name = f"{key}_reason"
    return {name: side.figures[name]} if name in side.figures else {}
