"""A run at work: one event loop in a thread of its own works through all cells of the run's partitions, while
each partition's asset waits for its own and seals them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import uvloop

from resources.errors import Incomplete, SrBenchError
from resources.gateway.client import GatewayClient
from resources.gateway.timer import Timer
from resources.journal.commit_process import CommitProcess
from resources.journal.connection import Journal
from resources.journal.leases import Lease, acquire_lease
from resources.journal.patience import patiently
from resources.journal.runs import get_run, start_run
from resources.journal.verdicts import Stopped
from resources.journal.writer import JournalWriter
from resources.store import Store
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.cell_run import CellRunner
from sr_bench_assets.results.conclude import cells_without_result, conclude_run
from sr_bench_assets.results.conclusion import BROKEN_OFF, CALL_FAILURES, TOLD_TO_END, Stop, StopKind
from sr_bench_assets.results.dispatcher import Dispatcher
from sr_bench_assets.results.lanes import Cell
from sr_bench_assets.results.notices import Notices
from sr_bench_assets.results.run_calls import RunCalls
from sr_bench_assets.results.scope import RunScopeCells, planned_count
from sr_bench_assets.results.sealing import PartitionSeal, seal_partition
from sr_bench_assets.results.turnstile import Turnstile
from sr_bench_assets.results.work import Work, work_of

POLL_S = 0.5
"""How often the journal's cancel flag and `should_stop` are looked at."""
_CELLS_OF_A_PROCESS = 500
"""Runs of fewer cells commit in a thread, unless a process is waiting already."""
ACTIVE: dict[str, RunExecution] = {}
"""Runs at work in this process, by run id: an asset body finds the running dispatcher here."""


@dataclass(frozen=True)
class PartitionOutcome:
    """A partition with nothing left to send."""

    benchmark: str
    undispatched: int
    """Cells of this partition that were not sent: the budget, the time or an endpoint gave out."""
    stop: Stop | None
    seal: PartitionSeal


