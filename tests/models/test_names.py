from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.stored import check_stored
from workbench.engine.model_name import split_effort
from workbench.models.destinations import located
from workbench.models.families import bare_name
from workbench.models.names import ROUTER_KEY, NoKey, Resolved, answered_at, may_answer, may_need_a_key, resolve
from workbench.models.providers import slug, split

ROUTER = {"OPENROUTER_API_KEY": "router-key"}


def found(name: str, env: Mapping[str, str], base_url: str = "") -> Resolved:
    """With what litellm finds, and without a request that leaves."""
    return asyncio.run(located(resolve(name, base_url, env), env))


@pytest.mark.parametrize(
    ("name", "env", "litellm_name", "variable"),
    [
        ("google/gemini-2.5-flash-lite", ROUTER, "openrouter/google/gemini-2.5-flash-lite", "OPENROUTER_API_KEY"),
        ("openrouter/x-ai/grok-4", ROUTER, "openrouter/x-ai/grok-4", "OPENROUTER_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": "k"}, "openai/gpt-4o", "OPENAI_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": "k", **ROUTER}, "openai/gpt-4o", "OPENAI_API_KEY"),
        ("gpt-4o", {"OPENAI_API_KEY": "k"}, "openai/gpt-4o", "OPENAI_API_KEY"),
        ("gpt-4o", ROUTER, "openrouter/openai/gpt-4o", "OPENROUTER_API_KEY"),
        ("google/gemini-2.5-pro", {"GOOGLE_API_KEY": "k"}, "gemini/gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("anthropic/claude-sonnet-4.5", {"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("anthropic/claude-sonnet-4.5", ROUTER, "openrouter/anthropic/claude-sonnet-4.5", "OPENROUTER_API_KEY"),
        ("claude-haiku-4-5", ROUTER, "openrouter/anthropic/claude-haiku-4.5", "OPENROUTER_API_KEY"),
        (
            "claude-sonnet-4-5-20250929",
            ROUTER,
            "openrouter/anthropic/claude-sonnet-4.5-20250929",
            "OPENROUTER_API_KEY",
        ),
        ("x-ai/grok-4.3", {"XAI_API_KEY": "k"}, "xai/grok-4.3", "XAI_API_KEY"),
        ("somebody/new-model", ROUTER, "openrouter/somebody/new-model", "OPENROUTER_API_KEY"),
        (
            "deepseek/deepseek-r1:free",
            {"DEEPSEEK_API_KEY": "k", **ROUTER},
            "openrouter/deepseek/deepseek-r1:free",
            "OPENROUTER_API_KEY",
        ),
        ("ollama/llama3:8b", {}, "ollama_chat/llama3:8b", ""),
        ("o3::high", {"OPENAI_API_KEY": "k"}, "openai/o3", "OPENAI_API_KEY"),
    ],
)
def test_a_name_finds_its_provider(name: str, env: dict[str, str], litellm_name: str, variable: str) -> None:
    resolved = found(name, env)

    assert (resolved.litellm_name, resolved.key_variable) == (litellm_name, variable)
    assert resolved.api_key == env.get(variable, "")
    assert answered_at(name, "", env) == resolved.provider.id


def test_without_a_key_both_variables_are_named() -> None:
    with pytest.raises(NoKey, match="set OPENAI_API_KEY or OPENROUTER_API_KEY"):
        found("openai/gpt-4o", {})


def test_a_key_of_blanks_is_no_key() -> None:
    with pytest.raises(NoKey):
        found("openai/gpt-4o", {"OPENAI_API_KEY": "  "})


def test_a_bare_unknown_name_asks_for_a_provider() -> None:
    with pytest.raises(NoKey, match="'a-model-of-nobody' names no provider"):
        resolve("a-model-of-nobody", "", ROUTER)


def test_with_a_base_url_the_server_there_is_asked() -> None:
    resolved = resolve("google/gemma-3", "http://127.0.0.1:8000/v1", {"WORKBENCH_API_KEY": "own"})

    assert resolved.litellm_name == "openai/google/gemma-3"
    assert (resolved.base_url, resolved.api_key) == ("http://127.0.0.1:8000/v1", "own")


def test_a_providers_key_never_goes_to_a_strangers_host() -> None:
    env = {"OPENAI_API_KEY": "secret", "ANTHROPIC_API_KEY": "secret", **ROUTER}

    for url in ("https://example.com/v1", "https://openrouter.ai.example.com/v1", "https://api.openai.com@example.com"):
        assert resolve("gpt-4o", url, env).api_key == ""


def test_a_base_url_of_a_known_host_takes_that_providers_key() -> None:
    assert resolve("gpt-4o", "https://api.openai.com/v1", {"OPENAI_API_KEY": "k"}).api_key == "k"
    routed = resolve("google/gemini-2.5-flash", "https://openrouter.ai/api/v1", ROUTER)
    assert (routed.litellm_name, routed.api_key) == ("openrouter/google/gemini-2.5-flash", "router-key")


def test_the_key_is_not_in_the_repr() -> None:
    assert "router-key" not in repr(found("a/b", ROUTER))


