"""What can be prepared (catalogue) and what is there already (options), for the CLI and any interface."""

from __future__ import annotations

import os
from typing import Any

from resources.store import Store
from sr_bench_assets.benchmarks.contract import DEFAULT_SEED, PROFILES, Benchmark, HubSource
from sr_bench_assets.benchmarks.registry import benchmarks
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, split_of
from sr_bench_assets.datasets.reuse import is_pinned_source


def catalogue() -> list[dict[str, Any]]:
    """One entry per installed benchmark: identity, kind, sizes, source, licence and what a run of it needs."""
    return [_entry(benchmark) for benchmark in benchmarks().values()]


def _entry(benchmark: Benchmark) -> dict[str, Any]:
    source = benchmark.source
    hub = isinstance(source, HubSource)
    return {
        "id": benchmark.id,
        "title": benchmark.title,
        "capability": benchmark.capability,
        "kind": benchmark.kind,
        "counts": {profile: benchmark.counts[profile] for profile in PROFILES},
        "weight": str(benchmark.weight),
        "adapter_version": benchmark.adapter_version,
        "normalizer_version": benchmark.normalizer_version,
        "grader_version": benchmark.grader_version,
        "runnable": benchmark.execute is not None,
        "needs": list(benchmark.needs),
        "source": {
            "kind": "hub" if hub else "git",
            "url": source.url,
            "revision": source.revision,
            "files": list(source.files if isinstance(source, HubSource) else source.paths),
            "gated": isinstance(source, HubSource) and source.gated,
        },
        "licence": benchmark.licence,
        "access_note": benchmark.access_note,
    }


def options(store: Store) -> dict[str, Any]:
    """What `dataset prepare` offers on this store: per benchmark and profile the size and the sets prepared."""
    prepared = list_datasets(store)
    return {
        "profiles": [{"id": profile, "split": split_of(profile)} for profile in PROFILES],
        "default_seed": DEFAULT_SEED,
        "hub_endpoint_set": bool(os.environ.get("HF_ENDPOINT")),
        "hub_token_set": bool(os.environ.get("HF_TOKEN")),
        "benchmarks": [
            {
                "id": benchmark.id,
                "title": benchmark.title,
                "kind": benchmark.kind,
                "gated": isinstance(benchmark.source, HubSource) and benchmark.source.gated,
                "profiles": {
                    profile: {
                        "count": benchmark.counts[profile],
                        "prepared": [
                            _prepared(benchmark, manifest)
                            for manifest in prepared
                            if manifest.profile == profile and benchmark.id in manifest.benchmarks
                        ],
                    }
                    for profile in PROFILES
                },
            }
            for benchmark in benchmarks().values()
        ],
    }


def _prepared(benchmark: Benchmark, manifest: DatasetManifest) -> dict[str, Any]:
    return {
        "dataset_id": manifest.id,
        "seed": manifest.seed,
        "count": manifest.counts[benchmark.id],
        "pinned_source": is_pinned_source(benchmark, manifest.sources[benchmark.id]),
        "custom_subset": manifest.selection[benchmark.id].limit is not None,
        "sample_data": manifest.sources[benchmark.id].sample_data,
        "evaluation_role": manifest.evaluation_roles.get(benchmark.id),
    }
