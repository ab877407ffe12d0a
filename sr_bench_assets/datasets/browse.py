"""Looking at prepared tasks, page by page. Labels have no way out: only named, label-free members are copied."""

from __future__ import annotations

import json
from typing import Any

from resources.errors import NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Case
from sr_bench_assets.datasets.artifact import DatasetManifest, read_cases
from sr_bench_assets.datasets.task_files import visible_task_files

PAGE_SIZE = 25


def question(case: Case, files: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What a reader may see of a case, never `reference`; `files` are those of `visible_task_files`."""
    return {
        "id": case.id,
        "benchmark": case.benchmark,
        "category": case.category,
        "input": case.input,
        "messages": case.messages,
        "files": files or [],
    }


def questions_page(
    manifest: DatasetManifest,
    *,
    benchmark: str | None = None,
    category: str | None = None,
    search: str | None = None,
    page: int = 1,
    store: Store | None = None,
) -> dict[str, Any]:
    """Page `page` (from 1, of 25) of the tasks that match all filters, with the counts that filters offer.

    With `store`, the files of tasks that have any (environments, policies) are shown from its copy of the source.
    `search` is a case-insensitive part of the id or of the task's text. Raises NotFound for a benchmark or
    category that the dataset does not have, SrBenchError for a page beyond the last.
    """
    _check_filters(manifest, benchmark, category)
    needle = None if search is None else search.casefold()
    found = [
        case
        for case in read_cases(manifest.path, manifest.sha256, benchmark)
        if (category is None or case.category == category) and (needle is None or needle in _text(case))
    ]
    pages = max(1, -(-len(found) // PAGE_SIZE))
    if not 1 <= page <= pages:
        raise SrBenchError(
            f"There is no page {page}: {len(found)} tasks match, on {pages} page(s).",
            field="--page",
            mend=f"Choose a page from 1 to {pages}.",
        )
    first = (page - 1) * PAGE_SIZE
    return {
        "dataset_id": manifest.id,
        "sample_data": manifest.sample_data,
        "matching": len(found),
        "page": page,
        "pages": pages,
        "page_size": PAGE_SIZE,
        "counts": manifest.counts,
        "categories": categories(manifest),
        "questions": [
            question(case, None if store is None else visible_task_files(store, manifest, case))
            for case in found[first : first + PAGE_SIZE]
        ],
    }


def categories(manifest: DatasetManifest) -> dict[str, dict[str, int]]:
    """Benchmark → category → number of tasks in the dataset."""
    return {
        name: {stratum: count for stratum, count in manifest.selection[name].strata.items() if count}
        for name in manifest.benchmarks
    }


def _check_filters(manifest: DatasetManifest, benchmark: str | None, category: str | None) -> None:
    if benchmark is not None and benchmark not in manifest.benchmarks:
        raise NotFound(
            f"The dataset holds no {benchmark}.",
            field="--benchmark",
            mend=f"It holds {', '.join(manifest.benchmarks)}.",
        )
    present = categories(manifest)
    names = {name for key, group in present.items() if benchmark in (None, key) for name in group}
    if category is not None and category not in names:
        raise NotFound(
            f"The dataset has no category {category}.",
            field="--category",
            mend=f"It has {', '.join(sorted(names))}.",
        )


def _text(case: Case) -> str:
    visible = json.dumps([case.input, case.messages], ensure_ascii=False)
    return f"{case.id} {visible}".casefold()
