"""The whole way on simulated models: prepare → plan → run → reconcile → report → compare.

    python examples/demo/run.py --store demo-store

Uses nothing but the `sr-bench` command, as a person would; each step is printed before it runs.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from generate import write

EXAMPLES = Path(__file__).resolve().parents[1]
PORT = 8123
LABEL = "sr-bench demo questions, made by examples/demo/generate.py"


class Demo:
    """Runs `sr-bench` commands on one store."""

    def __init__(self, store: Path, port: int) -> None:
        self.store = store
        self.port = port
        self.work = store / "demo"

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "cli.main", "--store", str(self.store), *map(str, arguments)]

    def show(self, *arguments: str | Path) -> None:
        """Run a command for the reader: what it prints is shown."""
        self._announce(arguments)
        if code := subprocess.run(self.command(*arguments), cwd=EXAMPLES.parent).returncode:
            raise SystemExit(code)

    def data(self, *arguments: str | Path) -> Any:
        """Run a command for its JSON."""
        self._announce(arguments)
        done = subprocess.run(self.command(*arguments), cwd=EXAMPLES.parent, stdout=subprocess.PIPE)
        if done.returncode:
            raise SystemExit(done.returncode)
        return json.loads(done.stdout)

    def _announce(self, arguments: tuple[str | Path, ...]) -> None:
        shown = " ".join(f'"{part}"' if " " in str(part) else str(part) for part in arguments)
        print(f"\n$ sr-bench --store {self.store} {shown}", flush=True)

    @contextmanager
    def lab(self) -> Iterator[dict[str, Any]]:
        """A lab gateway that knows the store's questions, as long as the context lasts."""
        command = self.command("lab", "serve", "--port", str(self.port))
        print(f"\n$ sr-bench --store {self.store} lab serve --port {self.port} &", flush=True)
        process = subprocess.Popen(command, cwd=EXAMPLES.parent, stdout=subprocess.PIPE, text=True)
        try:
            yield self._announcement(process)
        finally:
            process.terminate()
            process.wait()

    def _announcement(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                return json.loads("".join(lines))
        raise SystemExit(process.wait())

    def manifest(self, dataset: dict[str, Any]) -> Path:
        """`examples/manifest.yaml` with this dataset in it."""
        document = yaml.safe_load((EXAMPLES / "manifest.yaml").read_text(encoding="utf-8"))
        document["name"] = "demo"
        document["dataset"] = {"path": dataset["path"], "sha256": dataset["sha256"]}
        path = self.work / "manifest.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return path

    def targets(self, url: str) -> Path:
        """The targets of the lab at `url`, in a file."""
        path = self.work / "targets.json"
        path.write_text(json.dumps(self.data("lab", "targets", "--url", url), indent=2), encoding="utf-8")
        return path

    def run(self) -> None:
        self.store.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.work.mkdir(exist_ok=True)
        source = self.work / "source"
        print(f"500 of these sample questions are prepared: {write(source, per_category=50, seed=1)}")
        dataset = self.data(
            *("dataset", "prepare", "--benchmark", "mmlu-pro", "--profile", "quick"),
            *("--local", "--source-path", source, "--revision", "demo-1", "--sample-data", LABEL),
        )
        with self.lab() as lab:
            self.data("target", "register", "--file", self.targets(lab["url"]))
            frozen = self.work / "frozen.json"
            plan = self.data("plan", "--manifest", self.manifest(dataset), "--output", frozen)
            key = f"demo-{plan['plan_sha256'][:12]}"
            run = self.data("run", "--manifest", frozen, "--idempotency-key", key)["id"]
        checked = self.data("reconcile-usage", run)["counts"]
        print(f"{checked['verified']} of {checked['calls']} calls verified against their retained streams")
        self.show("report", run, "--format", "terminal")
        self.show("compare", run, "--format", "terminal")
        print(
            "\nAll of this came from simulated models on invented prices: it shows how sr-bench works, not how any "
            "model does.\nNext:\n"
            f"  sr-bench --store {self.store} ui           the same artifacts with their lineage\n"
            f"  sr-bench --store {self.store} lab serve    the models again, to materialize from the UI\n"
            "  examples/lab-faults.yaml            a bad day at the provider\n"
            "  examples/manifest.yaml              the manifest to start from with your own endpoints"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Run sr-bench's demo.")
    parser.add_argument("--store", type=Path, default=Path("demo-store"), help="store folder to make or use")
    parser.add_argument("--port", type=int, default=PORT, help="the lab's port on loopback; 0: a free one")
    args = parser.parse_args()
    if args.port and not is_free(args.port):
        print(f"Port {args.port} is in use; the lab takes a free one.")
        args.port = 0
    Demo(args.store.resolve(), args.port).run()


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


if __name__ == "__main__":
    main()
