"""Real runs in a store of their own against a real lab gateway on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resources.journal.calls import CallRow, list_calls
from resources.journal.connection import Journal, open_journal
from resources.journal.results import ResultRow, list_results
from resources.journal.runs import Run, create_run, get_run
from resources.store import DATABASE_ENV, OBJECTS_ENV, Store
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import put_plan
from sr_bench_assets.results.execution import PartitionOutcome, RunExecution
from tests.planning import manifest_document, publish_cases
from tests.servers.lab import RunningLab, lab_config, lab_in_thread

BENCHMARK = "mmlu-pro"


@dataclass
class World:
    """A store, a lab that knows its cases, and runs of plans over them."""

    store: Store
    journal: Journal
    folder: Path
    labs: ExitStack
    env: dict[str, str] = field(default_factory=dict[str, str])

    def lab(self, **changes: Any) -> RunningLab:
        """A lab with the example's models, top-level members of its configuration replaced."""
        return self.labs.enter_context(lab_in_thread(lab_config(**changes), [self.store.datasets_dir]))

    def plan(
        self,
        lab: RunningLab,
        *,
        cases: int = 12,
        benchmarks: Sequence[str] = (BENCHMARK,),
        targets: Sequence[str] = ("lab-small",),
        change: Callable[[dict[str, Any]], None] = lambda target: None,
        limits: Mapping[str, Any] | None = None,
        **members: Any,
    ) -> FrozenPlan:
        """A frozen plan over made-up cases of each benchmark; `change` edits each target's document."""
        # Other numbers in each, so that no two cases have the same question and so the same request body.
        parts = [
            publish_cases(self.store, cases, benchmark, first=1000 * number)
            for number, benchmark in enumerate(benchmarks)
        ]
        dataset = parts[0] if len(parts) == 1 else combine(self.store, parts)
        chosen = [dict(target) for target in lab.targets if target["id"] in targets]
        for target in chosen:
            change(target)
        document = manifest_document(
            dataset,
            targets=chosen,
            limits={"concurrency": 8, "total_timeout_s": 20, "idle_timeout_s": 10, **(limits or {})},
            **members,
        )
        path = self.folder / "manifest.json"
        path.write_text(json.dumps(document, default=str), encoding="utf-8")
        plan = freeze_file(path, self.store, {**os.environ, **self.env})
        put_plan(self.store, plan)
        return plan

    def new_run(self, plan: FrozenPlan) -> Run:
        run, _ = create_run(
            self.journal,
            plan_sha256=plan.plan_sha256,
            name=plan.name,
            mode=plan.mode,
            profile=plan.profile,
            total_cells=plan.case_count * len(plan.targets),
            budget_usd=plan.limits.max_cost_usd,
        )
        return run

    def execution(self, plan: FrozenPlan, run: Run) -> RunExecution:
        return RunExecution(self.store, self.journal, plan, run.id, list(plan.benchmarks), self.env)

    def execute(self, plan: FrozenPlan, run: Run | None = None) -> tuple[Run, PartitionOutcome]:
        """Run a plan to its end."""
        run = run or self.new_run(plan)
        execution = self.execution(plan, run)
        execution.start()
        try:
            outcome = [execution.wait(benchmark) for benchmark in plan.benchmarks][-1]
        finally:
            execution.close()
        return get_run(self.journal, run.id), outcome

    def results(self, run: Run) -> list[ResultRow]:
        return list_results(self.journal, run.id)

    def calls(self, run: Run) -> list[CallRow]:
        return list_calls(self.journal, run.id)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.delenv(DATABASE_ENV, raising=False)
    monkeypatch.delenv(OBJECTS_ENV, raising=False)
    store = Store.open(tmp_path / "store")
    journal = open_journal(store)
    with ExitStack() as labs:
        yield World(store, journal, tmp_path, labs)
    journal.close()
