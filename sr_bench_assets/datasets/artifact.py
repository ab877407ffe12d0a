"""The prepared dataset: `datasets/<id>/{manifest.json,cases.jsonl}`, published once and verified on every read."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from resources.canonical import canonical_bytes, content_hash, sha256_bytes
from resources.durable import readable_os_errors, sync_folder, write_once
from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Case, Profile

MANIFEST_VERSION = "sr-bench-dataset-1"
CASES_FILE = "cases.jsonl"
MANIFEST_FILE = "manifest.json"
ABANDONED_AFTER_S = 3600.0
Split = Literal["dev", "holdout"]
EvaluationRole = Literal["holdout", "retest"]


class Frozen(BaseModel):
    """A part of the manifest; unknown members are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceFile(Frozen):
    """One file that cases were read from."""

    name: str
    sha256: str
    size: int


class SourceRecord(Frozen):
    """Where one benchmark's cases come from, exactly."""

    kind: Literal["hub", "git", "local"]
    url: str
    """The upstream's address, or `local:<name>` for an import."""
    revision: str
    files: tuple[SourceFile, ...]
    files_sha256: str
    """Content hash of [[name, sha256], …] of all files: equal exactly when all source bytes are equal."""
    licence: str
    access_note: str
    normalizer_version: str
    adapter_version: str
    source_partition: str | None = None
    """Upstream's own task collection (test, dev, …) where history is tracked; not the evaluation split."""
    sample_data: str | None = None
    """Not None: these are sample data, not the benchmark; the text says whose."""


class SelectionRecord(Frozen):
    """How one benchmark's cases were chosen from the source."""

    rule: str
    source_cases: int
    """Cases that the source holds after normalisation."""
    requested: int
    limit: int | None = None
    strata: dict[str, int]
    """Selected cases per stratum."""
    source_strata: dict[str, int] = Field(default_factory=dict)
    """Cases of the source per stratum. Empty in manifests that were written before it was recorded."""

    @model_serializer(mode="wrap")
    def _as_written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = serialize(self)
        if not self.source_strata:
            # What an older manifest does not hold must not enter its identity.
            del document["source_strata"]
        return document


class ExclusionRecord(Frozen):
    """What named history took out of one benchmark's Standard selection."""

    snapshot_sha256: str
    references: tuple[str, ...]
    """The datasets and runs that the snapshot names, `dataset:<id>` or `run:<id>`."""
    available: int
    quick: int
    """Members of the original Quick selection."""
    history: int
    """Tasks of this benchmark that the snapshot names."""
    excluded: int
    """The union of the two, subtracted once."""
    remaining: int
    selected: int


class Preparation(Frozen):
    """What operation made the dataset, and from what."""

    method: Literal["prepare", "combine"]
    components: tuple[str, ...] = ()
    """Ids of the datasets that were combined."""


class DatasetManifest(Frozen):
    """Everything that identifies a prepared dataset. `id` is the content hash of all members but `id` and `path`."""

    id: str
    version: str = MANIFEST_VERSION
    path: str
    """Absolute path of `cases.jsonl` in this store; no part of the identity."""
    sha256: str
    case_count: int
    profile: Profile
    split: Split
    seed: int
    benchmarks: tuple[str, ...]
    counts: dict[str, int]
    case_sha256: dict[str, str]
    """Per benchmark, SHA-256 of its lines of `cases.jsonl` in order, each with its newline."""
    sources: dict[str, SourceRecord]
    selection: dict[str, SelectionRecord]
    custom_subset: bool
    """True where `--limit` took fewer cases than the profile's count of any benchmark."""
    sample_data: str | None = None
    """Not None: at least one source is sample data, not a benchmark."""
    exclusions: dict[str, ExclusionRecord] = Field(default_factory=dict)
    evaluation_roles: dict[str, EvaluationRole] = Field(default_factory=dict)
    disclosures: tuple[str, ...] = ()
    preparation: Preparation

    def identity(self) -> dict[str, Any]:
        """The members that the id covers."""
        return self.model_dump(mode="json", exclude={"id", "path"})

    def as_dict(self) -> dict[str, Any]:
        """The document that commands print."""
        return self.model_dump(mode="json")


def encode_case(case: Case) -> bytes:
    """One canonical line of `cases.jsonl`, with its newline."""
    document = case.model_dump(mode="json")
    if document["identity"] is None:
        del document["identity"]
    return canonical_bytes(document) + b"\n"


def lines_sha256(lines: Iterable[bytes]) -> str:
    """SHA-256 of lines that each end in a newline."""
    return sha256_bytes(b"".join(lines))


def source_sha256(files: Iterable[SourceFile]) -> str:
    """Content hash of the names and hashes of source files."""
    return content_hash([[file.name, file.sha256] for file in files])


def split_of(profile: Profile) -> Split:
    """smoke and quick are for development, standard is the holdout."""
    return "holdout" if profile == "standard" else "dev"


