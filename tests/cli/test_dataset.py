"""`sr-bench dataset` as people use it: real processes, a real hub on loopback, a store that is scanned afterwards."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from sr_bench_assets.benchmarks import gpqa_diamond, mmlu_pro
from sr_bench_assets.benchmarks.contract import HubSource
from tests.servers.hub import HubServer

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "hf_loopback_token_value"
Command = Callable[..., subprocess.CompletedProcess[str]]


def mmlu_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "question_id": number,
            "question": f"What is {number} + 1?",
            "options": [str(number + shift) for shift in (3, 1, 7, 2)],
            "answer": "B",
            "category": f"subject {number % 14}",
        }
        for number in range(3000)
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


def gpqa_csv() -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        ["Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)), "Subdomain"]
    )
    for number in range(198):
        writer.writerow(
            [f"Which number follows {number}?", number + 1, number, number + 2, number + 3, number % 5]
        )
    return text.getvalue().encode()


def pinned(source: object) -> HubSource:
    assert isinstance(source, HubSource)
    return source


@pytest.fixture
def hub() -> Iterator[HubServer]:
    mmlu, gpqa = pinned(mmlu_pro.BENCHMARK.source), pinned(gpqa_diamond.BENCHMARK.source)
    repos = {
        mmlu.repo_id: {mmlu.revision: {mmlu.files[0]: mmlu_parquet()}},
        gpqa.repo_id: {gpqa.revision: {gpqa.files[0]: gpqa_csv()}},
    }
    with HubServer(repos, gated={gpqa.repo_id: TOKEN}) as server:
        yield server


@pytest.fixture
def environment(hub: HubServer, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "SR_BENCH_"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "SR_BENCH_STORE": str(tmp_path / "store"),
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf"),
    }


@pytest.fixture
def dataset(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`dataset("show", "--questions", HF_TOKEN=…)`: one command as the entry point runs it, its output captured.

    It runs in this process, which saves a second of imports; the workers that it starts are processes of their own.
    """
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        command = ["sr-bench", "--json", "dataset", *arguments]
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", command)
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            for name, value in extra.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        texts = (stream.buffer.getvalue().decode() for stream in (out, err))
        return subprocess.CompletedProcess(command, int(ended.value.code or 0), *texts)

    return run


@pytest.fixture
def dataset_process(environment: dict[str, str], tmp_path: Path) -> Command:
    """As `dataset`, in a process of its own."""

    def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cli.main", "--json", "dataset", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**environment, **extra},
            timeout=60,
            check=False,
        )

    return run


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return json.loads(done.stderr.strip().splitlines()[-1])["error"]


def test_a_collection_reuses_what_is_there_and_downloads_the_rest(
    dataset: Command, hub: HubServer, tmp_path: Path
) -> None:
    mmlu = document(dataset("prepare", "--benchmark", "mmlu-pro", "--profile", "quick"))
    assert mmlu["sources"]["mmlu-pro"]["kind"] == "hub"
    assert Path(mmlu["path"]).is_absolute()
    requests = len(hub.seen)
    assert document(dataset("prepare", "--benchmark", "mmlu-pro", "--profile", "quick")) == mmlu
    assert len(hub.seen) == requests

    both = ("prepare", "--benchmark", "mmlu-pro", "--benchmark", "gpqa-diamond", "--profile", "quick")
    refused = dataset(*both)
    assert refused.returncode == 4
    assert error(refused)["code"] == "gated"
    (failed, *_) = document(dataset("preparations"))
    assert (failed["status"], failed["error"]["code"]) == ("failed", "gated")
    combined = document(dataset("preparations", failed["id"], "--retry", HF_TOKEN=TOKEN))
    assert combined["benchmarks"] == ["mmlu-pro", "gpqa-diamond"]
    assert combined["case_count"] == 540
    assert combined["case_sha256"]["mmlu-pro"] == mmlu["case_sha256"]["mmlu-pro"]
    assert len([seen for seen in hub.gets(".parquet") if "/storage/" in seen.path]) == 1
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in held if TOKEN.encode() in path.read_bytes()]


def test_a_changed_byte_is_refused_and_leaves_no_dataset(dataset: Command, hub: HubServer) -> None:
    name = pinned(mmlu_pro.BENCHMARK.source).files[0]
    hub.faults.changed_byte.add(name)
    refused = dataset("prepare", "--benchmark", "mmlu-pro", "--profile", "smoke")
    assert refused.returncode == 2
    assert error(refused)["code"] == "changed_source"
    assert document(dataset("show")) == []


