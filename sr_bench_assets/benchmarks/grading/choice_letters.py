"""Letters of options as replies write them: `C`, `(C)`, `**C**`, `$\\mathbf{C}$`, `C or D`.

Reading starts at a given place of a text whose full-width characters were narrowed (`narrow`). Nothing here searches:
a letter that does not stand exactly there, as a token of its own, is no letter.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_INVISIBLE = (0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
_NARROW = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    | {ord("【"): "[", ord("】"): "]"}
    | dict.fromkeys(_SPACES, " ")
    | dict.fromkeys(_INVISIBLE)
)


def narrow(text: str) -> str:
    """`text` composed (NFC), with full-width forms (Ｃ, （, ：) as ASCII, all spaces as blanks and invisible characters
    left out. Places are places of the result."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_NARROW)


@dataclass(frozen=True, slots=True)
class Letter:
    """One letter form. `end` is the place after it and its wrappers."""

    letter: str
    end: int
    wrapped: bool
    """In brackets, mathematics or a LaTeX command."""
    lower: bool


@dataclass(frozen=True, slots=True)
class Named:
    """The letters that one declaration names, in order (repeats kept)."""

    letters: tuple[str, ...]
    end: int
    several: bool
    """Said to be several by `both` or `either`, even where one letter only could be read."""


