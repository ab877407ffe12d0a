"""Checks of a prepared dataset that run with each materialization; a failed blocking one stops the flow."""

from __future__ import annotations

import orjson
from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from resources.errors import IntegrityError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Profile
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import DatasetManifest, lines_sha256, read_lines
from sr_bench_assets.datasets.splits import sets_to_compare, split_conflicts

_ASSET = "prepared_dataset"
CHECK_SPECS = [
    AssetCheckSpec(
        "cases_have_their_hash",
        asset=_ASSET,
        blocking=True,
        description="cases.jsonl and this benchmark's lines of it have the hashes of the manifest.",
    ),
    AssetCheckSpec(
        "case_ids_are_unique",
        asset=_ASSET,
        blocking=True,
        description="No case id occurs twice and the manifest's count is right.",
    ),
    AssetCheckSpec(
        "splits_are_apart",
        asset=_ASSET,
        blocking=True,
        description="Against the store's other sets of the same source and seed: smoke lies within quick, and no case "
        "of standard is in either.",
    ),
    AssetCheckSpec(
        "every_category_is_covered",
        asset=_ASSET,
        description="Each category of the source has at least one case (a warning for small selections).",
    ),
    AssetCheckSpec(
        "full_profile",
        asset=_ASSET,
        description="The dataset has the profile's full count; a custom subset or sample data is a warning.",
    ),
]


def check_partition(
    store: Store, manifest: DatasetManifest, benchmark: str, profile: Profile
) -> list[AssetCheckResult]:
    """The results of `CHECK_SPECS` for one benchmark of a dataset, from the bytes on disk."""
    try:
        heads = [(line, orjson.loads(line)) for line in read_lines(manifest.path, manifest.sha256)]
    except (IntegrityError, orjson.JSONDecodeError) as error:
        return [_failed(spec.name, str(error)) for spec in CHECK_SPECS]
    own = [(line, head) for line, head in heads if head["benchmark"] == benchmark]
    actual = lines_sha256(line for line, _ in own)
    expected = manifest.case_sha256.get(benchmark)
    ids = [head["id"] for _, head in own]
    selection = manifest.selection.get(benchmark)
    uncovered = [name for name, count in selection.strata.items() if not count] if selection else []
    planned = get_benchmark(benchmark).counts[manifest.profile]
    others = sets_to_compare(store, manifest, benchmark) if selection else []
    conflicts = split_conflicts(profile, ids, others)
    whole = len(own) == planned and manifest.sample_data is None
    return [
        AssetCheckResult(
            check_name="cases_have_their_hash",
            passed=actual == expected and manifest.profile == profile,
            metadata={"expected": str(expected), "actual": actual},
        ),
        AssetCheckResult(
            check_name="case_ids_are_unique",
            passed=len(set(ids)) == len(ids) == manifest.counts.get(benchmark),
            metadata={"cases": len(ids), "distinct": len(set(ids))},
        ),
        AssetCheckResult(
            check_name="splits_are_apart",
            passed=not conflicts,
            metadata={
                "compared_with": ", ".join(f"{o.profile} {o.dataset_id[:12]}" for o in others)
                or "no other set",
                "conflicts": "; ".join(conflicts) or "none",
            },
        ),
        AssetCheckResult(
            check_name="every_category_is_covered",
            passed=not uncovered,
            severity=AssetCheckSeverity.WARN,
            metadata={"uncovered": ", ".join(uncovered) or "none"},
        ),
        AssetCheckResult(
            check_name="full_profile",
            passed=whole,
            severity=AssetCheckSeverity.WARN,
            metadata={"cases": len(own), "profile": planned, "sample_data": manifest.sample_data or "no"},
        ),
    ]


def _failed(name: str, message: str) -> AssetCheckResult:
    return AssetCheckResult(check_name=name, passed=False, metadata={"error": message})
