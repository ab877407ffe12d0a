"""`target` and `plan` as commands: JSON on stdout, exit codes, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.store import Store
from sr_bench_assets.plans.plan_store import load_plan
from tests.planning import manifest_document, publish_cases, single

ROOT = Path(__file__).parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def command(store: Store, tmp_path: Path) -> Command:
    """Run `sr-bench` on the store, in a folder of its own."""

    def run(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SR_BENCH_STORE": str(store.root),
            **(env or {}),
        }
        line = [sys.executable, "-m", "cli.main", *map(str, arguments)]
        return subprocess.run(
            line, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
        )

    return run


def test_register_reference_and_plan(store: Store, command: Command, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text(yaml.safe_dump([single(api_key_env="SOME_KEY")]))
    done = command("target", "register", "--file", "targets.yaml")
    assert (done.returncode, json.loads(done.stdout)["registered"]) == (0, ["single-a"])
    assert json.loads(command("target", "list").stdout)[0]["api_key_env"] == "SOME_KEY"
    document = manifest_document(publish_cases(store), targets=[{"ref": "single-a"}])
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(document))
    planned = command("plan", "--manifest", "m.yaml", "--output", "frozen.json", env={"SOME_KEY": "sk-value"})
    assert planned.returncode == 0, planned.stderr
    printed: dict[str, Any] = json.loads(planned.stdout)
    assert {"plan_sha256", "case_sha256"} <= set(printed)
    assert load_plan(tmp_path / "frozen.json").plan_sha256 == printed["plan_sha256"]
    assert (store.plans_dir / f"{printed['plan_sha256']}.json").is_file()
    assert "sk-value" not in planned.stdout + planned.stderr
    again = command("plan", "--manifest", "frozen.json", env={"SOME_KEY": "sk-value"})
    assert json.loads(again.stdout) == printed


def test_problems_leave_nothing_behind(store: Store, command: Command, tmp_path: Path) -> None:
    document = manifest_document(publish_cases(store), targets=[single(api_key_env="UNSET_KEY")], typo=1)
    (tmp_path / "m.json").write_text(json.dumps(document))
    failed = command("--json", "plan", "--manifest", "m.json", "--output", "frozen.json")
    assert (failed.returncode, failed.stdout) == (2, "")
    error = json.loads(failed.stderr)["error"]
    assert {problem["field"] for problem in error["problems"]} == {"typo", "targets[0].api_key_env"}
    assert list(store.plans_dir.iterdir()) == []
    assert not (tmp_path / "frozen.json").exists()
    plain = command("plan", "--manifest", "m.json")
    assert "mend:" in plain.stderr
    assert "Traceback" not in plain.stderr


def test_missing_files_and_targets_are_not_found(command: Command) -> None:
    assert command("plan", "--manifest", "nowhere.yaml").returncode == 3
    assert command("target", "register", "--file", "nowhere.yaml").returncode == 3
    assert command("target", "remove", "nobody").returncode == 3


def test_unreachable_endpoint(store: Store, command: Command, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(manifest_document(publish_cases(store), targets=[single()])))
    failed = command("plan", "--manifest", "m.json", "--output", "frozen.json", "--check-endpoints")
    assert (failed.returncode, failed.stdout) == (4, "")
    assert "single-a" in failed.stderr
    assert not (tmp_path / "frozen.json").exists()
    assert list(store.plans_dir.iterdir()) == []
    assert command("plan", "--manifest", "m.json").returncode == 0


def test_a_file_of_targets_is_taken_whole_or_not_at_all(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([single("a"), single("b", bas_url="x")]))
    failed = command("target", "register", "--file", "t.json")
    assert failed.returncode == 2
    assert "[1].bas_url" in failed.stderr
    assert json.loads(command("target", "list").stdout) == []