def publish(store: Store, lines: Sequence[bytes], facts: Mapping[str, Any]) -> DatasetManifest:
    """Write a new dataset, or return the equal one that is there already (verified).

    `lines` are encoded cases in order; `facts` are the manifest's members but id, path, sha256 and case_count.
    Both files appear together or not at all. Raises SrBenchError for duplicate case ids, Unavailable for a full
    disk.
    """
    _refuse_duplicates(lines)
    data = b"".join(lines)
    draft = DatasetManifest(id="", path="", sha256=sha256_bytes(data), case_count=len(lines), **dict(facts))
    dataset_id = content_hash(draft.identity())
    folder = store.datasets_dir / dataset_id
    manifest = draft.model_copy(update={"id": dataset_id, "path": str((folder / CASES_FILE).resolve())})
    if folder.exists():
        read_lines(folder / CASES_FILE, manifest.sha256)
        return load_manifest(store, dataset_id)
    with readable_os_errors(folder):
        _remove_abandoned(store.datasets_dir)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=store.datasets_dir))
        try:
            document = {"id": dataset_id, **draft.identity()}
            write_once(temporary / CASES_FILE, data)
            write_once(temporary / MANIFEST_FILE, json.dumps(document, ensure_ascii=False, indent=1).encode())
            _rename_once(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return manifest


def load_manifest(store: Store, dataset_id: str) -> DatasetManifest:
    """The manifest of `dataset_id` or of the one dataset whose id begins so; its identity is verified."""
    return _read_manifest(store.datasets_dir / _full_id(store, dataset_id))


def manifest_beside(cases_path: str | Path) -> DatasetManifest:
    """The manifest in the folder of a `cases.jsonl`."""
    return _read_manifest(Path(cases_path).resolve().parent)


def list_datasets(store: Store) -> list[DatasetManifest]:
    """All published datasets, newest first."""
    if not store.datasets_dir.is_dir():
        return []
    folders = [f for f in store.datasets_dir.iterdir() if not f.name.startswith(".") and f.is_dir()]
    folders.sort(key=lambda folder: (-folder.stat().st_mtime_ns, folder.name))
    return [_read_manifest(folder) for folder in folders]


def read_lines(path: str | Path, sha256: str) -> list[bytes]:
    """The encoded cases of a `cases.jsonl` whose bytes have this hash; raises IntegrityError where they differ."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise NotFound(
            f"There is no file {path}.",
            field="dataset.path",
            mend="Prepare the dataset again, or correct the path: `sr-bench dataset show` lists what is there.",
        ) from error
    if sha256_bytes(data) != sha256:
        raise IntegrityError(
            f"{path} is not what was prepared: its SHA-256 is {sha256_bytes(data)}, expected {sha256}.",
            code="changed_dataset",
            field="dataset.sha256",
            mend="Prepared files are never edited: prepare the dataset again and use its path and sha256.",
        )
    return data.splitlines(keepends=True)


def read_cases(path: str | Path, sha256: str, benchmark: str | None = None) -> list[Case]:
    """The cases of a verified `cases.jsonl`, in order; only those of `benchmark` where it is given."""
    cases = (decode_case(line) for line in read_lines(path, sha256))
    return [case for case in cases if benchmark is None or case.benchmark == benchmark]


def decode_case(line: bytes) -> Case:
    """One case from its line."""
    try:
        return Case.model_validate_json(line)
    except ValidationError as error:
        # Without the cause: pydantic quotes its input, and a line holds labels.
        raise IntegrityError(
            f"A line of {CASES_FILE} is no case of this version ({error.error_count()} problems).",
            mend="Prepare the dataset again with this version.",
        ) from None


def _refuse_duplicates(lines: Sequence[bytes]) -> None:
    seen: set[str] = set()
    for line in lines:
        case_id: str = orjson.loads(line)["id"]
        if case_id in seen:
            raise SrBenchError(
                f"The case id {case_id} occurs twice.",
                code="duplicate_case",
                mend="Give each task of the source an id of its own.",
            )
        seen.add(case_id)


def _full_id(store: Store, prefix: str) -> str:
    names = [] if not store.datasets_dir.is_dir() else [f.name for f in store.datasets_dir.iterdir()]
    found = [name for name in names if prefix and name.startswith(prefix) and not name.startswith(".")]
    if len(found) == 1:
        return found[0]
    raise NotFound(
        f"The store has no dataset {prefix}." if not found else f"{len(found)} datasets begin with {prefix}.",
        field="dataset",
        mend="`sr-bench dataset show` lists the datasets of this store.",
    )


def _read_manifest(folder: Path) -> DatasetManifest:
    path = folder / MANIFEST_FILE
    try:
        document = json.loads(path.read_bytes())
        manifest = DatasetManifest.model_validate({**document, "path": str((folder / CASES_FILE).resolve())})
    except FileNotFoundError as error:
        raise NotFound(
            f"There is no dataset manifest {path}.",
            field="dataset.path",
            mend="Use the path that `sr-bench dataset prepare` printed.",
        ) from error
    except ValueError as error:
        raise IntegrityError(
            f"{path} is no dataset manifest of this version.", mend="Prepare the dataset again."
        ) from error
    if content_hash(manifest.identity()) != manifest.id:
        raise IntegrityError(
            f"{path} was changed: its content no longer has the id {manifest.id}.",
            code="changed_dataset",
            field="dataset.path",
            mend="Remove that folder and prepare the dataset again.",
        )
    return manifest


def _remove_abandoned(datasets_dir: Path) -> None:
    """Remove what killed preparations left half written; one that is being written now is younger."""
    for left in datasets_dir.glob(".new-*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(left, ignore_errors=True)


def _rename_once(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
        sync_folder(folder.parent)
    except OSError:
        # Another process published the same content first: equal ids have equal bytes.
        if not folder.exists():
            raise
