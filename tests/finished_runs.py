"""Finished runs in a real store and journal, made from a table of outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import insert

from resources.canonical import content_hash, sha256_bytes
from resources.gateway.evidence import Evidence, encode_evidence, rebuild_reply
from resources.gateway.pricing import CallCost, price_call, price_mom, price_mom_direct, unknown_cost
from resources.gateway.record import Reply
from resources.gateway.router import RouterReceipt, read_receipt
from resources.journal.calls import CallEnd, Dispatch
from resources.journal.connection import Journal
from resources.journal.evidence import SegmentWriter
from resources.journal.results import ResultRow
from resources.journal.runs import RunStatus, create_run, finish_run, start_run
from resources.journal.schema import calls, results
from resources.store import Store
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import put_plan

FLASH = {"input": "0.65", "cached_input": "0.065", "cache_write": "0.8125", "output": "1.95"}
GLM = {"input": "1.20", "cached_input": "0.120", "cache_write": "1.5000", "output": "3.60"}
PRICES = {"Flash": FLASH, "GLM": GLM}
WEIGHTS = {"gpqa-diamond": "3/20", "hle": "3/20"}


def single(target_id: str, model: str | None = None, **members: Any) -> dict[str, Any]:
    """A single-model target that serves `model` at the table's price."""
    model = model or target_id
    base = {"id": target_id, "kind": "single", "base_url": "http://127.0.0.1:9/v1", "model": model}
    return {**base, "prices": {model: PRICES[model]} if model in PRICES else None, **members}


def mom(target_id: str = "MoM", **members: Any) -> dict[str, Any]:
    """A MoM target over both models."""
    base = {"id": target_id, "kind": "mom", "base_url": "http://127.0.0.1:9/v1", "model": "MoM/balance"}
    return {**base, "prices": PRICES, "config_hash": "c" * 64, "max_inference_calls": 3, **members}


def frozen_plan(
    targets: list[dict[str, Any]], counts: Mapping[str, int] | None = None, **members: Any
) -> FrozenPlan:
    """A frozen plan over cases `<benchmark>/0…n-1`; `members` replace any of the document."""
    sizes = dict(counts or {"mmlu-pro": 4})
    ids = [f"{name}/{number}" for name, n in sizes.items() for number in range(n)]
    document: dict[str, Any] = {
        "name": "Development comparison",
        "profile": "quick",
        "dataset": {"path": "/nowhere/cases.jsonl", "sha256": "d" * 64},
        "targets": targets,
        "benchmarks": {
            name: {
                "adapter_version": "1",
                "grader_version": None,
                "kind": "multiple_choice",
                "weight": WEIGHTS.get(name, "1/10"),
                "case_count": n,
                "case_sha256": content_hash([name, n]),
            }
            for name, n in sizes.items()
        },
        "dataset_id": "e" * 64,
        "dataset_split": "dev",
        "dataset_provenance": {"custom_subset": False},
        "case_sha256": sha256_bytes("\n".join(ids).encode()),
        "case_count": len(ids),
        **members,
        "plan_sha256": "",
    }
    plan = FrozenPlan.model_validate(document)
    digest = content_hash(plan.model_dump(mode="json", exclude={"plan_sha256"}))
    return plan.model_copy(update={"plan_sha256": digest})


@dataclass(frozen=True)
class Outcome:
    """How one cell ended and what its subject call was. None as `status`: never dispatched."""

    status: str | None = "completed"
    correct: bool | None = True
    failure: str | None = None
    answer_status: str = "parsed"
    model: str = "Flash"
    """Model that the reply names."""
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    )
    finish_reason: str = "stop"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    end: str = "eof"
    judge: bool = False
    """A judge call (by the plan's judge) follows."""
    lab: bool = False
    recorded: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Columns of the call's record that differ from what its evidence says."""


RIGHT, WRONG = Outcome(), Outcome(correct=False)
FAILED = Outcome(
    status="failed", correct=None, failure="stream_truncated", answer_status="not_applicable", end="reset"
)
PENDING = Outcome(status=None)

Outcomes = Callable[[str, Target], Outcome]


def from_text(text: Mapping[str, str], **members: Any) -> Outcomes:
    """Outcomes written as one character a case: 1 right, 0 wrong, f failed, . never dispatched; by target id.

    `members` go to every outcome; the reply's model is the target's where it is priced.
    """
    kinds = {"1": RIGHT, "0": WRONG, "f": FAILED, ".": PENDING}

    def outcome(case_id: str, target: Target) -> Outcome:
        number = int(case_id.partition("/")[2])
        model = target.model if target.kind == "single" else "Flash"
        return replace(kinds[text[target.id][number]], model=model, **members)

    return outcome


def finished_run(
    store: Store,
    journal: Journal,
    plan: FrozenPlan,
    outcomes: Outcomes,
    *,
    status: RunStatus = "completed",
    reason: str | None = None,
) -> str:
    """Journal a run of `plan` in which every cell ended as `outcomes` says; returns its id."""
    put_plan(store, plan)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=plan.case_count * len(plan.targets),
        budget_usd=plan.limits.max_cost_usd,
    )
    start_run(journal, run.id)
    call_rows: list[dict[str, Any]] = []
    result_rows: list[dict[str, Any]] = []
    for name, planned in plan.benchmarks.items():
        segment = SegmentWriter(store.evidence_dir(run.id), name)
        for number in range(planned.case_count):
            for target in plan.targets:
                case_id = f"{name}/{number}"
                found = outcomes(case_id, target)
                if found.status is None:
                    continue
                sent = [(target, "subject", found)]
                if found.judge and plan.auxiliary_targets.judge:
                    judge = plan.auxiliary_targets.judge
                    sent.append((judge, "judge", replace(found, model=judge.model, recorded={}, headers={})))
                for endpoint, role, outcome in sent:
                    row = _call(
                        segment, run.id, len(call_rows), name, case_id, target.id, endpoint, role, outcome
                    )
                    call_rows.append(row)
                if found.status != "running":
                    result_rows.append(_result(run.id, len(result_rows), name, case_id, target.id, found))
        segment.close()
    with journal.begin() as connection:
        for table, rows in ((calls, call_rows), (results, result_rows)):
            if rows:
                connection.execute(insert(table), rows)
    if status not in ("queued", "running"):
        finish_run(journal, run.id, status, reason)
    return run.id


