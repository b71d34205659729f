from __future__ import annotations

import pytest

from workbench.models.names import NoKey, resolve, split_effort

ROUTER = {"OPENROUTER_API_KEY": "router-key"}


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
    resolved = resolve(name, "", env)

    assert (resolved.litellm_name, resolved.key_variable) == (litellm_name, variable)
    assert resolved.api_key == env.get(variable, "")


def test_without_a_key_both_variables_are_named() -> None:
    with pytest.raises(NoKey, match="set OPENAI_API_KEY or OPENROUTER_API_KEY"):
        resolve("openai/gpt-4o", "", {})


def test_a_key_of_blanks_is_no_key() -> None:
    with pytest.raises(NoKey):
        resolve("openai/gpt-4o", "", {"OPENAI_API_KEY": "  "})


def test_a_bare_unknown_name_asks_for_a_provider() -> None:
    with pytest.raises(NoKey, match="'llama3' names no provider"):
        resolve("llama3", "", ROUTER)


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
    assert "router-key" not in repr(resolve("a/b", "", ROUTER))


def test_the_effort_is_split_from_the_name() -> None:
    assert split_effort("openai/o3::high") == ("openai/o3", {"reasoning_effort": "high"})
    name, parameters = split_effort("claude-sonnet-4-5::medium(2000)")
    assert (name, parameters["thinking"]["budget_tokens"]) == ("claude-sonnet-4-5", 2000)
    assert split_effort("qwen/qwen-plus:thinking") == ("qwen/qwen-plus:thinking", {})
