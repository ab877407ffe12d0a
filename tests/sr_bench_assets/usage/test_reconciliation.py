"""Properties of the reconciliation rules over random streams and records."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resources.gateway.pricing import price_call
from resources.gateway.usage import normalise_usage
from resources.targets import Price
from sr_bench_assets.usage.reconciliation import (
    BUCKETS,
    RetainedStream,
    TerminalRecord,
    bucket_counts,
    reconcile,
)

PRICES = {
    "a": Price.model_validate({"input": "1", "cached_input": "0.1", "cache_write": "1.25", "output": "3"})
}
models = st.sampled_from(["a", "b", None])
finishes = st.sampled_from(["stop", "length", None])
counts = st.integers(0, 10_000)
usages = st.none() | st.fixed_dictionaries(
    {"prompt_tokens": counts, "completion_tokens": counts},
    optional={
        "total_tokens": counts,
        "prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": counts}),
    },
)
streams = st.builds(RetainedStream, st.integers(0, 3), finishes, models, usages)
records = st.builds(
    TerminalRecord,
    kind=st.sampled_from(["single", "mom"]),
    status=st.sampled_from(["completed", "failed"]),
    failure=st.sampled_from([None, "stalled"]),
    model=models,
    finish_reason=finishes,
    usage=st.none() | st.fixed_dictionaries(dict.fromkeys(BUCKETS, counts)),
    accounted_calls=st.lists(st.sampled_from("ab"), max_size=3).map(tuple),
)


@given(streams, records)
def test_an_unknown_outcome_has_a_reason_and_no_figures(
    stream: RetainedStream, record: TerminalRecord
) -> None:
    found = reconcile(stream, record, PRICES)
    if found.outcome == "unknown":
        assert found.reason
        assert found.usage is found.cost_usd is found.priced_model is found.cache_neutral_cost_usd is None
        assert found.wrong_buckets == ()
    else:
        usage = normalise_usage(stream.usage)
        assert found.reason is None
        assert found.usage == bucket_counts(usage)
        assert found.cost_usd == price_call(stream.model, usage, PRICES).cost_usd
        assert (found.priced_model is None) == (found.cost_usd is None)
        assert record.status == "completed"


@given(streams, records)
def test_a_corrected_record_verifies(stream: RetainedStream, record: TerminalRecord) -> None:
    found = reconcile(stream, record, PRICES)
    if found.outcome == "unknown":
        return
    members: dict[str, Any] = {**vars(record), "usage": found.usage}
    again = reconcile(stream, TerminalRecord(**members), PRICES)
    assert again.outcome == "verified"
    assert (again.usage, again.cost_usd) == (found.usage, found.cost_usd)
    recorded = record.usage
    assert bool(found.wrong_buckets) == (recorded is None or dict(recorded) != found.usage)
