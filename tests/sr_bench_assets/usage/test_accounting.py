"""Usage reconciliation of real journaled runs with real evidence."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest
from sqlalchemy import select

from resources.errors import SrBenchError
from resources.journal.connection import Journal
from resources.journal.schema import calls
from resources.journal.seals import list_seals
from resources.store import Store
from resources.targets import Target
from sr_bench_assets.reports.report import build_report
from sr_bench_assets.usage.accounting import reconcile_partition, reconcile_run
from sr_bench_assets.usage.rebuild import rebuild_run
from tests.finished_runs import Outcome, finished_run, from_text, frozen_plan, mom, single

FLASH_CALL = (Decimal("0.65") * 100 + Decimal("1.95") * 20) / 10**6


def rows_of(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    with journal.connect() as connection:
        found = connection.execute(select(calls).where(calls.c.run_id == run_id).order_by(calls.c.seq))
        return [dict(row._mapping) for row in found]


def written_run(store: Store, journal: Journal) -> str:
    """Four calls; the record of the second counts cache writes as fresh input, the third has lost its usage."""
    usage = {
        "prompt_tokens": 3136,
        "completion_tokens": 700,
        "prompt_tokens_details": {"cache_write_tokens": 2352},
    }
    wrong = {"input_tokens": 3136, "cache_write_tokens": 0, "cost_usd": "0.0034034"}
    lost = {
        **dict.fromkeys(("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")),
        "usage": orjson.dumps({"status": "unknown", "reason": "missing"}).decode(),
        "cost_usd": None,
        "cost_reason": "usage_unknown",
        "cache_neutral_cost_usd": None,
    }
    recorded = {"mmlu-pro/1": wrong, "mmlu-pro/2": lost}

    def outcome(case_id: str, _: Target) -> Outcome:
        return Outcome(usage=usage, recorded=recorded.get(case_id, {}))

    return finished_run(store, journal, frozen_plan([single("Flash")]), outcome)


def test_a_wrong_record_is_corrected_beside_the_journal(store: Store, journal: Journal) -> None:
    run_id = written_run(store, journal)
    before = rows_of(journal, run_id)
    old = build_report(store, journal, run_id)["targets"][0]
    found = reconcile_run(store, journal, run_id)
    assert rows_of(journal, run_id) == before
    assert found["counts"] == {
        "calls": 4,
        "verified": 2,
        "corrected": 2,
        "unknown": 0,
        "changed": 2,
        "kept_receipts": 0,
        "without_spend": 0,
    }
    one = Decimal("0.0037856")
    assert Decimal(found["old_known_cost_usd"]) == 2 * one + Decimal("0.0034034")
    assert Decimal(found["new_known_cost_usd"]) == 4 * one

    report = build_report(store, journal, run_id)
    new = report["targets"][0]
    assert old["cost_usd"] is None
    assert Decimal(new["cost_usd"]) == 4 * one
    assert new["tokens"]["cache_write_tokens"] == 4 * 2352
    told = report["provenance"]["accounting"]
    assert told["sha256"] == found["sha256"]
    assert told["counts"]["corrected"] == 2
    assert told["old_known_cost_usd"] == found["old_known_cost_usd"]
    assert not any("not been reconciled" in line for line in report["limitations"])


def test_repeating_it_changes_nothing(store: Store, journal: Journal) -> None:
    run_id = written_run(store, journal)
    first = reconcile_run(store, journal, run_id)
    seals = list_seals(journal, run_id, kind="accounting")
    assert reconcile_run(store, journal, run_id[:6]) == first
    assert list_seals(journal, run_id, kind="accounting") == seals
    assert [seal.version for seal in seals] == [1]
    assert reconcile_partition(store, journal, run_id, "mmlu-pro").seal == seals[0]


def test_failed_and_changed_evidence_prove_no_cost(store: Store, journal: Journal) -> None:
    run_id = finished_run(store, journal, frozen_plan([single("Flash")]), from_text({"Flash": "11f0"}))
    segment = store.evidence_dir(run_id) / "mmlu-pro.0.seg"
    data = bytearray(segment.read_bytes())
    data[20] ^= 0xFF  # within the first call's frame
    segment.write_bytes(data)
    found = reconcile_run(store, journal, run_id)
    assert found["unknown_reasons"] == {"call_failed": 1, "evidence_changed": 1}
    assert Decimal(found["old_known_cost_usd"]) == 3 * FLASH_CALL
    assert Decimal(found["new_known_cost_usd"]) == 2 * FLASH_CALL
    row = build_report(store, journal, run_id)["targets"][0]
    assert row["cost_usd"] is None
    assert "evidence_changed 1" in row["cost_usd_reason"]

    segment.unlink()
    assert reconcile_run(store, journal, run_id)["unknown_reasons"] == {
        "call_failed": 1,
        "evidence_missing": 3,
    }
    versions = [seal.version for seal in list_seals(journal, run_id, kind="accounting")]
    assert versions == [1, 2]


def receipt(*children: tuple[str, int, int], complete: bool = True) -> dict[str, str]:
    parts = [{"model": m, "usage": {"prompt_tokens": p, "completion_tokens": c}} for m, p, c in children]
    text = orjson.dumps({"version": 1, "complete": complete, "calls": parts}).decode()
    return {
        "x-vsr-selected-model": children[-1][0],
        "x-vsr-inference-call-count": str(len(children)),
        "x-vsr-model-usage": text,
    }


def test_moms_direct_by_receipt_and_without(store: Store, journal: Journal) -> None:
    direct = {"x-vsr-selected-model": "Flash", "x-vsr-inference-call-count": "1"}
    kinds = {
        "mmlu-pro/0": Outcome(headers=direct),
        "mmlu-pro/1": Outcome(headers=receipt(("Flash", 100, 20))),
        "mmlu-pro/2": Outcome(headers=receipt(("GLM", 500, 50), ("Flash", 100, 20))),
        "mmlu-pro/3": Outcome(headers=receipt(("GLM", 500, 50), ("Flash", 100, 20), complete=False)),
        "mmlu-pro/4": Outcome(headers={**direct, "x-vsr-selected-model": "GLM"}),
        "mmlu-pro/5": Outcome(),
    }
    plan = frozen_plan([mom()], {"mmlu-pro": 6})
    run_id = finished_run(store, journal, plan, lambda case_id, _: kinds[case_id])
    found = reconcile_run(store, journal, run_id)
    assert found["counts"]["verified"] == 2
    assert found["counts"]["kept_receipts"] == 1
    assert found["unknown_reasons"] == {"model_mismatch": 1, "no_accounted_call": 2, "several_calls": 1}
    compound = (Decimal("1.2") * 500 + Decimal("3.6") * 50) / 10**6 + FLASH_CALL
    # The stream cannot prove the compound call's receipt, but the retained receipt still prices it.
    assert Decimal(found["new_known_cost_usd"]) == 2 * FLASH_CALL + compound


def test_judge_calls_are_priced_by_the_judge(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("GLM")], auxiliary_targets={"judge": single("judge", "Flash")})
    run_id = finished_run(store, journal, plan, from_text({"GLM": "1100"}, judge=True))
    found = reconcile_run(store, journal, run_id)
    assert found["counts"]["verified"] == 8
    assert found["counts"]["changed"] == 0
    assert found["old_known_cost_usd"] == found["new_known_cost_usd"]


@pytest.mark.parametrize(
    ("status", "mode", "code"), [("running", "live", "not_terminal"), ("completed", "preview", "not_live")]
)
def test_only_ended_live_runs(store: Store, journal: Journal, status: Any, mode: str, code: str) -> None:
    plan = frozen_plan([single("Flash")], mode=mode)
    run_id = finished_run(store, journal, plan, from_text({"Flash": "1111"}), status=status)
    with pytest.raises(SrBenchError) as caught:
        reconcile_run(store, journal, run_id)
    assert caught.value.code == code


def test_derived_records_are_rebuilt_from_evidence(store: Store, journal: Journal) -> None:
    run_id = finished_run(store, journal, frozen_plan([single("Flash")]), from_text({"Flash": "11f0"}))
    assert rebuild_run(store, journal, run_id) == {
        "run_id": run_id,
        "calls": 4,
        "equal": 4,
        "different": [],
        "without_evidence": 0,
        "reasons": {},
    }


def test_rebuilding_names_what_differs(store: Store, journal: Journal) -> None:
    def outcome(case_id: str, _: Target) -> Outcome:
        if case_id.endswith("/1"):
            return Outcome(recorded={"finish_reason": "length", "model": "GLM"})
        if case_id.endswith("/2"):
            nothing = ("evidence_segment", "evidence_length", "evidence_sha256")
            return Outcome(recorded=dict.fromkeys(nothing))
        return Outcome()

    run_id = finished_run(store, journal, frozen_plan([single("Flash")]), outcome)
    found = rebuild_run(store, journal, run_id)
    assert found["equal"] == 2
    assert found["without_evidence"] == 1
    assert [item["fields"] for item in found["different"]] == [["model", "finish_reason"]]
