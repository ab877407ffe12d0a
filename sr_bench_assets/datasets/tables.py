"""Tables about a dataset for people: how its cases spread over categories, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping

from sr_bench_assets.datasets.artifact import DatasetManifest, SourceRecord
from sr_bench_assets.datasets.observation import SourceObservation


def strata_markdown(manifest: DatasetManifest, benchmark: str) -> str:
    """Selected cases per category of one benchmark and how much of the source they cover, as a Markdown table."""
    selection = manifest.selection.get(benchmark)
    if selection is None:
        return "This dataset holds no case of the benchmark."
    total = sum(selection.strata.values())
    lines = ["| category | cases | share | in the source |", "|---|---:|---:|---:|"]
    lines += [
        f"| {_plain(name)} | {count} | {100 * count / total:.1f} % | {selection.source_strata.get(name, '')} |"
        for name, count in selection.strata.items()
    ]
    lines.append(f"| **all** | **{total}** | | {selection.source_cases} |")
    return "\n".join(lines)


def source_files_markdown(source: SourceRecord, most: int = 50) -> str:
    """The files of a source with size and SHA-256, at most `most` of them, as a Markdown table."""
    lines = ["| file | bytes | SHA-256 |", "|---|---:|---|"]
    lines += [f"| {_plain(file.name)} | {file.size:,} | `{file.sha256}` |" for file in source.files[:most]]
    if len(source.files) > most:
        lines.append(f"| and {len(source.files) - most} more | | |")
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


def observations_markdown(seen: Mapping[str, SourceObservation]) -> str:
    """What was seen of each fetched source, as a Markdown table."""
    if not seen:
        return "This store has fetched no source yet."
    lines = ["| source | our copy and the pin | hub |", "|---|---|---|"]
    lines += [
        f"| {name} | {_plain('; '.join(one.differences) or 'as first fetched')} | {_plain(one.upstream)} |"
        for name, one in seen.items()
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Names come from sources: nothing in them may break the table or become markup."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
