from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.store import DATABASE_ENV, OBJECTS_ENV, STORE_ENV, Store, replace_file, write_once

ROOT = Path(__file__).parents[2]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_option_wins_over_the_variable_and_that_over_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STORE_ENV, str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert Store.open(tmp_path / "option").root == tmp_path / "option"
    assert Store.open(None).root == tmp_path / "variable"
    monkeypatch.delenv(STORE_ENV)
    if sys.platform == "linux":
        assert Store.open(None).root == tmp_path / "data" / "sr-bench"


def test_folders_are_for_the_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        store = Store.open(tmp_path / "deep" / "store")
        folders = [store.root, store.datasets_dir, store.plans_dir, store.run_dir("r"), store.dagster_home]
        file = write_once(store.plans_dir / "p.json", b"{}")
    finally:
        os.umask(previous)
    assert [mode(folder) for folder in folders] == [0o700] * 5
    assert mode(file) == 0o600


def test_a_store_that_became_readable_to_others_is_closed_again(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    assert store.datasets_dir.is_dir()
    store.root.chmod(0o755)
    assert mode(Store.open(store.root).root) == 0o700


def test_an_open_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir(mode=0o755)
    (folder / "letter.txt").touch()
    with pytest.raises(SrBenchError, match="not ours") as caught:
        Store.open(folder)
    assert (mode(folder), caught.value.field) == (0o755, "store")
    folder.chmod(0o700)
    assert Store.open(folder).root == folder


def test_a_missing_store_is_made_only_on_request(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store at") as caught:
        Store.open(tmp_path / "none", create=False)
    assert caught.value.mend
    assert not (tmp_path / "none").exists()


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SrBenchError, match="not a folder"):
        Store.open(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_store_of_another_user_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    os.chown(store.root, 12345, 12345)
    with pytest.raises(SrBenchError, match="owned by another user") as caught:
        Store.open(store.root)
    assert caught.value.code == "foreign_store"


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden"])
def test_a_run_id_cannot_lead_out_of_the_store(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(SrBenchError, match="not a run id"):
        Store.open(tmp_path / "store").run_dir(run_id)


def test_the_database_is_sqlite_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(tmp_path / "store")
    monkeypatch.delenv(DATABASE_ENV, raising=False)
    assert store.database_url == f"sqlite:///{tmp_path}/store/journal.sqlite3"
    monkeypatch.setenv(DATABASE_ENV, "postgres://u:p@h/d")
    assert store.database_url == "postgresql+psycopg://u:p@h/d"


def test_objects_are_local_unless_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OBJECTS_ENV, raising=False)
    store = Store.open(tmp_path / "store")
    sha256 = store.objects.put(b"x")
    assert (store.root / "objects" / sha256[:2] / sha256).read_bytes() == b"x"


def test_a_published_file_never_changes(tmp_path: Path) -> None:
    path = write_once(tmp_path / "new" / "file", b"one")
    assert write_once(path, b"one") == path
    with pytest.raises(IntegrityError, match="other bytes") as caught:
        write_once(path, b"two")
    assert caught.value.mend
    assert path.read_bytes() == b"one"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_of_two_simultaneous_publications_one_stands_and_the_other_is_told(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    refused: list[bytes] = []

    def publish(data: bytes) -> None:
        barrier.wait()
        try:
            write_once(tmp_path / "file", data)
        except IntegrityError:
            refused.append(data)

    threads = [threading.Thread(target=publish, args=(bytes([number]),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert (tmp_path / "file").read_bytes() not in refused
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_state_files_are_replaced_whole(tmp_path: Path) -> None:
    path = replace_file(tmp_path / "state.json", b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert (mode(path), [entry.name for entry in tmp_path.iterdir()]) == (0o600, ["state.json"])


@pytest.mark.parametrize("writer", ["write_once", "replace_file", "put", "put_file"])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path: Path, writer: str) -> None:
    program = f"""
import resource, sys
from pathlib import Path
from resources.errors import SrBenchError
from resources.store import Store, replace_file, write_once
store = Store.open(sys.argv[1] + "/store")
store.objects
source = Path(sys.argv[1], "source")
source.write_bytes(b"x" * 100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
do = dict(
    write_once=lambda: write_once(store.root / "file", source.read_bytes()),
    replace_file=lambda: replace_file(store.root / "file", source.read_bytes()),
    put=lambda: store.objects.put(source.read_bytes()),
    put_file=lambda: store.objects.put_file(source),
)
try:
    do[{writer!r}]()
except SrBenchError as error:
    print(error.code, error.exit_code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["disk_full", "4"]
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []
