"""One evaluation with everything on (write-ahead journal, raw evidence, usage, prices, grading, sealing), as a
process of its own: `python -m benchmarks_perf.evaluate URL --calls 2000 --concurrency 64` prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import resource
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

from resources.gateway.evidence import decode_evidence
from resources.journal.calls import list_calls
from resources.journal.connection import open_journal
from resources.journal.evidence import FramePlace, read_frame
from resources.journal.runs import create_run, get_run
from resources.store import Store
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.plan_store import get_plan, put_plan
from sr_bench_assets.results.execution import RunExecution
from tests.planning import manifest_document, publish_cases

BENCHMARK = "mmlu-pro"
_PRICE = {"input": "0.5", "cached_input": "0.05", "cache_write": "1", "output": "2"}
_CLOCK = re.compile(r"t=([0-9.]+);")


def prepare(folder: Path, url: str, calls: int, concurrency: int, model: str) -> str:
    """Freeze a plan of `calls` made-up cases at one target and create its run; the run's id."""
    store = Store.open(folder / "store")
    dataset = publish_cases(store, calls)
    target = {
        "id": "stub",
        "kind": "single",
        "base_url": f"{url}/v1",
        "model": model,
        "prices": {model: _PRICE},
    }
    limits = {"concurrency": concurrency, "max_cost_usd": "1000000", "max_run_seconds": 86400}
    (folder / "manifest.json").write_text(
        json.dumps(manifest_document(dataset, targets=[target], limits=limits)), encoding="utf-8"
    )
    plan = freeze_file(folder / "manifest.json", store, {})
    put_plan(store, plan)
    run, _ = create_run(
        open_journal(store),
        plan_sha256=plan.plan_sha256,
        name="measurement",
        mode="live",
        profile=plan.profile,
        total_cells=calls,
        budget_usd=plan.limits.max_cost_usd,
    )
    return run.id


def evaluate(folder: Path, run_id: str, calls: int, *, clocks: bool) -> dict[str, Any]:
    """Execute a prepared run; its figures.

    `clocks`: also sample the event loop's lag, and compare each TTFT with the server's clock in its first event.
    """
    store = Store.open(folder / "store")
    journal = open_journal(store)
    run = get_run(journal, run_id)
    plan = get_plan(store, run.plan_sha256)
    execution = RunExecution(store, journal, plan, run.id, [BENCHMARK], os.environ)
    gc.collect()
    gc.freeze()  # as the runner does
    lags: list[float] = []
    before = resource.getrusage(resource.RUSAGE_SELF)
    others_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    execution.start()
    if clocks and execution.loop is not None:
        asyncio.run_coroutine_threadsafe(_watch_lag(lags), execution.loop)
    with _children_watched() as others_rss:
        execution.wait_for_cells(BENCHMARK)
    called = time.perf_counter()
    between = resource.getrusage(resource.RUSAGE_SELF)
    execution.wait(BENCHMARK)
    execution.close()
    after = resource.getrusage(resource.RUSAGE_SELF)
    others = _cpu(others_before, resource.getrusage(resource.RUSAGE_CHILDREN))
    evidence = sum(path.stat().st_size for path in store.evidence_dir(run.id).iterdir())
    journal_bytes = sum(path.stat().st_size for path in store.root.glob("journal.sqlite3*"))
    figures: dict[str, Any] = {
        "status": get_run(journal, run.id).status,
        "calls_wall_s": called - started,
        "calls_cpu_s": _cpu(before, between) + others,
        "committer_cpu_s": others,
        "seal_wall_s": time.perf_counter() - called,
        "seal_cpu_s": _cpu(between, after),
        "rss_mb": after.ru_maxrss / 1024 + max(others_rss, default=0) / 1e6,
        "journal_bytes_per_call": journal_bytes / calls,
        "evidence_bytes_per_call": evidence / calls,
    }
    if clocks:
        rows = list_calls(journal, run.id)
        events = [row.record["text"].count("follows") + 2 for row in rows]
        errors = [_ttft_error(store, run.id, row) for row in rows]
        figures |= {
            "events_received": sum(events),
            "loop_lag_p99_ms": _p99(lags) * 1000,
            "ttft_error_p99_ms": _p99([abs(error) for error in errors if error is not None]) * 1000,
        }
    return figures


@contextmanager
def _children_watched() -> Iterator[list[int]]:
    """Samples of the memory of this process's children (the one that commits), in bytes."""
    samples: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            with suppress(psutil.Error):
                samples.append(sum(child.memory_info().rss for child in psutil.Process().children()))

    watching = threading.Thread(target=watch)
    watching.start()
    yield samples
    over.set()
    watching.join()


async def _watch_lag(lags: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + 0.01
        await asyncio.sleep(0.01)
        lags.append(loop.time() - due)


def _ttft_error(store: Store, run_id: str, row: Any) -> float | None:
    """Our time of the first token less the server's time of sending it, in seconds."""
    clock = _CLOCK.match(row.record["text"])
    if clock is None or row.ttft_s is None:
        return None
    place = FramePlace(row.evidence_segment, row.evidence_offset, row.evidence_length)
    evidence = decode_evidence(read_frame(store.evidence_dir(run_id), place))
    return evidence.started_at + row.ttft_s - float(clock[1])


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))] if values else float("nan")


def _cpu(before: resource.struct_rusage, after: resource.struct_rusage) -> float:
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--model", default="stub")
    parser.add_argument("--clocks", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to put the store; default a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        # In a process of its own, as with `plan` and `run`: the memory of preparing is not the runner's.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            run_id = pool.submit(
                prepare, folder, arguments.url, arguments.calls, arguments.concurrency, arguments.model
            ).result()
        figures = evaluate(folder, run_id, arguments.calls, clocks=arguments.clocks)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
