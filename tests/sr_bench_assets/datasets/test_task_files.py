"""Agent tasks are shown whole where their source is at hand; solutions, tests and criteria never."""

from __future__ import annotations

import json
from pathlib import Path

from resources.store import Store
from sr_bench_assets.datasets.browse import questions_page
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest
from tests.sr_bench_assets.benchmarks import small_sources
from tests.sr_bench_assets.benchmarks.small_sources import LABEL


def page(store: Store, benchmark: str, source: Path) -> dict:
    request = PreparationRequest(
        benchmarks=(benchmark,), profile="smoke", limit=1, source_path=str(source), revision="v1"
    )
    manifest = prepare(store, request)
    return questions_page(manifest, store=store)


def test_a_terminal_task_comes_with_its_environment(store: Store, tmp_path: Path) -> None:
    small_sources.terminal_bench(tmp_path / "checkout")
    (task,) = page(store, "terminal-bench-2.1", tmp_path / "checkout")["questions"]
    (file,) = task["files"]
    assert file["name"].endswith("/environment/Dockerfile")
    assert (file["text"], file["note"]) == ("FROM scratch\n", None)
    assert LABEL not in json.dumps(task)


def test_other_bytes_than_the_datasets_are_not_shown(store: Store, tmp_path: Path) -> None:
    small_sources.terminal_bench(tmp_path / "checkout")
    shown = page(store, "terminal-bench-2.1", tmp_path / "checkout")
    name = shown["questions"][0]["files"][0]["name"]
    path = tmp_path / "checkout" / name

    def now() -> tuple[str | None, str | None]:
        from sr_bench_assets.datasets.artifact import load_manifest

        again = questions_page(load_manifest(store, shown["dataset_id"]), store=store)
        return again["questions"][0]["files"][0]["text"], again["questions"][0]["files"][0]["note"]

    solution = path.parents[1] / "solution" / "solve.sh"
    path.write_bytes(solution.read_bytes())
    assert now() == (None, "the file changed since the dataset was prepared")
    path.unlink()
    path.symlink_to(solution)
    assert now() == (None, "a symbolic link")
    path.unlink()
    assert now() == (None, "the file is no longer where the source was read")
    (tmp_path / "checkout").rename(tmp_path / "elsewhere")
    assert now() == (None, "the source is not on this machine")


def test_binary_and_long_files_say_so(store: Store, tmp_path: Path) -> None:
    small_sources.terminal_bench(tmp_path / "checkout")
    for task in ("repair-a", "repair-b"):
        environment = tmp_path / "checkout" / "tasks" / task / "environment"
        (environment / "data.bin").write_bytes(b"\xff\x00\x01")
        (environment / "long.txt").write_text("x" * 70_000)
    (task,) = page(store, "terminal-bench-2.1", tmp_path / "checkout")["questions"]
    notes = {file["name"].rsplit("/", 1)[1]: file["note"] for file in task["files"]}
    assert notes == {
        "Dockerfile": None,
        "data.bin": "no text",
        "long.txt": "the first 65536 of 70000 characters",
    }


def test_a_conversation_comes_with_its_policy_and_without_its_criteria(store: Store, tmp_path: Path) -> None:
    small_sources.tau3(tmp_path / "checkout")
    for domain in ("airline", "retail"):
        (tmp_path / "checkout/data/tau2/domains" / domain / "policy.md").write_text("Be kind.")
    (task,) = page(store, "tau3", tmp_path / "checkout")["questions"]
    assert task["input"]["user_scenario"]["instructions"]["reason_for_call"] == "You want a refund."
    assert [file["text"] for file in task["files"]] == ["Be kind."]
    assert LABEL not in json.dumps(task)


def test_other_tasks_have_no_files(store: Store, tmp_path: Path) -> None:
    small_sources.scicode(tmp_path / "source")
    (task,) = page(store, "scicode", tmp_path / "source")["questions"]
    assert task["files"] == []
