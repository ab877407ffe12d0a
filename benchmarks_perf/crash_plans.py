"""What the crash campaign evaluates: small plans of many kinds, no two of which ever send the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.store import Store
from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import plan_document, put_plan
from tests.planning import manifest_document, publish_cases

CHOICES, JUDGED = "mmlu-pro", "simpleqa-verified"
_PRICES = {"input": "0.40", "cached_input": "0.20", "cache_write": "0.40", "output": "1.60"}


def lab_document(time_scale: float) -> dict[str, Any]:
    """A lab with a large and a small model, one that reports no usage, a judge, a router that calls one or two
    models, and a few faults of every kind."""

    def model(ttft_ms: float, **members: Any) -> dict[str, Any]:
        latency = {"ttft_ms": ttft_ms, "jitter": 0.9, "tokens_per_second": 500}
        return {"latency": latency, "prices": _PRICES, **members}

    return {
        "version": "sr-bench-lab-1",
        "time_scale": time_scale,
        "models": {
            "lab-large": model(120, output_tokens=80),
            "lab-small": model(30, output_tokens=30),
            "lab-silent": model(40, usage_shape="missing"),
            "lab-judge": model(30, judge_agreement=0.95),
        },
        "routers": {
            "lab-router": {
                "decisions": [
                    {"name": "panel", "categories": [CHOICES], "calls": ["lab-small", "lab-large"]},
                ],
                "default": {"name": "rest", "model": "lab-small"},
                "classifier_accuracy": 0.6,
            }
        },
        "faults": [
            {"kind": "rate_limit", "rate": 0.05, "retry_after_s": 0.3},
            {"kind": "unavailable", "rate": 0.02, "retry_after_s": 0.2},
            {"kind": "http_error", "rate": 0.03},
            {"kind": "reset", "rate": 0.02},
            {"kind": "cut", "rate": 0.03},
            {"kind": "error_event", "rate": 0.02},
            {"kind": "slow", "rate": 0.03, "seconds": 1},
        ],
    }


@dataclass
class PlanMaker:
    """Freezes plans over two datasets: choices alone, and choices with judged questions."""

    store: Store
    folder: Path
    targets: Sequence[Mapping[str, Any]]
    judge: Mapping[str, Any]
    cases: int = 16

    def __post_init__(self) -> None:
        self._choices = publish_cases(self.store, self.cases, CHOICES)
        judged = publish_cases(self.store, self.cases // 2, JUDGED, first=self.cases)
        self._mixed: DatasetManifest = combine(self.store, [self._choices, judged])

    def plan(self, number: int, draw: random.Random) -> tuple[Path, FrozenPlan]:
        """Plan `number` (its sampling seed, so that its requests differ from all others'), with drawn targets,
        concurrency and budget: its file and itself, put in the store."""
        mixed = draw.random() < 0.4
        # One subject only where a judge is called: two with the same reply would ask the judge the same.
        count = 1 if mixed else draw.randint(1, len(self.targets))
        limits = {
            "concurrency": draw.choice([4, 8, 16, 32, 64]),
            "max_cost_usd": draw.choice(["5", "5", "0.02", "0.003"]),
            "max_consecutive_failures": draw.choice([4, 1000]),
            "total_timeout_s": 30,
            "idle_timeout_s": 10,
        }
        document = manifest_document(
            self._mixed if mixed else self._choices,
            name=f"crash-{number}",
            targets=draw.sample(list(self.targets), count),
            limits=limits,
            sampling={"seed": number, "max_tokens": 200, "stream": draw.random() < 0.8},
            **(self._judged() if mixed else {}),
        )
        path = self.folder / f"crash-{number}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        plan = freeze_file(path, self.store, {})
        put_plan(self.store, plan)
        path.write_text(json.dumps(plan_document(plan)), encoding="utf-8")
        return path, plan

    def _judged(self) -> dict[str, Any]:
        grader = {"grader_version": "sr-bench-reference-judge-v1"}
        return {"auxiliary_targets": {"judge": self.judge}, "benchmark_options": {JUDGED: grader}}
