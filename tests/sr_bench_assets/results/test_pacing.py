"""The pacing state machines, by example and by random histories."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sr_bench_assets.results.pacing import (
    MAX_BACKOFF_S,
    CircuitBreaker,
    Pacer,
    RateProbe,
    Window,
    pause_after_refusal,
)


def test_one_refusal_closes_a_window_of_one() -> None:
    window = Window(1)
    assert window.refused(window.epoch)
    assert window.capacity == 1


def test_a_burst_of_a_fifth_refused_slows_down_without_a_stop() -> None:
    window = Window(64)
    epoch = window.epoch
    # refusals answer first: they cost the server no work
    assert not any(window.refused(epoch) for _ in range(13))
    for _ in range(51):
        window.accepted(epoch)
    assert 55 <= window.capacity < 64


def test_an_overloaded_endpoint_halves_the_window_once_per_pause() -> None:
    window = Window(64)
    epoch = window.epoch
    stops = [window.refused(epoch) for _ in range(60)]
    assert stops.count(True) == 1
    assert window.capacity == 32


def test_an_endpoint_that_takes_four_is_found_within_five_pauses() -> None:
    pacer = Pacer(ceiling=64, max_consecutive_failures=10)
    now, refusals = 0.0, []
    for _ in range(8):
        turns = []
        while pacer.may_send(now):
            turns.append(pacer.take())
            pacer.dispatched()
        for turn in turns[4:]:
            pacer.refused(turn, now, 1.0)
        for turn in turns[:4]:
            pacer.accepted(turn)
        refusals.append(len(turns[4:]))
        now = max(now + 0.05, pacer.paused_until)
    assert refusals[0] == 60
    assert refusals[1] == 28
    assert refusals[2] <= 13
    assert refusals[4] <= 6
    assert max(refusals[5:]) <= 2


@settings(deadline=None)
@given(st.integers(1, 1024), st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=400))
def test_the_window_stays_within_its_bounds(ceiling: int, history: list[tuple[bool, int]]) -> None:
    window = Window(ceiling)
    for refused, age in history:
        before = window.size
        epoch = window.epoch - age
        if refused:
            window.refused(epoch)
            assert window.size <= before
        else:
            window.accepted(epoch)
        assert 1 <= window.size <= ceiling


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 256), st.integers(0, 300))
def test_the_window_recovers_when_nothing_is_refused(ceiling: int, refusals: int) -> None:
    window = Window(ceiling)
    for _ in range(refusals):
        window.refused(window.epoch)
    for _ in range(60 * ceiling + 60):
        window.accepted(window.epoch)
    assert window.capacity == ceiling


@settings(deadline=None)
@given(
    st.integers(1, 32), st.lists(st.sampled_from(["http_error", "stalled", "cancelled", "ok"]), max_size=200)
)
def test_the_breaker_opens_exactly_at_the_limit(limit: int, history: list[str]) -> None:
    breaker = CircuitBreaker(limit)
    run, opened = 0, False
    for outcome in history:
        if outcome == "ok":
            breaker.succeeded()
            run = 0
        else:
            said = breaker.failed(outcome)
            run += outcome != "cancelled"
            assert said == (run == limit and not opened and outcome != "cancelled")
        opened = opened or run >= limit
        assert breaker.open == opened


@settings(deadline=None)
@given(st.lists(st.sampled_from(["take", "grant", "limit", "give"]), max_size=300))
def test_a_rate_probe_never_loses_count(steps: list[str]) -> None:
    probe = RateProbe()
    asking = 0
    for step in steps:
        if step == "take" and probe.open:
            probe.ask()
            asking += 1
        elif step != "take" and asking:
            {"grant": probe.granted, "limit": probe.limited, "give": probe.given_up}[step]()
            asking -= 1
            if step == "limit":
                assert probe.open == (asking < 1)
        assert probe.asking == asking


def test_a_rate_probe_doubles_with_each_grant() -> None:
    probe = RateProbe()
    probe.ask()
    probe.limited()
    allowed = []
    for _ in range(12):
        width = 0
        while probe.open and width < 5000:
            probe.ask()
            width += 1
        allowed.append(width)
        for _ in range(width - 1):
            probe.given_up()
        probe.granted()
    assert allowed[:5] == [1, 2, 4, 8, 16]
    assert allowed[-1] == 5000


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["take", "accept", "refuse", "rate", "give"]), max_size=200), st.integers(1, 8)
)
def test_a_pacer_counts_its_calls(steps: list[str], ceiling: int) -> None:
    pacer = Pacer(ceiling=ceiling, max_consecutive_failures=3)
    asking, sent, now = [], [], 0.0
    for step in steps:
        now += 0.1
        if step == "take":
            if pacer.may_send(now):
                assert len(asking) + len(sent) < ceiling
                asking.append(pacer.take())
        elif step in ("rate", "give") and asking:
            asking.pop()
            if step == "rate":
                pacer.rate_limited(now + 0.3)
                assert not pacer.may_send(now)
            else:
                pacer.give_back()
        elif step in ("accept", "refuse"):
            if asking:
                sent.append(asking.pop(0))
                pacer.dispatched()
            if sent:
                turn = sent.pop(0)
                if step == "accept":
                    pacer.accepted(turn)
                else:
                    pacer.refused(turn, now, 0.2)
        assert pacer.in_flight == len(asking) + len(sent)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2**32))
def test_own_backoff_is_bounded(attempt: int, seed: int) -> None:
    pause = pause_after_refusal(None, attempt, random.Random(seed))
    assert 0.75 <= pause <= MAX_BACKOFF_S


def test_the_endpoints_own_pause_is_kept_to() -> None:
    assert pause_after_refusal(7.5, 3, random.Random(1)) == 7.5
    assert pause_after_refusal(-1, 3, random.Random(1)) == 0
