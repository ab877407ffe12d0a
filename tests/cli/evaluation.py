"""An evaluation as a user makes one: a store, sample questions, a lab gateway, and the `sr-bench` command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.lab import RunningLab

ROOT = Path(__file__).parents[2]
SAMPLE = "sample questions of the tests"


@dataclass
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Bench:
    """`sr-bench` on one store."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SR_BENCH_")}
        kept.pop("DAGSTER_HOME", None)
        return {**kept, "PYTHONPATH": str(ROOT), "SR_BENCH_STORE": str(self.store), **self.env}

    def __call__(self, *arguments: str, timeout: float = 120) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            capture_output=True,
            text=True,
            env=self.environment(),
            cwd=self.folder,
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments: str) -> Any:
        """The JSON document that a command prints; the command must succeed."""
        done = self("--json", *arguments)
        assert done.code == 0, f"{arguments}: exit {done.code}\n{done.out}\n{done.err}"
        return done.json

    def dataset(self, profile: str = "smoke", limit: int | None = None) -> dict[str, Any]:
        """A prepared dataset of this project's own sample questions."""
        source = self.folder / "questions"
        if not source.exists():
            generate = ROOT / "examples" / "demo" / "generate.py"
            subprocess.run(
                [sys.executable, str(generate), "--output", str(source)], check=True, capture_output=True
            )
        extra = [] if limit is None else ["--limit", str(limit)]
        return self.ok(
            "dataset", "prepare", "--local", "--benchmark", "mmlu-pro", "--profile", profile,
            "--source-path", str(source), "--revision", "test-1", "--sample-data", SAMPLE, *extra,
        )  # fmt: skip

    def frozen(
        self, name: str, dataset: Mapping[str, Any], targets: list[dict[str, Any]], **members: Any
    ) -> tuple[Path, dict[str, Any]]:
        """A frozen plan over these targets: its file and its document."""
        manifest = {
            "version": "sr-bench-1.0",
            "name": name,
            "profile": dataset["profile"],
            "seed": dataset["seed"],
            "dataset": {"path": dataset["path"], "sha256": dataset["sha256"]},
            "targets": targets,
            "limits": {"concurrency": 8},
            "sampling": {"max_tokens": 512},
            **members,
        }
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(manifest))
        frozen = self.folder / f"{name}.frozen.json"
        return frozen, self.ok("plan", "--manifest", str(path), "--output", str(frozen))

    def wait(self, run_id: str, timeout: float = 60) -> dict[str, Any]:
        """The run when it has ended."""
        until = time.monotonic() + timeout
        while (run := self.ok("show", run_id))["status"] in ("queued", "running"):
            assert time.monotonic() < until, f"run {run_id} did not end: {run}"
            time.sleep(0.1)
        return run


def singles(lab: RunningLab) -> list[dict[str, Any]]:
    return [target for target in lab.targets if target["kind"] == "single"]


def routers(lab: RunningLab) -> list[dict[str, Any]]:
    return [target for target in lab.targets if target["kind"] == "mom"]
