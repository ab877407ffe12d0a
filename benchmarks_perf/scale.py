"""Cost per call from small to large runs: `python -m benchmarks_perf.scale [--calls 1000 10000 100000]`."""

from __future__ import annotations

import argparse

from benchmarks_perf.processes import client, running_stub


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=20)
    arguments = parser.parse_args()
    print("| calls | calls/s | CPU ms/call | seal ms/call | peak RSS MB | journal B/call | evidence B/call |")
    print("|---|---|---|---|---|---|---|")
    with running_stub(None, latency_ms=arguments.latency_ms) as url:
        for calls in arguments.calls:
            options = ("--calls", str(calls), "--concurrency", str(arguments.concurrency))
            figures = client("evaluate", url, *options)
            print(
                f"| {calls} | {calls / figures['calls_wall_s']:.0f} | {figures['calls_cpu_s'] / calls * 1000:.2f} "
                f"| {figures['seal_wall_s'] / calls * 1000:.2f} | {figures['rss_mb']:.0f} "
                f"| {figures['journal_bytes_per_call']:.0f} | {figures['evidence_bytes_per_call']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
