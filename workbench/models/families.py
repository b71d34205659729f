"""Our table of model families: the encoding that a model's text is counted in, and how its provider counts images.

litellm chooses by spelling, so that ``gpt-5`` and ``openai/gpt-5`` differ; here prefixes and variants go first.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.model_name import split_effort, unescaped
from workbench.models.toolspace import (
    declaration_tokens,
    definition_tokens,
    function_tokens,
    json_tokens,
    notation_tokens,
    word_tokens,
)

Encoding = Literal["cl100k_base", "o200k_base", "p50k_base"]
Formula = Callable[[int, int], int]
"""Tokens of an image by its width and height in pixels."""


class Tiles(Struct, frozen=True):
    """OpenAI, high detail: fitted into 2048 x 2048, then the short side to 768; ``base`` and ``each`` per tile of 512.
    Low detail: ``base`` alone.

    Source: OpenAI's guide "Images and vision", section "Calculating costs".
    """

    base: int
    each: int

    def __call__(self, width: int, height: int) -> int:
        """Tokens of an image in high detail."""
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        return self.base + self.each * math.ceil(width * scale / 512) * math.ceil(height * scale / 512)

    def low(self, width: int, height: int) -> int:
        """Tokens of an image in low detail, whatever its size."""
        return self.base


class Patches(Struct, frozen=True):
    """OpenAI's newer models: patches of 32 x 32 pixels, at most ``most`` of them, times the model's multiplier.

    An image of more patches is scaled down until whole patches cover it; in low detail it is fitted into 512 x 512
    before. Source: OpenAI's guide "Images and vision", section "Calculating costs", for the patches and the multipliers
    of GPT-4.1 and o4-mini. Those of the GPT-5 models were measured on usage that OpenAI reported: its guide states
    higher ones for the small models than it bills.
    """

    multiplier: float
    most: int = 1536

    def __call__(self, width: int, height: int) -> int:
        """Tokens of an image in high detail."""
        wide, high = math.ceil(width / 32), math.ceil(height / 32)
        if wide * high > self.most:
            scale = math.sqrt(self.most * 32 * 32 / (width * height))
            across, down = width * scale / 32, height * scale / 32
            scale *= min(math.floor(across) / across, math.floor(down) / down) if min(across, down) >= 1 else 1.0
            wide, high = math.ceil(width * scale / 32 - 1e-9), math.ceil(height * scale / 32 - 1e-9)
        return round(min(wide * high, self.most) * self.multiplier)

    def low(self, width: int, height: int) -> int:
        """Tokens of an image in low detail."""
        scale = min(1.0, 512 / max(width, height))
        return self(max(1, round(width * scale)), max(1, round(height * scale)))


def image_tokens(formula: Formula, width: int, height: int, detail: str = "") -> int:
    """Tokens of an image of that many pixels. ``detail``: as the request asks for it; only OpenAI's ``low`` costs
    less."""
    if detail == "low" and isinstance(formula, Tiles | Patches):
        return formula.low(width, height)
    return formula(width, height)


def anthropic_area(width: int, height: int) -> int:
    """Anthropic: pixels / 750, after the long side is fitted to 1568 and the whole to about 1.15 megapixels.

    Source: Anthropic's guide "Vision", section "Calculate image costs".
    """
    scale = min(1.0, 1568 / max(width, height), math.sqrt(1_150_000 / (width * height)))
    return math.ceil(width * scale * height * scale / 750)


def anthropic_fine(width: int, height: int) -> int:
    """Anthropic from Opus 4.7 on: patches of 28 x 28 pixels, at most 4,784, after the long side is fitted to 2576.

    Source: Anthropic's guide "Vision", in its edition for these models.
    """
    scale = min(1.0, 2576 / max(width, height), math.sqrt(4784 * 28 * 28 / (width * height)))
    return min(math.ceil(width * scale / 28) * math.ceil(height * scale / 28), 4784)


def gemini_tiles(width: int, height: int) -> int:
    """Gemini 2: 258 where both sides are at most 384; else 258 per tile, whose side is the short side of the image
    divided by 1.5, between 256 and 768.

    Source: Google's guide "Image understanding", section "Calculate tokens".
    """
    if width <= 384 and height <= 384:
        return 258
    side = min(max(math.floor(min(width, height) / 1.5), 256), 768)
    return 258 * math.ceil(width / side) * math.ceil(height / side)


def gemini_tiles_and_whole(width: int, height: int) -> int:
    """Gemini 2.0: as ``gemini_tiles``, and 258 for the whole of an image in tiles. Measured on recordings."""
    tokens = gemini_tiles(width, height)
    return tokens + 258 if tokens > 258 else tokens


def gemini_budget(width: int, height: int) -> int:
    """Gemini 3: up to 1,120 tokens an image, whatever its size, unless the request asks for another resolution: as many
    squares as fit into its shape.

    Source: Google's guide "Media resolution", table of token counts; that a shape is filled with whole squares was
    measured: 1,085 for 330 x 291 pixels.
    """
    if not (width and height):
        return 0
    return max(math.floor(math.sqrt(1120 * width / height)), 1) * max(math.floor(math.sqrt(1120 * height / width)), 1)


class Rows(Struct, frozen=True):
    """Mistral: a token for each square of ``side`` pixels, and one for the end of each row, after the long side is
    fitted to ``most`` pixels.

    Source: the image encoder of mistral-common, which Mistral published.
    """

    side: int = 28
    most: int = 1540

    def __call__(self, width: int, height: int) -> int:
        scale = min(1.0, self.most / max(width, height))
        wide, high = max(round(width * scale), 1), max(round(height * scale), 1)
        return (math.ceil(wide / self.side) + 1) * math.ceil(high / self.side)


class Merged(Struct, frozen=True):
    """Qwen: sides are rounded to multiples of ``side`` pixels, of which each square is a token, between 4 and ``most``;
    and two tokens around an image.

    Source: ``smart_resize`` of Qwen's published qwen-vl-utils, with the default limit of Alibaba's API.
    """

    side: int
    most: int

    def __call__(self, width: int, height: int) -> int:
        wide, high = (max(round(pixels / self.side), 1) for pixels in (width, height))
        squares = width * height / self.side**2
        if wide * high > self.most:
            scale = math.sqrt(self.most / squares)
            wide, high = (max(math.floor(pixels * scale / self.side), 1) for pixels in (width, height))
        elif wide * high < 4:
            scale = math.sqrt(4 / squares)
            wide, high = (math.ceil(pixels * scale / self.side) for pixels in (width, height))
        return wide * high + 2


class ToolPrompt(Struct, frozen=True):
    """Tokens that a provider adds to a request with tools, beside the definitions."""

    auto: int
    """If the model may choose."""
    forced: int
    """If it has to call a tool (``any``, ``required``, or one by name)."""


class Notation(Struct, frozen=True):
    """Tokens that a request with tools has beside them where they are shown in OpenAI's notation."""

    chat: int = 6
    """Chat Completions. Measured: 8, and 4 where there is a system message."""
    responses: int = 3
    """Responses API."""


