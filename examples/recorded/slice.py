"""Cuts the questions that a recording answers out of an MMLU-Pro parquet file, for `dataset prepare --local`.

    python examples/recorded/slice.py --questions test-00000-of-00001.parquet --recorded predictions.csv \\
        --output recorded-source
    sr-bench dataset prepare --benchmark mmlu-pro --profile quick --local --source-path recorded-source \\
        --revision recorded-slice --sample-data "questions with recorded answers"
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

FILE = Path("data") / "test-00000-of-00001.parquet"


def cut(questions: Path, recorded: Path, output: Path) -> int:
    """Write the rows of `questions` whose question_id stands in `recorded`, columns and order kept; their number."""
    wanted = pl.read_csv(recorded, columns=["question_id"])["question_id"]
    rows = pl.read_parquet(questions).filter(pl.col("question_id").is_in(wanted.implode()))
    path = output / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(path)
    return rows.height


def main() -> None:
    parser = argparse.ArgumentParser(description="Cut a recording's questions out of MMLU-Pro.")
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--recorded", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    print(f"{cut(args.questions, args.recorded, args.output)} questions: {args.output / FILE}")


if __name__ == "__main__":
    main()
