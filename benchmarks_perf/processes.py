"""Starting the measured processes: the stub, and one client at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@contextmanager
def running_stub(path: Path | None, *, latency_ms: float, arguments: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a running stub: our own, or a script at `path` that takes --port and --latency-ms."""
    if path is None:
        command = [sys.executable, "-m", "benchmarks_perf.stub", "--latency-ms", str(latency_ms), *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None  # asked for
        port = int(process.stdout.readline())
    else:
        port = _free_port()
        command = [
            sys.executable,
            str(path),
            "--port",
            str(port),
            "--latency-ms",
            str(latency_ms),
            *arguments,
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def client(module: str, url: str, *arguments: str) -> dict[str, Any]:
    """Run one client to its end; its figures, with `span_s` (first request to last reply) and `n` by the stub."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/reset", method="POST")).read()
    command = [sys.executable, "-m", f"benchmarks_perf.{module}", url, *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    stats = json.load(urllib.request.urlopen(f"{url}/stats"))
    span = (stats["last"] or 0) - (stats["first"] or 0)
    return {**json.loads(done.stdout), "span_s": span, "n": stats["n"], "dups": stats["dups"]}


def _wait_for(url: str) -> None:
    import time

    for _ in range(200):
        try:
            urllib.request.urlopen(f"{url}/stats").read()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"the stub at {url} does not answer")


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
