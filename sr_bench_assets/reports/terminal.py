"""Reports and comparisons on a terminal, as tables with small bars."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sr_bench_assets.reports import numbers

Report = Mapping[str, Any]
TABLE_WIDTH = 96


def print_report(report: Report, console: Console | None = None) -> None:
    """Print a report of `report.build_report`."""
    out = console or Console(highlight=False)
    out.print(_title(report))
    _show(out, _quality(report))
    out.print()
    _show(out, _costs(report))
    if len({row["benchmark"] for row in report["benchmarks"]}) > 1:
        out.print()
        _show(out, _benchmarks(report))
    for line in diagnostics(report):
        out.print(Text(line))
    _limitations(out, report["limitations"])


def print_comparison(comparison: Report, console: Console | None = None) -> None:
    """Print a comparison of `comparison.compare_runs`."""
    out = console or Console(highlight=False)
    base = comparison["baseline_target_id"]
    tied = [name for name in comparison["tied_best"] if name != base]
    cost = numbers.usd(comparison["baseline_cost_usd"])
    if comparison["lab"]:
        out.print(Text("LAB: simulated or recorded models, no evidence about real ones", style="bold yellow"))
    out.print(
        Text(
            f"Baseline {base} (run {comparison['baseline_run_id']}): "
            f"{numbers.percent(comparison['baseline_quality'])} weighted accuracy, {cost}"
            + (f"; tied with {', '.join(tied)}" if tied else ""),
            style="bold",
        )
    )
    _show(out, _comparison_quality(comparison))
    out.print()
    _show(out, _comparison_savings(comparison))
    for row in comparison["comparisons"]:
        out.print(Text(reading(row)))
    _limitations(out, comparison["limitations"])


def reading(row: Report) -> str:
    """One plain sentence of a comparison row: is the candidate better, cheaper or neither?"""
    quality = {
        "better": "better than the baseline",
        "worse": "worse than the baseline",
        "no difference shown": "no difference in quality shown (the interval spans zero)",
    }[row["quality_reading"]]
    saved = row["subject_cost_saving_percent"]
    if saved is None:
        money = f"savings unknown: {row['subject_cost_saving_percent_reason']}"
    elif saved > 0:
        money = f"{numbers.saving(saved)} cheaper on subject calls"
    elif saved < 0:
        money = f"{numbers.saving(-saved)} dearer on subject calls"
    else:
        money = "equal subject cost"
    verdict = {
        "non_inferior": f"; non-inferior at the registered margin {row.get('margin')}",
        "not_shown": f"; non-inferiority at the registered margin {row.get('margin')} not shown",
        None: "",
    }[row["verdict"]]
    low, high = row["score_ci95"]
    if row["quality_reading"] == "no difference shown" and (low > 0 or high < 0):
        points = numbers.points_interval(row["score_ci95"])
        quality += f", though the asymptotic interval {points} points to {'better' if low > 0 else 'worse'}"
    held = f" ({row['claimable_reason']})" if "claimable_reason" in row else ""
    return f"{row['target_id']}: {quality}; {money}{verdict}{held}."


def diagnostics(report: Report) -> list[str]:
    """Lines about answer formats, failures, refusals and routing, where there is something to tell."""
    lines: list[str] = []
    for row in report["targets"]:
        shape = row["answer_format"]
        parts = [f"{shape[name]} {name}" for name in ("ambiguous", "unparsed") if shape[name]]
        cut = row["finish_reasons"].get("length", 0)
        parts += [f"{cut} cut at the output limit"] if cut else []
        parts += [f"{number} × {name}" for name, number in row["failures"].items()]
        parts += [f"{row['calls']['refused']} refusals repeated"] if row["calls"]["refused"] else []
        if parts:
            lines.append(f"{row['id']}: {', '.join(parts)}")
        if row["kind"] == "mom" and row["selected_models"]:
            lines.append(f"{row['id']} chose {numbers.shares(row['selected_models'])}")
    return lines


def _title(report: Report) -> Text:
    state = report.get("status") or f"partition {report['partition']}"
    text = Text(f"Run {report['run_id']}  {report['name']}  ", style="bold")
    text.append(f"{report['profile']} · {report['split']} · {state}", style="default")
    if report["wall_time_s"] is not None:
        text.append(f" · {numbers.seconds(report['wall_time_s'])}", style="default")
    if report["lab"]:
        text.append("\nLAB: simulated or recorded models, no evidence about real ones", style="bold yellow")
    if "sample_data" in report:
        text.append("\nSAMPLE DATA, not a benchmark", style="bold yellow")
    return text


def _quality(report: Report) -> Table:
    scored = any(row["score"] is not None for row in report["targets"])
    last = ("score>",) if scored else ()
    table = _table("target", "accuracy>", "95 %", "", "correct>", "failed>", "open>", "macro>", *last)
    for row in report["targets"]:
        table.add_row(
            f"{escape(row['id'])}{' (mom)' if row['kind'] == 'mom' else ''}",
            numbers.percent(row["accuracy"]),
            escape(numbers.interval(row["accuracy_ci95"])),
            numbers.bar(row["accuracy"]),
            f"{row['correct']}/{row['planned']}",
            str(row["failed"] + row["ambiguous"]),
            str(row["pending"]),
            numbers.percent(row["macro_accuracy"]),
            *(["–" if row["score"] is None else numbers.percent(row["score"])] if scored else []),
        )
    return table


def _costs(report: Report) -> Table:
    table = _table("target", "tokens in → out>", "subject>", "graders>", "total>", "neutral>", "p50 / p95>")
    for row in report["targets"]:
        graded = row["judge_cost_usd"], row["simulator_cost_usd"]
        table.add_row(
            escape(row["id"]),
            numbers.tokens(row),
            numbers.usd(row["cost_usd"]),
            numbers.usd(None if None in graded else str(sum(map(Decimal, graded)))),
            numbers.at_least(row["total_cost_usd"], row["known_cost_usd"]),
            numbers.usd(row["cache_neutral_cost_usd"]),
            f"{numbers.seconds(row['latency_p50_s'])} / {numbers.seconds(row['latency_p95_s'])}",
        )
    return table


def _benchmarks(report: Report) -> Table:
    table = _table("benchmark", *(f"{escape(target['id'])}>" for target in report["targets"]))
    by_cell = {(row["benchmark"], row["target_id"]): row for row in report["benchmarks"]}
    for name in dict.fromkeys(row["benchmark"] for row in report["benchmarks"]):
        cells = [by_cell.get((name, target["id"])) for target in report["targets"]]
        table.add_row(
            name,
            *(
                f"{numbers.percent(c['accuracy'])} ({c['correct']}/{c['planned']})" if c else ""
                for c in cells
            ),
        )
    return table


def _comparison_quality(comparison: Report) -> Table:
    table = _table("candidate", "quality>", "Δ points>", "95 % (Hoeffding)", "asymptotic", "win/loss/tie>")
    for row in comparison["comparisons"]:
        table.add_row(
            escape(row["target_id"]),
            numbers.percent(row["quality"]),
            numbers.points(row["quality_delta"]),
            escape(numbers.points_interval(row["quality_delta_ci95"])),
            escape(numbers.points_interval(row["score_ci95"])),
            f"{row['wins']}/{row['losses']}/{row['ties']}",
        )
    return table


def _comparison_savings(comparison: Report) -> Table:
    table = _table("candidate", "run", "subject>", "saving>", "total saving>", "cache-neutral saving>")
    for row in comparison["comparisons"]:
        table.add_row(
            escape(row["target_id"]),
            row["run_id"],
            numbers.usd(row["cost_usd"]),
            numbers.saving(row["subject_cost_saving_percent"]),
            numbers.saving(row["total_cost_saving_percent"]),
            numbers.saving(row["cache_neutral_cost_saving_percent"]),
        )
    return table


def _table(*columns: str) -> Table:
    """A borderless table; a name ending in `>` is right-aligned. Cells never wrap: a cut figure misleads."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        right = name.endswith(">")
        table.add_column(name.removesuffix(">"), justify="right" if right else "left", no_wrap=True)
    return table


def _show(out: Console, table: Table) -> None:
    """Whole figures even where the terminal is narrow: its own wrapping is better than figures cut off."""
    narrow = out.width
    out.width = max(narrow, TABLE_WIDTH)
    try:
        out.print(table)
    finally:
        out.width = narrow


def _limitations(out: Console, lines: list[str]) -> None:
    if lines:
        out.print(Text("What this does not show", style="bold"))
    for line in lines:
        out.print(Text(f"  · {line}", style="dim"))