REASONING = Notation(8, 8)
GPT_5 = Notation(90, 8)
"""With Chat Completions 82 more, whatever the tools are: measured on requests of gpt-5 and gpt-5-mini with one to three
tools, with and without parallel calls."""


ANTHROPIC_3 = ToolPrompt(346, 313)
"""The later Claude 3.5 Sonnet, and 3.7."""
ANTHROPIC_4 = ToolPrompt(313, 315)
"""Claude 4 and 4.1. Earlier editions of the table state 346 and 313 for them."""
ANTHROPIC_45 = ToolPrompt(496, 588)
ANTHROPIC_46 = ToolPrompt(497, 589)
"""Source of these and of those in ``FAMILIES``: Anthropic's documentation "Tool use", the table of tokens of the tool
use system prompt, in its latest edition that lists the model."""


class Again(Struct, frozen=True):
    """Tokens of an answer as part of later requests, beyond those that its provider counted when it made it, together
    with what the results of its calls have more or less than by our count. Measured on recordings of conversations
    whose usage the providers state."""

    text: int = 4
    """Of one without tool calls."""
    call: int = 4
    """Of one with a single call."""
    several: tuple[float, float] = (4.0, 0.0)
    """Of one with several calls, and further ones for each of them."""
    names: bool = False
    """Whether the name of a single tool is counted once more, with its result."""
    forced: int = 0
    """Further ones if the model had to call a tool: the begin of the call is then no part of the answer."""
    share: tuple[float, float] | None = None
    """How the tokens of an answer that goes back whole relate to our count at least and at most; None if that is not
    known."""
    apart: int = 15
    """Tokens by which they may lie beyond that."""
    hides: bool = False
    """Whether reasoning goes back with calls that a record may not show."""
    keeps: bool = False
    """Whether reasoning goes back, and is counted, also without calls."""
    stays: bool = False
    """Whether reasoning that goes back with calls counts also after a person has written again."""
    unsaid: bool = False
    """Whether the provider (Anthropic), or a server of the model (Ollama), does not state how much of an answer was
    reasoning. Our own count of the answer tells."""
    told: bool = False
    """Whether reasoning is counted again as the text that goes back with calls."""
    held: bool = False
    """Whether the provider keeps the reasoning of an answer by the ids of its calls, and counts it again although no
    client sends it."""
    rounds: bool = False
    """Whether the provider states reasoning in steps: OpenAI in those of 64 tokens, so that what is left of the output
    may be reasoning, too. Our own count of the answer is nearer then."""


