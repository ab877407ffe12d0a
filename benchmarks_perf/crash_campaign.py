"""Kills at random instants, and what is left: `python -m benchmarks_perf.crash_campaign [--kills 200] [--postgres]`.

Several lineages are in flight on one store. Each is a small plan (targets, router, concurrency, budget, faults
drawn) whose runner, whose commands or whose database connections are killed with SIGKILL at drawn instants; the
next start reconciles, a recovery continues the undispatched cells in a child run, which is killed in turn. In the
end the journal, the evidence and the server's own records of its requests are held against each other.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from benchmarks_perf.crash_audit import Audit, audit
from benchmarks_perf.crash_chain import Campaign, Chain
from benchmarks_perf.crash_disconnect import disconnecting
from benchmarks_perf.crash_plans import PlanMaker, lab_document
from benchmarks_perf.crash_runners import RunnerForge
from benchmarks_perf.power_cuts import cut_power
from resources.journal.connection import open_journal
from resources.lab.config import parse_config
from resources.lab.target_list import lab_targets
from resources.store import DATABASE_ENV, STORE_ENV, Store
from tests.cli.evaluation import Bench
from tests.planning import publish_cases
from tests.servers.lab import lab_in_process
from tests.servers.postgres import running_postgres, why_not


def run_campaign(folder: Path, arguments: argparse.Namespace, lab_scale: float) -> int:
    """The kills, the audit and the printed tables; the number of problems."""
    store = Store.open(folder / "store")
    publish_cases(store, 1)  # the lab wants a dataset to start with; it learns of later ones by itself
    document = lab_document(lab_scale)
    with lab_in_process(folder, document, datasets=[store.datasets_dir]) as lab:
        judge = lab_targets(parse_config(document), None, lab.url, judges=True)[0]
        database = os.environ.get(DATABASE_ENV)
        env = {DATABASE_ENV: database} if database else {}
        forge = RunnerForge(env)
        campaign = Campaign(
            store,
            open_journal(store),
            Bench(folder, env),
            forge,
            arguments.kills - arguments.power_cuts,
            disconnecting(database) if database else None,
        )
        plans = PlanMaker(store, folder, lab.targets, judge)
        started = time.monotonic()
        _in_threads(campaign, plans, arguments)
        found = audit(store, campaign.journal, campaign.lineages, lab.requests())
        found.problems += campaign.problems
        cuts = Counter[str]()
        if arguments.power_cuts:
            cut = cut_power(folder, lab, judge, forge, arguments.power_cuts, arguments.seed)
            cuts = cut.kills
            found.add(cut.audit)
        seconds = time.monotonic() - started
        forge.close()
    _print(campaign, found, cuts, seconds, "PostgreSQL" if database else "SQLite", arguments.seed)
    return len(found.problems)


def _in_threads(campaign: Campaign, plans: PlanMaker, arguments: argparse.Namespace) -> None:
    numbers = iter(range(1, 1_000_000))
    taking = threading.Lock()

    def work() -> None:
        while not campaign.enough:
            with taking:
                number = next(numbers)
                draw = random.Random(f"{arguments.seed}/{number}")
                path, plan = plans.plan(number, draw)
                chain = Chain(campaign, path, plan, draw)
                campaign.lineages.append(chain.lineage)
            try:
                chain.live()
            except Exception as error:
                campaign.problems.append(f"{chain.lineage.runs}: {error!r}\n{traceback.format_exc()}")
            print(f"{sum(campaign.kills.values())} kills", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=work) for _ in range(arguments.lineages)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _print(
    campaign: Campaign, found: Audit, cuts: Counter[str], seconds: float, database: str, seed: int
) -> None:
    kills = campaign.kills + cuts
    total = sum(kills.values())
    print(
        f"\n## {total} kills on {database} in {seconds:.0f} s (seed {seed}, load {os.getloadavg()[0]:.1f})\n"
    )
    print("| killed | times |\n|---|---|")
    for what, count in sorted(kills.items()):
        print(f"| {what} | {count} |")
    print("\n| after all recoveries | |\n|---|---|")
    planned = sum(found.cells.values())
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.cells.items()))
    runs = ", ".join(f"{count} {status}" for status, count in sorted(found.runs.items()))
    rows = {
        "lineages, runs": f"{len(campaign.lineages)}, {sum(found.runs.values())} ({runs})",
        "planned cells, each in exactly one state": f"{planned} ({states})",
        "requests by the server's count": found.sent,
        "**re-sends by the server's count**": f"**{found.resends}**",
        "dispatch records": found.calls,
        "results seen durable right after a kill": found.seen_results,
        "**of these lost or changed in the end**": f"**{found.lost_results}**",
        "calls rebuilt from evidence, all equal": found.rebuilt,
        "**runs that overspent their budget**": f"**{found.overspent}**",
        **{f"calls without a known end: {how}": count for how, count in sorted(found.ambiguous.items())},
        "**broken promises**": f"**{len(found.problems)}**",
    }
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    for problem in found.problems[:20]:
        print(f"\nPROBLEM: {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument(
        "--power-cuts", type=int, default=None, help="how many of them lose unsynced writes too"
    )
    parser.add_argument("--lineages", type=int, default=6, help="in flight at the same time")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--time-scale", type=float, default=0.5, help="of the lab's waiting times")
    parser.add_argument("--postgres", action="store_true", help="on a private PostgreSQL server")
    parser.add_argument(
        "--database", help="on this PostgreSQL database (postgresql://…), which must be empty"
    )
    parser.add_argument("--folder", type=Path, help="keep the store in this folder")
    arguments = parser.parse_args()
    for name in (STORE_ENV, DATABASE_ENV):
        os.environ.pop(name, None)
    with ExitStack() as stack:
        if arguments.postgres:
            if reason := why_not():
                raise SystemExit(reason)
            server = stack.enter_context(running_postgres())
            arguments.database = server.create_database("crashes")
        if arguments.database:
            os.environ[DATABASE_ENV] = arguments.database
        if arguments.power_cuts is None:
            arguments.power_cuts = 0 if arguments.database else arguments.kills // 8
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        problems = run_campaign(folder, arguments, arguments.time_scale)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
