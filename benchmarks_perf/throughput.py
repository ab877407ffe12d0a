"""Calls per second beside the floor: `python -m benchmarks_perf.throughput [--stub path/to/stub.py] [--rounds 3]`.

For each concurrency the bare client and a whole evaluation run in turn against the same stub; the table shows the
best span of all rounds of each, and the least CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks_perf.processes import client, running_stub


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stub", type=Path)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| client | c | ideal s | span s | span/ideal | span/floor | CPU ms/call | RSS MB |")
    print("|---|---|---|---|---|---|---|---|")
    with running_stub(arguments.stub, latency_ms=arguments.latency_ms) as url:
        for concurrency in arguments.concurrency:
            runs: dict[str, list[dict[str, Any]]] = {"floor": [], "evaluate": []}
            for _ in range(arguments.rounds):
                for module, figures in runs.items():
                    options = ("--calls", str(arguments.calls), "--concurrency", str(concurrency))
                    figures.append(client(module, url, *options))
            ideal = arguments.calls * arguments.latency_ms / 1000 / concurrency
            floor = min(figures["span_s"] for figures in runs["floor"])
            for module, figures in runs.items():
                _print_row(module, concurrency, ideal, floor, arguments.calls, figures)


def _print_row(
    module: str, concurrency: int, ideal: float, floor: float, calls: int, figures: list[dict[str, Any]]
) -> None:
    span = min(one["span_s"] for one in figures)
    cpu = min(one["calls_cpu_s"] for one in figures) / calls * 1000
    rss = max(one["rss_mb"] for one in figures)
    name = "bare aiohttp" if module == "floor" else "sr-bench, all on"
    print(
        f"| {name} | {concurrency} | {ideal:.2f} | {span:.2f} | {span / ideal:.2f} | {span / floor:.2f} "
        f"| {cpu:.2f} | {rss:.0f} |",
        flush=True,
    )
    assert all(one["n"] == calls and one["dups"] == 0 for one in figures), "calls were lost or sent twice"


if __name__ == "__main__":
    main()
