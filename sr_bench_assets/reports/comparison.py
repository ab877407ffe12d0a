"""Paired comparison of candidate runs with the strongest observed single model of a baseline run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.money import decimal_text
from resources.store import Store
from sr_bench_assets.reports.comparability import require_comparable, require_complete
from sr_bench_assets.reports.comparison_row import Side, comparison_row
from sr_bench_assets.reports.limitations import LAB_SENTENCE
from sr_bench_assets.reports.report import assemble, strata_of
from sr_bench_assets.reports.run_facts import RunFacts, load_run_facts
from sr_bench_assets.reports.statistics import Candidate, Stratum, Strongest, strongest, weighted_accuracy

COMPARISON_SCHEMA = "sr-bench-comparison-1"


@dataclass(frozen=True)
class Evaluated:
    """A completed run: its facts and its report."""

    facts: RunFacts
    report: dict[str, Any]

    def side(self, target_id: str) -> Side:
        """One target of the run as a side of a comparison."""
        row = next(row for row in self.report["targets"] if row["id"] == target_id)
        outcomes = {cell.case_id: cell.right for cell in self.facts.cells if cell.target_id == target_id}
        if len(outcomes) != row["planned"]:
            raise IntegrityError(
                f"Run {self.facts.run.id} has {len(outcomes)} results of {target_id} "
                f"for {row['planned']} cases."
            )
        return Side(self.facts.run.id, row, self.strata(target_id), outcomes, self.report["wall_time_s"])

    def strata(self, target_id: str) -> tuple[Stratum, ...]:
        """The target's benchmarks as weighted strata."""
        return strata_of(
            self.facts.plan, (r for r in self.report["benchmarks"] if r["target_id"] == target_id)
        )


def compare_runs(
    store: Store,
    journal: Journal,
    baseline_id: str,
    candidate_ids: Sequence[str] = (),
    *,
    baseline_target: str | None = None,
) -> dict[str, Any]:
    """The comparison document. Without candidates the baseline run's own MoM targets are the candidates.

    `baseline_target` names a single instead of the strongest. Raises NotFound, Incomplete, or an error that
    names the fields in which two runs differ.
    """
    baseline = _evaluated(store, journal, baseline_id)
    candidates: list[Evaluated] = []
    for run_id in candidate_ids or (baseline_id,):
        candidate = _evaluated(store, journal, run_id)
        if candidate.facts.run.id == baseline.facts.run.id:
            candidate = baseline
        require_comparable(baseline.facts, candidate.facts)
        if all(candidate.facts.run.id != other.facts.run.id for other in candidates):
            candidates.append(candidate)
    return compare_evaluated(baseline, candidates, baseline_target=baseline_target)


def compare_evaluated(
    baseline: Evaluated, candidates: Sequence[Evaluated], *, baseline_target: str | None = None
) -> dict[str, Any]:
    """The comparison document from evaluated runs that are known to be comparable; pure."""
    singles = [target.id for target in baseline.facts.plan.targets if target.kind == "single"]
    chosen = _choose(baseline, singles, baseline_target)
    base = baseline.side(chosen.selected)
    rows = [
        comparison_row(
            base,
            candidate.side(target_id),
            savings_basis=chosen.savings_basis,
            plan=candidate.facts.plan,
            lab=candidate.facts.lab,
        )
        for candidate in candidates
        for target_id in _candidate_targets(candidate, baseline, chosen.selected)
    ]
    if not rows:
        raise SrBenchError(
            f"Run {baseline.facts.run.id} has no target to compare with {chosen.selected}.",
            field="candidate",
            mend="Name a candidate run, or include a MoM target in the plan.",
        )
    plan = baseline.facts.plan
    return {
        "schema": COMPARISON_SCHEMA,
        "baseline_run_id": baseline.facts.run.id,
        "baseline_target_id": chosen.selected,
        "baseline_selection": "named"
        if baseline_target
        else "strongest observed single, exact weighted accuracy",
        "tied_best": list(chosen.tied),
        "baseline_quality": float(chosen.quality),
        "baseline_quality_fraction": str(chosen.quality),
        **_baseline_cost(chosen),
        "savings_basis": chosen.savings_basis,
        "lab": baseline.facts.lab,
        "profile": plan.profile,
        "split": plan.dataset_split,
        **(
            {"sample_data": plan.dataset_provenance["sample_data"]}
            if plan.dataset_provenance.get("sample_data")
            else {}
        ),
        "plan_sha256": plan.plan_sha256,
        "singles": [_single(baseline, single) for single in singles],
        "pool_oracle_quality": _oracle(baseline, singles),
        "comparisons": rows,
        "limitations": _limitations(baseline, chosen),
    }


