"""Where a report's figures come from: plan, tasks, graders, targets, sealed artifacts, accounting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from resources.journal.money import decimal_text
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan

DATASET_FACTS = (
    "sources",
    "selection",
    "custom_subset",
    "sample_data",
    "exclusions",
    "evaluation_roles",
    "disclosures",
    "preparation",
)


def provenance(
    plan: FrozenPlan,
    benchmarks: Iterable[str],
    *,
    sealed: Mapping[str, Mapping[str, str]],
    accounting: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The provenance of the figures of `benchmarks`; `sealed` maps a benchmark to its artifact hashes by
    kind."""
    kept = list(benchmarks)
    data = plan.dataset_provenance
    return {
        "protocol": plan.version,
        "plan_sha256": plan.plan_sha256,
        "plan_name": plan.name,
        "dataset": {
            "id": plan.dataset_id,
            "sha256": plan.dataset.sha256,
            "case_sha256": plan.case_sha256,
            "case_count": plan.case_count,
            "profile": plan.profile,
            "split": plan.dataset_split,
            "seed": plan.seed,
            **{key: _part(data[key], kept) for key in DATASET_FACTS if data.get(key) is not None},
        },
        "benchmarks": {
            name: plan.benchmarks[name].model_dump(mode="json", exclude_none=True) for name in kept
        },
        "targets": [_target(target) for target in plan.targets],
        "auxiliary_targets": {
            role: _target(target)
            for role, target in (
                ("judge", plan.auxiliary_targets.judge),
                ("simulator", plan.auxiliary_targets.simulator),
            )
            if target is not None
        },
        "sampling": plan.sampling.model_dump(mode="json", exclude_none=True),
        "limits": plan.limits.model_dump(mode="json"),
        "cost_policy": plan.cost_policy,
        "sealed": {name: dict(sealed[name]) for name in kept if name in sealed},
        **({"accounting": accounting} if accounting else {}),
    }


def _part(value: Any, benchmarks: list[str]) -> Any:
    """Of facts kept by benchmark, those of the benchmarks in the report."""
    if isinstance(value, dict) and benchmarks and set(value) & set(benchmarks):
        return {key: value[key] for key in value if key in benchmarks}
    return value


def _target(target: Target) -> dict[str, Any]:
    """What identifies a target in a report: no address and no name of a credential."""
    facts: dict[str, Any] = {
        "id": target.id,
        "kind": target.kind,
        "model": target.model,
        "expected_response_model": target.expected_response_model,
        "config_hash": target.config_hash,
        "request_params": target.request_params or None,
        "pricing_basis": target.pricing_basis,
        "prices": {
            model: {bucket: decimal_text(rate) for bucket, rate in price if rate is not None}
            for model, price in sorted((target.prices or {}).items())
        }
        or None,
    }
    return {key: value for key, value in facts.items() if value is not None}
