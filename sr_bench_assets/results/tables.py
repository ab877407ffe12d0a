"""Results of a partition as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def results_markdown(results: pl.DataFrame) -> str:
    """Cells by target and how they ended, as a Markdown table; failures by name below it."""
    lines = [
        "| target | correct | completed | failed | ambiguous | p50 |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for target in sorted(results["target_id"].unique()):
        rows = results.filter(results["target_id"] == target)
        completed = rows.filter(rows["status"] == "completed")
        status = rows["status"]
        median = completed["latency_s"].median()
        latency = f"{median:.2f} s" if isinstance(median, (int, float)) else "–"
        lines.append(
            f"| {target} | {completed['correct'].sum()} | {len(completed)} | {(status == 'failed').sum()} "
            f"| {(status == 'ambiguous').sum()} | {latency} |"
        )
    failures = results["failure"].drop_nulls().value_counts(sort=True)
    if len(failures):
        lines += ["", *(f"- {count} × {name}" for name, count in failures.iter_rows())]
    return "\n".join(lines)
