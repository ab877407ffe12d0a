"""Local imports: the bytes that are there, under the names of the upstream, at the revision that is true."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.sources.local import import_files, import_tree


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "data" / "evaluation").mkdir(parents=True)
    (root / "data" / "evaluation" / "a.json").write_text("{}")
    (root / "README").write_text("r")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    return root


def test_one_file_stands_for_the_upstreams_one_file(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"{}\n")
    fetched = import_files(path, ["data/test.parquet"], "imported-v1")
    assert [(f.name, f.path, f.sha256) for f in fetched.files] == [
        ("data/test.parquet", path, hashlib.sha256(b"{}\n").hexdigest())
    ]
    assert fetched.url == "local:tasks.jsonl"


def test_a_folder_gives_files_by_full_or_base_name(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.jsonl").write_text("1")
    (tmp_path / "two.jsonl").write_text("2")
    fetched = import_files(tmp_path, ["data/one.jsonl", "data/two.jsonl"], "v1")
    assert [file.path.read_text() for file in fetched.files] == ["1", "2"]
    with pytest.raises(NotFound, match=r"has no three\.jsonl"):
        import_files(tmp_path, ["three.jsonl"], "v1")


def test_several_files_cannot_come_from_one(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text("")
    with pytest.raises(SrBenchError, match="reads 2 files"):
        import_files(path, ["test.jsonl", "test2.jsonl"], "v1")


def test_the_head_of_a_checkout_must_be_the_revision(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert import_tree(checkout, ["data/evaluation"], head).revision == head
    assert import_tree(checkout, ["data/evaluation"], head[:10]).revision == head
    for revision in ("0" * 40, "main", "imported-v1"):
        with pytest.raises(IntegrityError) as caught:
            import_tree(checkout, ["data/evaluation"], revision)
        assert caught.value.code == "wrong_revision"
        assert head in caught.value.message


def test_local_changes_in_the_wanted_paths_are_refused(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    (checkout / "README").write_text("changed, but not read")
    assert import_tree(checkout, ["data/evaluation"], head).files
    (checkout / "data" / "evaluation" / "b.json").write_text("{}")
    with pytest.raises(IntegrityError, match=r"b\.json") as caught:
        import_tree(checkout, ["data/evaluation"], head)
    assert caught.value.code == "changed_source"


def test_the_wanted_folder_itself_may_be_named(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    inner = import_tree(checkout / "data" / "evaluation", ["data/evaluation"], head)
    assert [file.name for file in inner.files] == ["data/evaluation/a.json"]
    with pytest.raises(IntegrityError):
        import_tree(checkout / "data" / "evaluation", ["data/evaluation"], "other")


def test_a_plain_copy_takes_any_label(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.json").write_text("{}")
    assert import_tree(tmp_path, ["data"], "copy-1").revision == "copy-1"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        import_files(tmp_path / "no", ["x.csv"], "v1")
    with pytest.raises(NotFound, match="has no data"):
        import_tree(tmp_path, ["data", "more"], "v1")
    with pytest.raises(SrBenchError, match="revision label"):
        import_tree(tmp_path, ["data"], "with spaces")
    (tmp_path / "file").write_text("")
    with pytest.raises(SrBenchError, match="is a file"):
        import_tree(tmp_path / "file", ["data"], "v1")


def test_a_linked_file_is_hashed_by_its_bytes_and_a_linked_part_of_a_tree_by_its_target(
    tmp_path: Path,
) -> None:
    (tmp_path / "blob").write_bytes(b"{}\n")
    (tmp_path / "data").mkdir()
    link = tmp_path / "data" / "tasks.jsonl"
    link.symlink_to(tmp_path / "blob")
    by_bytes = hashlib.sha256(b"{}\n").hexdigest()
    assert import_files(link, ["data/test.parquet"], "v1").files[0].sha256 == by_bytes
    assert import_files(tmp_path, ["data/tasks.jsonl"], "v1").files[0].sha256 == by_bytes
    assert import_tree(tmp_path, ["data"], "v1").files[0].sha256 != by_bytes
