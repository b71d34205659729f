"""Numbers of every model family and its cache rules, as tables that are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from tests.models.test_encodings import COUNTER, TOOL
from tests.support.stored import check_stored
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.models.cache_rules import maker, rule_for, stated_rule
from workbench.models.families import FAMILIES, family, image_tokens

STORED = Path(__file__).parent / "stored"
MODELS = (*dict.fromkeys(one.prefix for one in FAMILIES), "unheard-of")
MORE = (
    "vertex_ai/gemini-2.5-flash",
    "vertex_ai/gemini-3-pro",
    "openrouter/x-ai/grok-4",
    "gemini-flash-latest",
    "bedrock/us.anthropic.claude-sonnet-4-5-v1:0",
    "ft:gpt-4o:me",
)
SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
CALL = ToolCall("c1", "find_files", '{"pattern": "*.py", "limit": 3}')
MESSAGES = {
    "user": Message("user", "Find the first failure, 1234 lines."),
    "system": Message("system", "Be brief."),
    "answer": Message("assistant", "There are two of them."),
    "call": Message("assistant", "I look.", (CALL,)),
    "thought": Message("assistant", "", (CALL,), extra={"reasoning_content": "Which files? All of them."}),
    "result": Message("tool", '{"files": ["a.py", "b.py"]}', (), "c1", "find_files"),
    "result with an id": Message("tool", "a.py", (), "tool_0_find_files", "find_files"),
    "image": Message("user", (TextPart("See."), Image("d" * 64, "image/png", 999, 640, 480))),
}
SIZES = ((64, 64), (1000, 700), (4000, 300), (3000, 3000))


def counts(model: str) -> str:
    """All counts of one model, in a line."""
    found: dict[str, Any] = {name: COUNTER.message(message, model) for name, message in MESSAGES.items()}
    found["tool"] = COUNTER.tools([TOOL], model)
    found["forced"] = COUNTER.tools([TOOL, TOOL], model, forced=True)
    found["responses"] = COUNTER.tools([TOOL], model, responses=True)
    found["request"] = COUNTER.overhead(model), COUNTER.overhead(model, SCHEMA), COUNTER.overhead(model, thinking=True)
    found["range"] = COUNTER.range(model), COUNTER.unseen(model, tools=100, beside=30), COUNTER.recounts(model)
    for name in ("answer", "call", "thought"):
        found[f"{name} back"] = tuple(COUNTER.sent_back(MESSAGES[name], model))
    found["call back, forced"] = tuple(COUNTER.sent_back(MESSAGES["call"], model, forced=True))
    formula = family(model).image
    found["pixels"] = [image_tokens(formula, *size) for size in SIZES]
    found["low"] = [image_tokens(formula, *size, "low") for size in SIZES]
    return ", ".join(f"{name} {_short(value)}" for name, value in found.items())


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "/".join(map(_short, value))
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def test_every_family_counts_like_this() -> None:
    found = {model: counts(model) for model in (*MODELS, *MORE)}
    check_stored(STORED / "families.json", json.dumps(found, indent=1) + "\n")


FACTS: dict[str, dict[str, Any] | None] = {
    "unknown": None,
    "no price for cached tokens": {"litellm_provider": "openai"},
    "cached": {"cache_read_input_token_cost": 1e-7},
    "long requests": {"cache_read_input_token_cost_above_200k_tokens": 1e-7, "litellm_provider": "mistral"},
    "writes": {"cache_read_input_token_cost": 1e-7, "cache_creation_input_token_cost": 1e-6},
    "least": {"cache_read_input_token_cost": 1e-7, "prompt_cache_min_tokens": 4096},
    "groq": {"cache_read_input_token_cost": 1e-7, "litellm_provider": "groq"},
    "bedrock": {"cache_read_input_token_cost": 1e-7, "litellm_provider": "bedrock_converse"},
    "another seller": {"cache_read_input_token_cost": 1e-7, "litellm_provider": "novita"},
}
CACHED = (
    *("gpt-4o", "o3-mini", "codex-1", "claude-sonnet-4-5", "gemini-2.5-flash", "gemini-3-pro", "deepseek-chat"),
    *("deepseek-v4", "grok-3", "grok-4.3", "kimi-k2", "moonshot-v1", "glm-5", "magistral-small", "llama-4"),
)


def test_every_cache_rule_is_like_this() -> None:
    found = {
        model: {
            "maker": maker(model),
            "stated": " ".join(map(str, astuple(stated_rule(model)))),
            **{name: " ".join(map(str, astuple(rule_for(model, facts)))) for name, facts in FACTS.items()},
            "priced": " ".join(map(str, astuple(rule_for(model, {}, priced=True)))),
        }
        for model in CACHED
    }
    check_stored(STORED / "cache-rules.json", json.dumps(found, indent=1) + "\n")