_O200K = Again(4, 2, (4.0, 1.0), names=True, share=(0.85, 1.15), apart=5)
"""Measured on 250 turns of gpt-4o and gpt-4.1."""
_GPT_5 = Again(2, 5, (4.0, 1.0), names=True, rounds=True)
"""Measured on 17 turns of gpt-5-mini to gpt-5.6."""
_CLAUDE_3 = Again(0, -8, (8.0, 10.5), forced=14, share=(0.6, 1.35))
_CLAUDE = Again(0, -4, (12.0, 10.5), forced=14, hides=True, unsaid=True)
"""Measured on 70 turns of Claude 3.7 to 4.6."""
_CLAUDE_KEEPS = replace(_CLAUDE, keeps=True, unsaid=False)
"""From Opus 4.5 and Sonnet 4.6 on, the reasoning of earlier turns stays (Anthropic's guide "Extended thinking")."""
_KEEPING = re.compile(r"claude-(?:opus-4-[5-9]|sonnet-4-[6-9]|haiku-4-[6-9])|claude$")
_DEEPSEEK = Again(3, 11, (4.0, 7.0), told=True)
_QWEN = Again(4, 7, told=True, unsaid=True)
"""Measured on a dozen turns of DeepSeek V4 and of Qwen 3, whose reasoning went back with calls and was counted."""
_GLM = Again(3, 3, (4.0, 0.0), told=True)
_KIMI = Again(4, 12, (3.0, 12.0), told=True)
"""Measured on a dozen turns each of GLM 4.7 and 5, and of Kimi K2."""
_GPT_OSS = Again(4, 9, told=True, unsaid=True)
"""Harmony's template shows what a model thought before a call until it has answered. Measured on 4 turns."""
_GROK = Again(4, 6, (4.0, 2.0), held=True)
"""Measured on 12 turns of Grok 4, Grok 4 Fast and Grok Code at xAI, with one to three calls: each request has the whole
output of the one before it, reasoning included."""
_MISTRAL = Again(0, 0, (0.0, 2.0), keeps=True)
_GEMINI = Again(0, 6, (3.5, 2.5))
"""Measured on 110 turns of Gemini 2.5 and 3."""


class Family(Struct, frozen=True):
    """How the models whose names begin with ``prefix`` count."""

    prefix: str
    encoding: Encoding
    exact: bool = False
    """Whether the provider bills text as the rule for chat messages counts it: the encoding and the rule are published
    (OpenAI's cookbook, "How to count tokens with tiktoken"). Measured rules, images and tools are never exact.
    """
    image: Formula = Tiles(85, 170)
    scale: float = 1.0
    """Tokens of the provider for one of the encoding, if the encoding is a stand-in."""
    range: tuple[float, float] = (0.7, 1.4)
    """Between which shares of our count the provider's lies, for texts of all kinds."""
    message: int = 4
    """Tokens of a message beside its content, including the role's."""
    request: int = 3
    """Tokens of a request beside its messages and tools."""
    call: int = 7
    """Tokens of a native tool call beside its name and arguments."""
    result: int = 0
    """Tokens of a native tool result beyond those of any message."""
    system: int = 4
    """The same as ``message`` for a system message."""
    answer: int = 0
    """Tokens of an answer without calls beyond those of any message."""
    schema: int | None = 0
    """Tokens beside the text of a schema that the answer has to follow; None: the provider counts none for a schema."""
    written: float = 1.0
    """Tokens of such a schema for one of its text, as a provider may write it with more signs than we do."""
    unset: int = 0
    """Tokens of ``request`` that one whose answer has to follow a schema, or to be JSON, does not have."""
    thinking: int = 0
    """Additional tokens of a request with a budget for reasoning."""
    tools: ToolPrompt | None = None
    """Set if tools are shown behind a prompt of the provider's."""
    notation: Notation = Notation()
    shown: Callable[[Sequence[Mapping[str, Any]], Callable[[str], int]], int] = notation_tokens
    """Tokens of tools, by their definitions and a way to count text."""
    measured: bool = False
    """Whether its tools and schemas are known to be counted; others may not be counted at all."""
    fewer: int = 0
    """Tokens by which the prompt for tools may be smaller than ``tools`` says: providers change it within a model."""
    recounts: bool = True
    """Whether reasoning that goes back with an answer is counted while its tools run."""
    again: Again = Again()
    """An answer that is sent back."""
    bare: bool = False
    """Whether the punctuation of JSON in calls and results is not counted."""
    page: int = 0
    """Tokens of a page of a PDF, beside its text; 0 if that is not known."""
    ids: str = ""
    """How ids of calls begin that are counted with their results."""
    thoughts: bool = False
    """Whether the texts of thoughts that a client sends back are counted."""
    unshown: bool = False
    """Whether tools are shown to the model, and counted, only where it may call one (not with ``none``)."""
    alone: bool = False
    """Whether a tool that has to be called by its name is shown alone."""
    naming: int = 0
    """Tokens beside the name of a tool that has to be called by its name."""
    digits: bool = False
    """Whether each digit is a token. OpenAI's encodings have up to three digits in one."""
    unseen: tuple[int, int] = (80, 350)
    """Tokens that a provider may add to a first request without and with tools, and does not show: a prompt of its own,
    a date, how to call tools. Up to so many were found on recordings of Bedrock, Cohere and DeepSeek.
    """


_SMALLEST = 290
"""Tokens of the smallest prompt for tools that Anthropic's table stated for Claude 4 and later models."""


def _claude(prefix: str, tools: ToolPrompt, scale: float = 1.1) -> Family:
    """A model of Anthropic, which publishes no tokenizer. Measured on recordings of its API: its tokens are 1.0 (prose)
    to 1.2 (code, JSON) of cl100k's, a request has 3 and a message 4 beside its text, the system text none, a call 33, a
    result 12, a budget for reasoning 28 or 29, a schema of the answer 109 and twice those of its text, and a page of a
    PDF 1,580 (its guide "PDF support" states 1,500 to 3,000).

    From Opus 4.7 on there is another tokenizer, with "roughly 1.0 to 1.35 times" as many (Anthropic's notes on Opus 4.7
    and Sonnet 5): 1.35 of cl100k's is what recordings show, and 5 for a system message.
    """
    low, high = (0.85, 1.2) if scale < 1.2 else (0.75, 1.25)
    return Family(
        prefix,
        "cl100k_base",
        image=anthropic_area if scale < 1.2 else anthropic_fine,
        page=1580,
        scale=scale,
        range=(low, high),
        call=33,
        result=12,
        system=0 if scale < 1.2 else 5,
        schema=109,
        written=1.85,
        thinking=29,
        tools=tools,
        shown=json_tokens,
        fewer=max(max(tools.auto, tools.forced) - _SMALLEST, 0),
        unseen=(40, 40),
        measured=True,
        again=_again_of_claude(prefix),
    )


