"""Reads the retained evidence of a run's calls: from the run's segments, else from sealed objects."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from resources.errors import IntegrityError, NotFound
from resources.gateway.evidence import Evidence, decode_evidence, rebuild_reply
from resources.gateway.router import read_receipt
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, SegmentReader
from resources.journal.seals import list_seals
from resources.store import Store
from sr_bench_assets.usage.call_entry import Missing, Retained


class EvidenceReader(AbstractContextManager["EvidenceReader"]):
    """Evidence of the calls of one run; every frame is verified against the hash in the journal. A context."""

    def __init__(self, store: Store, journal: Journal, run_id: str) -> None:
        self._store = store
        self._live = SegmentReader(store.evidence_dir(run_id))
        self._objects: dict[str, SegmentReader] = {}
        self._sealed: dict[str, str] = {}
        for seal in list_seals(journal, run_id, kind="evidence"):
            self._sealed.update(seal.data.get("segments", {}))

    def __exit__(self, *_: object) -> None:
        for reader in (self._live, *self._objects.values()):
            reader.close()

    def evidence(self, row: Mapping[str, Any]) -> Evidence:
        """The evidence of one `calls` row. NotFound where none was kept, IntegrityError where it changed."""
        if row["evidence_segment"] is None or not row["evidence_length"]:
            raise NotFound(f"Call {row['id']} kept no evidence.", code="no_evidence")
        place = FramePlace(row["evidence_segment"], row["evidence_offset"], row["evidence_length"])
        return decode_evidence(self._frame(place), sha256=row["evidence_sha256"])

    def retained(self, row: Mapping[str, Any]) -> Retained | Missing:
        """What the evidence says of the call, or why it says nothing."""
        try:
            evidence = self.evidence(row)
        except NotFound:
            return "evidence_missing"
        except IntegrityError:
            return "evidence_changed"
        return Retained(rebuild_reply(evidence), read_receipt(evidence.headers))

    def _frame(self, place: FramePlace) -> bytes:
        try:
            return self._live.frame(place)
        except NotFound:
            if place.segment not in self._sealed:
                raise
        path = self._store.objects.open_local(self._sealed[place.segment])
        reader = self._objects.setdefault(place.segment, SegmentReader(path.parent))
        return reader.frame(place._replace(segment=path.name))
