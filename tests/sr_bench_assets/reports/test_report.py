"""Reports of real journaled runs: denominators, unknowns, determinism, labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson
import pytest

from resources.errors import NotFound
from resources.journal.connection import Journal
from resources.store import Store
from resources.targets import Target
from sr_bench_assets.reports.limitations import LAB_SENTENCE
from sr_bench_assets.reports.report import build_report
from sr_bench_assets.reports.scorecard import build_scorecard
from sr_bench_assets.reports.statistics import wilson
from tests.finished_runs import FLASH, Outcome, finished_run, from_text, frozen_plan, mom, single

ROUTED = {
    "x-vsr-selected-model": "Flash",
    "x-vsr-selected-decision": "cheap",
    "x-vsr-inference-call-count": "1",
}


def row(report: dict[str, Any], target_id: str) -> dict[str, Any]:
    return next(row for row in report["targets"] if row["id"] == target_id)


def nulls_without_reason(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            if member is None and not value.get(f"{key}_reason"):
                yield f"{path}.{key}"
            yield from nulls_without_reason(member, f"{path}.{key}")
    elif isinstance(value, list):
        for number, member in enumerate(value):
            yield from nulls_without_reason(member, f"{path}[{number}]")


def test_everything_but_a_right_answer_counts_as_not_correct(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash")], {"mmlu-pro": 8})
    kinds = {
        0: Outcome(),
        1: Outcome(correct=False),
        2: Outcome(correct=False, answer_status="unparsed"),
        3: Outcome(status="failed", correct=None, failure="length", finish_reason="length"),
        4: Outcome(status="failed", correct=None, failure="stream_truncated", end="reset"),
        5: Outcome(correct=None, answer_status="not_applicable"),
        6: Outcome(status="ambiguous", correct=None, recorded={"outcome": None, "finished_at": None}),
        7: Outcome(status=None),
    }
    run_id = finished_run(
        store,
        journal,
        plan,
        lambda case, _: kinds[int(case.split("/")[1])],
        status="partial",
        reason="broken",
    )
    report = build_report(store, journal, run_id)
    found = row(report, "Flash")
    assert {
        key: found[key]
        for key in ("planned", "scored", "correct", "failed", "ambiguous", "ungraded", "pending")
    } == {
        "planned": 8,
        "scored": 3,
        "correct": 1,
        "failed": 2,
        "ambiguous": 1,
        "ungraded": 1,
        "pending": 1,
    }
    assert found["accuracy"] == 1 / 8
    assert found["accuracy_ci95"] == list(wilson(1, 8) or ())
    assert found["failures"] == {"length": 1, "stream_truncated": 1}
    assert found["finish_reasons"] == {"stop": 4, "length": 1}
    assert found["answer_format"]["unparsed"] == 1
    assert report["complete"] is False
    assert report["status"] == "partial"
    assert any("Incomplete" in line and "broken" in line for line in report["limitations"])


def test_unknown_is_null_with_a_reason_and_the_known_part_stays_visible(
    store: Store, journal: Journal
) -> None:
    plan = frozen_plan([single("Flash"), mom()])
    run_id = finished_run(store, journal, plan, from_text({"Flash": "11f0", "MoM": "1111"}))
    report = build_report(store, journal, run_id)
    flash, routed = row(report, "Flash"), row(report, "MoM")
    each = (Decimal("0.65") * 100 + Decimal("1.95") * 20) / 10**6
    assert flash["cost_usd"] is None
    assert "call_failed 1" in flash["cost_usd_reason"]
    assert Decimal(flash["known_cost_usd"]) == 3 * each
    assert flash["tokens"] is None
    assert flash["known_tokens"]["input_tokens"] == 300
    # The MoM sent no receipt: nothing proves what was called.
    assert routed["cost_usd"] is None
    assert "receipt_missing 4" in routed["cost_usd_reason"]
    assert routed["cache_neutral_cost_usd"] is None
    assert not list(nulls_without_reason(report))


def test_costs_add_up_exactly_and_judges_are_apart(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("GLM")], auxiliary_targets={"judge": single("judge", "Flash")})
    cached = {
        "prompt_tokens": 2006,
        "completion_tokens": 300,
        "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 6},
    }
    run_id = finished_run(store, journal, plan, from_text({"GLM": "1100"}, judge=True, usage=cached))
    found = row(build_report(store, journal, run_id), "GLM")
    subject = (
        4 * (Decimal("1.2") * 80 + Decimal("0.12") * 1920 + Decimal("1.5") * 6 + Decimal("3.6") * 300) / 10**6
    )
    counts = {"input": 80, "cached_input": 1920, "cache_write": 6, "output": 300}
    judge = 4 * sum((Decimal(FLASH[name]) * n for name, n in counts.items()), Decimal(0)) / 10**6
    assert Decimal(found["cost_usd"]) == subject
    assert Decimal(found["judge_cost_usd"]) == judge
    assert found["simulator_cost_usd"] == "0"
    assert Decimal(found["total_cost_usd"]) == Decimal(found["known_cost_usd"]) == subject + judge
    assert (
        Decimal(found["cache_neutral_cost_usd"]) == 4 * (Decimal("1.2") * 2006 + Decimal("3.6") * 300) / 10**6
    )
    assert found["tokens"] == {
        "input_tokens": 320,
        "cached_input_tokens": 7680,
        "cache_write_tokens": 24,
        "output_tokens": 1200,
    }
    assert found["cache_read_ratio"] == pytest.approx(1920 / 2006)
    assert found["calls"] == {"subject": 4, "judge": 4, "simulator": 0, "refused": 0, "no_end": 0}


def test_refused_and_never_sent_calls_cost_nothing_and_hide_no_tokens(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash")], {"mmlu-pro": 2})
    nothing = {"usage": None, "cost_usd": None, "input_tokens": None, "spent_pico": 0}
    kinds = [
        Outcome(recorded={**nothing, "outcome": "refused"}),
        Outcome(
            status="failed",
            correct=None,
            failure="connect_error",
            recorded={**nothing, "outcome": "failed", "failure": "connect_error"},
        ),
    ]
    run_id = finished_run(store, journal, plan, lambda case, _: kinds[int(case.split("/")[1])])
    found = row(build_report(store, journal, run_id), "Flash")
    assert found["cost_usd"] == "0"
    assert found["tokens"] == dict.fromkeys(found["tokens"], 0)
    assert found["calls"]["refused"] == 1


def test_the_same_run_gives_the_same_bytes(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash"), mom()], {"mmlu-pro": 4, "gpqa-diamond": 3})
    run_id = finished_run(store, journal, plan, from_text({"Flash": "1101", "MoM": "0111"}, headers=ROUTED))
    first = orjson.dumps(build_report(store, journal, run_id))
    assert orjson.dumps(build_report(store, journal, run_id[:6])) == first


def test_routing_and_times_of_a_mom(store: Store, journal: Journal) -> None:
    plan = frozen_plan([mom()])

    def outcome(case_id: str, _: Target) -> Outcome:
        chosen = "GLM" if case_id.endswith("/0") else "Flash"
        return Outcome(model=chosen, headers={**ROUTED, "x-vsr-selected-model": chosen})

    report = build_report(store, journal, finished_run(store, journal, plan, outcome))
    found = row(report, "MoM")
    assert found["selected_models"] == {"Flash": 3, "GLM": 1}
    assert found["decisions"] == {"cheap": 4}
    assert found["ttft_p50_s"] == 0.1015
    assert found["latency_p50_s"] == 0.515
    assert found["latency_p99_s"] == 0.5297
    assert found["request_time_sum_s"] == 2.06
    assert found["queue_wait_p50_s"] == 0.01
    assert report["wall_time_s"] >= 0


def test_macro_weights_a_subset_and_is_no_full_score(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash")], {"mmlu-pro": 4, "gpqa-diamond": 2})
    run_id = finished_run(store, journal, plan, from_text({"Flash": "1000"}))
    found = row(build_report(store, journal, run_id), "Flash")
    # 2/5 × 1/4 + 3/5 × 1/2
    assert found["macro_accuracy_fraction"] == "2/5"
    assert found["macro_accuracy"] == 0.4
    assert found["macro_label"] == "subset of 2 benchmarks"
    assert found["score"] is None
    assert "25 %" in found["score_reason"]


NINE = [
    "mmlu-pro",
    "gpqa-diamond",
    "hle",
    "livecodebench",
    "scicode",
    "terminal-bench-2.1",
    "simpleqa-verified",
    "arc-agi-2",
    "tau3",
]


@pytest.mark.parametrize("pending", [False, True])
def test_the_full_score_needs_all_nine_complete(store: Store, journal: Journal, pending: bool) -> None:
    plan = frozen_plan([single("Flash")], dict.fromkeys(NINE, 2))

    def outcome(case_id: str, _: Target) -> Outcome:
        last = case_id == "tau3/1"
        return Outcome(status=None if pending and last else "completed", correct=case_id.endswith("/0"))

    run_id = finished_run(store, journal, plan, outcome, status="partial" if pending else "completed")
    found = row(build_report(store, journal, run_id), "Flash")
    assert found["macro_accuracy_fraction"] == "1/2"
    assert found["score"] == (None if pending else 0.5)
    assert found.get("score_reason") == ("not every planned cell ended" if pending else None)


def test_lab_and_sample_data_are_said_in_plain_words(store: Store, journal: Journal) -> None:
    plan = frozen_plan(
        [single("Flash")], dataset_provenance={"sample_data": "own questions", "custom_subset": True}
    )

    def outcome(case_id: str, _: Target) -> Outcome:
        return Outcome(lab=case_id.endswith("/0"))

    report = build_report(store, journal, finished_run(store, journal, plan, outcome))
    assert report["lab"] is True
    assert report["sample_data"] == "own questions"
    assert report["limitations"][0] == LAB_SENTENCE
    assert "own questions" in report["limitations"][1]
    assert any("Custom subset" in line for line in report["limitations"])


def test_a_partition_holds_nothing_of_the_others(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash")], {"mmlu-pro": 4, "gpqa-diamond": 2})
    run_id = finished_run(store, journal, plan, from_text({"Flash": "1110"}), status="running")
    part = build_report(store, journal, run_id, "gpqa-diamond")
    assert part["partition"] == "gpqa-diamond"
    assert "status" not in part
    assert part["complete"] is True
    assert [item["planned"] for item in part["targets"]] == [2]
    assert list(part["provenance"]["benchmarks"]) == ["gpqa-diamond"]
    with pytest.raises(NotFound, match="hle"):
        build_report(store, journal, run_id, "hle")


def test_a_preview_has_no_quality(store: Store, journal: Journal) -> None:
    plan = frozen_plan([mom()], mode="preview")
    report = build_report(
        store, journal, finished_run(store, journal, plan, lambda *_: Outcome(correct=None))
    )
    found = row(report, "MoM")
    assert found["accuracy"] is found["macro_accuracy"] is found["score"] is None
    assert not list(nulls_without_reason(report))


def test_no_address_and_no_name_of_a_key_is_in_a_report(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash", api_key_env="MY_MODEL_KEY")])
    text = orjson.dumps(
        build_report(store, journal, finished_run(store, journal, plan, from_text({"Flash": "1111"})))
    )
    assert b"MY_MODEL_KEY" not in text
    assert b"127.0.0.1" not in text


def test_tasks_of_several_requests_show_how_often_the_model_changed() -> None:
    from sr_bench_assets.reports.facts import CallFact
    from sr_bench_assets.reports.figures import continuity

    call = CallFact(
        id="", case_id="tau3/a/1", target_id="MoM", benchmark="tau3", role="subject", step=0, attempt=0,
        outcome="completed", failure=None, model=None, finish_reason=None, tokens=None, cache_read_reported=False,
        cost_usd=None, cost_reason=None, cache_neutral_cost_usd=None, dispatched_at=0, finished_at=1, ttft_s=None,
        latency_s=None, queue_wait_s=None, selected_model=None, decision=None, lab=False,
    )  # fmt: skip
    steps = [replace(call, step=n, selected_model=model) for n, model in enumerate(("a", "a", "b", "a"))]
    alone = replace(call, case_id="tau3/a/2", selected_model="b")
    assert continuity([steps[2], steps[0], steps[3], steps[1], alone])["continuity"] == {
        "multi_request_tasks": 1,
        "tasks_with_switch": 1,
        "model_switches": 2,
        "transitions": 3,
    }


def test_the_scorecard_puts_the_best_first(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("GLM"), single("Flash")], {"mmlu-pro": 4, "gpqa-diamond": 2})
    run_id = finished_run(store, journal, plan, from_text({"GLM": "1000", "Flash": "1110"}))
    card = build_scorecard(build_report(store, journal, run_id))
    assert [item["id"] for item in card["targets"]] == ["Flash", "GLM"]
    assert card["targets"][0]["benchmarks"]["gpqa-diamond"]["accuracy"] == 1.0
