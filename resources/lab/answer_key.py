"""What the lab knows of the tasks: prepared `cases.jsonl` files, looked up by the text of the question."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from resources.canonical import sha256_bytes
from resources.errors import NotFound, SrBenchError

RESCAN_S = 1.0


@dataclass(frozen=True)
class KnownCase:
    """One prepared case with its label; the label shapes answers and is never sent as such."""

    id: str
    benchmark: str
    category: str
    options: int
    """Number of options of a multiple-choice question, else 0."""
    reference: dict[str, Any]
    text_sha256: str
    """SHA-256 of the question's text."""

    @property
    def native_id(self) -> str:
        return self.id.partition("/")[2]


def question_text(messages: Any) -> str:
    """The content of the last user message: its text, or the texts of its parts joined; else ""."""
    if not isinstance(messages, list):
        return ""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            if isinstance(content, list):
                return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def text_digest(text: str) -> str:
    """SHA-256 of a question's text; lone surrogates do not stop it."""
    return sha256_bytes(text.encode("utf-8", "surrogatepass"))


@dataclass
class AnswerKey:
    """Cases by SHA-256 of their question text. Cases with the very same text stand in file order."""

    paths: tuple[Path, ...] = ()
    """Files, or folders that are searched for `cases.jsonl` (again when an unknown question comes)."""
    cases: dict[str, list[KnownCase]] = field(default_factory=dict[str, list[KnownCase]])
    _read: set[Path] = field(default_factory=set[Path])
    _ids: set[str] = field(default_factory=set[str])
    _scanned_at: float = float("-inf")

    @classmethod
    def open(cls, paths: Iterable[Path]) -> AnswerKey:
        """Read all `paths`; `NotFound` when one does not exist, `SrBenchError` when one is no cases file."""
        key = cls(tuple(paths))
        for path in key.paths:
            if not path.exists():
                raise NotFound(
                    f"there is no dataset at {path}",
                    field="--dataset",
                    mend="Give the path of a cases.jsonl, or of a folder that holds some.",
                )
        key.scan()
        return key

    def __len__(self) -> int:
        return len(self._ids)

    def all_cases(self) -> list[KnownCase]:
        return [case for cases in self.cases.values() for case in cases]

    def scan(self) -> None:
        """Read the files that were not read yet."""
        self._scanned_at = time.monotonic()
        for path in self.paths:
            files = sorted(path.rglob("cases.jsonl")) if path.is_dir() else [path]
            for file in files:
                if file not in self._read:
                    self._read.add(file)
                    self._add_file(file)

    def _add_file(self, path: Path) -> None:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = orjson.loads(line)
                    text = question_text(row["messages"])
                    options = row["input"].get("options")
                    case = KnownCase(
                        str(row["id"]),
                        str(row["benchmark"]),
                        str(row["category"]),
                        len(options) if isinstance(options, list | dict) else 0,
                        dict(row["reference"]),
                        text_digest(text),
                    )
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise SrBenchError(
                        f"{path.name} line {number} is not a prepared case: {type(error).__name__} {error}",
                        field="--dataset",
                        mend="Give a cases.jsonl as `sr-bench dataset prepare` writes it.",
                    ) from None
                if text and case.id not in self._ids:
                    self._ids.add(case.id)
                    self.cases.setdefault(case.text_sha256, []).append(case)

    def find(self, text: str) -> list[KnownCase]:
        """The cases with exactly this question text; most often one, none for a question nobody prepared."""
        digest = text_digest(text)
        found = self.cases.get(digest)
        if found is None and time.monotonic() - self._scanned_at > RESCAN_S:
            if any(path.is_dir() for path in self.paths):
                # A broken file in the folder is the business of whoever prepares it, not of this request.
                with suppress(SrBenchError):
                    self.scan()
            found = self.cases.get(digest)
        return found or []
