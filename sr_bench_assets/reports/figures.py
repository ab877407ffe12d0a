"""The figures of one target over a set of cells: denominators, accuracy, tokens, money, times, diagnostics.

Planned cells are the denominator; everything that did not end as a right answer counts as not correct. A
figure that is unknown is None and has a sibling `<name>_reason`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from resources.journal.money import decimal_text
from sr_bench_assets.reports.facts import CallFact, CellFact
from sr_bench_assets.reports.statistics import percentile, wilson
from sr_bench_assets.usage.amounts import Amount, add_up, total

PERCENTS = (50, 95, 99)
CLOCK_DIGITS = 6
"""Times are measured in microseconds; more digits would be noise of the arithmetic."""


def figures(
    planned: int, cells: Sequence[CellFact], calls: Sequence[CallFact], *, mode: str
) -> dict[str, Any]:
    """All figures of one target over `planned` cells, in the report's key order."""
    subject = [call for call in calls if call.role == "subject" and call.outcome != "refused"]
    answered = [call for call in subject if call.outcome == "completed"]
    return {
        **quality(planned, cells, mode=mode),
        **tokens(subject),
        **costs(calls),
        **times(subject, answered),
        **routing(answered),
        **continuity(answered),
        **cache_ratio(answered),
        **diagnostics(cells, calls),
    }


def quality(planned: int, cells: Sequence[CellFact], *, mode: str) -> dict[str, Any]:
    """Counts and accuracy. planned = scored + ungraded + failed + ambiguous + pending."""
    status = Counter(cell.status for cell in cells)
    scored = sum(cell.status == "completed" and cell.correct is not None for cell in cells)
    correct = sum(cell.right for cell in cells)
    pending = planned - len(cells)
    counts: dict[str, Any] = {
        "planned": planned,
        "scored": scored,
        "correct": correct,
        "failed": status["failed"],
        "ambiguous": status["ambiguous"],
        "ungraded": status["completed"] - scored,
        "pending": pending,
        "complete": pending == 0 and status["ambiguous"] == 0,
    }
    if mode != "live":
        reason = "a route preview generates no answers"
    elif planned == 0:
        reason = "no planned cases"
    else:
        interval = wilson(correct, planned)
        return {
            **counts,
            "accuracy": correct / planned,
            "accuracy_ci95": list(interval) if interval else None,
        }
    nothing = {
        "accuracy": None,
        "accuracy_reason": reason,
        "accuracy_ci95": None,
        "accuracy_ci95_reason": reason,
    }
    return {**counts, **nothing}


def tokens(subject: Sequence[CallFact]) -> dict[str, Any]:
    """Subject tokens in four exclusive buckets; None when any generated call's usage is unknown."""
    known = [call.tokens for call in subject if call.tokens is not None]
    sums = {
        "input_tokens": sum(t[0] for t in known),
        "cached_input_tokens": sum(t[1] for t in known),
        "cache_write_tokens": sum(t[2] for t in known),
        "output_tokens": sum(t[3] for t in known),
    }
    missing = len(subject) - len(known)
    if not missing:
        return {"tokens": sums}
    reason = f"{missing} of {len(subject)} subject calls have no known usage"
    return {"tokens": None, "tokens_reason": reason, "known_tokens": sums}


def costs(calls: Sequence[CallFact]) -> dict[str, Any]:
    """Subject, judge, simulator, total and cache-neutral cost, and what is known of all of them."""
    sent = [call for call in calls if call.outcome != "refused"]
    by_role = {
        role: add_up(
            ((call.cost_usd, _why_unknown(call)) for call in sent if call.role == role), f"{role} calls"
        )
        for role in ("subject", "judge", "simulator")
    }
    everything = total(by_role.values())
    neutral = add_up(
        ((call.cache_neutral_cost_usd, _why_unknown(call)) for call in sent if call.role == "subject"),
        "subject calls",
    )
    return {
        **_amount("cost_usd", by_role["subject"]),
        "known_cost_usd": decimal_text(everything.known_usd),
        **_amount("judge_cost_usd", by_role["judge"]),
        **_amount("simulator_cost_usd", by_role["simulator"]),
        **_amount("total_cost_usd", everything),
        **_amount("cache_neutral_cost_usd", neutral),
    }


