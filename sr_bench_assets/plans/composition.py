"""The plan of a partition that nobody wrote: registered targets × newest dataset, with default options."""

from __future__ import annotations

import os
from collections.abc import Mapping

from resources.errors import NotFound, Problems, SrBenchError
from resources.store import Store
from resources.target_registry import list_targets
from resources.targets import Target
from sr_bench_assets.benchmarks.contract import Profile
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets
from sr_bench_assets.plans.manifest import DatasetRef, Manifest
from sr_bench_assets.plans.options import operator_options


def compose_default(
    store: Store,
    benchmark: str,
    profile: Profile,
    env: Mapping[str, str] = os.environ,
    dataset: DatasetManifest | None = None,
) -> Manifest:
    """A live manifest over `dataset` (else the newest of this benchmark and profile) and the registered targets.

    `limits`, `sampling` and `cost_policy` come from the operator's `benchmark-options.json`; without a policy
    there, prices are required when all targets carry them. Judge and simulator are added on freezing.
    Raises `Problems` naming what to prepare, register or set in `env`.
    """
    problems: list[SrBenchError] = []
    dataset = dataset or _newest(store, benchmark, profile)
    if dataset is None:
        problems.append(
            NotFound(
                f"The store has no dataset of {benchmark} alone for profile {profile}.",
                field="dataset",
                mend=f"Prepare one: sr-bench dataset prepare --benchmark {benchmark} --profile {profile}.",
            )
        )
    targets = list_targets(store)
    if not targets:
        problems.append(
            NotFound(
                "No target is registered.",
                field="targets",
                mend="Register targets: sr-bench target register --file targets.json.",
            )
        )
    problems += [
        _missing(target) for target in targets if target.api_key_env and not env.get(target.api_key_env)
    ]
    options = operator_options(store)
    if dataset is None or problems:
        raise Problems(f"No plan can be composed for {benchmark}, profile {profile}.", problems)
    return Manifest(
        name=f"{benchmark} {profile}: registered targets",
        profile=profile,
        seed=dataset.seed,
        dataset=DatasetRef(path=dataset.path, sha256=dataset.sha256),
        targets=targets,
        cost_policy=options.cost_policy
        or ("require_priced" if all(map(_priced, targets)) else "capability_only"),
        limits=options.limits,
        sampling=options.sampling,
    )


def _newest(store: Store, benchmark: str, profile: Profile) -> DatasetManifest | None:
    # A combined dataset would plan the other partitions' cells, too.
    for dataset in list_datasets(store):
        if dataset.profile == profile and dataset.benchmarks == (benchmark,):
            return dataset
    return None


def _priced(target: Target) -> bool:
    return target.prices is not None and (target.kind == "single" or target.max_inference_calls is not None)


def _missing(target: Target) -> SrBenchError:
    return SrBenchError(
        f"The environment variable that target {target.id} names in api_key_env is not set.",
        code="missing_environment",
        field=f"targets.{target.id}.api_key_env",
        mend="Set it where Dagster's daemon and web server run.",
    )
