"""Runner processes by the hundred: each is forked from one warmed interpreter, which spares it the imports.

`python -m benchmarks_perf.crash_runners` reads one JSON object a line, `{"run_id", "store", "apart", "synced",
"die_at"}`, forks a process that runs `cli.runner` for it in a session of its own, and prints its pid. With `apart` a
process of its own commits for it, as with `sr-bench run`. With `synced` both record in that file what they fsync
(`unsynced.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from resources.journal.commit_process import CommitProcess

ROOT = Path(__file__).parents[1]


class RunnerForge:
    """Starts runners and kills them. Safe to use from several threads."""

    def __init__(self, env: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks_perf.crash_runners"],
            cwd=ROOT,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # asked for
        if not self._process.stdout.readline():
            raise SystemExit("the process that forks runners did not start")

    def start(
        self,
        store: Path,
        run_id: str,
        *,
        apart: bool,
        synced: Path | None = None,
        die_at: int | None = None,
    ) -> int:
        """Start a runner for `run_id`; its pid, which is that of its session too. `synced` and `die_at` go to
        `record_syncs`."""
        order = {
            "run_id": run_id,
            "store": str(store),
            "apart": apart,
            "synced": None if synced is None else str(synced),
            "die_at": die_at,
        }
        assert self._process.stdin is not None  # both asked for
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None  # asked for
        self._process.stdin.close()
        self._process.wait(10)


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def kill(pid: int, *, alone: bool = False) -> bool:
    """SIGKILL to a runner and the process that commits for it, and wait until both are gone; False if the runner was
    gone before. `alone`: the runner only; the other one ends by itself."""
    lived = alive(pid)
    with contextlib.suppress(ProcessLookupError):
        if alone:
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(pid, signal.SIGKILL)
    while alive(pid) or any(alive(member) for member in _session(pid)):
        time.sleep(0.001)
    return lived


def _session(leader: int) -> list[int]:
    """The processes of a session."""
    members: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(int(entry.name)) == leader:
                    members.append(int(entry.name))
    return members


def _serve() -> None:
    # What takes the time, once for all.
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import cli.partition_runs
    import cli.runner

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the dead
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        order: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_runner(order, cli.runner)
        print(pid, flush=True)


def _become_runner(order: dict[str, Any], runner: Any) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        store = Path(order["store"])
        log = os.open(store / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.chdir(store)
        os.environ["SR_BENCH_STORE"] = str(store)
        if order["synced"] is not None:
            from benchmarks_perf.unsynced import record_syncs

            record_syncs(Path(order["synced"]), order["die_at"])
        if order["apart"]:
            runner.COMMITS = CommitProcess.forked()
        code = runner.main(order["run_id"])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve()
