"""Named history: reserved whole, subtracted once, exact or refused, and never between different sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.datasets import exclusions
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, read_cases
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.datasets.exclusions import Reference, Snapshot, compile_snapshot, read_snapshot

from .conftest import Prepare


def named(*manifests: DatasetManifest) -> Snapshot:
    return compile_snapshot([Reference("dataset", m.id, m.id, m) for m in manifests])


def written(snapshot: Snapshot, folder: Path) -> str:
    path = folder / f"{snapshot.snapshot_sha256[:8]}.json"
    path.write_text(json.dumps(snapshot.as_dict()))
    return str(path)


def ids(manifest: DatasetManifest) -> list[str]:
    return [case.id for case in read_cases(manifest.path, manifest.sha256)]


def test_a_snapshot_holds_hashes_and_provenance_and_no_text(prepare_mmlu: Prepare) -> None:
    quick = prepare_mmlu(source_partition="test")
    snapshot = named(quick)
    family = snapshot.families["mmlu-pro"]
    assert family.count == len(family.tasks) == 500
    assert family.source.source_partition == "test"
    assert family.source.files_sha256 == quick.sources["mmlu-pro"].files_sha256
    text = json.dumps(snapshot.as_dict())
    assert quick.id in text
    for case in read_cases(quick.path, quick.sha256)[:50]:
        assert case.input["question"] not in text
        assert case.id not in text
        assert case.identity is not None
        assert case.identity["task_identity_sha256"] in family.tasks
    assert named(quick) == snapshot


def test_standard_leaves_out_the_union_of_quick_and_history_once(
    prepare_mmlu: Prepare, tmp_path: Path
) -> None:
    partition = {"source_partition": "test"}
    quick = prepare_mmlu(**partition)
    other_seed = prepare_mmlu(seed=1, **partition)
    plain = prepare_mmlu(profile="standard", limit=1500, **partition)
    snapshot = named(quick, other_seed)
    holdout = prepare_mmlu(
        profile="standard",
        limit=1500,
        exclusion_snapshot=written(snapshot, tmp_path),
        evaluation_role="holdout",
        **partition,
    )
    history = set(ids(quick)) | set(ids(other_seed))
    assert len(ids(holdout)) == 1500
    assert not set(ids(holdout)) & history
    # The order is that of the plain selection, only with the named tasks passed over.
    kept = [case_id for case_id in ids(plain) if case_id not in history]
    assert ids(holdout)[: len(kept)] == kept
    record = holdout.exclusions["mmlu-pro"]
    assert record.snapshot_sha256 == snapshot.snapshot_sha256
    assert record.quick == 500
    assert record.history == len(history)
    assert record.excluded == len(history)
    assert record.remaining == 3000 - len(history)
    assert holdout.evaluation_roles == {"mmlu-pro": "holdout"}
    assert "finite local claim" in holdout.disclosures[0]
    assert holdout.id != plain.id


def test_a_shortfall_is_an_error_with_numbers_and_publishes_nothing(
    store: Store, prepare_mmlu: Prepare, tmp_path: Path
) -> None:
    quick = prepare_mmlu(source_partition="test")
    standard = prepare_mmlu(profile="standard", source_partition="test")
    snapshot = written(named(quick, standard), tmp_path)
    before = len(list_datasets(store))
    with pytest.raises(SrBenchError) as caught:
        prepare_mmlu(profile="standard", source_partition="test", exclusion_snapshot=snapshot)
    for number in ("2000", "3000", "500"):
        assert number in caught.value.message
    assert len(list_datasets(store)) == before
    retest = prepare_mmlu(profile="standard", source_partition="test", evaluation_role="retest")
    assert retest.evaluation_roles == {"mmlu-pro": "retest"}
    assert ids(retest) == ids(standard)


def test_gpqa_is_exhausted_by_its_quick_history_and_retest_is_explicit(
    prepare_gpqa: Prepare, tmp_path: Path
) -> None:
    quick = prepare_gpqa(source_partition="diamond")
    snapshot = written(named(quick), tmp_path)
    fits = prepare_gpqa(profile="standard", source_partition="diamond", exclusion_snapshot=snapshot)
    assert fits.exclusions["gpqa-diamond"].excluded == 40
    everything = prepare_gpqa(profile="standard", source_partition="diamond")
    snapshot = written(named(quick, everything), tmp_path)
    with pytest.raises(SrBenchError, match="158"):
        prepare_gpqa(profile="standard", source_partition="diamond", exclusion_snapshot=snapshot)
    retest = prepare_gpqa(profile="standard", evaluation_role="retest")
    assert "explicit retest" in retest.disclosures[0]


def test_other_sources_revisions_and_partitions_never_match(prepare_mmlu: Prepare, tmp_path: Path) -> None:
    snapshot = written(named(prepare_mmlu(source_partition="test")), tmp_path)
    for changes in ({"source_partition": "dev"}, {"source_partition": "test", "revision": "v2"}):
        with pytest.raises(SrBenchError) as caught:
            prepare_mmlu(profile="standard", exclusion_snapshot=snapshot, **changes)
        assert caught.value.code == "source_conflict"
    with pytest.raises(SrBenchError) as caught:
        named(prepare_mmlu(source_partition="test"), prepare_mmlu(source_partition="dev"))
    assert caught.value.code == "source_conflict"


def test_artifacts_without_identity_support_no_claim(prepare_mmlu: Prepare) -> None:
    with pytest.raises(SrBenchError) as caught:
        named(prepare_mmlu())
    assert caught.value.code == "no_task_identity"
    assert "--source-partition" in (caught.value.mend or "")


def test_a_combined_set_keeps_the_provenance_and_can_be_named(
    store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare, tmp_path: Path
) -> None:
    snapshot = named(prepare_mmlu(source_partition="test"))
    mmlu = prepare_mmlu(
        profile="standard", source_partition="test", exclusion_snapshot=written(snapshot, tmp_path)
    )
    gpqa = prepare_gpqa(profile="standard", source_partition="diamond", evaluation_role="retest")
    both = combine(store, [mmlu, gpqa])
    assert both.exclusions == mmlu.exclusions
    assert both.evaluation_roles == {"mmlu-pro": "holdout", "gpqa-diamond": "retest"}
    assert set(both.disclosures) == {*mmlu.disclosures, *gpqa.disclosures}
    assert {name: family.count for name, family in named(both).families.items()} == {
        "gpqa-diamond": 158,
        "mmlu-pro": 2000,
    }


def test_snapshots_are_bounded_and_verified(
    prepare_mmlu: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = prepare_mmlu(source_partition="test")
    path = Path(written(named(quick), tmp_path))
    path.write_text(path.read_text().replace('"count": 500', '"count": 499'))
    with pytest.raises(IntegrityError, match="changed after"):
        read_snapshot(path)
    path.write_text("{}")
    with pytest.raises(SrBenchError, match="no exclusion snapshot"):
        read_snapshot(path)
    with pytest.raises(NotFound):
        read_snapshot(tmp_path / "absent.json")
    with pytest.raises(SrBenchError, match="No history was named"):
        compile_snapshot([])
    for bound, value in (("MAX_TASKS", 499), ("MAX_REFERENCE_BYTES", 10), ("MAX_REFERENCES", 0)):
        with monkeypatch.context() as bounded:
            bounded.setattr(exclusions, bound, value)
            with pytest.raises(SrBenchError) as caught:
                named(quick)
            assert caught.value.code == "too_large"
    monkeypatch.setattr(exclusions, "MAX_SNAPSHOT_BYTES", 1)
    with pytest.raises(SrBenchError, match="larger than"):
        read_snapshot(path)
