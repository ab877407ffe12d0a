"""A simulated prompt cache: whole blocks from the beginning of a prompt that an earlier request had too."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from resources.lab.config import PrefixCache

CHARS_PER_TOKEN = 4
MAX_BLOCKS = 500_000


def count_tokens(text: str) -> int:
    """The lab's measure of tokens: one per four characters, at least one for any text."""
    return -(-len(text) // CHARS_PER_TOKEN)


class PromptCache:
    """The cache of one model. What it holds depends on the order in which requests arrive."""

    def __init__(self, settings: PrefixCache | None) -> None:
        self.settings = settings
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def account(self, prompt: str) -> tuple[int, int, int]:
        """(fresh, cached, written) tokens of `prompt`, which is in the cache afterwards."""
        total = max(1, count_tokens(prompt))
        settings = self.settings
        if settings is None or total < settings.min_tokens:
            return total, 0, 0
        size = settings.block_tokens * CHARS_PER_TOKEN
        chain, hits, new = b"", 0, 0
        for start in range(0, len(prompt) - size + 1, size):
            block = prompt[start : start + size].encode("utf-8", "surrogatepass")
            chain = blake2b(chain + block, digest_size=16).digest()
            if new == 0 and chain in self._blocks:
                hits += 1
                self._blocks.move_to_end(chain)
            else:
                new += 1
                self._blocks[chain] = None
        while len(self._blocks) > MAX_BLOCKS:
            self._blocks.popitem(last=False)
        cached = hits * settings.block_tokens
        written = new * settings.block_tokens if settings.report_writes else 0
        return total - cached - written, cached, written