class RunExecution:
    """Executes `partitions` (benchmark ids) of a run. `start`, then `wait` for each, then `close`.

    `should_stop` may be set before `start`; it is called about every half second from a thread of its own and
    gives a reason to cancel the run, or None.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        plan: FrozenPlan,
        run_id: str,
        partitions: Sequence[str],
        env: Mapping[str, str],
        should_stop: Callable[[], str | None] | None = None,
        commits: CommitProcess | None = None,
    ) -> None:
        """`commits`: a waiting process that is to commit for this run."""
        self.should_stop = should_stop
        self._commits = commits
        self._store = store
        self._journal = journal
        self._plan = plan
        self._run_id = run_id
        self._partitions = list(partitions)
        self._env = env
        self._stop: Stop | None = None
        self._stopping = threading.Lock()
        self._left: dict[str, int] = {}
        self._deadline = 0.0
        self._scope = RunScopeCells()
        self._notices = Notices(journal, run_id, plan.limits)
        self._ended = {benchmark: threading.Event() for benchmark in self._partitions}
        self._leases: list[Lease] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dispatcher: Dispatcher | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._fault: BaseException | None = None

    def start(self) -> None:
        """Take the leases and begin to send.

        Raises `SrBenchError`: another runner has a partition (`run_active`), the run has ended (`run_ended`), the
        dataset changed, a key is not set, or a benchmark cannot be executed by this version. Nothing was sent then.
        """
        started = threading.Event()
        try:
            # An outage may repeat it: leases that are ours stay ours, a started run stays started.
            work = patiently(self._prepare)
        except BaseException as error:
            if self._leases:
                # With a lease the run is ours to end; without, it is another runner's or has ended.
                self._conclude(Stop("failed", str(error) or type(error).__name__))
            raise
        self._thread = threading.Thread(target=self._work, args=(work, started), name=f"run-{self._run_id}")
        ACTIVE[self._run_id] = self
        self._thread.start()
        started.wait()
        threading.Thread(target=self._watch, name=f"watch-{self._run_id}", daemon=True).start()

    def wait(self, benchmark: str) -> PartitionOutcome:
        """Block until all cells of a partition have ended or will not start any more, and seal it.

        Raises `Incomplete` when the run was cancelled or interrupted, and what broke the runner itself. An
        exception that arrives in the waiting thread (Ctrl-C, termination by Dagster) stops the run: its calls
        journal their end before it goes on.
        """
        self.wait_for_cells(benchmark)
        if self._fault is not None:
            raise self._fault
        if self._stop is not None and self.broken_off:
            raise Incomplete(
                f"Run {self._run_id} was stopped: {self._stop.reason}.",
                code=self._stop.kind,
                mend=f"See `sr-bench show {self._run_id}`; `sr-bench recover-plan {self._run_id}` tells what can be "
                "continued.",
            )
        seal = seal_partition(self._store, self._journal, self._run_id, benchmark)
        planned = planned_count(self._plan, self._scope, benchmark, None)
        undispatched = cells_without_result(self._journal, self._run_id, benchmark, planned)
        return PartitionOutcome(benchmark, undispatched, self._stop, seal)

    def wait_for_cells(self, benchmark: str) -> None:
        """The first half of `wait`: block until nothing of the partition is in flight or will start."""
        try:
            while not self._ended[benchmark].wait(POLL_S):
                pass
        except BaseException:
            # Ctrl-C and signals arrive here, as whatever exception Dagster makes of them.
            self.stop(TOLD_TO_END, kind="interrupted")
            self._over.wait(10)
            raise

    @property
    def broken_off(self) -> bool:
        """Whether the run was stopped in a way that leaves nothing to seal."""
        return self._stop is not None and self._stop.kind in BROKEN_OFF

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop that the calls run in, once started."""
        return self._loop

    def stop(self, reason: str, *, kind: StopKind = "cancelled") -> None:
        """Stop the run from any thread: calls in flight are cancelled and journal their end. Returns at once.

        The first stop counts (but for an exhausted budget, which lets calls in flight finish); one after the last
        cell has ended changes nothing.
        """
        with self._stopping:
            if self._over.is_set() or (self._stop is not None and self._stop.kind != "budget_exhausted"):
                return
            self._stop = Stop(kind, reason)
        if self._loop is not None and self._dispatcher is not None:
            try:
                self._loop.call_soon_threadsafe(self._cancel_cells)
            except RuntimeError:
                return  # the loop ended between the two lines: there is nothing left to cancel

    def close(self) -> None:
        """Wait for the end (stop first to have it now), give the leases back, and conclude the run if no other
        runner is at work on it."""
        if self._thread is not None:
            if not self._over.is_set() and not all(event.is_set() for event in self._ended.values()):
                self.stop(TOLD_TO_END, kind="interrupted")
            self._thread.join()
        ACTIVE.pop(self._run_id, None)
        self._conclude(self._stop)

    def _conclude(self, stop: Stop | None) -> None:
        leases, self._leases = self._leases, []
        if leases:
            conclude_run(self._journal, self._plan, self._run_id, leases, stop, self._notices.causes())

    def _committer(self) -> CommitProcess | None:
        """A process for a run of some length; a thread is quicker at hand for a short one."""
        commits, self._commits = self._commits, None
        if commits is None:
            if sum(self._left.values()) < _CELLS_OF_A_PROCESS:
                return None
            commits = CommitProcess.spawned()
        commits.serve(self._store, self._run_id)
        return commits

    # preparation, in the caller's thread

    def _prepare(self) -> Work:
        self._leases.clear()
        run = get_run(self._journal, self._run_id)
        for benchmark in self._partitions:
            self._leases.append(acquire_lease(self._journal, run.id, benchmark))
        self._scope = RunScopeCells.parse(run.scope)
        work = work_of(self._store, self._journal, self._plan, run, self._partitions, self._env)
        self._left = dict(work.counts)
        run = start_run(self._journal, run.id)
        self._deadline = (run.started_at or time.time()) + self._plan.limits.max_run_seconds
        return work

    # the loop's thread

    def _work(self, work: Work, started: threading.Event) -> None:
        try:
            writer = JournalWriter(
                self._journal, self._run_id, self._store.evidence_dir(self._run_id), self._committer()
            )
            try:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
                    loop.run(self._dispatch(work, writer, started))
            finally:
                writer.close()
        except BaseException as error:
            self._fault = error
        finally:
            work.cases.close()
            if self._fault is not None and self._stop is None:
                self._stop = Stop("failed", f"{type(self._fault).__name__}: {self._fault}")
            self._over.set()
            for event in self._ended.values():
                event.set()
            started.set()

    async def _dispatch(self, work: Work, writer: JournalWriter, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        runner = CellRunner(work.cases, work.executors)
        async with GatewayClient() as client:
            dispatcher = self._dispatcher = Dispatcher(
                concurrency=self._plan.limits.concurrency,
                endpoints=work.places.endpoints,
                lanes=work.lanes,
                needs=work.needs,
                run_cell=runner.run,
                over=self._cell_over,
                dropped=self._cells_dropped,
            )
            runner.calls = RunCalls(
                run_id=self._run_id,
                plan=self._plan,
                writer=writer,
                client=client,
                dispatcher=dispatcher,
                subjects=work.places.subjects,
                auxiliary=work.places.auxiliary,
                turnstile=Turnstile(),
                calls_only=work.calls_only,
                halted=self._halted,
                notices=self._notices,
            )
            for benchmark in self._partitions:
                self._check_partition(benchmark)
            remaining = max(0.0, self._deadline - time.time())
            deadline = Timer(self._loop, remaining, self._time_out)
            if self._stop is not None:
                self._cancel_cells()
            started.set()
            await dispatcher.run()
            await writer.drain()
            deadline.cancel()
        if dispatcher.fault is not None:
            raise dispatcher.fault
        if dispatcher.stop_reason == "budget_exhausted":
            self._note_budget()

    def _time_out(self) -> None:
        seconds = self._plan.limits.max_run_seconds
        self.stop(f"max_run_seconds ({seconds:g} s) were over", kind="timed_out")

    def _cancel_cells(self) -> None:
        if self._dispatcher is not None and self._stop is not None:
            self._dispatcher.stop(self._stop.kind, cancel_as=CALL_FAILURES[self._stop.kind])

    def _cell_over(self, cell: Cell) -> None:
        self._left[cell.benchmark] -= 1
        self._check_partition(cell.benchmark)

    def _cells_dropped(self, benchmark: str, target_id: str, count: int, reason: str) -> None:
        self._notices.unsent(target_id, reason, count)
        if reason == "budget_exhausted":
            self._note_budget()
        elif reason == "circuit_open":
            self._notices.circuit_open(benchmark, target_id, count)
        self._left[benchmark] -= count
        self._check_partition(benchmark)

    def _note_budget(self) -> None:
        with self._stopping:
            if self._stop is None:
                limit = self._plan.limits.max_cost_usd
                self._stop = Stop("budget_exhausted", f"max_cost_usd ({limit} USD) cannot cover another call")

    def _halted(self, cause: Stopped | SrBenchError) -> None:
        """The journal lets nothing more be sent."""
        if isinstance(cause, SrBenchError):
            with self._stopping:
                if self._stop is None:
                    self._stop = Stop("failed", cause.message)
            if self._dispatcher is not None:  # what is in flight may come to its end
                self._dispatcher.stop("failed")
        else:
            self._ended_elsewhere(cause.reason)

    def _ended_elsewhere(self, status: str) -> None:
        if status == "cancelled":
            self.stop("cancellation was requested")
        else:
            self.stop(f"the run was ended elsewhere as {status}", kind="interrupted")

    def _check_partition(self, benchmark: str) -> None:
        if self._left[benchmark] == 0:
            self._ended[benchmark].set()

    # the watch's thread

    def _watch(self) -> None:
        while not self._over.wait(POLL_S):
            try:
                run = get_run(self._journal, self._run_id)
                reason = self.should_stop() if self.should_stop is not None else None
            except Exception:
                continue  # a database that is away for a moment is no reason to lose a run; the writer will tell
            if reason is not None:
                self.stop(reason)
            elif run.cancel_requested_at is not None:
                self._ended_elsewhere("cancelled")
            elif run.is_terminal:
                self._ended_elsewhere(run.status)
