"""How datasets, tasks and preparations look to people on a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.datasets.jobs import Job


def labels(manifest: DatasetManifest) -> str:
    """The labels that must never be missed: sample data, custom subset, retest."""
    parts: list[str] = []
    if manifest.sample_data is not None:
        parts.append(f"SAMPLE DATA, not a benchmark: {manifest.sample_data}")
    if manifest.custom_subset:
        parts.append("custom subset")
    parts.extend(f"{role}: {name}" for name, role in manifest.evaluation_roles.items())
    return "; ".join(parts)


def show_datasets(manifests: Sequence[DatasetManifest]) -> None:
    console = Console()
    if not manifests:
        console.print(
            "No dataset is prepared yet. Begin with: sr-bench dataset prepare --benchmark ID --profile quick"
        )
        return
    table = Table()
    for heading in ("id", "profile", "split", "seed", "tasks", "benchmarks", "labels"):
        table.add_column(heading, justify="right" if heading in ("seed", "tasks") else "left")
    for manifest in manifests:
        names = ", ".join(f"{name} ({manifest.counts[name]})" for name in manifest.benchmarks)
        table.add_row(
            manifest.id[:12],
            manifest.profile,
            manifest.split,
            str(manifest.seed),
            str(manifest.case_count),
            names,
            escape(labels(manifest)),
        )
    console.print(table)


def show_manifest(manifest: DatasetManifest) -> None:
    console = Console(highlight=False)
    console.print(
        f"[bold]{manifest.case_count} tasks[/], {manifest.profile} ({manifest.split}), seed {manifest.seed}"
    )
    if text := labels(manifest):
        console.print(text, style="bold yellow", markup=False)
    table = Table("benchmark", "tasks", "of", "source", "revision", "files")
    for name in manifest.benchmarks:
        source, selection = manifest.sources[name], manifest.selection[name]
        table.add_row(
            name,
            str(manifest.counts[name]),
            str(selection.source_cases),
            escape(source.url),
            escape(source.revision[:12]),
            f"{len(source.files)} ({source.files_sha256[:12]})",
        )
    console.print(table)
    for name, exclusion in manifest.exclusions.items():
        console.print(
            f"{name}: {exclusion.available} tasks, {exclusion.excluded} excluded ({exclusion.quick} quick, "
            f"{exclusion.history} named history, overlaps once), {exclusion.selected} selected"
        )
    for disclosure in manifest.disclosures:
        console.print(disclosure, style="yellow", markup=False)
    console.print(
        f"id      {manifest.id}\nsha256  {manifest.sha256}\npath    {manifest.path}", soft_wrap=True
    )


def show_questions(page: dict[str, Any]) -> None:
    console = Console(highlight=False)
    if page["sample_data"] is not None:
        console.print(
            f"SAMPLE DATA, not a benchmark: {page['sample_data']}", style="bold yellow", markup=False
        )
    for name, groups in page["categories"].items():
        listed = ", ".join(f"{category} {count}" for category, count in groups.items())
        console.print(f"{name} ({page['counts'][name]}): {listed}", style="dim", markup=False)
    for task in page["questions"]:
        console.print(f"\n{task['id']}  [{task['category']}]", style="bold", markup=False)
        console.print(_task_text(task), markup=False)
        for file in task["files"]:
            console.print(f"--- {file['name']} ({file['note'] or 'whole'})", style="dim", markup=False)
            if file["text"] is not None:
                console.print(file["text"].rstrip(), markup=False)
    console.print(f"\npage {page['page']} of {page['pages']}, {page['matching']} tasks match")


def _task_text(task: dict[str, Any]) -> str:
    shown = task["input"]
    if "question" in shown and "options" in shown:
        letters = (f"  {chr(ord('A') + place)}. {option}" for place, option in enumerate(shown["options"]))
        return "\n".join([str(shown["question"]), *letters])
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in shown.items()
    )


def show_options(found: dict[str, Any]) -> None:
    console = Console()
    table = Table("benchmark", "profile", "tasks", "prepared", "access")
    for entry in found["benchmarks"]:
        for profile, offer in entry["profiles"].items():
            prepared = ", ".join(
                f"{item['dataset_id'][:12]} ({item['count']}{', sample data' if item['sample_data'] else ''})"
                for item in offer["prepared"]
            )
            access = "HF_TOKEN" if entry["gated"] else ""
            table.add_row(entry["id"], profile, str(offer["count"]), prepared, access)
    console.print(table)
    if not found["hub_token_set"]:
        console.print("HF_TOKEN is not set: gated sources cannot be downloaded.")


def show_jobs(jobs: Sequence[Job]) -> None:
    console = Console()
    if not jobs:
        console.print(
            "There is no preparation job. `sr-bench dataset prepare` makes one; `--local` works without."
        )
        return
    table = Table()
    table.add_column("id", no_wrap=True, min_width=17)
    for heading in ("status", "stage", "of", "dataset", "updated"):
        table.add_column(heading)
    for job in jobs:
        table.add_row(
            job.id,
            job.status,
            job.stage or "",
            f"{', '.join(job.request.benchmarks)} {job.request.profile}",
            (job.dataset_id or "")[:8],
            time.strftime("%d %b %H:%M", time.localtime(job.updated_at)),
        )
    console.print(table)
    for job in jobs:
        if job.error is not None:
            console.print(f"{job.id}: {job.error['message']} {job.error.get('mend') or ''}", markup=False)
