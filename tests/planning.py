"""Small real datasets, manifests and frozen plans for tests."""

from __future__ import annotations

from typing import Any

from resources.store import Store
from sr_bench_assets.benchmarks.contract import DEFAULT_SEED, Case, Profile
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    Preparation,
    SelectionRecord,
    SourceRecord,
    encode_case,
    lines_sha256,
    publish,
    split_of,
)

PRICE = {"input": "0.50", "cached_input": 0.05, "cache_write": 1, "output": "2.0"}


def publish_cases(
    store: Store,
    count: int = 3,
    benchmark: str = "mmlu-pro",
    profile: Profile = "smoke",
    seed: int = DEFAULT_SEED,
    first: int = 0,
    **facts: Any,
) -> DatasetManifest:
    """A published dataset of `count` made-up cases of one benchmark, numbered (and asking) from `first`."""
    lines = [
        encode_case(
            Case(
                id=f"{benchmark}/{number}",
                benchmark=benchmark,
                category="math",
                messages=[{"role": "user", "content": f"What is {number} + 1?"}],
                input={"question": f"What is {number} + 1?", "options": [str(number), str(number + 1)]},
                reference={"answer": "B"},
            )
        )
        for number in range(first, first + count)
    ]
    source = SourceRecord(
        kind="local",
        url="local:test",
        revision="r1",
        files=(),
        files_sha256="0" * 64,
        licence="none",
        access_note="none",
        normalizer_version="1",
        adapter_version="1",
    )
    selection = SelectionRecord(rule="test", source_cases=count, requested=count, strata={"math": count})
    document: dict[str, Any] = {
        "profile": profile,
        "split": split_of(profile),
        "seed": seed,
        "benchmarks": (benchmark,),
        "counts": {benchmark: count},
        "case_sha256": {benchmark: lines_sha256(lines)},
        "sources": {benchmark: source},
        "selection": {benchmark: selection},
        "custom_subset": False,
        "preparation": Preparation(method="prepare"),
    }
    return publish(store, lines, {**document, **facts})


def single(target_id: str = "single-a", **members: Any) -> dict[str, Any]:
    """A priced single-model target."""
    target = {"id": target_id, "kind": "single", "base_url": "http://127.0.0.1:9/v1", "model": "small-1"}
    return {**target, "prices": {"small-1": PRICE}, **members}


def mom(target_id: str = "router", **members: Any) -> dict[str, Any]:
    """A priced MoM target."""
    target = {"id": target_id, "kind": "mom", "base_url": "http://127.0.0.1:9/v1", "model": "auto"}
    bound = {"config_hash": "a1b2", "max_inference_calls": 1, "prices": {"small-1": PRICE}}
    return {**target, **bound, **members}


def manifest_document(prepared: DatasetManifest, /, **members: Any) -> dict[str, Any]:
    """A valid manifest over `prepared` with one single and one MoM target."""
    return {
        "name": "test plan",
        "profile": prepared.profile,
        "seed": prepared.seed,
        "dataset": {"path": prepared.path, "sha256": prepared.sha256},
        "targets": [single(), mom()],
        **members,
    }
