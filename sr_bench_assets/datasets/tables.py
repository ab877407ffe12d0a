"""Tables about a dataset for people: how its cases spread over categories."""

from __future__ import annotations

from sr_bench_assets.datasets.artifact import DatasetManifest


def strata_markdown(manifest: DatasetManifest, benchmark: str) -> str:
    """Selected cases per category of one benchmark, as a Markdown table."""
    selection = manifest.selection.get(benchmark)
    if selection is None:
        return "This dataset holds no case of the benchmark."
    total = sum(selection.strata.values())
    lines = ["| category | cases | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {count} | {100 * count / total:.1f} % |" for name, count in selection.strata.items()]
    lines.append(f"| **all** | **{total}** of {selection.source_cases} in the source | 100 % |")
    return "\n".join(lines)
