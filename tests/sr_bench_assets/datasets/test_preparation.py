"""From a source file to a published selection: counts, labels, and every refusal before anything is published."""

from __future__ import annotations

import csv
import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from resources.errors import NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import PROFILES
from sr_bench_assets.datasets import requirements
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, read_cases
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest

from .conftest import Prepare, mmlu_rows


def ids(manifest: DatasetManifest) -> list[str]:
    return [case.id for case in read_cases(manifest.path, manifest.sha256)]


def test_smoke_is_in_quick_and_standard_is_apart(prepare_mmlu: Prepare) -> None:
    smoke, quick, standard = (ids(prepare_mmlu(profile=profile)) for profile in PROFILES)
    assert (len(smoke), len(quick), len(standard)) == (14, 500, 2000)
    assert quick[:14] == smoke
    assert not set(quick) & set(standard)


def test_the_manifest_says_what_was_chosen_from_what(prepare_mmlu: Prepare, mmlu_file: Path) -> None:
    manifest = prepare_mmlu(profile="standard", seed=7)
    assert (manifest.profile, manifest.split, manifest.seed) == ("standard", "holdout", 7)
    assert manifest.benchmarks == ("mmlu-pro",)
    assert manifest.counts == {"mmlu-pro": 2000}
    assert not manifest.custom_subset
    source = manifest.sources["mmlu-pro"]
    assert (source.kind, source.url, source.revision) == ("local", "local:questions.jsonl", "v1")
    assert source.files[0].size == mmlu_file.stat().st_size
    assert source.normalizer_version
    assert source.licence
    selection = manifest.selection["mmlu-pro"]
    assert selection.source_cases == 3000
    assert sum(selection.strata.values()) == 2000


def test_a_limit_is_a_labelled_prefix(prepare_mmlu: Prepare) -> None:
    whole, part = prepare_mmlu(profile="quick"), prepare_mmlu(profile="quick", limit=20)
    assert ids(part) == ids(whole)[:20]
    assert part.custom_subset
    assert part.selection["mmlu-pro"].limit == 20
    assert prepare_mmlu(profile="quick", limit=500).id == whole.id
    with pytest.raises(SrBenchError, match="501"):
        prepare_mmlu(profile="quick", limit=501)


def test_sample_data_are_labelled_in_every_layer(prepare_mmlu: Prepare) -> None:
    manifest = prepare_mmlu(profile="smoke", sample_data="made for this test")
    assert manifest.sample_data == "made for this test"
    assert manifest.sources["mmlu-pro"].sample_data == "made for this test"
    assert "Apache" not in manifest.sources["mmlu-pro"].licence


def test_too_few_tasks_state_both_numbers(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in mmlu_rows(350)))
    request = PreparationRequest(
        benchmarks=("mmlu-pro",), profile="quick", source_path=str(path), revision="v1"
    )
    with pytest.raises(SrBenchError) as caught:
        prepare(store, request)
    assert "500" in caught.value.message
    assert "350" in caught.value.message
    assert caught.value.mend
    assert list_datasets(store) == []
    small = prepare(store, request.model_copy(update={"limit": 300}))
    assert small.case_count == 300
    assert small.custom_subset


def test_parquet_csv_and_json_lines_give_the_same_cases(
    store: Store, mmlu_file: Path, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = mmlu_rows(3000)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "questions.parquet")
    with (tmp_path / "questions.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"options": json.dumps(row["options"])} for row in rows)
    made = [
        prepare(
            store,
            PreparationRequest(
                benchmarks=("mmlu-pro",), profile="smoke", source_path=str(path), revision="v1"
            ),
        )
        for path in (mmlu_file, tmp_path / "questions.parquet", tmp_path / "questions.csv")
    ]
    assert len({manifest.sha256 for manifest in made}) == 1
    assert len({manifest.id for manifest in made}) == 3


def test_an_unknown_benchmark_is_refused_with_the_known_ones(store: Store) -> None:
    with pytest.raises(NotFound) as caught:
        prepare(store, PreparationRequest(benchmarks=("mmlu",), profile="smoke"))
    assert "mmlu-pro" in (caught.value.mend or "")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"revision": None}, "--revision"),
        ({"source_path": None}, "--source-path"),
        ({"benchmarks": ("mmlu-pro", "gpqa-diamond")}, "--benchmark"),
        ({"source_path": None, "revision": None, "sample_data": "x"}, "--sample-data"),
        ({"exclusion_snapshot": "h.json", "profile": "standard"}, "--source-partition"),
        ({"exclusion_snapshot": "h.json", "source_partition": "test"}, "--exclusion-snapshot"),
        ({"evaluation_role": "holdout", "profile": "standard"}, "--evaluation-role"),
        ({"source_partition": "two words"}, "--source-partition"),
        ({"sample_data": " "}, "--sample-data"),
        ({"sample_data": "x" * 201}, "--sample-data"),
        ({"limit": 501}, "limit"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    prepare_mmlu: Prepare, changes: dict[str, object], field: str
) -> None:
    with pytest.raises(SrBenchError) as caught:
        prepare_mmlu(**changes)
    assert caught.value.field == field
    assert caught.value.mend


def test_progress_names_its_stages(
    store: Store, mmlu_file: Path, prepare_gpqa: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    request = PreparationRequest(
        benchmarks=("mmlu-pro",), profile="smoke", source_path=str(mmlu_file), revision="v1"
    )
    prepare(store, request, lambda stage, what, done, total: told.append((stage, what)))
    assert [stage for stage, _ in told] == ["install", "freeze"]
    assert told[0][1].startswith("orjson ")

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(requirements, "version", absent)
    with pytest.raises(NotFound, match="orjson, which reads this source, is not installed") as caught:
        prepare_gpqa()
    assert caught.value.code == "missing_package"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "")
    told.clear()
    with pytest.raises(NotFound, match="git is not installed"):
        prepare(store, PreparationRequest(benchmarks=("tau3",), profile="smoke"))
