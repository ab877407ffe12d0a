"""A comparison as CSV: one line a candidate, columns with the JSON's names."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from typing import Any

COLUMNS = (
    "run_id",
    "target_id",
    "kind",
    "baseline_target_id",
    "paired_cases",
    "wins",
    "losses",
    "ties",
    "quality",
    "quality_delta",
    "quality_delta_ci95_low",
    "quality_delta_ci95_high",
    "bootstrap_ci95_low",
    "bootstrap_ci95_high",
    "score_ci95_low",
    "score_ci95_high",
    "quality_reading",
    "verdict",
    "subject_cost_saving_percent",
    "total_cost_saving_percent",
    "cache_neutral_cost_saving_percent",
    "cost_usd",
    "total_cost_usd",
    "cache_neutral_cost_usd",
    "latency_p50_s",
    "latency_p95_s",
    "wall_time_s",
    "lab",
)


def comparison_csv(comparison: Mapping[str, Any]) -> str:
    """The rows of `comparisons`; an unknown value is an empty field."""
    text = StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in comparison["comparisons"]:
        ends = {
            f"{name}_{end}": value
            for name in ("quality_delta_ci95", "bootstrap_ci95", "score_ci95")
            for end, value in zip(("low", "high"), row[name], strict=True)
        }
        writer.writerow(
            {key: _safe(value) for key, value in {**row, **ends, "lab": comparison["lab"]}.items()}
        )
    return text.getvalue()


def _safe(value: Any) -> Any:
    """Names must not become formulas when a spreadsheet opens the file."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@" and not _number(value) else value


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