def _again_of_claude(prefix: str) -> Again:
    """A model of Anthropic before 3.7 does not reason. ``claude-3`` stands for the last of these and for 3.7."""
    if re.match(r"claude-(?:2|3-(?:opus|sonnet|haiku|5))", prefix):
        return _CLAUDE_3
    return _CLAUDE_KEEPS if _KEEPING.match(prefix) else _CLAUDE


def _openai(prefix: str, image: Formula, encoding: Encoding = "o200k_base") -> Family:
    """A model of OpenAI. A tool that has to be called adds its name and 8 tokens: measured on 20 requests."""
    return Family(prefix, encoding, True, image, unseen=(0, 0), measured=True, naming=8, again=_O200K)


def _reasoning(prefix: str, image: Formula) -> Family:
    """A reasoning model of OpenAI. Measured on recordings: a request has one token less than the rule for chat messages
    says, and an answer two more, as many as the channel takes that the Harmony format names in it."""
    notation = GPT_5 if prefix.startswith("gpt-5") else REASONING
    known: dict[str, Any] = {
        "range": (0.97, 1.03),
        "request": 2,
        "answer": 2,
        "notation": notation,
        "unseen": (4, 4),
        "measured": True,
        "again": _GPT_5,
    }
    return Family(prefix, "o200k_base", False, image, **known)


def _completion(prefix: str) -> Family:
    """A model of OpenAI that continues a prompt: only its text is counted."""
    return Family(prefix, "cl100k_base", True, message=0, request=0, system=0, unseen=(0, 0))


_WORDS = ("gemini-1", "gemini-2.0")
"""Models of Google that count no signs of JSON in tools, calls and results."""


def _gemini(prefix: str, image: Formula) -> Family:
    """A model of Google, whose tokenizer is not at hand. Measured on recordings: about as many tokens as o200k has, and
    one for each message from Gemini 2.5 on, as its roles are no tokens of the prompt; a schema of the answer is not
    counted. Reasoning that goes back is counted from Gemini 2.5 on, if its answer was streamed, from 3 on always, and
    from 3.5 on also that of a text, for good."""
    shown = word_tokens if prefix in _WORDS else declaration_tokens
    # OpenRouter, which draws the ids of Google's calls itself, hands them on with the results. Measured on 11 turns.
    counts: dict[str, Any] = {"schema": None, "shown": shown, "unseen": (8, 24), "ids": "tool_"}
    counts["thoughts"] = prefix not in _WORDS
    counts["digits"] = True  # "Gemma: Open Models", section on the tokenizer, which is a subset of Gemini's.
    # Google's guides "Document understanding" and, for Gemini 3, "Media resolution".
    counts["page"] = 528 if prefix.startswith("gemini-3") else 258
    counts["recounts"] = prefix in ("gemini-3", "gemini")
    counts["bare"] = prefix in _WORDS
    counts["again"] = Again(0, 0) if prefix in _WORDS else _GEMINI
    if prefix == "gemini-3.5":
        counts |= {"recounts": True, "again": replace(_GEMINI, keeps=True)}
    roles = 0 if prefix in _WORDS else 1
    counts["system"] = roles
    return Family(prefix, "o200k_base", False, image, 1.0, (0.85, 1.2), roles, 0, 5, **counts)


def _open_model(prefix: str, encoding: Encoding, prompt: int | None = None, **numbers: Any) -> Family:
    """A model whose chat template is published with it, by the tokens that the template adds; texts are counted in
    another encoding. ``prompt``: tokens that it puts before the definitions of tools. Measured on recordings of
    conversations of one to five messages, and of one to eleven tools."""
    tools: dict[str, Any] = {}
    if prompt is not None:
        shown = {"tools": ToolPrompt(prompt, prompt), "shown": definition_tokens}
        tools = {**shown, "measured": True, "fewer": prompt, "unseen": (80, 120), "unshown": True}
    return Family(prefix, encoding, **{**tools, **numbers})


