"""Results of a partition as a table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def results_markdown(results: pl.DataFrame) -> str:
    """Cells by target and how they ended, as a Markdown table; failures by name below it."""
    lines = ["| target | completed | correct | failed | ambiguous |", "|---|---:|---:|---:|---:|"]
    for target in sorted(results["target_id"].unique()):
        rows = results.filter(results["target_id"] == target)
        status = rows["status"]
        lines.append(
            f"| {target} | {(status == 'completed').sum()} | {(rows['correct'] & (status == 'completed')).sum()} "
            f"| {(status == 'failed').sum()} | {(status == 'ambiguous').sum()} |"
        )
    failures = results["failure"].drop_nulls().value_counts(sort=True)
    lines += ["", *(f"- {count} × {name}" for name, count in failures.iter_rows())]
    return "\n".join(lines)
