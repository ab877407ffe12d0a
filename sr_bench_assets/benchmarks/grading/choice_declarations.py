"""Explicit declarations of an answer in a reply: where one starts, and what it declares.

Forms: `answer is`, `answer:`, final, best or correct answer, correct option or choice is, JSON and XML members named
answer, and the Chinese, German, French and Spanish words for answer; markdown emphasis around any part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sr_bench_assets.benchmarks.grading.choice_letters import Named, read_named

# Bounded, because runs of such characters would else cost quadratic time in adjacent gaps.
_GAP = r"[ \t*_`~]{0,16}"
_SOME = r"[ \t*_`~]{1,16}"
_IS_OR_COLON = rf"(?:is(?![^\W_]){_GAP}:?|\\?[\"']?{_GAP}:)"
_CONNECTED = "|".join(
    (
        rf"(?:(?:final|best|correct|right){_SOME})?answer(?:{_SOME}(?:choice|option))?{_GAP}{_IS_OR_COLON}",
        rf"(?:correct|right|best){_SOME}(?:option|choice){_GAP}{_IS_OR_COLON}",
        rf"antwort{_GAP}(?:(?:ist|lautet)(?![^\W_]){_GAP}:?|:)",
        rf"r[ée]ponse(?:{_SOME}(?:correcte|finale|exacte|juste))?{_GAP}(?:est(?![^\W_]){_GAP}:?|:)",
        rf"respuesta(?:{_SOME}(?:correcta|final))?{_GAP}(?:es(?![^\W_]){_GAP}:?|:)",
    )
)
_LABEL = re.compile(
    rf"(?P<connected>(?<![^\W_])(?:{_CONNECTED})|<(?:final_)?answer>"
    rf"|答案{_GAP}(?:(?:应该?|應該?)?[选選是为為]{_GAP}:?|:))"
    rf"|(?P<bare>(?<![^\W_])(?:final|best|correct){_SOME}answer(?:{_SOME}(?:choice|option))?(?![^\W]))"
    rf"|(?P<heading>^[ \t]*(?:\#[\#*_ \t]*|[*_]+)answer[*_ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
# Every label holds one of these; looking for them first spares the expression nearly all of a long reply.
_KEYWORDS = ("answer", "option", "choice", "antwort", "r\u00e9ponse", "reponse", "respuesta", "\u7b54\u6848")
_QUALIFIERS = ("final", "best", "correct", "right")
_TAGS = ("<final_", "<")
_BETWEEN = " \t*_`~"
_LONGEST_GAP = 16
_HEADING_MARKS = " \t#*_"
_LINE_REST = re.compile(r"[ \t*_`~\"']*$", re.MULTILINE)
_BEFORE_HEADING = re.compile(rf"^[ \t#>*_]*(?:(?:the|my|your){_SOME})?$", re.IGNORECASE)
# Empty lines, an opening code fence and the mark of a quotation or list item before the letter on its own line.
_TO_NEXT_LINE = re.compile(r"[ \t*_`~\"']*\n\s*(?:```[a-z]*[ \t]*\n\s*)?(?:[>\-•#]+[ \t]+)?")
_GAP_AFTER = re.compile(r"[ \t*_`~]*")

_DENIED_BEFORE = re.compile(
    r"(?:(?:\bnot|n['’]t|\bnever|\bcannot)[ \t]+(?:think|believe|say|claim|mean|suggest|true|follow)(?:[ \t]+that)?"
    r"|\bdoubt(?:[ \t]+that)?|(?:\bnot|n['’]t))"
    r"(?:[ \t]+(?:the|an?|my))?(?:[ \t]+(?:final|best|correct|right))?[ \t]*$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[*_`~\"'”’)]*[ \t]+"
    r"(?:(?:is|are|was|were|ist|est|es)[ \t]+(?:(?:both|all|clearly|also|simply|obviously|definitely)[ \t]+)?"
    r"(?:not|wrong|incorrect|false|eliminated|impossible|excluded|ruled[ \t]+out|falsch|faux|fausse|incorrecta)\b"
    r"|(?:isn|aren|wasn)['’]t\b|(?:can|could)(?:not|n['’]t|[ \t]+not)\b)",
    re.IGNORECASE,
)
_LOOK_BACK = 60


def is_denied(text: str, end: int) -> bool:
    """Whether the letter that ends at `end` is denied by what follows (`C is wrong`, `C isn't right`)."""
    return _DENIED_AFTER.match(text, end) is not None


def declarations_from_the_end(text: str) -> Iterator[Named]:
    """What each declaration of `text` (narrowed) names, the last one first; denials and declarations without a letter
    are left out. Only what is asked for is read: most replies are decided by their last declaration."""
    for label in reversed(_labels(text)):
        if _DENIED_BEFORE.search(text, max(0, label.start() - _LOOK_BACK), label.start()):
            continue
        place = _operand_place(text, label)
        named = None if place is None else read_named(text, place)
        if named is not None and not is_denied(text, named.end):
            yield named


def _labels(text: str) -> list[re.Match[str]]:
    """All that `_LABEL.finditer` finds, tried only where a keyword says that a label may begin."""
    folded = text.lower()
    if len(folded) != len(text):  # a few capitals are longer in lower case: places would not agree
        return list(_LABEL.finditer(text))
    found: list[re.Match[str]] = []
    taken = 0
    earlier = -1
    for keyword in sorted(place for word in _KEYWORDS for place in _places(folded, word)):
        for start in _starts(folded, keyword, earlier):
            label = _LABEL.match(text, start) if start >= taken else None
            if label is not None:
                found.append(label)
                taken = label.end()
                break
        earlier = keyword
    return found


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _starts(text: str, keyword: int, earlier: int) -> Iterator[int]:
    """Where a label that holds the keyword at `keyword` can begin, from the left; `earlier` is the keyword before."""
    line = text.rfind("\n", max(earlier, 0), keyword) + 1
    if (line or earlier < 0) and not text[line:keyword].strip(_HEADING_MARKS):
        yield line
    for tag in _TAGS:
        if text.endswith(tag, 0, keyword):
            yield keyword - len(tag)
    start = max(keyword - _LONGEST_GAP, 0)
    before = start + len(text[start:keyword].rstrip(_BETWEEN))
    for word in _QUALIFIERS:
        if text.endswith(word, 0, before):
            yield before - len(word)
    yield keyword


def _operand_place(text: str, label: re.Match[str]) -> int | None:
    """Where the letter must stand: on the label's line, else at the start of the next line that is not empty."""
    end = label.end()
    if not _LINE_REST.match(text, end):
        gap = _GAP_AFTER.match(text, end)
        return _before_marks(text, end, gap.end() if gap else end)
    if label["bare"] and not _BEFORE_HEADING.match(
        text[text.rfind("\n", 0, label.start()) + 1 : label.start()]
    ):
        return None
    following = _TO_NEXT_LINE.match(text, end)
    return following.end() if following else None


def _before_marks(text: str, start: int, end: int) -> int:
    """Step back over emphasis that opens right before `end`: it belongs to the letter."""
    while end > start and text[end - 1] in "*_`~":
        end -= 1
    return end
