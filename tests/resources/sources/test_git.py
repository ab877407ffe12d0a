"""Pinned commits from a real git repository, by file:// and through git's own HTTP server program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.sources.git import fetch_git


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with two commits; the first has other bytes in data/a.json."""
    root = tmp_path / "upstream"
    (root / "data").mkdir(parents=True)
    (root / "other").mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "data" / "a.json").write_text("old")
    (root / "data" / "b.json").write_text("b")
    (root / "other" / "big.bin").write_bytes(b"x" * 1000)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "one")
    (root / "data" / "a.json").write_text("new")
    git(root, "commit", "--quiet", "--all", "--message", "two")
    return root


def test_the_pinned_commit_is_fetched_not_the_newest(upstream: Path, tmp_path: Path) -> None:
    first = git(upstream, "rev-parse", "HEAD~1")
    fetched = fetch_git(tmp_path / "cache", f"file://{upstream}", first, ("data",))
    assert {file.name: file.path.read_text() for file in fetched.files} == {
        "data/a.json": "old",
        "data/b.json": "b",
    }
    assert not (fetched.root / "other").exists()
    assert fetched.revision == first


def test_a_whole_tree_is_hashed_without_the_git_folder(upstream: Path, tmp_path: Path) -> None:
    head = git(upstream, "rev-parse", "HEAD")
    fetched = fetch_git(tmp_path / "cache", f"file://{upstream}", head, ("",))
    assert [file.name for file in fetched.files] == ["data/a.json", "data/b.json", "other/big.bin"]


def test_the_cache_is_reused_without_the_upstream_and_mended_with_it(upstream: Path, tmp_path: Path) -> None:
    head, url = git(upstream, "rev-parse", "HEAD"), f"file://{upstream}"
    first = fetch_git(tmp_path / "cache", url, head, ("data",))
    away = upstream.rename(tmp_path / "away")
    assert fetch_git(tmp_path / "cache", url, head, ("data",)).files == first.files
    away.rename(upstream)
    first.paths()["data/a.json"].write_text("changed by hand")
    assert fetch_git(tmp_path / "cache", url, head, ("data",)).files == first.files
    first.paths()["data/a.json"].unlink()
    assert fetch_git(tmp_path / "cache", url, head, ("data",)).files == first.files


def test_the_users_line_ending_settings_change_no_bytes(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n\tautocrlf = true\n\thooksPath = /nonexistent\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (upstream / "data" / "lines.txt").write_bytes(b"a\nb\n")
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "three")
    head = git(upstream, "rev-parse", "HEAD")
    fetched = fetch_git(tmp_path / "cache", f"file://{upstream}", head, ("data/lines.txt",))
    assert fetched.files[0].path.read_bytes() == b"a\nb\n"


def test_a_mirror_can_stand_in_by_gits_own_rewrite(
    upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(f'[url "file://{upstream}"]\n\tinsteadOf = https://example.invalid/tasks\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    head = git(upstream, "rev-parse", "HEAD")
    fetched = fetch_git(tmp_path / "cache", "https://example.invalid/tasks", head, ("data",))
    assert fetched.url == "https://example.invalid/tasks"
    assert len(fetched.files) == 2


def test_unknown_commit_missing_path_and_absent_repository_are_named(upstream: Path, tmp_path: Path) -> None:
    cache, url = tmp_path / "cache", f"file://{upstream}"
    head = git(upstream, "rev-parse", "HEAD")
    with pytest.raises(NotFound) as unknown:
        fetch_git(cache, url, "1" * 40, ("data",))
    assert unknown.value.code == "wrong_revision"
    with pytest.raises(NotFound) as missing:
        fetch_git(cache, url, head, ("data", "tasks"))
    assert "has no tasks" in missing.value.message
    with pytest.raises(Unavailable) as absent:
        fetch_git(cache, f"file://{tmp_path}/nothing", head, ("data",))
    assert absent.value.code == "unreachable"
    with pytest.raises(SrBenchError, match="not the full hash"):
        fetch_git(cache, url, "main", ("data",))


def test_other_bytes_at_the_same_commit_are_refused(upstream: Path, tmp_path: Path) -> None:
    head, url = git(upstream, "rev-parse", "HEAD"), f"file://{upstream}"
    fetched = fetch_git(tmp_path / "cache", url, head, ("data",))
    receipt = fetched.root.parent / "receipt.json"
    receipt.write_text(receipt.read_text().replace(fetched.files[0].sha256, "0" * 64))
    with pytest.raises(IntegrityError) as caught:
        fetch_git(tmp_path / "cache", url, head, ("data",))
    assert caught.value.code == "changed_source"


def test_symbolic_links_are_hashed_not_followed(upstream: Path, tmp_path: Path) -> None:
    os.symlink("/etc/passwd", upstream / "data" / "link")
    git(upstream, "add", "--all")
    git(upstream, "commit", "--quiet", "--message", "link")
    head = git(upstream, "rev-parse", "HEAD")
    fetched = fetch_git(tmp_path / "cache", f"file://{upstream}", head, ("data",))
    link = next(file for file in fetched.files if file.name == "data/link")
    assert link.size == len("/etc/passwd")
