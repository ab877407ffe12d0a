"""No reference answer or hidden test in anything that a client can obtain about a dataset.

Every command that speaks of datasets is run, as JSON and as a terminal shows it, then all of Dagster's history is read:
none of the labels may occur in any of it. The labels are long and unique, so finding one is no accident.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dagster import DagsterInstance

from cli.main import app
from cli.output import Ctx, show_error
from resources.canonical import sha256_bytes
from resources.errors import IntegrityError, SrBenchError
from resources.store import Store
from sensors.lineage import record_artifacts
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, read_cases
from sr_bench_assets.definitions import defs
from sr_bench_assets.jobs import PREPARATION_JOB
from sr_bench_assets.partitions import partition_key
from tests.planning import PRICE, manifest_document, single
from tests.sr_bench_assets.benchmarks import small_sources
from tests.sr_bench_assets.benchmarks.small_sources import LABEL

Obtain = Callable[..., str]


def answer(number: int) -> str:
    return f"known {hashlib.sha256(f'answer {number}'.encode()).hexdigest()[:16]}"


def grid(number: int) -> list[list[int]]:
    digits = hashlib.sha256(f"grid {number}".encode()).digest()
    return [[byte % 10 for byte in digits[row * 8 : row * 8 + 8]] for row in range(4)]


KNOWN = [answer(number) for number in range(60)]
GRIDS = [json.dumps(grid(number), separators=(",", ":")) for number in range(10)]


def simpleqa(root: Path) -> None:
    with (root / "simpleqa_verified.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["original_index", "problem", "answer", "topic", "urls"])
        writer.writerows([n, f"Who was number {n}?", KNOWN[n], f"topic {n % 3}", LABEL] for n in range(60))


def arc(root: Path) -> None:
    folder = root / "data" / "evaluation"
    folder.mkdir(parents=True)
    for number in range(10):
        pair = {"input": [[1, 2]], "output": [[2, 1]]}
        puzzle = {"train": [pair], "test": [{"input": [[3, number]], "output": grid(number)}]}
        (folder / f"task{number}.json").write_text(json.dumps(puzzle))


WRITERS: dict[str, Callable[[Path], Any]] = {
    **small_sources.SOURCES,
    "simpleqa-verified": simpleqa,
    "arc-agi-2": arc,
}
LIMITS = {"simpleqa-verified": 60, "arc-agi-2": 10}


@pytest.fixture
def obtain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Obtain:
    """`obtain("dataset", "show")`: all that the command says, as JSON and as a terminal shows it."""
    monkeypatch.setenv("SR_BENCH_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(Ctx, "wants_json", property(lambda self: self.json))
    runner = CliRunner()

    def command(*arguments: str) -> str:
        said: list[str] = []
        for flags in (["--json"], []):
            done = runner.invoke(app, [*flags, *arguments], standalone_mode=False)
            said.append(done.output)
            if isinstance(done.exception, SrBenchError):
                error = done.exception
                said.append(json.dumps(error.as_dict()))
                said.append(f"{error!r} {error.__cause__!r} {error.__context__!r}")
                with monkeypatch.context() as shown:
                    lines: list[str] = []
                    shown.setattr("cli.output.say", lines.append)
                    show_error(error, as_json=False)
                    said += lines
            elif done.exception is not None:
                raise done.exception
        return "\n".join(said)

    return command


def prepare_all(obtain: Obtain, tmp_path: Path) -> tuple[list[str], Store]:
    """Import every benchmark; what the commands said, and the store."""
    said: list[str] = []
    for benchmark, write in WRITERS.items():
        root = tmp_path / "sources" / benchmark
        root.mkdir(parents=True)
        write(root)
        size = LIMITS.get(benchmark, 1)
        said.append(
            obtain(
                *("dataset", "prepare", "--local", "--benchmark", benchmark, "--revision", "v1"),
                *("--profile", "quick" if size > 1 else "smoke"),
                *("--limit", str(size), "--source-path", str(root), "--source-partition", "test"),
            )
        )
    return said, Store.open(tmp_path / "store")


def leaks(said: str) -> list[str]:
    dense = "".join(said.split())
    return [label for label in (LABEL, *KNOWN) if label in said] + [grid for grid in GRIDS if grid in dense]


def test_no_command_tells_a_label(obtain: Obtain, tmp_path: Path) -> None:
    said, store = prepare_all(obtain, tmp_path)
    manifests = {manifest.benchmarks[0]: manifest for manifest in list_datasets(store)}
    assert len(manifests) == 9
    held = "".join(Path(manifest.path).read_text() for manifest in manifests.values())
    assert len(leaks(held)) >= 50  # the scan would find them: the store itself holds them
    for manifest in manifests.values():
        said.append(obtain("dataset", "show", manifest.id))
        pages = -(-manifest.case_count // 25)
        for page in range(1, pages + 1):
            said.append(obtain("dataset", "show", manifest.id, "--questions", "--page", str(page)))
        said.append(obtain("dataset", "exclusions", "--dataset", manifest.id))
        assert read_cases(manifest.path, manifest.sha256)[0].id in said[-1 - pages]
    for word in (LABEL, KNOWN[3], GRIDS[0]):
        for manifest in manifests.values():
            found = obtain("--json", "dataset", "show", manifest.id, "--questions", "--search", word)
            assert '"matching": 0' in found
    smoke = [manifest.id for manifest in manifests.values() if manifest.profile == "smoke"]
    said.append(obtain("dataset", "combine", *smoke))
    assert '"method": "combine"' in said[-1]
    said += [obtain("dataset", name) for name in ("show", "options", "preparations")]
    said.append(obtain("catalog"))
    document = manifest_document(
        manifests["simpleqa-verified"],
        targets=[single()],
        auxiliary_targets={"judge": {**single("judge"), "prices": {"small-1": PRICE}}},
        benchmark_options={"simpleqa-verified": {"grader_version": "sr-bench-reference-judge-v1"}},
    )
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    said.append(obtain("plan", "--manifest", str(tmp_path / "manifest.json")))
    assert "plan_sha256" in said[-1]
    assert leaks("\n".join(said)) == []


def test_no_error_about_a_broken_source_tells_a_label(obtain: Obtain, tmp_path: Path) -> None:
    rows = {
        "mmlu-pro": {**small_sources.MMLU_ROW, "answer": KNOWN[0]},
        "livecodebench": {**small_sources.LCB_ROW, "private_test_cases": KNOWN[1]},
        "scicode": {**small_sources.SCICODE_ROW, "sub_steps": [{"test_cases": KNOWN[2]}]},
    }
    said: list[str] = []
    for benchmark, row in rows.items():
        root = tmp_path / benchmark
        root.mkdir()
        names = [f"test{n}.jsonl" for n in ("", 2, 3, 4, 5, 6)] if benchmark == "livecodebench" else []
        for name in names or ["problems_test.jsonl"]:
            (root / name).write_text(json.dumps({**row, "question_id": name}) + "\n")
        path = root if benchmark != "mmlu-pro" else root / "problems_test.jsonl"
        said.append(
            obtain(
                *("dataset", "prepare", "--local", "--benchmark", benchmark, "--profile", "smoke"),
                *("--limit", "1", "--source-path", str(path), "--revision", "v1"),
            )
        )
        assert "source_path" in said[-1]
    assert leaks("\n".join(said)) == []


def test_a_damaged_line_is_named_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"id": 1, "reference": {"answer": KNOWN[0]}}) + "\n")
    with pytest.raises(IntegrityError) as caught:
        read_cases(path, sha256_bytes(path.read_bytes()))
    # Dagster keeps an error with its cause, and that of a validation quotes its input.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert leaks(caught.value.message) == []


def materialize(store: Store, manifest: DatasetManifest, instance: DagsterInstance) -> None:
    result = defs.resolve_job_def(PREPARATION_JOB).execute_in_process(
        partition_key=partition_key(manifest.benchmarks[0], manifest.profile),
        instance=instance,
        run_config={
            "resources": {"store": {"config": {"path": str(store.root)}}, "run_scope": {"config": {}}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
    )
    assert result.success


def test_nothing_in_dagsters_history_tells_a_label(obtain: Obtain, tmp_path: Path) -> None:
    _, store = prepare_all(obtain, tmp_path)
    manifests = list_datasets(store)
    with DagsterInstance.ephemeral() as instance:
        for manifest in manifests:
            materialize(store, manifest, instance)
        record_artifacts(store, instance)
        events = "\n".join(
            str(entry) for run in instance.get_runs() for entry in instance.all_logs(run.run_id)
        )
    assert "categories" in events
    assert leaks(events) == []
