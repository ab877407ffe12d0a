"""Refusals: `python -m benchmarks_perf.refusals [--calls 2000] [--refuse 0.2]`.

The endpoint refuses a share of all requests with 429 and `Retry-After: 1`, whatever the load. All cases must
complete nevertheless, in little more time than the pauses alone impose: that of an ideal client, which has the same
slots and the same refusals, sends every request the very moment it may, and costs nothing itself.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import urllib.request
from collections.abc import Mapping

from benchmarks_perf.processes import client, running_stub

RETRY_AFTER_S = 1.0


def ideal_s(
    calls: int, concurrency: int, latency_s: float, refused: Mapping[int, int], draw: random.Random
) -> float:
    """Seconds of an ideal client for `calls` cases, of which `refused` says how many are refused how often.

    A case that was refused waits outside the slots and comes before cases that were not sent yet.
    """
    chains = [times for times, count in refused.items() for _ in range(count)]
    chains += [0] * (calls - len(chains))
    draw.shuffle(chains)
    returning: list[tuple[float, int]] = []
    slots = [0.0] * min(concurrency, calls)
    end = 0.0
    while chains or returning:
        free = heapq.heappop(slots)
        if returning and (returning[0][0] <= free or not chains):
            ready, left = heapq.heappop(returning)
            free = max(free, ready)
        else:
            left = chains.pop()
        if left:
            heapq.heappush(returning, (free + RETRY_AFTER_S, left - 1))
            heapq.heappush(slots, free)
        else:
            end = max(end, free + latency_s)
            heapq.heappush(slots, free + latency_s)
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--refuse", type=float, default=0.2)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[64, 256])
    arguments = parser.parse_args()
    print(f"{arguments.calls} cases, {arguments.refuse:.0%} of all requests refused, Retry-After: 1\n")
    print("| c | requests | refused | most for one case | completed | ideal s | span s | span/ideal | load |")
    print("|---|---|---|---|---|---|---|---|---|")
    options = ("--refuse", str(arguments.refuse))
    with running_stub(None, latency_ms=arguments.latency_ms, arguments=options) as url:
        for concurrency in arguments.concurrency:
            load = os.getloadavg()[0]
            counts = ("--calls", str(arguments.calls), "--concurrency", str(concurrency))
            figures = client("evaluate", url, *counts)
            stats = json.load(urllib.request.urlopen(f"{url}/stats"))
            refused = {int(times): count for times, count in stats["refused"].items()}
            ideal = ideal_s(
                arguments.calls, concurrency, arguments.latency_ms / 1000, refused, random.Random(1)
            )
            total = sum(times * count for times, count in refused.items())
            completed = figures["n"] - total
            print(
                f"| {concurrency} | {figures['n']} | {total} | {max(refused, default=0)} | {completed} "
                f"| {ideal:.2f} | {figures['span_s']:.2f} | {figures['span_s'] / ideal:.2f} | {load:.1f} |",
                flush=True,
            )
            assert figures["status"] == "completed", figures
            assert completed == arguments.calls, "cases were lost"
            assert figures["dups"] == 0, "a request that had not been refused was sent again"


if __name__ == "__main__":
    main()
