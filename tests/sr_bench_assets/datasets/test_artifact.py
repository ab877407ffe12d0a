"""A prepared dataset is published once, whole, and any change of it is noticed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from resources.canonical import sha256_bytes
from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.store import Store
from sr_bench_assets.datasets import artifact
from sr_bench_assets.datasets.artifact import (
    list_datasets,
    load_manifest,
    manifest_beside,
    publish,
    read_cases,
    read_lines,
)

from .conftest import Prepare


def test_the_files_have_the_stated_hashes_and_are_private(store: Store, prepare_mmlu: Prepare) -> None:
    manifest = prepare_mmlu(profile="smoke")
    path = Path(manifest.path)
    assert path.is_absolute()
    assert sha256_bytes(path.read_bytes()) == manifest.sha256
    assert manifest.case_count == len(read_cases(path, manifest.sha256)) == 14
    for file in (path, path.with_name("manifest.json")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_manifest(store, manifest.id[:10]) == manifest == manifest_beside(path)
    assert json.loads(path.with_name("manifest.json").read_bytes())["id"] == manifest.id


def test_lines_are_canonical_and_hold_no_machine_path(
    store: Store, prepare_mmlu: Prepare, tmp_path: Path
) -> None:
    manifest = prepare_mmlu(profile="smoke")
    for line in read_lines(manifest.path, manifest.sha256):
        document = json.loads(line)
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert line == canonical.encode() + b"\n"
        assert "identity" not in document
    stored = Path(manifest.path).with_name("manifest.json").read_text()
    assert str(tmp_path) not in stored


def test_the_same_preparation_is_the_same_dataset_also_in_another_store(
    prepare_mmlu: Prepare, store: Store, tmp_path: Path
) -> None:
    first = prepare_mmlu(profile="smoke")
    assert prepare_mmlu(profile="smoke") == first
    assert len(list_datasets(store)) == 1
    moved = tmp_path / "moved"
    shutil.copytree(store.root, moved)
    again = load_manifest(Store.open(moved), first.id)
    assert again.id == first.id
    assert again.path != first.path


def test_new_bytes_seed_or_selection_make_a_new_identity(
    prepare_mmlu: Prepare, mmlu_file: Path, tmp_path: Path
) -> None:
    appended = tmp_path / "questions.jsonl"
    shutil.copy(mmlu_file, appended)
    row = json.loads(mmlu_file.read_text().splitlines()[0]) | {"question_id": 99999}
    with appended.open("a") as stream:
        stream.write(json.dumps(row) + "\n")
    made = [
        prepare_mmlu(profile="smoke"),
        prepare_mmlu(profile="smoke", seed=1),
        prepare_mmlu(profile="smoke", limit=3),
        prepare_mmlu(profile="smoke", revision="v2"),
        prepare_mmlu(profile="smoke", source_path=str(appended)),
        prepare_mmlu(profile="smoke", source_partition="test"),
        prepare_mmlu(profile="smoke", sample_data="mine"),
    ]
    assert len({manifest.id for manifest in made}) == len(made)


def test_a_changed_byte_is_noticed_wherever_the_file_is_read(store: Store, prepare_mmlu: Prepare) -> None:
    manifest = prepare_mmlu(profile="smoke")
    path = Path(manifest.path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"answer":"B"', b'"answer":"C"', 1))
    with pytest.raises(IntegrityError) as caught:
        read_cases(path, manifest.sha256)
    assert caught.value.code == "changed_dataset"
    with pytest.raises(IntegrityError):
        prepare_mmlu(profile="smoke")
    path.write_bytes(data)
    description = path.with_name("manifest.json")
    description.write_text(description.read_text().replace('"seed": 20260918', '"seed": 7'))
    with pytest.raises(IntegrityError, match="was changed"):
        load_manifest(store, manifest.id)


def test_duplicate_case_ids_are_refused(store: Store, prepare_mmlu: Prepare) -> None:
    manifest = prepare_mmlu(profile="smoke")
    lines = read_lines(manifest.path, manifest.sha256)
    facts = manifest.model_dump(exclude={"id", "path", "sha256", "case_count", "version"})
    with pytest.raises(SrBenchError, match="occurs twice") as caught:
        publish(store, [*lines, lines[0]], facts)
    assert caught.value.code == "duplicate_case"


def test_a_full_disk_publishes_nothing(store: Store, prepare_mmlu: Prepare, tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(Unavailable) as caught:
            prepare_mmlu(profile="quick")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.code == "disk_full"
    assert list_datasets(store) == []
    assert list(store.datasets_dir.iterdir()) == []
    assert prepare_mmlu(profile="quick").case_count == 500


def test_a_kill_in_the_middle_of_a_freeze_publishes_nothing(
    store: Store, prepare_mmlu: Prepare, mmlu_file: Path
) -> None:
    script = f"""
import os, signal
from resources.store import Store
from sr_bench_assets.datasets import artifact
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest
artifact._rename_once = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
request = PreparationRequest(
    benchmarks=("mmlu-pro",), profile="smoke", source_path={str(mmlu_file)!r}, revision="v1"
)
prepare(Store.open({str(store.root)!r}), request)
"""
    killed = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = store.datasets_dir.iterdir()
    assert list_datasets(store) == []
    with pytest.raises(NotFound):
        load_manifest(store, left.name)
    os.utime(left, (0, 0))
    made = prepare_mmlu(profile="smoke")
    assert [path.name for path in store.datasets_dir.iterdir()] == [made.id]


def test_what_is_not_there_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no dataset abc"):
        load_manifest(store, "abc")
    with pytest.raises(NotFound, match="There is no file"):
        read_cases(tmp_path / "cases.jsonl", "0" * 64)
    (tmp_path / artifact.MANIFEST_FILE).write_text('{"id": 1}')
    with pytest.raises(IntegrityError, match="no dataset manifest of this version"):
        manifest_beside(tmp_path / "cases.jsonl")
