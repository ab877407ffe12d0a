"""The floor: what a bare aiohttp client needs for the same calls, keeping nothing.

`python -m benchmarks_perf.floor URL --calls 2000 --concurrency 64` prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from typing import Any

import aiohttp
import orjson


async def call_all(url: str, calls: int, concurrency: int, model: str = "stub") -> int:
    """Send `calls` streamed chat completions, read the bytes, parse the JSON of each event; number of events."""
    numbers = iter(range(calls))
    events = 0

    async def worker(session: aiohttp.ClientSession) -> None:
        nonlocal events
        for number in numbers:
            body = orjson.dumps(
                {
                    "model": model,
                    "messages": [{"role": "user", "content": f"What is {number} + 1?"}],
                    "temperature": 0,
                    "max_tokens": 4096,
                    "stream": True,
                    "stream_options": {"include_usage": True},
                }
            )
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{url}/v1/chat/completions", data=body, headers=headers) as response:
                raw = await response.read()
            for event in raw.split(b"\n\n"):
                if event.startswith(b"data: {"):
                    orjson.loads(event[6:])
                    events += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(worker(session) for _ in range(concurrency)))
    return events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    arguments = parser.parse_args()
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    events = asyncio.run(call_all(arguments.url, arguments.calls, arguments.concurrency))
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures: dict[str, Any] = {
        "events": events,
        "calls_wall_s": time.perf_counter() - started,
        "calls_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "rss_mb": after.ru_maxrss / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
