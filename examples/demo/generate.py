"""Makes the demo's questions: original, multiple choice, with computed answers, in MMLU-Pro's native columns.

    python examples/demo/generate.py --output demo-source

They are sample data of this project's own making: a score on them says nothing about MMLU-Pro.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from question_templates import formal, natural_sciences, society
from question_templates.item import MAX_OPTIONS, Item, Template

FILE = Path("data") / "test-00000-of-00001.parquet"
FIRST_ID = 1_000_001
SOURCE = "sr-bench-demo"
TEMPLATES: dict[str, tuple[Template, ...]] = {
    **natural_sciences.TEMPLATES,
    **society.TEMPLATES,
    **formal.TEMPLATES,
}


def rows(per_category: int, seed: int) -> list[dict[str, Any]]:
    """`per_category` questions in each of the 14 categories, all of different text. Same seed, same rows."""
    made: list[dict[str, Any]] = []
    texts: set[str] = set()
    for category in sorted(TEMPLATES):
        templates = TEMPLATES[category]
        rng = random.Random(f"{seed}/{category}")
        count = tries = 0
        while count < per_category:
            tries += 1
            if tries > 100 * per_category:
                raise SystemExit(
                    f"the templates of {category} do not give {per_category} different questions"
                )
            item = templates[tries % len(templates)](rng)
            if item.question in texts:
                continue
            texts.add(item.question)
            made.append(row(item, category, FIRST_ID + len(made), rng))
            count += 1
    return made


def row(item: Item, category: str, question_id: int, rng: random.Random) -> dict[str, Any]:
    """`item` as one row in MMLU-Pro's columns, its options shuffled."""
    options = [item.right, *item.wrong[: MAX_OPTIONS - 1]]
    if len(set(options)) != len(options) or len(options) < 4:
        raise SystemExit(f"bad options {options} for: {item.question}")
    rng.shuffle(options)
    index = options.index(item.right)
    return {
        "question_id": question_id,
        "question": item.question,
        "options": options,
        "answer": ascii_uppercase[index],
        "answer_index": index,
        "cot_content": "",
        "category": category,
        "src": SOURCE,
    }


def write(folder: Path, per_category: int, seed: int) -> Path:
    """Write the questions as Parquet where MMLU-Pro keeps them below `folder`; the file's path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("question_id", pa.int64()),
            ("question", pa.string()),
            ("options", pa.list_(pa.string())),
            ("answer", pa.string()),
            ("answer_index", pa.int64()),
            ("cot_content", pa.string()),
            ("category", pa.string()),
            ("src", pa.string()),
        ]
    )
    path = folder / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows(per_category, seed), schema=schema), path, compression="zstd")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the demo's questions.")
    parser.add_argument("--output", type=Path, default=Path("demo-source"), help="folder to write to")
    parser.add_argument("--per-category", type=int, default=50, help="questions in each of the 14 categories")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    path = write(args.output, args.per_category, args.seed)
    print(f"{args.per_category * len(TEMPLATES)} questions in {len(TEMPLATES)} categories: {path}")


if __name__ == "__main__":
    main()