MARKUP = r"[*_`~]"
_MARKS = re.compile(rf"(?:{MARKUP}|\\?[\"'“”‘’「」])*")
_QUOTE = re.compile(r"\\?[\"']")
_SPACE = re.compile(r"\s*")
_OPEN = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathbf|mathrm|mathit|mathsf|boldsymbol|bm)\s*\{|\\\(|\\\[|\$\$|[$(\[{]"
)
_CLOSE = {"\\(": "\\)", "\\[": "\\]", "$$": "$$", "$": "$", "(": ")", "[": "]", "{": "}"}
_MAX_NESTING = 12
_LONGEST_LIST = 12
"""Letters of one list that are read: more than there are options."""

# Words that cannot follow an article, so an A (or a) before them is the letter; likewise for the pronoun I.
_NOT_AFTER_PRONOUN = frozenset(
    (
        "and",
        "because",
        "es",
        "est",
        "et",
        "is",
        "ist",
        "nor",
        "o",
        "oder",
        "or",
        "ou",
        "parce",
        "porque",
        "und",
    )
) | {"weil", "y"}
_NOT_AFTER_ARTICLE = (
    _NOT_AFTER_PRONOUN
    | frozenset(
        (
            "as",
            "at",
            "but",
            "hence",
            "if",
            "in",
            "not",
            "on",
            "since",
            "so",
            "then",
            "therefore",
            "thus",
            "was",
        )
    )
    | {"when", "where", "whereas", "which"}
)
_NEXT_WORD = re.compile(r"[ \t]+[*_`~\"“'‘]*([^\W\d_]+)")

_EAST_ASIAN = 0x2E80
_AFTER_LETTER_EAST_ASIAN = frozenset("选選项項或和与與及因是、，。；：！？）」』")
_NO_TOKEN_AFTER = re.compile(
    r"[-‐‑–'’](?=\w)|\.(?=[^\W\d_])|_+(?:[^\W_]|{)|[(#%°′^]"
    r"|[ \t]*/(?!/)[ \t]*(?=\w\w|[a-z]|\d)|[ \t]*(?:[=≈≤≥>+]|<(?![/a-z!]))"
)
_ALONE = re.compile(r"[*_`~\"'”’ \t]*(?:[.,;:!?)\]}<\n\\]|$)")

# Bounded, because runs of such characters would else cost quadratic time in adjacent gaps.
_GAP = r"[ \t]{0,16}"
_SOME = r"[ \t]{1,16}"
_MARKUPS = rf"{MARKUP}{{0,8}}"
_OPTION_WORD = (
    rf"(?:(?:(?:the|la|die|der){_SOME}|l['’])?(?:options?|choices?|opci[oó]n(?:es)?)(?![^\W_])|选项|選項)"
    rf"{_MARKUPS}{_GAP}"
)
_LEAD = re.compile(
    rf"[\"'“‘]?{_MARKUPS}"
    rf"(?:(?P<several>both|either|entweder|sowohl|beide|soit)(?![^\W_])(?:{_SOME}of)?{_MARKUPS}{_SOME})?"
    rf"(?P<option>{_OPTION_WORD})?",
    re.IGNORECASE,
)
_JOIN = re.compile(
    rf"\)?{_MARKUPS}{_GAP}(?P<comma>,)?{_GAP}{_MARKUPS}"
    r"(?:(?P<word>and[ \t]?/[ \t]?or|or|and|nor|oder|und|ou|et|o|y)(?![^\W_])|[&/|、或和与與及])"
    rf"{_MARKUPS}{_GAP}(?:(?:maybe|possibly|perhaps|probably|even|else|also){_SOME})?(?:{_OPTION_WORD})?",
    re.IGNORECASE,
)
_COMMA = re.compile(rf"{_MARKUPS}[\"'”’]?{_GAP},{_GAP}")
_LIST_ENDS = re.compile(
    r"[*_`~\"'”’ \t]*(?:[.;:!?)\]}<\n]|$|(?:are|is)[ \t]+(?:all[ \t]+|both[ \t]+)?(?:correct|right|true)\b)",
    re.IGNORECASE,
)


def read_letter(text: str, place: int) -> Letter | None:
    """The letter form that stands at `place`, or None. Plain letters must be tokens of their own."""
    letter = _read_form(text, place, 0)
    if letter is None or letter.wrapped:
        return letter
    if not _ends_token(text, letter.end):
        return None
    return None if _is_article_or_pronoun(text, place, letter) else letter


def after_marks(text: str, place: int) -> int:
    """The place after markdown emphasis and quotation marks."""
    found = _MARKS.match(text, place)
    return found.end() if found else place


def _read_form(text: str, place: int, nesting: int) -> Letter | None:
    place = after_marks(text, place)
    opening = _OPEN.match(text, place)
    if opening is None:
        found = text[place : place + 1]
        if not (found.isascii() and found.isalpha()):
            return None
        return Letter(found.upper(), place + 1, wrapped=False, lower=found.islower())
    if nesting == _MAX_NESTING:
        return None
    inner = _read_form(text, _after_space(text, opening.end()), nesting + 1)
    if inner is None:
        return None
    closing = _CLOSE.get(opening[0], "}")
    end = _after_space(text, after_marks(text, inner.end))
    if not text.startswith(closing, end):
        return None
    return Letter(inner.letter, end + len(closing), wrapped=True, lower=inner.lower)


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _ends_token(text: str, end: int) -> bool:
    """Whether a plain letter that ends at `end` is not the start of a word, name, formula or unit."""
    after = text[end : end + 1]
    if after.isalnum():
        return ord(after) >= _EAST_ASIAN and after in _AFTER_LETTER_EAST_ASIAN
    return _NO_TOKEN_AFTER.match(text, end) is None


def _is_article_or_pronoun(text: str, place: int, letter: Letter) -> bool:
    if letter.letter not in "AI" or (letter.letter == "I" and letter.lower):
        return False
    emphasised = after_marks(text, place) > place and after_marks(text, letter.end) > letter.end
    word = _NEXT_WORD.match(text, letter.end)
    if word is None or emphasised:
        return False
    return word[1].lower() not in (_NOT_AFTER_ARTICLE if letter.letter == "A" else _NOT_AFTER_PRONOUN)


def read_named(text: str, place: int) -> Named | None:
    """The letters named at `place`: one form, or forms joined by or, and, commas or slashes, perhaps in brackets.

    Letters in a reason that follows (`C, because A …`, `C, A is wrong`) are not named. A plain lower-case letter
    counts only where it stands alone or is joined to another one.
    """
    lead = _LEAD.match(text, place)
    several = bool(lead and lead["several"])
    start = lead.end() if lead and (several or lead["option"]) else place
    quoted = _QUOTE.match(text, place) is not None
    named = _read_group(text, start) or _read_chain(text, start, quoted=quoted)
    return named and Named(named.letters, named.end, several)


def _read_group(text: str, place: int) -> Named | None:
    """Several letters inside one pair of brackets: `(C or D)`, `["C", "D"]`."""
    place = after_marks(text, place)
    opening = text[place : place + 1]
    if opening not in ("(", "["):
        return None
    named = _read_chain(text, _after_space(text, place + 1), quoted=False)
    if named is None or len(named.letters) < 2:
        return None
    end = _after_space(text, after_marks(text, named.end))
    return Named(named.letters, end + 1, several=False) if text.startswith(_CLOSE[opening], end) else None


def _read_chain(text: str, place: int, *, quoted: bool) -> Named | None:
    first = read_letter(text, place)
    if first is None:
        return None
    letters, end = [first.letter], first.end
    while len(letters) < _LONGEST_LIST and (following := _joined(text, end, quoted=quoted)):
        letters.append(following.letter)
        end = following.end
    if first.lower and not first.wrapped and len(letters) == 1 and not _ALONE.match(text, end):
        return None
    return Named(tuple(letters), end, several=False)


def _joined(text: str, end: int, *, quoted: bool) -> Letter | None:
    """The next letter of the list that goes on at `end`, or None where the list ends."""
    end_of_marks = after_marks(text, end)
    join = _JOIN.match(text, end) or _JOIN.match(text, end_of_marks)
    if join:
        letter = read_letter(text, join.end())
        clause = join["comma"] and (join["word"] or "").lower() in ("and", "und", "et", "y")
        return letter if letter and (not clause or _list_ends(text, letter.end)) else None
    comma = _COMMA.match(text, end)
    # After "answer": "C" a comma leads to the next member of the object, not to another letter.
    if comma is None or quoted:
        return None
    letter = read_letter(text, comma.end())
    return letter if letter and _list_ends(text, letter.end) else None


def _list_ends(text: str, end: int) -> bool:
    """Whether a list that reaches `end` ends there or goes on with more letters, not with a clause about the last."""
    for _ in range(_LONGEST_LIST):
        if _LIST_ENDS.match(text, end):
            return True
        step = _JOIN.match(text, end) or _COMMA.match(text, end)
        letter = read_letter(text, step.end()) if step else None
        if letter is None:
            return False
        end = letter.end
    return True
