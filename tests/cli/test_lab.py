"""`sr-bench lab` as a process: its address, its refusals, and what it prints for other commands."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from resources.lab.config import EXAMPLE
from resources.targets import Target
from tests.resources.lab.conftest import case_row
from tests.servers.lab import ROOT, lab_config, lab_in_process


def lab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", "--json", "lab", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)


def test_serves_until_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps(case_row(1)) + "\n", encoding="utf-8")
    with lab_in_process(tmp_path, lab_config(), [tmp_path]) as running:
        body = {"model": "lab-large", "messages": case_row(1)["messages"]}
        request = urllib.request.Request(
            f"{running.base_url}/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            assert response.headers["x-sr-bench-lab-case"] == "known"
        assert running.stats()["completed"] == 1


def test_learns_datasets_that_are_prepared_later(tmp_path: Path) -> None:
    datasets = tmp_path / "datasets"
    datasets.mkdir()
    with lab_in_process(tmp_path, lab_config(), [datasets]) as running:
        (datasets / "new").mkdir()
        (datasets / "new" / "cases.jsonl").write_text(json.dumps(case_row(1)) + "\n", encoding="utf-8")
        body = json.dumps({"model": "lab-large", "messages": case_row(1)["messages"]}).encode()
        known = ""
        for _ in range(100):
            request = urllib.request.Request(f"{running.base_url}/chat/completions", body)
            with urllib.request.urlopen(request) as response:
                known = response.headers["x-sr-bench-lab-case"]
            if known == "known":
                break
            time.sleep(0.05)
        assert known == "known"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org"])
def test_listens_on_loopback_only(host: str) -> None:
    done = lab("serve", "--host", host, "--port", "0")
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["field"] == "--host"


def test_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = lab("serve", "--port", str(taken.getsockname()[1]), "--dataset", tmp_path)
    assert done.returncode == 4
    assert "cannot listen" in done.stderr


def test_every_mistake_of_a_configuration_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    document = {
        "models": {"gpt-9": {}, "lab-a": {"competence": {"default": 2}, "speed": 3}},
        "faults": [{"kind": "cut"}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = lab("serve", "--config", path, "--port", "0", "--dataset", tmp_path)
    assert done.returncode == 2
    fields = {problem["field"] for problem in json.loads(done.stderr)["error"]["problems"]}
    assert {"models.lab-a.competence.default", "models.lab-a.speed", "faults.0"} <= fields
    assert any("gpt-9" in field for field in fields)


def test_router_to_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    document = {"models": {"lab-a": {}}, "routers": {"lab-r": {"default": {"name": "d", "model": "lab-b"}}}}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    done = lab("targets", "--config", path)
    assert done.returncode == 2
    assert "lab-b, which the lab does not serve" in done.stderr


def test_targets_and_example() -> None:
    targets = [Target.model_validate(item) for item in json.loads(lab("targets").stdout)]
    assert [target.id for target in targets] == ["lab-large", "lab-small", "lab-router"]
    assert targets[2].config_hash is not None
    judges = json.loads(lab("targets", "--judges", "--url", "http://127.0.0.1:9/v1").stdout)
    assert [(judge["id"], judge["base_url"]) for judge in judges] == [("lab-judge", "http://127.0.0.1:9/v1")]
    assert lab("example").stdout == EXAMPLE.read_text(encoding="utf-8")
