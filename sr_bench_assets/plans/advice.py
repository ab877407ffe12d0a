"""What a reader of a fresh plan should know although nothing is wrong with it. Pure."""

from __future__ import annotations

from decimal import Decimal

from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.target_checks import effective_max_tokens


def advice(plan: FrozenPlan) -> list[str]:
    """One sentence for each limitation of `plan`."""
    lines: list[str] = []
    if plan.cost_policy == "capability_only":
        lines.append(
            "cost_policy is capability_only: unknown prices are allowed, so no saving can be claimed."
        )
    if plan.dataset_provenance.get("sample_data"):
        lines.append(
            f"The tasks are sample data, not the benchmark: {plan.dataset_provenance['sample_data']}."
        )
    if plan.dataset_provenance.get("custom_subset"):
        lines.append("The dataset is a custom subset; its results are not those of the whole profile.")
    for disclosure in plan.dataset_provenance.get("disclosures", ()):
        lines.append(str(disclosure))
    for target in plan.targets:
        lines += _about(target, plan)
    return lines


def _about(target: Target, plan: FrozenPlan) -> list[str]:
    if target.prices is None or plan.mode == "preview":
        return []
    lines: list[str] = []
    if (
        target.kind == "single"
        and target.expected_response_model is None
        and target.model not in target.prices
    ):
        lines.append(
            f"{target.id}: prices do not name {target.model!r}; a reply that reports that model will have no "
            "known cost. Set expected_response_model if the endpoint reports another name."
        )
    dearest = max(price.output for price in target.prices.values())
    bound = dearest * effective_max_tokens(target, plan.sampling) / Decimal(1_000_000)
    if bound > plan.limits.max_cost_usd:
        lines.append(
            f"{target.id}: max_cost_usd ({plan.limits.max_cost_usd}) does not cover the output of one call "
            f"(up to {bound.normalize():f} USD); the run would end budget_exhausted without calling it."
        )
    return lines