def _qwen(prefix: str, prompt: int, request: int) -> Family:
    """A model of Qwen. The template from Qwen 3.5 on says more of how tools are called than that before. A schema of
    the answer binds what the model may say, and is no part of its prompt: measured on recordings of vLLM and llama.cpp.
    """
    older = prefix.startswith(("qwen2", "qwen-vl"))
    numbers: dict[str, Any] = {"message": 5, "request": request, "system": 5, "schema": None, "again": _QWEN}
    numbers["digits"] = True  # "Qwen Technical Report", section "Tokenization".
    numbers["image"] = Merged(28, 1280) if older else Merged(32, 2560)
    return _open_model(prefix, "cl100k_base", prompt, alone=True, **numbers)


def _mistral(prefix: str, request: int = 1) -> Family:
    """A model of Mistral. The template of Mistral Small 4, which ``mistral-small-latest`` names, has 12 tokens of
    settings, but not where the answer has to follow a schema or to be JSON; what a model thought counts where it goes
    back. Measured on recordings."""
    numbers: dict[str, Any] = {"message": 2, "request": request, "system": 2, "schema": None, "unset": request - 1}
    numbers["image"] = Rows(16, 1024) if prefix == "pixtral" else Rows()
    numbers["digits"] = True  # The pattern of Tekken, in mistral-common.
    return _open_model(prefix, "o200k_base", 5, alone=True, again=_MISTRAL, **numbers)


GROK_CODE = Family("grok-code", "o200k_base", request=196, notation=Notation(160, 160), unseen=(80, 350), again=_GROK)
GPT_OSS = Family(
    "gpt-oss", "o200k_base", request=63, answer=2, notation=Notation(26, 26), unseen=(8, 350), again=_GPT_OSS
)
"""OpenAI's open models: their chat format begins with a system message of 60 tokens, which every server adds (OpenAI's
cookbook, "OpenAI harmony response format")."""
GROK_4 = Family("grok-4", "o200k_base", request=158, notation=Notation(160, 160), unseen=(80, 350), again=_GROK)
"""xAI's models from Grok 4 on: measured on recordings, xAI adds a prompt of some 155 tokens, and with tools as many
again."""
GROK_LATER = Family(
    "grok-4.",
    "o200k_base",
    request=188,
    schema=22,
    tools=ToolPrompt(30, 30),
    shown=function_tokens,
    again=Again(6, 2, (4.0, 2.0), keeps=True),
)
"""Grok 4.3: xAI's own prompt has 188 tokens, and 30 more with tools, which are shown as JSON. It keeps no reasoning by
the ids of calls, but counts what goes back encrypted, for good. Measured on 28 first requests and 12 later ones of the
Responses API."""
COMMAND = Family("command", "o200k_base", message=0, request=0, system=0, again=Again(0, -23, (-4.0, -32.0)))
"""Cohere's models: it bills the texts alone, not what it puts around them ("How does Cohere pricing work?"). An answer
with calls had some 23 tokens less as part of the next request (measured on 9 turns)."""
PALMYRA = Family("palmyra-x4", "o200k_base", request=28, notation=Notation(116, 116))
"""Writer's model: measured on recordings, it has a prompt of some 25 tokens, and with tools 110 more."""
TITAN = Family("titan-text", "cl100k_base", message=0, request=0, system=0)
"""Amazon's older model, which continues a prompt: only its text is counted."""

