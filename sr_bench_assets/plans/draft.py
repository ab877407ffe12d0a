"""A manifest as far as it can be understood, so that one look finds all its problems: a wrong limit must not
hide a missing environment variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from resources.errors import SrBenchError
from resources.targets import Target
from resources.validation import salvage, validate
from sr_bench_assets.plans.manifest import DatasetRef, Limits, Manifest, Sampling
from sr_bench_assets.plans.options import OPTIONS_FILE, OperatorOptions
from sr_bench_assets.plans.references import is_reference

Part = TypeVar("Part", bound=BaseModel)


@dataclass(frozen=True)
class Placed:
    """A target and where it stands in its document."""

    path: str
    target: Target


@dataclass(frozen=True)
class Draft:
    """The parts of a manifest. None: absent or not understood; its problem is reported already."""

    mode: str | None
    profile: str | None
    seed: int | None
    cost_policy: str | None
    dataset: DatasetRef | None
    targets: tuple[Placed, ...]
    judge: Placed | None
    simulator: Placed | None
    judge_given: bool
    simulator_given: bool
    limits: Limits | None
    sampling: Sampling | None
    benchmark_options: Mapping[str, Mapping[str, Any]]
    unsure: frozenset[str] = frozenset()
    """Paths of members that were wrong and count as absent here."""


def draft_of_manifest(manifest: Manifest) -> Draft:
    """The parts of a valid manifest."""
    auxiliary = manifest.auxiliary_targets
    return Draft(
        mode=manifest.mode,
        profile=manifest.profile,
        seed=manifest.seed,
        cost_policy=manifest.cost_policy,
        dataset=manifest.dataset,
        targets=tuple(Placed(f"targets[{i}]", target) for i, target in enumerate(manifest.targets)),
        judge=_auxiliary("judge", auxiliary.judge),
        simulator=_auxiliary("simulator", auxiliary.simulator),
        judge_given=auxiliary.judge is not None,
        simulator_given=auxiliary.simulator is not None,
        limits=manifest.limits,
        sampling=manifest.sampling,
        benchmark_options=manifest.benchmark_options,
    )


def draft_of_document(document: Any) -> tuple[Draft | None, Manifest | None, list[SrBenchError]]:
    """`document` (references resolved) as draft, as manifest if it is valid, and its structural problems."""
    if not isinstance(document, Mapping):
        problem = SrBenchError(
            "A manifest is a mapping of names to values.", mend="docs/manifest.md shows one."
        )
        return None, None, [problem]
    manifest, problems = validate(Manifest, document)
    if manifest is not None:
        return draft_of_manifest(manifest), manifest, []
    problems = [problem for problem in problems if not _inside_reference(document, problem.field or "")]
    unsure: set[str] = set()

    def part(model: type[Part], raw: Any, root: str) -> Part | None:
        if raw is None:
            return None
        found, dropped = salvage(model, raw, root)
        unsure.update(dropped)
        return found

    targets = document.get("targets")
    placed = [(f"targets[{i}]", item) for i, item in enumerate(targets if isinstance(targets, list) else [])]
    auxiliary = document.get("auxiliary_targets")
    roles: Mapping[str, Any] = auxiliary if isinstance(auxiliary, Mapping) else {}
    options = document.get("benchmark_options")
    defaults = {name: field.default for name, field in Manifest.model_fields.items()}
    # A member of the wrong kind counts as absent here: its problem is in the list.
    seed = document.get("seed", defaults["seed"])
    draft = Draft(
        mode=_choice(document.get("mode", defaults["mode"]), "live", "preview"),
        profile=_choice(document.get("profile"), "smoke", "quick", "standard"),
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else None,
        cost_policy=_choice(
            document.get("cost_policy", defaults["cost_policy"]), "require_priced", "capability_only"
        ),
        dataset=part(DatasetRef, document.get("dataset"), "dataset"),
        targets=tuple(Placed(path, target) for path, item in placed if (target := part(Target, item, path))),
        judge=_auxiliary("judge", part(Target, roles.get("judge"), "auxiliary_targets.judge")),
        simulator=_auxiliary(
            "simulator", part(Target, roles.get("simulator"), "auxiliary_targets.simulator")
        ),
        judge_given=roles.get("judge") is not None,
        simulator_given=roles.get("simulator") is not None,
        limits=part(Limits, document.get("limits", {}), "limits"),
        sampling=part(Sampling, document.get("sampling", {}), "sampling"),
        benchmark_options={k: v for k, v in options.items() if isinstance(v, Mapping)}
        if isinstance(options, Mapping)
        else {},
    )
    return replace(draft, unsure=frozenset(unsure)), None, problems


def completed(draft: Draft, operator: OperatorOptions, needs: Mapping[str, set[str]]) -> Draft:
    """`draft` with the operator's judge, simulator and benchmark options, where it says nothing itself.

    `needs` are the dataset's benchmarks and what each of them needs; what none needs is not taken over: it
    would change the identity of the plan for nothing.
    """
    needed = set[str]().union(*needs.values())
    auxiliary = operator.auxiliary_targets
    judge, simulator = draft.judge, draft.simulator
    if not draft.judge_given and "judge" in needed and auxiliary.judge:
        judge = Placed(f"{OPTIONS_FILE}:auxiliary_targets.judge", auxiliary.judge)
    if not draft.simulator_given and "simulator" in needed and auxiliary.simulator:
        simulator = Placed(f"{OPTIONS_FILE}:auxiliary_targets.simulator", auxiliary.simulator)
    options = {
        name: {**operator.benchmark_options.get(name, {}), **draft.benchmark_options.get(name, {})}
        for name in sorted({*(operator.benchmark_options.keys() & needs.keys()), *draft.benchmark_options})
    }
    return replace(draft, judge=judge, simulator=simulator, benchmark_options=options)


def _auxiliary(role: str, target: Target | None) -> Placed | None:
    return Placed(f"auxiliary_targets.{role}", target) if target else None


def _choice(value: Any, *allowed: str) -> str | None:
    return value if isinstance(value, str) and value in allowed else None


def _inside_reference(document: Mapping[str, Any], field: str) -> bool:
    """Whether `field` lies in an unresolved reference, whose own problem says more."""
    targets = document.get("targets")
    for index, item in enumerate(targets if isinstance(targets, list) else []):
        if is_reference(item) and field.startswith(f"targets[{index}]."):
            return True
    auxiliary = document.get("auxiliary_targets")
    roles: Mapping[str, Any] = auxiliary if isinstance(auxiliary, Mapping) else {}
    return any(
        is_reference(item) and field.startswith(f"auxiliary_targets.{role}.") for role, item in roles.items()
    )
