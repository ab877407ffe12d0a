"""Composing datasets keeps every group and its provenance, and refuses whatever does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.datasets.artifact import read_cases, read_lines
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.datasets.naming import named_dataset

from .conftest import Prepare


def test_groups_stay_whole_in_the_catalogues_order(
    store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare
) -> None:
    mmlu, gpqa = prepare_mmlu(sample_data="own"), prepare_gpqa()
    both = combine(store, [gpqa, mmlu])
    assert both.benchmarks == ("mmlu-pro", "gpqa-diamond")
    assert both.case_count == 540
    assert read_lines(both.path, both.sha256) == [
        *read_lines(mmlu.path, mmlu.sha256),
        *read_lines(gpqa.path, gpqa.sha256),
    ]
    assert both.sources == {**mmlu.sources, **gpqa.sources}
    assert both.case_sha256 == {**mmlu.case_sha256, **gpqa.case_sha256}
    assert both.preparation.components == (mmlu.id, gpqa.id)
    assert both.sample_data == "own"
    assert combine(store, [mmlu, gpqa]).id == both.id
    assert len(read_cases(both.path, both.sha256, "gpqa-diamond")) == 40


def test_one_whole_part_keeps_its_identity_and_a_subset_gets_its_own(
    store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare
) -> None:
    mmlu, gpqa = prepare_mmlu(), prepare_gpqa()
    both = combine(store, [mmlu, gpqa])
    assert combine(store, [mmlu]) == mmlu
    assert combine(store, [both, mmlu]).id == both.id
    only = combine(store, [both], only=["gpqa-diamond"])
    assert only.id not in (both.id, gpqa.id)
    assert only.sha256 == gpqa.sha256


def test_conflicts_are_named(store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare) -> None:
    quick = prepare_mmlu()
    conflicts = {
        "profile_conflict": prepare_gpqa(profile="smoke"),
        "seed_conflict": prepare_gpqa(seed=5),
        "source_conflict": prepare_mmlu(revision="v2"),
        "selection_conflict": prepare_mmlu(limit=10),
    }
    for code, other in conflicts.items():
        with pytest.raises(SrBenchError) as caught:
            combine(store, [quick, other])
        assert caught.value.code == code
        assert caught.value.mend


def test_a_manifest_file_is_as_good_as_an_id(store: Store, prepare_mmlu: Prepare, tmp_path: Path) -> None:
    import json

    manifest = prepare_mmlu(profile="smoke")
    printed = tmp_path / "quick.json"
    printed.write_text(json.dumps(manifest.as_dict()))
    assert named_dataset(store, str(printed)) == manifest == named_dataset(store, manifest.id[:9])
    printed.write_text(json.dumps({**manifest.as_dict(), "sha256": "0" * 64}))
    with pytest.raises(IntegrityError, match="another dataset"):
        named_dataset(store, str(printed))
    printed.write_text("[]")
    with pytest.raises(SrBenchError, match="no dataset manifest"):
        named_dataset(store, str(printed))
    with pytest.raises(NotFound):
        named_dataset(store, str(tmp_path / "absent.json"))
