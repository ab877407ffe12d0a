"""Write the example's tasks: `python -m mental_arithmetic.make_tasks tasks.jsonl`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any


def tasks(count: int = 60, seed: int = 1) -> Iterator[dict[str, Any]]:
    """`count` products with one right and three near options, the same for the same seed."""
    random = Random(seed)
    for number in range(count):
        left, right = random.randint(11, 99), random.randint(11, 99)
        product = left * right
        options = [product, product + 10, product - 10, product + left]
        random.shuffle(options)
        yield {
            "task_id": number,
            "size": "small" if product < 2500 else "large",
            "question": f"How much is {left} × {right}?",
            "options": [str(option) for option in options],
            "answer": "ABCD"[options.index(product)],
        }


if __name__ == "__main__":
    lines = (json.dumps(task, ensure_ascii=False) + "\n" for task in tasks())
    Path(sys.argv[1]).write_text("".join(lines), "utf-8")
