"""Many slow streams at once: `python -m benchmarks_perf.streams --streams 256 --events-per-second 50 --seconds 60`.

Prints what was received of what was sent, the client's share of a core, the event loop's lag and how far each
time to first token is from the server's own clock.
"""

from __future__ import annotations

import argparse

from benchmarks_perf.processes import client, running_stub


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--events-per-second", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    events = round(arguments.seconds * arguments.events_per_second)
    pacing = ("--events", str(events), "--interval-ms", str(1000 / arguments.events_per_second))
    with running_stub(None, latency_ms=50, arguments=pacing) as url:
        streams = str(arguments.streams)
        figures = client("evaluate", url, "--calls", streams, "--concurrency", streams, "--clocks")
    print(f"status                 {figures['status']}")
    print(f"events sent            {events * arguments.streams}")
    print(f"events received        {figures['events_received']}")
    print(f"client CPU             {figures['calls_cpu_s'] / figures['calls_wall_s']:.2f} cores")
    print(f"event-loop lag p99     {figures['loop_lag_p99_ms']:.1f} ms")
    print(f"TTFT error p99         {figures['ttft_error_p99_ms']:.1f} ms")
    print(f"RSS                    {figures['rss_mb']:.0f} MB")


if __name__ == "__main__":
    main()
