"""The two Dagster resources of the pipeline: which store, and which plan and run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from dagster import ConfigurableResource
from pydantic import Field

from resources.canonical import content_hash
from resources.errors import IntegrityError, NotFound
from resources.journal.connection import Journal, open_journal
from resources.plan_files import newest_plan_file
from resources.store import Store


class StoreResource(ConfigurableResource):
    """The store that assets read and write."""

    path: str = Field("", description="Store folder. Empty: SR_BENCH_STORE, else the user's data folder.")

    def open(self) -> Store:
        return Store.open(self.path or None)

    def open_journal(self) -> tuple[Store, Journal]:
        store = self.open()
        return store, open_journal(store)


class RunScope(ConfigurableResource):
    """What a materialization is pinned to. Everything a stage reads is found through the plan's hash."""

    plan_sha256: str = Field(
        "",
        description="Frozen plan to work on. Empty: the newest plan of the partition, else one composed from the "
        "registered targets with default options.",
    )
    run_id: str = Field(
        "", description="Run to attach to. Empty: the sealed run of the plan if there is one, else a new run."
    )

    def plan_document(self, store: Store) -> dict[str, Any] | None:
        """The pinned plan as a verified JSON document; None when no plan is pinned.

        Raises `NotFound` when the store lacks it and `IntegrityError` when its bytes do not have the hash.
        """
        if not self.plan_sha256:
            return None
        path = store.plans_dir / f"{self.plan_sha256}.json"
        if not path.is_file():
            raise NotFound(
                f"The store holds no plan {self.plan_sha256}.",
                field="run_scope.plan_sha256",
                mend="Freeze it with `sr-bench plan`, or leave the field empty.",
            )
        return _verified(path)

    def partition_plan_document(self, store: Store, benchmark: str, profile: str) -> dict[str, Any] | None:
        """The pinned plan, else the newest of the partition, as a verified JSON document; None without either.

        Raises as `plan_document`.
        """
        if self.plan_sha256:
            return self.plan_document(store)
        path = newest_plan_file(store, benchmark, profile)
        return None if path is None else _verified(path)


def _verified(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(path.read_bytes())
    body = {key: value for key, value in document.items() if key != "plan_sha256"}
    if content_hash(body) != path.stem:
        raise IntegrityError(f"Plan {path.stem} does not have the hash of its name; its file was changed.")
    return document
