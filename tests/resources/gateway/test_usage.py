"""Properties of usage beyond the vectors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.gateway.usage import Usage, normalise_usage

counts = st.integers(0, 10**9)
values = st.one_of(
    counts, st.floats(), st.booleans(), st.text(max_size=3), st.none(), st.lists(counts, max_size=1)
)
names = st.sampled_from(
    [
        "prompt_tokens",
        "input_tokens",
        "completion_tokens",
        "output_tokens",
        "total_tokens",
        "cache_read_input_tokens",
        "prompt_cache_hit_tokens",
        "prompt_cache_miss_tokens",
        "cache_creation_input_tokens",
        "cost",
    ]
)
details = st.dictionaries(
    st.sampled_from(["cached_tokens", "cache_write_tokens", "created_cache_tokens", "reasoning_tokens"]),
    values,
)
raws = st.builds(
    lambda plain, nested: {**plain, **nested},
    st.dictionaries(names, values),
    st.dictionaries(
        st.sampled_from(["prompt_tokens_details", "completion_tokens_details"]), details | values
    ),
)


@given(raws)
def test_known_usage_is_whole_and_unknown_says_why(raw: dict[str, Any]) -> None:
    usage = normalise_usage(raw)
    buckets = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens)
    if usage.known:
        assert all(type(bucket) is int and bucket >= 0 for bucket in buckets)
        assert usage.prompt_tokens
        assert usage.reason is None
    else:
        assert buckets == (None, None, None, None)
        assert usage.reason is not None
    assert Usage.from_dict(usage.as_dict()) == usage


@given(counts.filter(bool), counts, counts, counts)
def test_inclusive_and_additive_counters_tell_the_same(
    fresh: int, read: int, written: int, output: int
) -> None:
    additive = {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }
    inclusive = {
        "prompt_tokens": fresh + read + written,
        "completion_tokens": output,
        "total_tokens": fresh + read + written + output,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
    }
    assert normalise_usage(additive) == normalise_usage(inclusive)
    assert normalise_usage(additive).as_dict()["input_tokens"] == fresh


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ([], "invalid"),
        ("many", "invalid"),
        ({}, "missing"),
        ({"prompt_tokens": 0}, "missing"),
        ({"completion_tokens": 0}, "zero"),
        ({"prompt_tokens": 5, "completion_tokens": float("nan")}, "invalid"),
        ({"prompt_tokens": float("inf"), "completion_tokens": 1}, "invalid"),
        ({"prompt_tokens": 5, "completion_tokens": 1, "input_tokens": "5"}, "invalid"),
        ({"input_tokens": 5, "output_tokens": 1, "total_tokens": 7}, "total_mismatch"),
    ],
)
def test_reasons(raw: object, reason: str) -> None:
    assert normalise_usage(raw).reason == reason
