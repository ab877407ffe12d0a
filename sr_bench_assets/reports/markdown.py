"""Reports and comparisons as Markdown, for files, pull requests and Dagster metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sr_bench_assets.reports import numbers
from sr_bench_assets.reports.terminal import diagnostics, reading

Report = Mapping[str, Any]
SAVINGS = ("subject saving", "total saving", "cache-neutral saving")


def report_markdown(report: Report) -> str:
    """The report as one Markdown document."""
    lines = [f"# {_plain(report['name'])}", ""]
    if report["lab"]:
        lines += ["> **Lab run**: simulated or recorded models, no evidence about real ones.", ""]
    if "sample_data" in report:
        lines += [f"> **Sample data**, not a benchmark: {_plain(report['sample_data'])}", ""]
    state = report.get("status") or f"partition {report['partition']}"
    lines += [
        f"Run `{report['run_id']}`, plan `{report['plan_sha256'][:12]}`, {report['profile']} "
        f"({report['split']}), {state}, wall time {numbers.seconds(report['wall_time_s'])}.",
        "",
        "## Targets",
        "",
        targets_table(report),
        "",
        "## Benchmarks",
        "",
        benchmarks_table(report),
        "",
    ]
    found = diagnostics(report)
    if found:
        lines += ["## Diagnostics", "", *(f"- {_plain(line)}" for line in found), ""]
    accounting = report["provenance"].get("accounting")
    if accounting:
        lines += ["## Usage reconciliation", "", _accounting(accounting), ""]
    lines += ["## What this does not show", "", *(f"- {_plain(line)}" for line in report["limitations"]), ""]
    return "\n".join(lines)


def figures_table(report: Report) -> str:
    """The few figures that matter first, one line a target; small enough for Dagster to show it in place."""
    return _table(
        ("target", "correct", "accuracy", "95 %", "cost"),
        (
            (
                row["id"],
                f"{row['correct']}/{row['planned']}",
                numbers.percent(row["accuracy"]),
                numbers.interval(row["accuracy_ci95"]),
                numbers.at_least(row["total_cost_usd"], row["known_cost_usd"]),
            )
            for row in report["targets"]
        ),
    )


def targets_table(report: Report) -> str:
    """One line a target."""
    head = ("target", "kind", "accuracy", "95 %", "correct", "failed", "open", "macro", "score")
    money = ("tokens in → out", "subject", "judge", "total", "cache-neutral", "p50", "p95")
    return _table(
        (*head, *money),
        (
            (
                row["id"],
                row["kind"],
                numbers.percent(row["accuracy"]),
                numbers.interval(row["accuracy_ci95"]),
                f"{row['correct']}/{row['planned']}",
                str(row["failed"] + row["ambiguous"]),
                str(row["pending"]),
                numbers.percent(row["macro_accuracy"]),
                numbers.percent(row["score"]) if row["score"] is not None else "–",
                numbers.tokens(row),
                numbers.usd(row["cost_usd"]),
                numbers.usd(row["judge_cost_usd"]),
                numbers.at_least(row["total_cost_usd"], row["known_cost_usd"]),
                numbers.usd(row["cache_neutral_cost_usd"]),
                numbers.seconds(row["latency_p50_s"]),
                numbers.seconds(row["latency_p95_s"]),
            )
            for row in report["targets"]
        ),
    )


def benchmarks_table(report: Report) -> str:
    """One line a benchmark and target."""
    return _table(
        ("benchmark", "target", "accuracy", "95 %", "correct", "failed", "open", "subject", "p50"),
        (
            (
                row["benchmark"],
                row["target_id"],
                numbers.percent(row["accuracy"]),
                numbers.interval(row["accuracy_ci95"]),
                f"{row['correct']}/{row['planned']}",
                str(row["failed"] + row["ambiguous"]),
                str(row["pending"]),
                numbers.usd(row["cost_usd"]),
                numbers.seconds(row["latency_p50_s"]),
            )
            for row in report["benchmarks"]
        ),
    )


def scorecard_table(scorecard: Report) -> str:
    """One line a target, one column a benchmark."""
    names = list(dict.fromkeys(name for row in scorecard["targets"] for name in row["benchmarks"]))
    return _table(
        ("target", "macro", "score", *names, "subject", "total"),
        (
            (
                row["id"],
                numbers.percent(row["macro_accuracy"]),
                numbers.percent(row["score"]) if row["score"] is not None else "–",
                *(
                    numbers.percent(row["benchmarks"][name]["accuracy"]) if name in row["benchmarks"] else "–"
                    for name in names
                ),
                numbers.usd(row["cost_usd"]),
                numbers.usd(row["total_cost_usd"]),
            )
            for row in scorecard["targets"]
        ),
    )


def comparison_markdown(comparison: Report) -> str:
    """The comparison as one Markdown document."""
    base = comparison["baseline_target_id"]
    lines = [f"# Compared with {base}", ""]
    if comparison["lab"]:
        lines += ["> **Lab run**: simulated or recorded models, no evidence about real ones.", ""]
    lines += [
        f"Baseline run `{comparison['baseline_run_id']}`, {numbers.percent(comparison['baseline_quality'])} "
        f"weighted accuracy, {numbers.usd(comparison['baseline_cost_usd'])}.",
        "",
        _table(
            (
                "candidate",
                "run",
                "quality",
                "Δ points",
                "95 % (Hoeffding)",
                "asymptotic",
                "win/loss/tie",
                *SAVINGS,
            ),
            (
                (
                    row["target_id"],
                    row["run_id"],
                    numbers.percent(row["quality"]),
                    numbers.points(row["quality_delta"]),
                    numbers.points_interval(row["quality_delta_ci95"]),
                    numbers.points_interval(row["score_ci95"]),
                    f"{row['wins']}/{row['losses']}/{row['ties']}",
                    numbers.saving(row["subject_cost_saving_percent"]),
                    numbers.saving(row["total_cost_saving_percent"]),
                    numbers.saving(row["cache_neutral_cost_saving_percent"]),
                )
                for row in comparison["comparisons"]
            ),
        ),
        "",
        *(f"- {_plain(reading(row))}" for row in comparison["comparisons"]),
        "",
        "## What this does not show",
        "",
        *(f"- {_plain(line)}" for line in comparison["limitations"]),
        "",
    ]
    return "\n".join(lines)


def _accounting(accounting: Mapping[str, Any]) -> str:
    counts = accounting["counts"]
    old, new = (numbers.usd(accounting[name]) for name in ("old_known_cost_usd", "new_known_cost_usd"))
    return (
        f"Correction `{accounting['sha256'][:12]}`: {counts['verified']} verified, "
        f"{counts['corrected']} corrected, {counts['unknown']} unknown of {counts['calls']} calls; "
        f"known spend {old} → {new}."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)


def _plain(text: str) -> str:
    """Names come from plans and models: nothing in them may become markup or break a table."""
    text = " ".join(str(text).split())
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