def test_no_wait_returns_the_job_which_goes_on_by_itself(
    dataset: Command, dataset_process: Command, hub: HubServer
) -> None:
    hub.faults.delay_s = 0.5
    job = document(dataset_process("prepare", "--benchmark", "mmlu-pro", "--profile", "smoke", "--no-wait"))
    assert job["status"] == "queued"
    deadline = time.monotonic() + 30
    while (state := document(dataset("preparations", job["id"])))["status"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert state["status"] == "completed"
    assert document(dataset("show", state["dataset_id"]))["case_count"] == 14


def test_interrupting_the_wait_does_not_end_the_preparation(
    dataset: Command, environment: dict[str, str], hub: HubServer
) -> None:
    hub.faults.delay_s = 1.0
    command = [
        sys.executable,
        "-m",
        "cli.main",
        "dataset",
        "prepare",
        "--benchmark",
        "mmlu-pro",
        "--profile",
        "smoke",
    ]
    waiting = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not hub.gets(".parquet"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    waiting.send_signal(signal.SIGINT)
    _, told = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert "goes on" in told
    while (state := document(dataset("preparations"))[0])["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert state["status"] == "completed"


def test_a_killed_worker_is_a_failed_job_that_can_be_retried(
    dataset: Command, environment: dict[str, str], hub: HubServer
) -> None:
    import sqlite3

    hub.faults.delay_s = 3.0
    job = document(dataset("prepare", "--benchmark", "mmlu-pro", "--profile", "smoke", "--no-wait"))
    journal = Path(environment["SR_BENCH_STORE"]) / "journal.sqlite3"
    deadline = time.monotonic() + 30
    while not hub.gets(".parquet"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with sqlite3.connect(journal) as connection:
        (pid,) = connection.execute("SELECT pid FROM preparations WHERE id = ?", (job["id"],)).fetchone()
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    state = document(dataset("preparations", job["id"]))
    assert (state["status"], state["error"]["code"]) == ("failed", "interrupted")
    hub.faults.delay_s = 0
    assert document(dataset("preparations", job["id"], "--retry"))["case_count"] == 14


def test_history_from_quick_to_holdout(dataset: Command, tmp_path: Path) -> None:
    local = ("prepare", "--local", "--benchmark", "mmlu-pro", "--source-partition", "test")
    quick = document(dataset(*local, "--profile", "quick"))
    summary = document(dataset("exclusions", "--dataset", quick["id"], "--output", "history.json"))
    assert summary["counts"] == {"mmlu-pro": 500}
    holdout = document(
        dataset(
            *local,
            "--profile",
            "standard",
            "--exclusion-snapshot",
            "history.json",
            "--evaluation-role",
            "holdout",
        )
    )
    assert holdout["exclusions"]["mmlu-pro"]["excluded"] == 500
    assert holdout["case_count"] == 2000
    assert document(dataset("exclusions", "--dataset", quick["id"])) == json.loads(
        (tmp_path / "history.json").read_text()
    )


def test_sample_data_say_so_and_tasks_are_shown_without_labels(dataset: Command, tmp_path: Path) -> None:
    (tmp_path / "own.parquet").write_bytes(mmlu_parquet())
    made = document(
        dataset(
            *("prepare", "--local", "--benchmark", "mmlu-pro", "--profile", "quick", "--limit", "30"),
            *("--source-path", "own.parquet", "--revision", "demo-1", "--sample-data", "the project's own"),
        )
    )
    assert made["sample_data"] == "the project's own"
    assert made["custom_subset"] is True
    page = document(dataset("show", made["id"][:12], "--questions", "--page", "2"))
    assert (page["page"], page["pages"], len(page["questions"])) == (2, 2, 5)
    assert page["sample_data"] == "the project's own"
    assert set(page["questions"][0]) == {"id", "benchmark", "category", "input", "messages", "files"}
    again = document(dataset("combine", made["id"]))
    assert again == made


def test_options_that_need_the_local_mode_say_so(dataset: Command) -> None:
    for option, value in (
        ("--source-path", "x"),
        ("--evaluation-role", "retest"),
        ("--source-partition", "test"),
    ):
        refused = dataset("prepare", "--benchmark", "mmlu-pro", "--profile", "quick", option, value)
        assert refused.returncode == 2
        assert error(refused)["field"] == option
    refused = dataset("prepare", "--local", "--no-wait", "--benchmark", "mmlu-pro", "--profile", "quick")
    assert error(refused)["field"] == "--no-wait"
    unknown = dataset("prepare", "--benchmark", "mmlu", "--profile", "quick")
    assert unknown.returncode == 3
    assert error(unknown)["code"] == "not_found"


def test_options_and_catalog_list_all_benchmarks(dataset: Command, environment: dict[str, str]) -> None:
    document(dataset("prepare", "--local", "--benchmark", "mmlu-pro", "--profile", "smoke"))
    found = document(dataset("options", HF_TOKEN=TOKEN))
    assert found["hub_token_set"] is True
    assert TOKEN not in json.dumps(found)
    mmlu = next(entry for entry in found["benchmarks"] if entry["id"] == "mmlu-pro")
    assert mmlu["profiles"]["smoke"]["count"] == 14
    assert mmlu["profiles"]["smoke"]["prepared"][0]["pinned_source"] is True
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "--json", "catalog"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    entries = {entry["id"]: entry for entry in document(done)}
    assert sum(entry["counts"]["standard"] for entry in entries.values()) == 3183
    assert entries["gpqa-diamond"]["source"]["gated"] is True
    assert all(entry["licence"] and entry["access_note"] for entry in entries.values())
