"""Starts and stops a lab gateway: in this process's event loop, or in a thread of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
from types import TracebackType

from aiohttp import web

from resources.errors import SrBenchError, Unavailable
from resources.lab.gateway import Lab
from resources.lab.server import make_app

BACKLOG = 2048


def check_loopback(host: str) -> str:
    """`host` if it is a loopback address; a lab holds answer keys and must not be reached from elsewhere."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise SrBenchError(
            f"the lab does not listen on {host}",
            field="--host",
            mend="Use 127.0.0.1 (or ::1): the lab knows reference answers and stays on this machine.",
        )
    return host


async def start_site(lab: Lab, host: str = "127.0.0.1", port: int = 0) -> tuple[web.AppRunner, int]:
    """Listen on `host`:`port` (0: a free one); the runner to clean up and the port."""
    check_loopback(host)
    runner = web.AppRunner(make_app(lab), handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=BACKLOG).start()
    except OSError as error:
        await runner.cleanup()
        raise Unavailable(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            field="--port",
            mend="Choose another port, or 0 for a free one.",
        ) from None
    return runner, runner.addresses[0][1]


def url_of(host: str, port: int) -> str:
    """`http://host:port`."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class LabServer:
    """A lab gateway in a thread of its own; use as a context manager."""

    def __init__(self, lab: Lab, host: str = "127.0.0.1", port: int = 0) -> None:
        self.lab = lab
        self.host = host
        self.port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="lab-gateway", daemon=True)
        self._started = threading.Event()
        self._error: BaseException | None = None

    @property
    def url(self) -> str:
        """Root of the server, for `/lab/…` and `/api/v1/…`."""
        return url_of(self.host, self.port)

    @property
    def base_url(self) -> str:
        """OpenAI base URL."""
        return f"{self.url}/v1"

    def start(self) -> LabServer:
        """Start and wait until it listens."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise self._error
        return self

    def stop(self) -> None:
        """Stop, cancelling what is in flight."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def __enter__(self) -> LabServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner, self.port = await start_site(self.lab, self.host, self.port)
        self._started.set()
        try:
            await self._stop.wait()
        finally:
            await runner.cleanup()