def stream_bytes(outcome: Outcome) -> bytes:
    """The server-sent events of a short answer, cut after the first event where the connection was reset."""
    head = {"model": outcome.model, "choices": [{"index": 0, "delta": {"content": "The answer is (A)."}}]}
    tail = {
        "model": outcome.model,
        "choices": [{"index": 0, "delta": {}, "finish_reason": outcome.finish_reason}],
        **({"usage": outcome.usage} if outcome.usage is not None else {}),
    }
    events = [head] if outcome.end == "reset" else [head, tail]
    text = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)
    return text if outcome.end == "reset" else text + b"data: [DONE]\n\n"


def _call(
    segment: SegmentWriter,
    run_id: str,
    seq: int,
    benchmark: str,
    case_id: str,
    target_id: str,
    endpoint: Target,
    role: Any,
    outcome: Outcome,
) -> dict[str, Any]:
    body = stream_bytes(outcome)
    headers = {"content-type": "text/event-stream", **outcome.headers}
    evidence = Evidence(
        request_sha256="a" * 64,
        started_at=1000.0 + seq,
        http_status=200,
        headers=headers,
        headers_us=100,
        read_sizes=[len(body)],
        read_us=[200],
        end=outcome.end,  # type: ignore[arg-type]  # a literal of the gateway, written as plain text here
        end_us=300,
        never_sent=False,
        detail=None,
        redacted=False,
        body=body,
    )
    frame, sha256 = encode_evidence(evidence)
    (place,) = segment.append([frame])
    reply = rebuild_reply(evidence)
    receipt = read_receipt(headers)
    cost = _cost(endpoint, reply, receipt)
    dispatch = Dispatch(
        benchmark=benchmark,
        case_id=case_id,
        target_id=target_id,
        role=role,
        step=0,
        attempt=0,
        request_sha256="a" * 64,
        reserved_pico=0,
        queue_wait_s=0.01,
    )
    end = CallEnd(
        call_id=dispatch.call_id,
        benchmark=benchmark,
        outcome=reply.call_status,
        spent_pico=None,
        failure=reply.failure,
        http_status=200,
        model=reply.model,
        finish_reason=reply.finish_reason,
        output_complete=reply.output_complete,
        input_tokens=reply.usage.input_tokens,
        cached_input_tokens=reply.usage.cached_input_tokens,
        cache_write_tokens=reply.usage.cache_write_tokens,
        output_tokens=reply.usage.output_tokens,
        usage=reply.usage.as_dict(),
        cost_usd=cost.cost_usd,
        cost_reason=cost.reason,
        cache_neutral_cost_usd=cost.cache_neutral_cost_usd,
        ttft_s=0.1 + seq / 1000,
        latency_s=0.5 + seq / 100,
        selected_model=receipt.selected_model if receipt else None,
        decision=receipt.decision if receipt else None,
        lab=outcome.lab,
        record={
            "text": reply.text,
            "reasoning": reply.reasoning,
            "final": reply.final,
            "tool_calls": list(reply.tool_calls),
            "flags": list(reply.flags),
            "done_count": reply.done_count,
        },
        evidence_sha256=sha256,
        finished_at=1001.0 + seq,
    )
    return {
        **dispatch.columns(run_id, seq + 1, 1000.0 + seq),
        **end.columns(1001.0 + seq),
        "evidence_segment": place.segment,
        "evidence_offset": place.offset,
        "evidence_length": place.length,
        **outcome.recorded,
    }


def _cost(endpoint: Target, reply: Reply, receipt: RouterReceipt | None) -> CallCost:
    """As a live session prices a call."""
    if reply.call_status != "completed":
        return unknown_cost("call_failed")
    if endpoint.kind == "single":
        return price_call(reply.model, reply.usage, endpoint.prices)
    if receipt is not None and receipt.children is not None and receipt.complete:
        return price_mom(receipt.children, endpoint.prices).total
    if receipt is not None and receipt.children is None and receipt.inference_call_count == 1:
        return price_mom_direct(receipt.selected_model, reply.usage, endpoint.prices)
    return unknown_cost("receipt_missing")


def _result(
    run_id: str, seq: int, benchmark: str, case_id: str, target_id: str, outcome: Outcome
) -> dict[str, Any]:
    row = ResultRow(
        case_id=case_id,
        target_id=target_id,
        benchmark=benchmark,
        status=outcome.status,  # type: ignore[arg-type]  # written as plain text in the table of outcomes
        answer="A" if outcome.status == "completed" else None,
        answer_status=outcome.answer_status,
        strict_format=True if outcome.status == "completed" else None,
        correct=outcome.correct if outcome.status == "completed" else None,
        failure=outcome.failure,
        call_count=1,
        cost_usd=Decimal(0),
        latency_s=0.5,
    )
    return row.columns(run_id, seq + 1, 2000.0)
