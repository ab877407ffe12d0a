"""The command itself: flags anywhere, and how it ends for errors of every kind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import COMMANDS, app, flags_first, os_error, refuse_neighbour, unexpected
from resources.errors import SrBenchError
from tests.cli.evaluation import Bench


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["runs", "--json"], ["--json", "runs"]),
        (["--json", "runs"], ["--json", "runs"]),
        (["show", "x", "--debug", "--json"], ["--debug", "--json", "show", "x"]),
        (["show", "--", "--json"], ["show", "--", "--json"]),
        (["runs", "--json", "--json"], ["--json", "runs"]),
    ],
)
def test_flags_of_the_whole_command_may_stand_anywhere(given: list[str], expected: list[str]) -> None:
    assert flags_first(given) == expected


def test_every_listed_command_exists() -> None:
    for name in COMMANDS:
        command = app.get_command(None, name)  # pyright: ignore[reportArgumentType]  # the context is not used
        assert command is not None
        assert command.help


def test_unknown_command_and_option_are_usage_errors(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for arguments in (["nonsense"], ["runs", "--nonsense"], ["show"]):
        done = bench(*arguments)
        assert done.code == 2
        assert done.err.startswith("Error: ")
        assert "Traceback" not in done.err
    as_json = bench("nonsense", "--json")
    assert json.loads(as_json.err)["error"]["code"] == "usage"


def test_unexpected_errors_are_one_line() -> None:
    error = unexpected(LookupError("what nobody foresaw"))
    assert (error.message, error.code) == ("LookupError: what nobody foresaw", "unexpected")


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "disk_full"), (errno.EROFS, "not_writable"), (errno.ENAMETOOLONG, "system")],
)
def test_what_the_system_refuses_is_told_with_its_path(number: int, code: str) -> None:
    error = os_error(OSError(number, os.strerror(number), "/some/file"))
    assert (error.code, error.exit_code) == (code, 4)
    assert "/some/file" in error.message
    assert error.mend


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    command = f"{sys.executable} -m cli.main catalog --json | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=bench.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_neighbour_with_the_same_import_name_is_named(tmp_path: Path) -> None:
    refuse_neighbour([str(tmp_path), "", "/no/such/folder"])
    (tmp_path / "vllm_sr-0.5.0.dist-info").mkdir()
    with pytest.raises(SrBenchError, match="vllm-sr is installed in the same environment"):
        refuse_neighbour([str(tmp_path)])
