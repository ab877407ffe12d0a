"""Seals, evidence segments, money and text of the journal."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.errors import IntegrityError, NotFound
from resources.journal import evidence
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, SegmentWriter, read_frame
from resources.journal.money import decimal_text, pico_from_usd, usd_from_pico
from resources.journal.record_text import bigint, dump_json, load_json, storable
from resources.journal.seals import add_seal, get_seal, list_seals

from .conftest import NewRun


def test_sealing_the_same_bytes_again_changes_nothing(journal: Journal, new_run: NewRun) -> None:
    run = new_run()
    first = add_seal(journal, run.id, "mmlu-pro", "results", "1" * 64, {"rows": 3})
    assert (first.version, first.data) == (1, {"rows": 3})
    assert add_seal(journal, run.id, "mmlu-pro", "results", "1" * 64, {"rows": 4}) == first
    second = add_seal(journal, run.id, "mmlu-pro", "results", "2" * 64)
    assert (second.version, second.data) == (2, {})
    add_seal(journal, run.id, "hle", "calls", "3" * 64)
    assert get_seal(journal, run.id, "mmlu-pro", "results") == second
    assert get_seal(journal, run.id, "mmlu-pro", "results", version=1) == first
    assert get_seal(journal, run.id, "mmlu-pro", "report") is None
    assert [seal.sha256[0] for seal in list_seals(journal, run.id)] == ["3", "1", "2"]
    assert [seal.sha256[0] for seal in list_seals(journal, run.id, kind="calls")] == ["3"]


def test_frames_stand_where_the_writer_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "SEGMENT_BYTES", 10)
    one, other = SegmentWriter(tmp_path, "hle"), SegmentWriter(tmp_path, "hle")
    places = one.append([b"abc", b"", b"defgh"]) + other.append([b"x"]) + one.append([b"ij", b"klm"])
    places += one.append([b"next"])  # 13 bytes are in the first segment by now
    one.close()
    other.close()
    assert places[-1].segment != places[0].segment
    assert len({place.segment for place in places}) == 3
    frames = [b"abc", b"", b"defgh", b"x", b"ij", b"klm", b"next"]
    assert [read_frame(tmp_path, place) for place in places] == frames
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_missing_and_short_segments_are_told(tmp_path: Path) -> None:
    (place,) = SegmentWriter(tmp_path, "hle").append([b"abc"])
    with pytest.raises(IntegrityError, match="ends before byte 4"):
        read_frame(tmp_path, FramePlace(place.segment, 0, 4))
    with pytest.raises(NotFound, match=r"none\.0\.seg"):
        read_frame(tmp_path, FramePlace("none.0.seg", 0, 1))


@given(st.decimals(min_value=0, max_value=9_000_000, places=15))
def test_money_rounds_up_by_less_than_a_pico_dollar(usd: Decimal) -> None:
    kept = usd_from_pico(pico_from_usd(usd))
    assert 0 <= kept - usd < Decimal("1e-12")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000))
def test_decimal_text_is_exact_and_has_no_exponent(amount: Decimal) -> None:
    text = decimal_text(amount)
    assert text is not None
    assert Decimal(text) == amount
    assert "E" not in text.upper()


def test_decimal_text_of_nothing_is_nothing() -> None:
    assert decimal_text(None) is None
    assert decimal_text(Decimal("1E+3")) == "1000"
    assert decimal_text(Decimal("0.00")) == "0"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_any_json_value_survives(value: object) -> None:
    text = dump_json(value)
    text.encode()
    assert "\x00" not in text
    assert load_json(text) == value


@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_storable_text_is_utf8_without_nul(text: str) -> None:
    kept = storable(text)
    assert kept is not None
    kept.encode()
    assert "\x00" not in kept
    assert len(kept) == len(text)


def test_numbers_beyond_a_column_are_unknown() -> None:
    assert [bigint(number) for number in (None, 0, 2**63 - 1, -(2**63), 2**63)] == [
        None, 0, 2**63 - 1, -(2**63), None,
    ]  # fmt: skip
