"""Sealing a partition: its results and calls as Parquet, its raw evidence as objects, each known by its hash."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from resources.canonical import content_hash
from resources.durable import readable_os_errors
from resources.errors import SrBenchError
from resources.journal.connection import Journal
from resources.journal.runs import add_event
from resources.journal.seals import add_seal, get_seal
from resources.store import Store
from sr_bench_assets.results.facts import FactKind, arrow_batches, arrow_schema

_ROW_GROUP = 2_000


@dataclass(frozen=True)
class PartitionSeal:
    """What was sealed of one benchmark of a run."""

    results_sha256: str
    calls_sha256: str
    evidence_sha256: str
    """Content hash of {segment file name: SHA-256}."""


def seal_partition(store: Store, journal: Journal, run_id: str, benchmark: str) -> PartitionSeal:
    """Seal a partition whose cells have ended; one that is sealed already is left as it is.

    Equal journal rows give equal bytes (with one version of pyarrow). The order is evidence, calls, results: a
    partition with sealed results has everything sealed. Raises `SrBenchError` while calls are in flight.
    """
    found = sealed_partition(journal, run_id, benchmark)
    if found is not None:
        return found
    _refuse_open_calls(journal, run_id, benchmark)
    segments = {
        path.name: store.objects.put_file(path)
        for path in sorted(store.evidence_dir(run_id).glob(f"{benchmark}.*.seg"))
    }
    missing = sorted(_segments_of_calls(journal, run_id, benchmark) - set(segments))
    if missing:
        add_event(
            journal,
            run_id,
            "evidence_missing",
            f"{benchmark}: raw evidence of calls is gone from the run's folder: {', '.join(missing)}",
            {"benchmark": benchmark, "segments": missing},
        )
    data = {"segments": segments, "missing": missing} if missing else {"segments": segments}
    add_seal(journal, run_id, benchmark, "evidence", content_hash(segments), data=data)
    for kind in ("calls", "results"):
        sha256, rows = _seal_table(store, journal, run_id, kind, benchmark)
        add_seal(journal, run_id, benchmark, kind, sha256, data={"rows": rows})
    sealed = sealed_partition(journal, run_id, benchmark)
    assert sealed is not None  # just written
    return sealed


def sealed_partition(journal: Journal, run_id: str, benchmark: str) -> PartitionSeal | None:
    """The seals of a partition; None as long as its results are not sealed."""
    results, calls, evidence = (
        get_seal(journal, run_id, benchmark, kind) for kind in ("results", "calls", "evidence")
    )
    if results is None or calls is None or evidence is None:
        return None
    return PartitionSeal(results.sha256, calls.sha256, evidence.sha256)


def _seal_table(
    store: Store, journal: Journal, run_id: str, kind: FactKind, benchmark: str
) -> tuple[str, int]:
    """Write the rows of one table to Parquet and store it; its SHA-256 and number of rows."""
    import pyarrow.parquet as pq

    handle, name = tempfile.mkstemp(prefix=f".{kind}-", suffix=".parquet", dir=store.run_dir(run_id))
    os.close(handle)
    path = Path(name)
    rows = 0
    try:
        with (
            readable_os_errors(path),
            pq.ParquetWriter(path, arrow_schema(kind), compression="zstd", compression_level=3) as writer,
        ):
            for batch in arrow_batches(journal, run_id, kind, benchmark):
                rows += batch.num_rows
                writer.write_batch(batch, row_group_size=_ROW_GROUP)
        return store.objects.put_file(path), rows
    finally:
        path.unlink(missing_ok=True)


def _segments_of_calls(journal: Journal, run_id: str, benchmark: str) -> set[str]:
    """The segment files that the partition's calls point to."""
    from sqlalchemy import select

    from resources.journal.schema import calls

    query = (
        select(calls.c.evidence_segment)
        .where(
            calls.c.run_id == run_id, calls.c.benchmark == benchmark, calls.c.evidence_segment.is_not(None)
        )
        .distinct()
    )
    with journal.connect() as connection:
        return {name for (name,) in connection.execute(query)}


def _refuse_open_calls(journal: Journal, run_id: str, benchmark: str) -> None:
    from sqlalchemy import func, select

    from resources.journal.schema import calls

    query = select(func.count()).where(
        calls.c.run_id == run_id,
        calls.c.benchmark == benchmark,
        calls.c.outcome.is_(None),
        calls.c.failure.is_(None),
    )
    with journal.connect() as connection:
        count = connection.execute(query).scalar_one()
    if count:
        raise SrBenchError(
            f"{count} calls of {benchmark} in run {run_id} are in flight",
            code="run_active",
            field="run_id",
            mend="wait for the run to end",
        )