def _evaluated(store: Store, journal: Journal, run_id: str) -> Evaluated:
    facts = load_run_facts(store, journal, run_id)
    require_complete(facts)
    return Evaluated(facts, assemble(facts))


def _choose(baseline: Evaluated, singles: Sequence[str], named: str | None) -> Strongest:
    rows = {row["id"]: row for row in baseline.report["targets"]}
    if not singles:
        raise SrBenchError(
            f"Run {baseline.facts.run.id} has no single-model target to be the baseline.",
            field="baseline",
            mend="Use a run whose plan has targets of kind single.",
        )
    if named is not None and named not in singles:
        raise NotFound(
            f"Run {baseline.facts.run.id} has no single-model target {named}.",
            field="--baseline-target",
            mend=f"Its singles are {', '.join(singles)}.",
        )
    return strongest(
        [
            Candidate(target_id, _cost(rows[target_id]["cost_usd"]), baseline.strata(target_id))
            for target_id in singles
            if named is None or target_id == named
        ]
    )


def _candidate_targets(candidate: Evaluated, baseline: Evaluated, selected: str) -> list[str]:
    """A run's MoM targets; where it has none, all its targets but the baseline itself."""
    same_run = candidate.facts.run.id == baseline.facts.run.id
    targets = candidate.facts.plan.targets
    routers = [target.id for target in targets if target.kind == "mom"]
    return routers or [target.id for target in targets if not (same_run and target.id == selected)]


def _single(baseline: Evaluated, target_id: str) -> dict[str, Any]:
    row = next(row for row in baseline.report["targets"] if row["id"] == target_id)
    quality = weighted_accuracy(baseline.strata(target_id))
    kept = ("correct", "planned", "cost_usd", "cost_usd_reason", "cache_neutral_cost_usd", "latency_p50_s")
    return {
        "target_id": target_id,
        "quality": float(quality),
        "quality_fraction": str(quality),
        **{key: row[key] for key in kept if key in row},
    }


def _oracle(baseline: Evaluated, singles: Sequence[str]) -> float:
    """Weighted accuracy of a router that always finds a single that is right: the ceiling of this pool."""
    solved: dict[str, bool] = {}
    where: dict[str, str] = {}
    for cell in baseline.facts.cells:
        if cell.target_id in singles:
            solved[cell.case_id] = solved.get(cell.case_id, False) or cell.right
            where[cell.case_id] = cell.benchmark
    total = Fraction(0)
    for stratum in baseline.strata(singles[0]):
        right = sum(solved[case_id] for case_id, name in where.items() if name == stratum.id)
        total += stratum.weight * Fraction(right, stratum.n)
    return float(total)


def _baseline_cost(chosen: Strongest) -> dict[str, Any]:
    if chosen.baseline_cost_usd is not None:
        return {"baseline_cost_usd": decimal_text(chosen.baseline_cost_usd)}
    return {
        "baseline_cost_usd": None,
        "baseline_cost_usd_reason": "a best single has no complete cost, so savings are unknown",
    }


def _limitations(baseline: Evaluated, chosen: Strongest) -> list[str]:
    plan = baseline.facts.plan
    lines: list[str] = []
    if baseline.facts.lab:
        lines.append(LAB_SENTENCE)
    if plan.dataset_provenance.get("sample_data"):
        lines.append("Sample data, not the benchmark itself: no figure here is a score on the benchmark.")
    if plan.dataset_split == "dev":
        lines.append(
            "Development slice: it shows direction; a quality claim needs a margin fixed before "
            "and the interval of a holdout run."
        )
    if len(chosen.tied) > 1:
        lines.append(f"Equally strong singles: {', '.join(chosen.tied)}; the cheapest known one was taken.")
    lines += [
        "The claim is the Hoeffding interval. The bootstrap and the asymptotic score interval are "
        "diagnostics; a bootstrap of [0, 0] does not prove equality.",
        "No interval covers the choice of the strongest single, tuning on the same cases, or contamination.",
        "Savings compare tokens at the frozen prices, not invoices; "
        "cache-neutral savings are counterfactual.",
    ]
    return lines


def _cost(text: str | None):
    from sr_bench_assets.usage.call_accounting import decimal_or_none

    return decimal_or_none(text)
