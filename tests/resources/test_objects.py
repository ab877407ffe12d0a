from __future__ import annotations

import secrets
from pathlib import Path

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.canonical import sha256_bytes
from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.objects import ObjectStore

KINDS = ["local", "remote"]


def new_store(kind: str, tmp_path: Path) -> ObjectStore:
    """A store on disk, or one that goes through fsspec (its in-memory file system)."""
    if kind == "local":
        return ObjectStore(f"file://{tmp_path}/objects%20here")
    return ObjectStore(f"memory://bucket-{secrets.token_hex(4)}/prefix", cache_dir=tmp_path / "cache")


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return new_store(request.param, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_what_is_put_comes_back_under_its_digest(kind: str, tmp_path: Path, data: bytes) -> None:
    objects = new_store(kind, tmp_path)
    sha256 = objects.put(data)
    assert sha256 == sha256_bytes(data)
    assert objects.put(data) == sha256
    assert objects.get(sha256) == data
    assert objects.exists(sha256)
    assert objects.open_local(sha256).read_bytes() == data


def test_files_are_stored_as_their_bytes(objects: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"abc" * 1_000_000)
    sha256 = objects.put_file(source)
    assert sha256 == sha256_bytes(source.read_bytes())
    assert objects.put_file(source) == sha256
    source.write_bytes(b"changed afterwards")
    assert objects.get(sha256) == b"abc" * 1_000_000


def test_what_is_not_there_is_not_found(objects: ObjectStore) -> None:
    absent = "0" * 64
    assert not objects.exists(absent)
    with pytest.raises(NotFound, match=absent):
        objects.get(absent)
    with pytest.raises(NotFound, match=absent):
        objects.open_local(absent)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_only_digests_name_objects(objects: ObjectStore, name: str) -> None:
    with pytest.raises(SrBenchError, match="not a SHA-256"):
        objects.get(name)


def test_a_changed_byte_on_disk_is_found(tmp_path: Path) -> None:
    objects = new_store("local", tmp_path)
    sha256 = objects.put(b"truth")
    path = objects.open_local(sha256)
    path.write_bytes(b"trutH")
    for read in (objects.get, objects.open_local):
        with pytest.raises(IntegrityError, match="other bytes") as caught:
            read(sha256)
        assert caught.value.mend


def test_a_changed_byte_elsewhere_is_found_and_a_torn_copy_is_fetched_anew(tmp_path: Path) -> None:
    objects = ObjectStore("memory://changing/prefix", cache_dir=tmp_path / "cache")
    sha256 = objects.put(b"truth")
    copy = objects.open_local(sha256)
    copy.write_bytes(b"tru")
    with pytest.raises(IntegrityError):
        objects.open_local(sha256)
    assert objects.open_local(sha256).read_bytes() == b"truth"
    remote = fsspec.filesystem("memory")
    remote.pipe_file(f"/changing/prefix/{sha256[:2]}/{sha256}", b"trutH")
    with pytest.raises(IntegrityError):
        objects.get(sha256)


def test_a_torn_upload_is_repeated(tmp_path: Path) -> None:
    objects = ObjectStore("memory://torn/prefix", cache_dir=tmp_path / "cache")
    sha256 = sha256_bytes(b"whole")
    fsspec.filesystem("memory").pipe_file(f"/torn/prefix/{sha256[:2]}/{sha256}", b"who")
    objects.put(b"whole")
    assert objects.get(sha256) == b"whole"


def test_an_unreachable_store_is_told_without_credentials(tmp_path: Path) -> None:
    objects = ObjectStore("http://user:hunter2@127.0.0.1:9/secret-path", cache_dir=tmp_path)
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1 failed") as caught:
        objects.get("0" * 64)
    assert caught.value.field == "SR_BENCH_OBJECTS_URL"
    assert "hunter2" not in str(caught.value)


def test_an_unknown_scheme_is_told(tmp_path: Path) -> None:
    with pytest.raises(SrBenchError, match="cannot be used") as caught:
        ObjectStore("nothing-known://x", cache_dir=tmp_path).get("0" * 64)
    assert caught.value.field == "SR_BENCH_OBJECTS_URL"