def times(subject: Sequence[CallFact], answered: Sequence[CallFact]) -> dict[str, Any]:
    """TTFT and latency of completed subject calls, the sum of all request times, and the wait for a slot.
    Seconds."""
    lasted = [call.latency_s for call in subject if call.latency_s is not None]
    result = {
        **_percentiles("ttft", [call.ttft_s for call in answered], "no completed streamed call"),
        **_percentiles("latency", [call.latency_s for call in answered], "no completed call"),
        "request_time_sum_s": round(sum(lasted), CLOCK_DIGITS) if lasted or not subject else None,
    }
    if result["request_time_sum_s"] is None:
        result["request_time_sum_s_reason"] = "no call has a known end"
    if len(lasted) < len(subject):
        result["request_time_unknown_calls"] = len(subject) - len(lasted)
    return {
        **result,
        **_percentiles("queue_wait", [call.queue_wait_s for call in subject], "no call was sent"),
    }


def routing(answered: Sequence[CallFact]) -> dict[str, Any]:
    """Which models answered and, for a MoM, what the router chose and by which decision."""
    return {
        "selected_models": _counted(call.selected_model for call in answered),
        "decisions": _counted(call.decision for call in answered),
        "response_models": _counted(call.model for call in answered),
    }


def continuity(answered: Sequence[CallFact]) -> dict[str, Any]:
    """How often the router changed the model within tasks of several requests."""
    by_case: defaultdict[str, list[CallFact]] = defaultdict(list)
    for call in answered:
        if call.selected_model is not None:
            by_case[call.case_id].append(call)
    several = [
        sorted(group, key=lambda c: (c.step, c.attempt)) for group in by_case.values() if len(group) > 1
    ]
    if not several:
        return {"continuity": None, "continuity_reason": "no task with several routed requests"}
    switches = [sum(a.selected_model != b.selected_model for a, b in pairwise(group)) for group in several]
    return {
        "continuity": {
            "multi_request_tasks": len(several),
            "tasks_with_switch": sum(n > 0 for n in switches),
            "model_switches": sum(switches),
            "transitions": sum(len(group) - 1 for group in several),
        }
    }


def cache_ratio(answered: Sequence[CallFact]) -> dict[str, Any]:
    """Cached prompt tokens over all prompt tokens, of the calls whose provider reported cache reads."""
    reporting = [call.tokens for call in answered if call.cache_read_reported and call.tokens is not None]
    prompt = sum(t[0] + t[1] + t[2] for t in reporting)
    if not prompt:
        return {
            "cache_read_ratio": None,
            "cache_read_ratio_reason": "no completed subject call reported cache reads",
            "cache_reporting_calls": len(reporting),
        }
    return {
        "cache_read_ratio": sum(t[1] for t in reporting) / prompt,
        "cache_reporting_calls": len(reporting),
    }


def diagnostics(cells: Sequence[CellFact], calls: Sequence[CallFact]) -> dict[str, Any]:
    """How answers looked, how generations finished, what failed, what was sent."""
    graded = [cell for cell in cells if cell.status == "completed"]
    strict = Counter(cell.strict_format for cell in graded)
    subject = [call for call in calls if call.role == "subject"]
    return {
        "answer_format": {
            **{
                status: sum(cell.answer_status == status for cell in graded)
                for status in ("parsed", "ambiguous", "unparsed", "not_applicable")
            },
            "strict": strict[True],
            "not_strict": strict[False],
        },
        "finish_reasons": _counted(
            call.finish_reason or "none" for call in subject if call.outcome == "completed"
        ),
        "failures": _counted(cell.failure or "unknown" for cell in cells if cell.status == "failed"),
        "call_failures": _counted(call.failure or "unknown" for call in calls if call.outcome == "failed"),
        "calls": {
            "subject": len(subject),
            "judge": sum(call.role == "judge" for call in calls),
            "simulator": sum(call.role == "simulator" for call in calls),
            "refused": sum(call.outcome == "refused" for call in calls),
            "no_end": sum(call.outcome is None for call in calls),
        },
    }


def _why_unknown(call: CallFact) -> str:
    return "no end known" if call.outcome is None else call.cost_reason or call.failure or "not recorded"


def _amount(name: str, amount: Amount) -> dict[str, Any]:
    pair: dict[str, Any] = {name: decimal_text(amount.usd)}
    if amount.usd is None:
        pair[f"{name}_reason"] = amount.reason
    return pair


def _percentiles(name: str, values: Iterable[float | None], reason: str) -> dict[str, Any]:
    results = percentile([value for value in values if value is not None], PERCENTS)
    pairs: dict[str, Any] = {
        f"{name}_p{p}_s": None if value is None else round(value, CLOCK_DIGITS)
        for p, value in zip(PERCENTS, results, strict=True)
    }
    return {**pairs, **({f"{key}_reason": reason for key in pairs} if results[0] is None else {})}


def _counted(values: Iterable[str | None]) -> dict[str, int]:
    """Counts, most frequent first, ties by name; unknown values are left out."""
    counts = Counter(value for value in values if value is not None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
