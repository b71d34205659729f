"""Makers of models: what litellm does not say of them. How OpenRouter writes their names, what they take back of their
answers."""

from __future__ import annotations

import re

from msgspec import Struct


class Provider(Struct, frozen=True):
    """One provider. litellm knows its address and its key."""

    id: str
    """The prefix of litellm's model names."""
    title: str
    """For people."""
    aliases: tuple[str, ...] = ()
    """Other prefixes that mean it, as OpenRouter writes them."""
    families: tuple[str, ...] = ()
    """How bare model names that belong to it begin."""
    listens: str = ""
    """Default address of a server of this kind, if litellm does not know it."""
    dashes: bool = False
    """Its model names have dashes where OpenRouter's have dots."""
    alternating: bool = False
    """It refuses neighbouring messages of the same role."""
    thinking: bool = False
    """It takes a budget for reasoning, in tokens."""
    returns: tuple[str, ...] = ()
    """Fields of an answer that it takes back with the message; it may refuse those of others."""


_TABLE: tuple[Provider, ...] = (
    Provider(
        "openai",
        "OpenAI",
        families=("gpt-", "chatgpt-", "o1", "o3", "o4", "codex-", "computer-use", "ft:gpt-"),
    ),
    Provider(
        "anthropic",
        "Anthropic",
        families=("claude-",),
        dashes=True,
        thinking=True,
        returns=("thinking_blocks",),
    ),
    Provider(
        "gemini",
        "Google",
        ("google",),
        ("gemini-", "gemma-"),
        thinking=True,
        returns=("provider_specific_fields",),
    ),
    Provider(
        "deepseek",
        "DeepSeek",
        families=("deepseek-",),
        returns=("reasoning_content",),
    ),
    Provider(
        "mistral",
        "Mistral",
        ("mistralai",),
        ("mistral-", "ministral-", "codestral-", "devstral-", "magistral-", "pixtral-", "open-mistral-"),
    ),
    Provider("xai", "xAI", ("x-ai",), ("grok-",)),
    Provider(
        "moonshot",
        "Moonshot",
        ("moonshotai",),
        ("kimi-", "moonshot-"),
        returns=("reasoning_content",),
    ),
    Provider(
        "zai",
        "Z.ai",
        ("z-ai",),
        ("glm-",),
        returns=("reasoning_content",),
    ),
    Provider("dashscope", "Alibaba Cloud", ("qwen",), ("qwen", "qwq-")),
    Provider("minimax", "MiniMax", families=("MiniMax-",), returns=("reasoning_details",)),
    Provider("groq", "Groq"),
    Provider("together_ai", "Together", ("together",)),
    Provider("fireworks_ai", "Fireworks", ("fireworks",)),
    Provider("perplexity", "Perplexity", alternating=True),
    Provider("openrouter", "OpenRouter", returns=("reasoning_details",)),
    Provider("ollama_chat", "Ollama", aliases=("ollama",)),
    Provider("xinference", "Xinference", listens="http://localhost:9997/v1"),
    Provider("lm_studio", "LM Studio", listens="http://localhost:1234/v1"),
    Provider("hosted_vllm", "vLLM", aliases=("vllm",), listens="http://localhost:8000/v1"),
)

_VERSION = re.compile(r"(?<=-)(\d{1,2})-(\d{1,2})(?=-|$)")

BY_ID = {provider.id: provider for provider in _TABLE}
_BY_PREFIX = BY_ID | {alias: provider for provider in _TABLE for alias in provider.aliases}


def by_prefix(prefix: str) -> Provider | None:
    """The provider that the part of a name before its first slash means."""
    return _BY_PREFIX.get(prefix)


def named(prefix: str) -> Provider:
    """The same, and one without facts for others that litellm knows."""
    return _BY_PREFIX.get(prefix) or Provider(prefix, prefix)


def by_family(model: str) -> Provider | None:
    """The provider whose models have names like this one, which has no provider's prefix."""
    return next((p for p in _TABLE if p.families and model.startswith(p.families)), None)


def slug(provider: Provider, model: str) -> str:
    """Returns how OpenRouter writes a model of a provider: ``claude-sonnet-4-5`` is ``anthropic/claude-sonnet-4.5``
    there."""
    prefix = provider.aliases[0] if provider.aliases and provider.families else provider.id
    dotted = _VERSION.sub(r"\1.\2", model) if provider.dashes else model
    return f"{prefix}/{dotted}"


def split(name: str) -> tuple[Provider | None, str]:
    """The provider that a name asks for, and the model as that provider writes it.

    ``google/gemini-2.5-flash`` and ``gemini-2.5-flash`` both give Google and ``gemini-2.5-flash``;
    ``anthropic/claude-sonnet-4.5`` gives ``claude-sonnet-4-5``. None where nothing in the name says.
    """
    prefix, slash, rest = name.partition("/")
    provider = by_prefix(prefix) if slash else by_family(name)
    if provider is None:
        return None, name
    model = rest if slash else name
    return provider, model.replace(".", "-") if provider.dashes else model