FAMILIES: tuple[Family, ...] = (
    GPT_OSS,
    GROK_LATER,
    GROK_4,
    GROK_CODE,
    COMMAND,
    PALMYRA,
    TITAN,
    _openai("gpt-4o-mini", Tiles(2833, 5667)),
    _openai("gpt-4o", Tiles(85, 170)),
    _openai("chatgpt-4o", Tiles(85, 170)),
    _openai("gpt-4.1-mini", Patches(1.62)),
    _openai("gpt-4.1-nano", Patches(2.46)),
    _openai("gpt-4.1", Tiles(85, 170)),
    _openai("gpt-4.5", Tiles(85, 170)),
    _openai("gpt-4", Tiles(85, 170), "cl100k_base"),
    _completion("gpt-3.5-turbo-instruct"),
    _openai("gpt-3.5-turbo", Tiles(85, 170), "cl100k_base"),
    _reasoning("gpt-5-mini", Patches(1.2)),
    _reasoning("gpt-5-nano", Patches(1.5)),
    _reasoning("gpt-5-codex", Tiles(70, 140)),
    _reasoning("gpt-5.1", Tiles(70, 140)),
    _reasoning("gpt-5.", Patches(1.2)),
    _reasoning("gpt-5", Tiles(70, 140)),
    _reasoning("o1", Tiles(75, 150)),
    _reasoning("o3", Tiles(75, 150)),
    _reasoning("o4-mini", Patches(1.72)),
    _reasoning("codex-mini", Patches(1.72)),
    _reasoning("computer-use", Tiles(65, 129)),
    _completion("davinci-002"),
    _completion("babbage-002"),
    Family("text-davinci", "p50k_base"),
    _claude("claude-3-opus", ToolPrompt(530, 281)),
    _claude("claude-3-sonnet", ToolPrompt(159, 235)),
    _claude("claude-3-haiku", ToolPrompt(264, 340)),
    _claude("claude-3-5-haiku", ToolPrompt(264, 355)),
    _claude("claude-3-5-sonnet-20240620", ToolPrompt(294, 261)),
    _claude("claude-3-5", ANTHROPIC_3),
    _claude("claude-3", ANTHROPIC_3),
    _claude("claude-opus-4-5", ANTHROPIC_45),
    _claude("claude-opus-4-6", ANTHROPIC_46),
    _claude("claude-sonnet-4-5", ANTHROPIC_45),
    _claude("claude-sonnet-4-6", ANTHROPIC_46),
    _claude("claude-haiku-4-5", ANTHROPIC_45),
    _claude("claude-opus-4-7", ToolPrompt(675, 804), 1.35),
    _claude("claude-opus-4-8", ToolPrompt(290, 410), 1.35),
    _claude("claude-opus-4", ANTHROPIC_4),
    _claude("claude-sonnet-4", ANTHROPIC_4),
    _claude("claude-haiku-4", ANTHROPIC_4),
    _claude("claude-2", ANTHROPIC_4),
    _claude("claude", ToolPrompt(354, 474), 1.35),
    _gemini("gemini-3.5", gemini_budget),
    _gemini("gemini-3", gemini_budget),
    _gemini("gemini-1", gemini_tiles),
    _gemini("gemini-2.0", gemini_tiles_and_whole),
    _gemini("gemini", gemini_tiles),
    _open_model("gemma", "o200k_base", image=gemini_tiles, message=5, request=4, system=1, digits=True),
    *(
        _open_model(f"{maker}llama{dash}4", "cl100k_base", 620, message=5, request=5, system=5)
        for maker in ("", "meta-")
        for dash in ("-", "")
    ),
    *(
        _open_model(f"{maker}llama{dash}3{dot}", "cl100k_base", 83, message=5, request=30, system=0)
        for maker in ("", "meta-")
        for dash in ("-", "")
        for dot in (".", "-1", "-2", "-3")
    ),
    *(
        _open_model(f"{maker}llama{dash}3", "cl100k_base", message=5, request=5, system=5)
        for maker in ("", "meta-")
        for dash in ("-", "")
    ),
    Family("llama", "cl100k_base"),
    Family("meta-llama", "cl100k_base"),
    _qwen("qwen-max", 165, 3),
    _qwen("qwen-turbo", 75, 7),
    _qwen("qwen-plus", 75, 7),
    _qwen("qwen2", 75, 3),
    _qwen("qwen-vl", 75, 3),
    *(_qwen(f"qwen{edition}", 215, 5) for edition in ("3.5", "3-5", "3.6", "3-6", "3.7", "3-7")),
    _qwen("qwen", 75, 3),
    _qwen("qwq", 75, 3),
    _open_model("deepseek", "cl100k_base", 217, message=1, request=3, system=0, alone=True, again=_DEEPSEEK),
    _mistral("mistral-small-latest", 13),
    *map(
        _mistral,
        ("mistral", "ministral", "magistral", "devstral", "codestral", "pixtral", "voxtral", "mixtral"),
    ),
    _open_model("nova-2", "o200k_base", 790, message=4, request=42, again=Again(0, 24, (24.0, 0.0))),
    _open_model("nova", "o200k_base", 335, message=0, request=0, system=0, again=Again(4, 28, (24.0, 4.0))),
    _open_model("glm-5.2", "o200k_base", 90, message=1, request=11, system=1, schema=None, again=_GLM),
    _open_model("glm-5.3", "o200k_base", 90, message=1, request=11, system=1, schema=None, again=_GLM),
    _open_model("glm", "o200k_base", 90, message=1, request=4, system=1, schema=None, again=_GLM),
    _open_model("zai-glm", "o200k_base", 90, message=1, request=4, system=1, schema=None, again=_GLM),
    _open_model("kimi-k2.5", "o200k_base", notation=Notation(18, 18), again=_KIMI),
    _open_model("kimi-k2", "o200k_base", 7, again=_KIMI),
)
"""The first prefix that fits counts.

The template of Llama 3.1 to 3.3 begins with a system message that states dates: of 25 tokens, of which 5 are the
message's own, so that a system message of the request adds its text alone. That of Qwen 3 ends with an empty thought
where the model does not think, as Alibaba serves Qwen Turbo and Plus; that of DeepSeek with the mark that the model has
thought; that of GLM 5.2 states how much it should.
"""

