"""Guards on a reply that is still being written: too much output, or the same thing over and over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

GuardVerdict = Literal["output_chars_limit", "output_tokens_limit", "repetition"]

_STEP = 64


class RepetitionGuard:
    """Finds a window of `window` characters repeated `limit` times in a row, wherever in the text it begins.

    That is a run of `window × (limit − 1)` characters each equal to the one `window` before it, which is
    what is counted: the result depends neither on how the text was cut into pieces nor on where the
    repetition starts.
    """

    __slots__ = ("_run", "_step", "_tail", "_threshold", "_window", "tripped")

    def __init__(self, window: int, limit: int) -> None:
        self._window = window
        self._threshold = window * (limit - 1)
        # A step no longer than the threshold cannot hold a whole run inside, so only its two ends matter.
        self._step = min(_STEP, window, self._threshold)
        self._tail = ""  # the last `window` characters
        self._run = 0
        self.tripped = False

    def add(self, text: str) -> bool:
        """Take the next characters; return whether the repetition has been seen (now or before)."""
        for start in range(0, len(text), self._step):
            if self.tripped:
                break
            self._add_step(text[start : start + self._step])
        return self.tripped

    def _add_step(self, piece: str) -> None:
        tail = self._tail
        missing = self._window - len(tail)
        if missing > 0:
            self._tail = tail + piece[:missing]
            if len(piece) > missing:
                self._add_step(piece[missing:])
            return
        earlier = tail[: len(piece)]
        if piece == earlier:
            self._run += len(piece)
        else:
            same = 0
            while piece[same] == earlier[same]:
                same += 1
            if self._run + same >= self._threshold:
                self.tripped = True
                return
            last = len(piece) - 1
            while piece[last] == earlier[last]:
                last -= 1
            self._run = len(piece) - 1 - last
        if self._run >= self._threshold:
            self.tripped = True
        self._tail = (tail + piece)[len(piece) :]


class OutputLimits(Protocol):
    """The frozen plan's bounds on what one call may produce (`Limits` of the manifest)."""

    @property
    def max_output_chars(self) -> int:
        """Text, reasoning and tool-call arguments together."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """By the provider's own count."""
        ...

    @property
    def repetition_window(self) -> int: ...
    @property
    def repetition_limit(self) -> int: ...


class OutputGuard:
    """Applies `OutputLimits` to the growing lists of text and reasoning pieces of one reply."""

    __slots__ = ("_limits", "_max_chars", "_quiet_chars", "_scans", "_seen_reasoning", "_seen_text")

    def __init__(self, limits: OutputLimits) -> None:
        self._max_chars = limits.max_output_chars
        self._limits = limits
        # Shorter outputs cannot hold a repetition: most replies never reach the scan.
        self._quiet_chars = limits.repetition_window * limits.repetition_limit
        self._scans: tuple[RepetitionGuard, RepetitionGuard] | None = None
        self._seen_text = 0
        self._seen_reasoning = 0

    def observe(self, text: Sequence[str], reasoning: Sequence[str], chars: int) -> GuardVerdict | None:
        """Look at the pieces added since the last call; `chars` is the length of all output so far."""
        if chars < self._quiet_chars and chars <= self._max_chars:
            return None
        if chars > self._max_chars:
            return "output_chars_limit"
        if self._scans is None:
            window, limit = self._limits.repetition_window, self._limits.repetition_limit
            self._scans = RepetitionGuard(window, limit), RepetitionGuard(window, limit)
        new_text = "".join(text[self._seen_text :])
        new_reasoning = "".join(reasoning[self._seen_reasoning :])
        self._seen_text, self._seen_reasoning = len(text), len(reasoning)
        if self._scans[0].add(new_text) or self._scans[1].add(new_reasoning):
            return "repetition"
        return None

    def tokens(self, output_tokens: int | None) -> GuardVerdict | None:
        """Judge the provider's count of output tokens; an unknown count passes."""
        if output_tokens is not None and output_tokens > self._limits.max_output_tokens:
            return "output_tokens_limit"
        return None
