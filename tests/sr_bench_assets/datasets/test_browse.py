"""Browsing pages through tasks and never shows a label."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.errors import NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.datasets.artifact import encode_case, lines_sha256, publish, read_cases
from sr_bench_assets.datasets.browse import questions_page
from sr_bench_assets.datasets.combination import combine

from .conftest import Prepare


def test_pages_of_25_with_counts(store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare) -> None:
    both = combine(store, [prepare_mmlu(), prepare_gpqa()])
    first = questions_page(both)
    assert (first["matching"], first["pages"], len(first["questions"])) == (540, 22, 25)
    assert len(questions_page(both, page=22)["questions"]) == 15
    assert first["counts"] == {"mmlu-pro": 500, "gpqa-diamond": 40}
    assert sum(first["categories"]["gpqa-diamond"].values()) == 40
    with pytest.raises(SrBenchError, match="no page 23"):
        questions_page(both, page=23)


def test_filters_narrow_together(store: Store, prepare_mmlu: Prepare, prepare_gpqa: Prepare) -> None:
    both = combine(store, [prepare_mmlu(), prepare_gpqa()])
    page = questions_page(both, benchmark="gpqa-diamond", category="field 1", search="NUMBER FOLLOWS")
    assert page["matching"] == page["categories"]["gpqa-diamond"]["field 1"]
    assert {task["benchmark"] for task in page["questions"]} == {"gpqa-diamond"}
    some = page["questions"][0]["id"]
    assert questions_page(both, search=some)["matching"] == 1
    assert questions_page(both, search="nothing like it")["questions"] == []
    with pytest.raises(NotFound, match="no hle"):
        questions_page(both, benchmark="hle")
    with pytest.raises(NotFound, match="no category"):
        questions_page(both, category="poetry")


def test_no_label_gets_out(store: Store, prepare_mmlu: Prepare) -> None:
    manifest = prepare_mmlu(profile="smoke")
    marked = [
        case.model_copy(update={"reference": {"answer": f"LABEL-{number}", "tests": [f"LABEL-{number}"]}})
        for number, case in enumerate(read_cases(manifest.path, manifest.sha256))
    ]
    lines = [encode_case(case) for case in marked]
    facts = manifest.model_dump(exclude={"id", "path", "sha256", "case_count", "version"})
    labelled = publish(store, lines, {**facts, "case_sha256": {"mmlu-pro": lines_sha256(lines)}})
    assert b"LABEL-13" in Path(labelled.path).read_bytes()
    shown = json.dumps([questions_page(labelled), labelled.as_dict()])
    assert "LABEL-" not in shown
    assert questions_page(labelled, search="LABEL-")["matching"] == 0
