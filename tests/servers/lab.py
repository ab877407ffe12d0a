"""A real lab gateway for tests: HTTP on loopback, in a thread of the test process or a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.lab.answer_key import AnswerKey
from resources.lab.config import EXAMPLE, parse_config
from resources.lab.gateway import Lab
from resources.lab.running import LabServer
from resources.lab.target_list import lab_targets

ROOT = Path(__file__).parents[2]


def lab_config(**changes: Any) -> dict[str, Any]:
    """The example configuration without waiting times, with top-level members replaced."""
    return {**yaml.safe_load(EXAMPLE.read_text(encoding="utf-8")), "time_scale": 0, **changes}


@dataclass(frozen=True)
class RunningLab:
    """Where a lab runs and what it counted."""

    url: str
    targets: list[dict[str, Any]]
    """Documents of `resources.targets.Target`: two singles and the router of the example configuration."""

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def stats(self) -> dict[str, Any]:
        """`requests`, `resends`, `refused`, `models`…, see `resources/lab/stats.py`."""
        return self._get("/lab/stats")

    def requests(self) -> list[dict[str, Any]]:
        """One record per chat request."""
        return self._get("/lab/requests?limit=1000000")["requests"]

    def reset(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/lab/reset", method="POST")).close()

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path) as response:
            return json.load(response)


@contextmanager
def lab_in_thread(
    config: Mapping[str, Any] | None = None, datasets: Sequence[Path] = ()
) -> Iterator[RunningLab]:
    """A lab in a thread; `datasets` are `cases.jsonl` files or folders of them."""
    parsed = parse_config(dict(config) if config is not None else lab_config())
    lab = Lab(parsed, AnswerKey.open(datasets))
    with LabServer(lab) as server:
        yield RunningLab(server.url, lab_targets(parsed, lab.recording, server.url))


@contextmanager
def lab_in_process(
    folder: Path, config: Mapping[str, Any] | None = None, datasets: Sequence[Path] = ()
) -> Iterator[RunningLab]:
    """A lab by `sr-bench lab serve` in a process of its own, which survives whatever the test kills."""
    path = folder / "lab.yaml"
    document = dict(config) if config is not None else lab_config()
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "cli.main",
        "--json",
        "lab",
        "serve",
        "--config",
        str(path),
        "--port",
        "0",
    ]
    for dataset in datasets or [folder]:
        command += ["--dataset", str(dataset)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
    try:
        assert process.stdout is not None
        announced = ""
        while not announced.endswith("}\n"):
            line = process.stdout.readline().decode()
            assert line, f"the lab ended with {process.wait()}"
            announced += line if line != "}\n" else "}\n"
        url = json.loads(announced)["url"]
        parsed = parse_config(document)
        yield RunningLab(url, lab_targets(parsed, Lab(parsed).recording, url))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


@pytest.fixture
def lab_server() -> Iterator[Callable[..., RunningLab]]:
    """`lab_server(config=None, datasets=())` starts a lab in a thread that ends with the test.

    Import it into a test module or conftest: `from tests.servers.lab import lab_server`.
    """
    with ExitStack() as stack:
        yield lambda config=None, datasets=(): stack.enter_context(lab_in_thread(config, datasets))
