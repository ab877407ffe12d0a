"""Downloads from a real hub server on loopback: verified, resumed, shared, refused."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.sources import fetched as fetched_module
from resources.sources.fetched import Fetched
from resources.sources.hub import HubAccess, fetch_hub, stated_by_hub
from resources.sources.kept import kept_hub, kept_import, remember_import
from tests.servers.hub import HubServer

REPO = "someone/tasks"
GATED = "someone/gated"
REVISION = "0123456789abcdef0123456789abcdef01234567"
BIG = bytes(range(256)) * 4000
SMALL = b"a,b\n1,2\n"
FILES = {"data/big.parquet": BIG, "small.csv": SMALL}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    repos = {REPO: {REVISION: FILES}, GATED: {REVISION: FILES}}
    with HubServer(repos, gated={GATED: "hf_the_right_one"}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield server


def fetch(cache: Path, repo: str = REPO, revision: str = REVISION) -> Fetched:
    return fetch_hub(cache, repo, revision, tuple(FILES))


def test_files_are_downloaded_once_and_hashed(hub: HubServer, tmp_path: Path) -> None:
    first = fetch(tmp_path)
    assert {file.name: file.sha256 for file in first.files} == {
        name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()
    }
    assert first.paths()["data/big.parquet"].read_bytes() == BIG
    requests = len(hub.seen)
    assert fetch(tmp_path).files == first.files
    assert len(hub.seen) == requests


def test_a_cut_download_goes_on_where_it_stopped(hub: HubServer, tmp_path: Path) -> None:
    hub.faults.cut_after["data/big.parquet"] = [300_000, 0, 200_000]
    assert fetch(tmp_path).paths()["data/big.parquet"].read_bytes() == BIG
    ranges = [seen.range for seen in hub.gets("big.parquet") if "/storage/" in seen.path]
    assert ranges == [None, "bytes=300000-", "bytes=300000-", "bytes=500000-"]


def test_a_download_of_a_process_that_died_is_continued(hub: HubServer, tmp_path: Path) -> None:
    etag = hashlib.sha256(BIG).hexdigest()
    folder = tmp_path / "hub" / "someone--tasks" / REVISION / "files" / "data"
    folder.mkdir(parents=True)
    (folder / f"big.parquet.{etag[:16]}.part").write_bytes(BIG[:600_000])
    assert fetch(tmp_path).paths()["data/big.parquet"].read_bytes() == BIG
    assert [s.range for s in hub.gets("big.parquet") if "/storage/" in s.path] == ["bytes=600000-"]


def test_a_damaged_partial_file_is_dropped(hub: HubServer, tmp_path: Path) -> None:
    etag = hashlib.sha256(BIG).hexdigest()
    folder = tmp_path / "hub" / "someone--tasks" / REVISION / "files" / "data"
    folder.mkdir(parents=True)
    (folder / f"big.parquet.{etag[:16]}.part").write_bytes(b"x" * 600_000)
    assert fetch(tmp_path).paths()["data/big.parquet"].read_bytes() == BIG


@pytest.mark.parametrize("name", list(FILES))
def test_a_changed_byte_is_refused(hub: HubServer, tmp_path: Path, name: str) -> None:
    hub.faults.changed_byte.add(name)
    with pytest.raises(IntegrityError, match="not those that the hub states"):
        fetch(tmp_path)
    hub.faults.changed_byte.clear()
    assert fetch(tmp_path).paths()[name].read_bytes() == FILES[name]


def test_other_bytes_at_the_same_revision_are_refused(hub: HubServer, tmp_path: Path) -> None:
    path = fetch(tmp_path).paths()["small.csv"]
    path.unlink()
    hub.repos[REPO][REVISION]["small.csv"] = b"a,b\n1,3\n"
    with pytest.raises(IntegrityError, match="first fetched") as caught:
        fetch(tmp_path)
    assert caught.value.code == "changed_source"
    hub.repos[REPO][REVISION]["small.csv"] = SMALL
    assert fetch(tmp_path).paths()["small.csv"].read_bytes() == SMALL


def test_a_file_changed_in_the_cache_is_fetched_again(hub: HubServer, tmp_path: Path) -> None:
    path = fetch(tmp_path).paths()["small.csv"]
    path.write_bytes(b"a,b\n6,6\n")
    assert fetch(tmp_path).paths()["small.csv"].read_bytes() == SMALL


def test_another_commit_is_refused(hub: HubServer, tmp_path: Path) -> None:
    hub.faults.other_commit = "f" * 40
    with pytest.raises(IntegrityError) as caught:
        fetch(tmp_path)
    assert caught.value.code == "wrong_revision"


def test_an_unknown_revision_and_a_missing_file_are_named(hub: HubServer, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has no commit") as caught:
        fetch(tmp_path, revision="9" * 40)
    assert caught.value.code == "wrong_revision"
    with pytest.raises(NotFound, match=r"has no file absent\.csv"):
        fetch_hub(tmp_path, REPO, REVISION, ("absent.csv",))


def test_a_gated_repository_needs_the_right_token(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable, match="HF_TOKEN is not set") as caught:
        fetch(tmp_path, GATED)
    assert caught.value.code == "gated"
    monkeypatch.setenv("HF_TOKEN", "hf_a_wrong_one")
    with pytest.raises(Unavailable, match="has no access") as caught:
        fetch(tmp_path, GATED)
    assert "hf_a_wrong_one" not in str(caught.value.as_dict())
    monkeypatch.setenv("HF_TOKEN", "hf_the_right_one")
    fetch(tmp_path, GATED)
    at_storage = {seen.authorization for seen in hub.seen if "/storage/" in seen.path}
    assert at_storage == {None}
    held = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in held if b"hf_the_right_one" in path.read_bytes()]


def test_an_outage_keeps_what_was_downloaded(hub: HubServer, tmp_path: Path) -> None:
    hub.faults.broken = True
    with pytest.raises(Unavailable, match="answered 500"):
        fetch(tmp_path)


def test_an_unreachable_hub_is_named(tmp_path: Path) -> None:
    access = HubAccess("http://127.0.0.1:9", None)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9 cannot be reached"):
        fetch_hub(tmp_path, REPO, REVISION, ("small.csv",), access=access)


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(HubAccess("http://hub", "secret"))


def _fetch_in_process(cache: str, endpoint: str) -> None:
    os.environ["HF_ENDPOINT"] = endpoint
    fetch(Path(cache))


def test_two_jobs_share_one_download(hub: HubServer, tmp_path: Path) -> None:
    hub.faults.delay_s = 0.3
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=_fetch_in_process, args=(str(tmp_path), hub.url)) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    assert [job.exitcode for job in jobs] == [0, 0]
    assert len([s for s in hub.gets("big.parquet") if "/storage/" in s.path]) == 1
    assert len(hub.gets("small.csv")) == 1


def test_a_job_that_waits_for_another_says_so(hub: HubServer, tmp_path: Path) -> None:
    hub.faults.delay_s = 0.3
    told: list[str] = []
    first = threading.Thread(target=fetch, args=(tmp_path,))
    first.start()
    while not hub.seen:
        time.sleep(0.01)
    fetch_hub(tmp_path, REPO, REVISION, tuple(FILES), lambda what, done, total: told.append(what))
    first.join()
    assert told == [f"https://huggingface.co/datasets/{REPO}: waiting for another job that fetches it"]


def test_what_the_hub_states_is_asked_without_downloading(hub: HubServer, tmp_path: Path) -> None:
    fetch(tmp_path)
    before = len(hub.gets(".csv")) + len(hub.gets(".parquet"))
    stated = stated_by_hub(tmp_path, REPO, REVISION, list(FILES))
    assert {name: same for name, (_, same) in stated.items()} == dict.fromkeys(FILES, True)
    hub.repos[REPO][REVISION]["small.csv"] = b"a,b\n1,3\n"
    etag, same = stated_by_hub(tmp_path, REPO, REVISION, ["small.csv"])["small.csv"]
    assert not same
    assert etag == hashlib.sha1(b"blob 8\0a,b\n1,3\n").hexdigest()
    assert len(hub.gets(".csv")) + len(hub.gets(".parquet")) == before


def test_kept_sources_are_found_again(hub: HubServer, tmp_path: Path) -> None:
    assert kept_hub(tmp_path, REPO, REVISION) is None
    fetched = fetch(tmp_path)
    kept = kept_hub(tmp_path, REPO, REVISION)
    assert kept is not None
    assert {file.name: file.sha256 for file in kept.files} == {f.name: f.sha256 for f in fetched.files}
    assert kept.now() == {file.name: file for file in fetched.files}
    fetched.paths()["small.csv"].unlink()
    assert kept.now()["small.csv"] is None


def test_imports_are_remembered_by_their_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    assert kept_import(tmp_path / "cache", "0" * 64) is None
    remember_import(tmp_path / "cache", "0" * 64, folder)
    assert kept_import(tmp_path / "cache", "0" * 64) == folder
    folder.rmdir()
    assert kept_import(tmp_path / "cache", "0" * 64) is None
    (tmp_path / "cache" / "imports" / f"{'0' * 64}.json").write_text("[]")
    with pytest.raises(IntegrityError, match="not readable"):
        kept_import(tmp_path / "cache", "0" * 64)


def test_a_full_disk_is_one_clear_message(hub: HubServer, tmp_path: Path) -> None:
    # A limit on file size stands in for a full disk: it fails in the same place, inside the download.
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(SrBenchError) as caught:
            fetch(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.code == "disk_full"
    assert caught.value.exit_code == 4
    assert fetch(tmp_path).paths()["data/big.parquet"].read_bytes() == BIG


def test_a_damaged_receipt_says_what_to_remove(tmp_path: Path) -> None:
    (tmp_path / fetched_module.RECEIPT).write_text("{")
    with pytest.raises(IntegrityError, match="not readable JSON"):
        fetched_module.read_receipt(tmp_path)
