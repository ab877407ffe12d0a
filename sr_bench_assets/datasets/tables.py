"""Tables about a dataset for people: how its cases spread over categories, and where they come from."""

from __future__ import annotations

from sr_bench_assets.datasets.artifact import DatasetManifest


def strata_markdown(manifest: DatasetManifest, benchmark: str) -> str:
    """Selected cases per category of one benchmark, as a Markdown table."""
    selection = manifest.selection.get(benchmark)
    if selection is None:
        return "This dataset holds no case of the benchmark."
    total = sum(selection.strata.values())
    lines = ["| category | cases | share |", "|---|---:|---:|"]
    lines += [
        f"| {_plain(name)} | {count} | {100 * count / total:.1f} % |"
        for name, count in selection.strata.items()
    ]
    lines.append(f"| **all**, of {selection.source_cases} in the source | **{total}** | |")
    return "\n".join(lines)


def source_markdown(manifest: DatasetManifest, benchmark: str) -> str:
    """Where one benchmark's cases come from: address, revision, licence and number of files, as a short table."""
    source = manifest.sources.get(benchmark)
    if source is None:
        return "This dataset holds no case of the benchmark."
    rows = {
        "from": source.url,
        "revision": source.revision,
        "licence": source.licence,
        "files": f"{len(source.files)}, {sum(file.size for file in source.files):,} bytes",
    }
    lines = [f"| {name} | {_plain(value)} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _plain(text: str) -> str:
    """Names come from sources: nothing in them may break the table or become markup."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
