"""What a report's figures do not show, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sr_bench_assets.plans.manifest import FrozenPlan

LAB_SENTENCE = (
    "Lab run: answers came from the lab gateway's simulated or recorded models. "
    "These figures rehearse the procedure and are no evidence about a real model."
)


def limitations(
    plan: FrozenPlan,
    *,
    lab: bool,
    complete: bool,
    ended: str | None,
    scoped: bool,
    full_score: bool,
    reconciled: bool,
    targets: Sequence[dict[str, Any]],
) -> list[str]:
    """Sentences in the order of weight.

    `ended` is the run's status and reason when it did not complete, `scoped` is True for a part of the plan,
    `targets` are the report's target rows.
    """
    data = plan.dataset_provenance
    sentences: list[str] = []
    if lab:
        sentences.append(LAB_SENTENCE)
    if data.get("sample_data"):
        sentences.append(
            f"Sample data, not the benchmark itself: {str(data['sample_data']).rstrip('.')}. "
            "No figure here is a score on the benchmark."
        )
    if plan.mode != "live":
        sentences.append("Route preview: no answers were generated, so quality, tokens and cost are unknown.")
    if not complete:
        why = f" The run ended {ended}." if ended else ""
        sentences.append(
            f"Incomplete: not every planned cell ended.{why} Open cells count as not correct; "
            "this does not qualify as a completed evaluation."
        )
    elif ended:
        sentences.append(f"The run ended {ended}.")
    if scoped:
        sentences.append(
            "This covers a part of the plan only; "
            "it does not complete the plan's benchmark and has no full score."
        )
    if data.get("custom_subset"):
        sentences.append(f"Custom subset of the {plan.profile} selection: not the profile's full count.")
    if not full_score and plan.mode == "live":
        sentences.append(
            "The macro accuracy is a subset macro over the benchmarks that ran; "
            "a full sr-bench score needs all nine, complete."
        )
    if plan.dataset_split == "dev":
        sentences.append(
            "Development slice: it shows direction for tuning; "
            "a release decision needs the untouched holdout (standard)."
        )
    sentences += _failures(targets)
    sentences += _money(plan, targets, reconciled=reconciled)
    sentences += [str(line) for line in data.get("disclosures") or ()]
    if not data.get("sample_data"):
        sentences.append("Public tasks may have been part of a model's training data.")
        if "gpqa-diamond" in plan.benchmarks and plan.dataset_split == "holdout":
            sentences.append(
                "GPQA labels that were seen before make this a retest, whatever the local split is called."
            )
    return sentences


def _failures(targets: Sequence[dict[str, Any]]) -> list[str]:
    lines: list[str] = []
    for target in targets:
        lost = {
            "failed": target["failed"],
            "of unknown end": target["ambiguous"],
            "ungraded": target["ungraded"],
        }
        parts = [f"{count} {name}" for name, count in lost.items() if count]
        if parts:
            lines.append(
                f"{target['id']}: {', '.join(parts)} of {target['planned']} cases; they count as not correct."
            )
    return lines


def _money(plan: FrozenPlan, targets: Sequence[dict[str, Any]], *, reconciled: bool) -> list[str]:
    lines = [
        f"{target['id']}: cost is unknown ({target['total_cost_usd_reason']}); no savings claim is possible."
        for target in targets
        if target["total_cost_usd"] is None
    ]
    if plan.mode != "live":
        return lines
    if plan.cost_policy == "capability_only":
        lines.append("The plan permits unknown prices (capability_only).")
    lines.append(
        "Costs are tokens times the frozen prices, not an invoice; "
        "the cache-neutral cost is counterfactual, not billed spend."
    )
    if not reconciled:
        lines.append("Usage is as recorded live; it has not been reconciled with the retained replies.")
    return lines