OTHER = Family("", "o200k_base")


_SELLER = re.compile(
    r"^(?:(?:us|eu|apac|jp|au|ca|us-gov|global)\.)?"
    r"(?:anthropic|amazon|meta|mistral|openai|google|qwen|deepseek|cohere|writer)\."
)
"""Beginning of a Bedrock name: the region and the model's maker."""


def bare_name(model: str) -> str:
    """The name of a model as its maker writes it: without prefixes, variant, suffix and escapes."""
    name = unescaped(split_effort(model)[0]).rpartition("/")[2].lower().removeprefix("ft:").partition(":")[0]
    name = _SELLER.sub("", name)
    return name.replace(".", "-") if name.startswith("claude") else name


@functools.lru_cache(maxsize=1024)
def family(model: str) -> Family:
    """The family of a model, whatever prefixes, variant or suffix its name has."""
    name = bare_name(model).removeprefix("databricks-")
    name = _LATEST.get(name, name)
    found = next((f for f in FAMILIES if name.startswith(f.prefix)), OTHER)
    if found.again.held and "x-ai/" in model:  # A gateway's name: reasoning stays with xAI's own ids of calls.
        return replace(found, prefix=f"x-ai/{found.prefix}", again=replace(found.again, held=False))
    return _at_vertex(found) if model.startswith("vertex_ai/") and found.prefix.startswith("gemini") else found


_LATEST: Mapping[str, str] = {
    "gemini-flash-latest": "gemini-3.5-flash",
    "gemini-flash-lite-latest": "gemini-3.1-flash-lite",
    "gemini-pro-latest": "gemini-3.1-pro",
}
"""Models that Google's names for the latest ones stand for, as its answers name them."""


def _at_vertex(kind: Family) -> Family:
    """A model of Google as Vertex AI counts it: no roles, and no signs of JSON in tools. Of Gemini 2.5 it counts none
    in calls and results either, and the reasoning behind the signature of a call for good; of Gemini 3 no reasoning
    that goes back, but the schema of an answer. Measured on recordings; the schemas on three, which were alike."""
    third = kind.prefix.startswith("gemini-3")
    counts: dict[str, Any] = {"message": 0, "system": 0}
    counts["recounts"] = kind.again.keeps or kind.prefix == "gemini"
    counts["shown"] = declaration_tokens if kind.again.keeps else word_tokens
    if third:
        counts |= {"again": replace(kind.again, call=kind.again.call - 16), "schema": 16, "written": 1.5}
    else:
        counts |= {"again": replace(kind.again, stays=True), "bare": True}
    return replace(kind, prefix=f"vertex_ai/{kind.prefix}", **counts)