def test_the_effort_is_split_from_the_name() -> None:
    assert split_effort("openai/o3::high") == ("openai/o3", {"reasoning_effort": "high"})
    name, parameters = split_effort("claude-sonnet-4-5::medium(2000)")
    assert (name, parameters["thinking"]["budget_tokens"]) == ("claude-sonnet-4-5", 2000)
    assert split_effort("qwen/qwen-plus:thinking") == ("qwen/qwen-plus:thinking", {})


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("azure/gpt-4o", "AZURE_API_BASE and AZURE_API_VERSION and AZURE_API_KEY"),
        ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("litellm_proxy/gpt-4o", "LITELLM_PROXY_API_BASE"),
        ("mistral/mistral-small-latest", "MISTRAL_API_KEY"),
        ("groq/llama-3.3-70b-versatile", "GROQ_API_KEY"),
        ("veniceai/llama", "VENICE_AI_API_KEY"),
        ("xai/grok-4", "XAI_API_KEY"),
    ],
)
def test_a_named_provider_without_its_key_is_an_error_and_nobody_elses_key_is_used(name: str, variables: str) -> None:
    with pytest.raises(NoKey, match=f"set {variables} "):
        found(name, {**ROUTER, "OPENAI_API_KEY": "openai-key", "WORKBENCH_API_KEY": "own"})


def test_a_provider_without_a_way_in_litellm_sends_nothing_to_openai() -> None:
    with pytest.raises(NoKey, match="says nowhere which server answers: set AI21_API_BASE"):
        found("ai21/jamba", {"OPENAI_API_KEY": "openai-key"})


@pytest.mark.parametrize(
    ("name", "env", "address", "base_variable"),
    [
        ("ollama/llama3", {}, "http://localhost:11434", ""),
        ("ollama/llama3", {"OLLAMA_API_BASE": "http://gpu.example:1"}, "http://gpu.example:1", "OLLAMA_API_BASE"),
        ("lm_studio/m", {}, "http://localhost:1234/v1", ""),
        ("vllm/m", {}, "http://localhost:8000/v1", ""),
        ("hosted_vllm/m", {"HOSTED_VLLM_API_BASE": "http://10.0.0.2/v1"}, "http://10.0.0.2/v1", "HOSTED_VLLM_API_BASE"),
        ("xinference/m", {}, "http://localhost:9997/v1", ""),
        ("llamafile/m", {}, "http://127.0.0.1:8080", ""),
        ("openai/m", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "http://127.0.0.1:9/v1", "OPENAI_BASE_URL"),
        ("litellm_proxy/m", {"LITELLM_PROXY_API_BASE": "http://gw:4000"}, "http://gw:4000", "LITELLM_PROXY_API_BASE"),
    ],
)
def test_a_server_nearby_needs_no_key(name: str, env: dict[str, str], address: str, base_variable: str) -> None:
    resolved = found(name, {**env, "GROQ_API_KEY": "somebody-elses"})

    assert (resolved.address, resolved.base_variable, resolved.api_key) == (address, base_variable, "")
    assert resolved.keyless or resolved.base_url == address
    assert resolved.where == address
    assert resolved.sent_key == "no-key"


def test_a_key_goes_along_to_an_address_of_ones_own() -> None:
    env = {"OPENAI_BASE_URL": "https://gateway.example/v1", "OPENAI_API_KEY": "k1"}
    resolved = found("gpt-4o", env)

    assert (resolved.key_variable, resolved.where) == ("OPENAI_API_KEY", "https://gateway.example/v1")
    assert answered_at("gpt-4o", "", env) == ""


@pytest.mark.parametrize(("name", "provider"), [("amazon.titan-text-lite-v1", "bedrock"), ("dolphin", "nlp_cloud")])
def test_a_bare_name_that_only_litellm_knows_goes_to_the_provider_that_litellm_finds(name: str, provider: str) -> None:
    found = resolve(name, "", {})
    assert (found.litellm_name, found.provider.id) == (f"{provider}/{name}", provider)


NAMES = (
    *("gpt-4o", "openai/gpt-4o", "claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-flash"),
    *("gemini/gemini-2.5-flash", "openrouter/openai/gpt-4o", "openai/gpt-4o:free", "meta-llama/llama-4"),
    *("ollama/llama3", "lm_studio/x", "hosted_vllm/x", "bedrock/x", "vertex_ai/x", "x-ai/grok-4", "grok-4"),
    *("mistral/mistral-small", "mistralai/mistral-small", "deepseek/deepseek-chat", "gpt-5(high)", "offline", "a/b/c"),
)
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "nothing": {},
    "router": {ROUTER_KEY: "r"},
    "openai": {"OPENAI_API_KEY": "o"},
    "both": {ROUTER_KEY: "r", "OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"},
    "addresses": {ROUTER_KEY: " ", "OPENAI_BASE_URL": "http://h", "AWS_REGION": "x", "VERTEXAI_PROJECT": "p"},
}


def test_every_name_finds_its_provider_like_this() -> None:
    table: dict[str, Any] = {}
    for name in NAMES:
        provider, model = split(name)
        said = f"{provider.id if provider else None} {model} {slug(provider, model) if provider else ''}".strip()
        table[name] = {"split": said, "bare": bare_name(name), "may need a key": may_need_a_key(name)}
        for where, env in ENVIRONMENTS.items():
            asked = f"{_resolved(name, '', env)}; {may_answer(name, env)} {answered_at(name, '', env)}"
            table[name][where] = asked
    for url in ("http://user:pw@localhost:9/v1", "https://api.openai.com/v1", "https://openrouter.ai/api/v1"):
        env = {"WORKBENCH_API_KEY": "w", "OPENAI_API_KEY": "o"}
        table[url] = [_resolved("gpt-4o", url, each) for each in (env, env | {ROUTER_KEY: "r"}, {})]
    check_stored(Path(__file__).parent / "stored" / "names.json", json.dumps(table, indent=1) + "\n")


def _resolved(name: str, url: str, env: dict[str, str]) -> str:
    try:
        one = resolve(name, url, env)
    except NoKey as fault:
        return f"{fault.kind}: {fault}"
    return f"{one.litellm_name} {one.provider.id} {one.key_variable} {one.sent_key} {one.router} at {one.where}"
