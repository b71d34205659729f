"""Counts tokens with the encodings that ship with litellm. Nothing is downloaded."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, TypeVar

from workbench.context.assembly import Grade
from workbench.context.message import STAND_INS, Message, TextPart, canonical, reasoning_told
from workbench.context.remembered import remember
from workbench.context.tokens import SentBack, Tally
from workbench.models.batch_counter import BatchCounter, Counted, counted_together
from workbench.models.bundled import encodings_folder
from workbench.models.families import Encoding, Family, family, image_tokens
from workbench.models.toolspace import notation_tokens

PER_NAME = 1
UNSIZED = (1024, 1024)
"""Pixels assumed for an image of unknown size."""
T = TypeVar("T")
_MOST_TOOLS = 200
"""Lists of tools whose counts are kept."""
_PIECE = 100_000
"""Characters: o200k refuses a run of blanks near a million; such a text is counted in pieces of this size."""
_LONG, _SAMPLES, _SAMPLE = 1_000_000, 100, 2_000
"""Characters from which on a text is counted by samples of it, how many, and the characters of each. A word of 10
million letters took 60 s: the time of an encoding grows faster than the length of a word. Many small samples come
nearer than few large ones (0.3% against 6.8% on code, JSON and one long word in a row), in a tenth of the time."""
_REMEMBERED = 500_000
"""Messages whose counts are kept."""
_EXACT, _ESTIMATE = Grade.EXACT, Grade.ESTIMATE
_VARIABLE = "TIKTOKEN_CACHE_DIR"
_variable_lock = threading.Lock()


class Encodings:
    """Implements ``Counter``: exact for text on the OpenAI encodings, an estimate for all else.

    Safe in threads; an encoding takes 0.1 to 0.3 s to load at its first use, so ``load`` it off the UI thread.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        """``remembered``: messages whose counts are kept."""
        self._remembered = remembered
        self._encoders: dict[Encoding, Any] = {}
        self._lock = threading.Lock()
        self._messages: dict[str, dict[str, tuple[int, Grade]]] = {}
        """By prefix of the family and ``body_hash``."""
        self._tools: dict[tuple[str, bool, bool, str], int] = {}

    def load(self, model: str) -> None:
        """Load the encoding of a model now."""
        self._encoder(family(model).encoding)

    def forget(self) -> None:
        """Let go of what was counted, between pieces of work that have nothing in common."""
        self._messages = {}
        self._tools = {}

    def message(self, message: Message, model: str) -> tuple[int, Grade]:
        kind = family(model)
        counts, digest = self._counts(kind), message.body_hash
        if (known := counts.get(digest)) is None:
            texts = [self._encoded(text, kind) for text in _texts(message, kind)]
            known = counts[digest] = _with(texts, kind, *self._beside(message, kind))
        return known

    def tally(self, model: str) -> Tally:
        return _Tally(self, family(model))

    def _counts(self, kind: Family) -> dict[str, tuple[int, Grade]]:
        """Counts of messages. Entries are never removed, so callers can rely on them."""
        counts = self._messages.get(kind.prefix)
        if counts is None or len(counts) >= self._remembered:
            counts = self._messages[kind.prefix] = {}
        return counts

    def tools(
        self, tools: Sequence[Mapping[str, Any]], model: str, *, forced: bool = False, responses: bool = False
    ) -> tuple[int, Grade]:
        if not tools:
            return 0, Grade.EXACT
        kind = family(model)
        text = canonical(list(tools))
        key = (kind.prefix, forced, responses, text)
        if (known := self._tools.get(key)) is None:
            known = round(self._tools_of(tools, kind, forced, responses))
            remember(self._tools, key, known, _MOST_TOOLS)
        return known, Grade.ESTIMATE

    def _tools_of(self, tools: Sequence[Mapping[str, Any]], kind: Family, forced: bool, responses: bool) -> float:
        def count(text: str) -> int:
            return self._counted(text, kind)

        if kind.tools is None:
            beside = kind.notation.responses if responses else kind.notation.chat
            return kind.shown(tools, count) + (beside if kind.shown is notation_tokens else 0)
        return (kind.tools.forced if forced else kind.tools.auto) + kind.scale * kind.shown(tools, count)

    def chosen(
        self, tools: Sequence[Mapping[str, Any]], model: str, choice: str, *, forced: bool, responses: bool
    ) -> int:
        kind, quoted = family(model), _QUOTED.findall(choice)
        if kind.unshown and _FORBIDDEN.search(choice):
            return 0
        named = [tool for tool in tools if _name(tool) in quoted]
        shown = named if named and kind.alone else tools
        tokens = self.tools(shown, model, forced=forced, responses=responses)[0]
        return tokens + (kind.naming + self.text(_name(named[0]), model) if kind.naming and len(named) == 1 else 0)

    def overhead(self, model: str, schema: str = "", *, thinking: bool = False, as_json: bool = False) -> int:
        kind = family(model)
        tokens = kind.request + (kind.thinking if thinking else 0)
        if schema or as_json:
            tokens -= kind.unset
        if not schema or kind.schema is None:
            return tokens
        return tokens + kind.schema + round(kind.written * self.text(schema, model))

    def range(self, model: str) -> tuple[float, float]:
        return family(model).range

    def unseen(self, model: str, *, tools: int, beside: int) -> tuple[int, int]:
        kind = family(model)
        return (kind.fewer if tools else 0) if kind.measured else beside, kind.unseen[tools > 0]

    def recounts(self, model: str) -> bool:
        return family(model).recounts

    def sent_back(self, answer: Message, model: str, *, forced: bool = False) -> SentBack:
        kind, calls = family(model), answer.tool_calls
        own, again = self.message(answer, model)[0], kind.again
        beside: float = again.text
        if len(calls) == 1:
            beside = again.call + (self._encoded(calls[0].name, kind)[0] if again.names else 0)
        elif calls:
            beside = again.several[0] + again.several[1] * len(calls)
        usual = SentBack.usual(own)
        low, high = usual.low, usual.high
        if again.share is not None:
            low = again.share[0] * own - 2 * again.apart - 2
            high = again.share[1] * own + again.apart + 15 * max(len(calls) - 1, 0)
        if calls and again.hides:
            high = inf
        shown = own - round(beside) + (16 * len(calls) - 12 if calls else 0) if again.rounds else None
        if again.unsaid and calls and (answer.extra.get("thinking_blocks") or reasoning_told(answer)):
            shown = own - round(beside)
        beside += again.forced if forced and calls else 0
        beside += sum(self._encoded(text, kind)[0] for text in _thoughts(answer, kind))
        return SentBack(round(beside), low, high, again.keeps, again.told, again.held, again.stays, shown)

    def text(self, text: str, model: str) -> int:
        kind = family(model)
        return round(kind.scale * self._counted(text, kind))

    def _beside(self, message: Message, kind: Family) -> tuple[int, Grade]:
        """Tokens beside those of the texts, and the grade of both together. Estimates: tool calls, tool results, names,
        images, provider metadata, and stand-ins.
        """
        role, content, calls = message.role, message.content, message.tool_calls
        tokens = kind.system if role == "system" else kind.message
        tokens += kind.result if role == "tool" else 0
        tokens += kind.answer if role == "assistant" and not calls else 0
        exact = kind.exact and role != "tool" and not (calls or message.extra or message.name)
        exact = exact and not message.stands_in
        if not isinstance(content, str):
            exact = exact and not message.images
            for image in message.images:
                sides = (image.width, image.height) if image.width and image.height else UNSIZED
                tokens += image_tokens(kind.image, *sides, image.detail)
        if message.stands_in and kind.page:
            told = (found for text in _said(message) for found in _PAGES.findall(text))
            tokens += kind.page * sum(int(found.replace(",", "")) for found in told)
        tokens += kind.call * len(calls) + (PER_NAME if message.name else 0)
        tokens += sum(map(_digits, _texts(message, kind))) if kind.digits else 0
        return tokens, _EXACT if exact else _ESTIMATE

    def _counted(self, text: str, kind: Family) -> int:
        """Tokens of a text in the encoding, and those of digits that it has together."""
        return self._encoded(text, kind)[0] + (_digits(text) if kind.digits else 0)

    def _encoded(self, text: str, kind: Family) -> tuple[int, bool]:
        """Tokens, and whether the text was counted whole. What looks like a special token counts as text."""
        encoder = self._encoders.get(kind.encoding) or self._encoder(kind.encoding)
        if len(text) <= _PIECE:
            return len(encoder.encode_ordinary(text)), True
        if len(text) > _LONG:
            sampled = [text[at : at + _SAMPLE] for at in range(0, len(text), len(text) // _SAMPLES)]
            found = sum(len(encoder.encode_ordinary(piece)) for piece in sampled)
            return round(found * len(text) / sum(map(len, sampled))), False
        try:
            return len(encoder.encode(text, disallowed_special=())), True
        except ValueError:
            pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
            return sum(len(encoder.encode_ordinary(piece)) for piece in pieces), False

    def _encoded_together(self, texts: list[str], kind: Family) -> list[Counted]:
        return counted_together(texts, self._encoder(kind.encoding), lambda text: self._encoded(text, kind), _PIECE)

    def _encoder(self, name: Encoding) -> Any:
        encoder = self._encoders.get(name)
        if encoder is None:
            with self._lock:
                encoder = self._encoders.get(name) or load_encoding(name)
                self._encoders[name] = encoder
        return encoder


@functools.cache
def encodings() -> Encodings:
    """One counter for the process: encodings are loaded once, and messages counted once."""
    return Encodings()


class _Tally:
    """Implements ``Tally``."""

    def __init__(self, encodings: Encodings, kind: Family) -> None:
        self._encodings = encodings
        self._kind = kind
        self._known = encodings._counts(kind)
        self._together = BatchCounter(lambda texts: encodings._encoded_together(texts, kind))
        self._digests: list[str] = []
        self._fresh: dict[str, tuple[int, int, Grade]] = {}
        """By digest: the number of its texts, and the tokens beside them."""

    def add(self, message: Message) -> None:
        digest = message.body_hash
        self._digests.append(digest)
        if digest in self._known or digest in self._fresh:
            return
        texts = _texts(message, self._kind)
        self._fresh[digest] = len(texts), *self._encodings._beside(message, self._kind)
        for text in texts:
            self._together.add(text)

    def counts(self) -> list[tuple[int, Grade]]:
        known = self._known
        if self._fresh:
            fresh, self._fresh = self._fresh, {}
            counted, at, plain = self._together.counts(), 0, self._kind.scale == 1.0
            for digest, (texts, tokens, grade) in fresh.items():
                if texts == 1 and counted[at][1] and plain:
                    known[digest] = tokens + counted[at][0], grade
                else:
                    known[digest] = _with(counted[at : at + texts], self._kind, tokens, grade)
                at += texts
        digests, self._digests = self._digests, []
        return [known[digest] for digest in digests]

    def beside(self, work: Callable[[], T]) -> T:
        self._encodings._encoded("", self._kind)  # A tokenizer serves the thread best that is the first to use it.
        return self._together.beside(work)


def _with(texts: Iterable[Counted], kind: Family, tokens: int, grade: Grade) -> tuple[int, Grade]:
    """A message's count: its texts and the ``tokens`` beside them."""
    inside = 0
    for count, whole in texts:
        inside, grade = inside + count, grade if whole else _ESTIMATE
    return tokens + (inside if kind.scale == 1.0 else round(kind.scale * inside)), grade


_PAGES = re.compile(r"\[file: application/pdf, [^\]]{0,300}?\b(\d[\d,]{0,4}) pages?\]")
"""How an import tells of a PDF."""
_FORBIDDEN = re.compile(r"""(?:^|["'])none(?:$|["'])""", re.IGNORECASE)
_QUOTED = re.compile(r"""["']([^"']+)["']""")


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


_NUMBER = re.compile(r"[0-9]{2,}")


def _digits(text: str) -> int:
    """Tokens that the digits of a text have more where each is one than where up to three are one."""
    return sum(len(number) - (len(number) + 2) // 3 for number in _NUMBER.findall(text))


_PUNCTUATION = re.compile(r"""[{}\[\]":,\s]+""")


def _thoughts(message: Message, kind: Family) -> list[str]:
    """What a model thought, where it goes back as parts that its provider counts as text."""
    blocks = message.extra.get("reasoning") if kind.thoughts else ()
    told = (block.get("text") for block in blocks or () if isinstance(block, Mapping) and block.get("thought") is True)
    return [text for text in told if isinstance(text, str)]


_STAND_IN = re.compile(r"\[(?:image|file): [^\]]*\]")
"""The text that an import has in the place of an image or a file, which the request did not have."""


def _said(message: Message) -> list[str]:
    """The texts of a message's content, in order."""
    content = message.content
    return [content] if isinstance(content, str) else [part.text for part in content if isinstance(part, TextPart)]


def _texts(message: Message, kind: Family) -> list[str]:
    """All that is counted of a message, in order."""
    texts = _said(message)
    if message.stands_in:
        texts = [_STAND_IN.sub("", text, count=1) if text.startswith(STAND_INS) else text for text in texts]
    if kind.bare and message.role == "tool":
        texts = [_PUNCTUATION.sub(" ", text).strip() if text.startswith(("{", "[")) else text for text in texts]
    if kind.ids and message.role == "tool" and message.tool_call_id.startswith(kind.ids):
        texts = [*texts, f"{message.tool_call_id}:"]
    texts = [*texts, *_thoughts(message, kind)]
    for call in message.tool_calls:
        texts += (call.name, _PUNCTUATION.sub(" ", call.arguments).strip() if kind.bare else call.arguments)
    return [*texts, message.name] if message.name else texts


def load_encoding(name: Encoding) -> Any:
    """Without the variable tiktoken would download."""
    with _variable_lock:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = str(encodings_folder())
        try:
            import tiktoken  # it reads the variable; 60 ms, and not before there is text to count

            return tiktoken.get_encoding(name)
        finally:
            os.environ.pop(_VARIABLE)
            if before is not None:
                os.environ[_VARIABLE] = before


def environment() -> dict[str, str]:
    """This process's environment, for a program of the user's: without what an encoding needs while it is loaded."""
    with _variable_lock:
        return dict(os.environ)
