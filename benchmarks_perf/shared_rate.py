"""One endpoint's rate and one run's budget, shared by three runner processes on one store:
`python -m benchmarks_perf.shared_rate [--rpm 600] [--seconds 150]`.

Two processes work on the two partitions of one run, whose budget they share; the third on a run of its own. All
three call the same endpoint, for which 600 requests a minute are allowed. Printed is what the server counted: the
most requests in any sliding minute, and what the shared run spent of its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from resources.journal.connection import Journal, open_journal
from resources.journal.runs import create_run, get_run
from resources.lab.stats import busiest_window
from resources.store import DATABASE_ENV, Store
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import get_plan, put_plan
from sr_bench_assets.results.execution import RunExecution
from tests.planning import manifest_document, publish_cases
from tests.servers.lab import lab_in_process

ROOT = Path(__file__).parents[1]
PARTITIONS = ("mmlu-pro", "gpqa-diamond")
_PRICES = {"input": "1", "cached_input": "1", "cache_write": "1", "output": "1"}
_LAB = {
    "version": "sr-bench-lab-1",
    "models": {"lab-model": {"latency": {"ttft_ms": 30, "tokens_per_second": 500}, "prices": _PRICES}},
}


def work(store: Store, journal: Journal, run_id: str, partition: str) -> None:
    """What one runner process does: one partition of one run."""
    plan = get_plan(store, get_run(journal, run_id).plan_sha256)
    execution = RunExecution(store, journal, plan, run_id, [partition], os.environ)
    execution.start()
    execution.wait_for_cells(partition)
    execution.close()


def measure(folder: Path, rpm: int, seconds: float, cases: int) -> None:
    store = Store.open(folder / "store")
    journal = open_journal(store)
    parts = [publish_cases(store, cases, name, first=n * cases) for n, name in enumerate(PARTITIONS)]
    both = combine(store, parts)
    with lab_in_process(folder, _LAB, datasets=[store.datasets_dir]) as lab:
        target = {**lab.targets[0], "rate_limit": {"requests_per_minute": rpm}}
        # A call costs about 80 micro-dollars: the shared run's budget gives out before its cases do.
        budget = Decimal("0.0001") * (cases - cases // 4)
        shared = _run(store, journal, folder, both, target, seconds, "shared", budget=budget)
        other = _run(store, journal, folder, parts[0], target, seconds, "other", budget=Decimal(5))
        jobs = [(shared, PARTITIONS[0]), (shared, PARTITIONS[1]), (other, PARTITIONS[0])]
        started = time.time()
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks_perf.shared_rate", "--work", str(store.root), *job],
                cwd=ROOT,
                env={name: value for name, value in os.environ.items() if name != DATABASE_ENV},
            )
            for job in jobs
        ]
        codes = [process.wait() for process in processes]
        took = time.time() - started
        requests = lab.requests()
    arrivals = sorted(record["received_at"] for record in requests)
    print(
        f"\n{len(jobs)} runner processes, {rpm} requests/minute, {took:.0f} s, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| | |\n|---|---|")
    print(f"| exit codes of the runners | {codes} |")
    print(f"| requests by the server's count | {len(requests)} |")
    print(f"| **most in any sliding minute** | **{busiest_window(arrivals)}** of {rpm} allowed |")
    print(f"| most in any 59 s, 61 s | {busiest_window(arrivals, 59)}, {busiest_window(arrivals, 61)} |")
    print(f"| refused by the server, sent again | {_refused(requests)}, {_resent(requests)} |")
    overspent = 0
    for name, run_id in (("shared", shared), ("other", other)):
        run = get_run(journal, run_id)
        kept = run.spent_usd + run.unknown_usd + run.reserved_usd
        overspent += kept > run.budget_usd
        print(f"| {name} run: {run.status}, spent of its budget | {kept} of {run.budget_usd} USD |")
    assert not overspent, "a budget was overspent"
    assert busiest_window(arrivals) <= rpm, "the rate was exceeded"


def _run(
    store: Store,
    journal: Journal,
    folder: Path,
    dataset: Any,
    target: dict[str, Any],
    seconds: float,
    name: str,
    *,
    budget: Decimal,
) -> str:
    limits = {
        "concurrency": 32,
        "max_cost_usd": str(budget),
        "max_run_seconds": seconds,
        "case_timeout_s": min(seconds, 30),
        "total_timeout_s": min(seconds, 30),
        "idle_timeout_s": min(seconds, 30),
    }
    sampling = {"seed": len(name), "max_tokens": 200}  # no two runs send the same bytes
    document = manifest_document(dataset, name=name, targets=[target], limits=limits, sampling=sampling)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    plan: FrozenPlan = freeze_file(path, store, {})
    put_plan(store, plan)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=name,
        mode="live",
        profile=plan.profile,
        total_cells=plan.case_count,
        budget_usd=budget,
    )
    return run.id


def _refused(requests: list[dict[str, Any]]) -> int:
    return sum(record["outcome"] == "refused" for record in requests)


def _resent(requests: list[dict[str, Any]]) -> int:
    return sum(record["resend"] for record in requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rpm", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--cases", type=int, default=None, help="per partition; default as many as --rpm")
    parser.add_argument("--work", nargs=3, metavar=("STORE", "RUN", "PARTITION"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        store = Store.open(arguments.work[0], create=False)
        work(store, open_journal(store), *arguments.work[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), arguments.rpm, arguments.seconds, arguments.cases or arguments.rpm)


if __name__ == "__main__":
    main()
