from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.context.cache import Price
from workbench.engine.journal.usage import Usage
from workbench.models import bundled
from workbench.models.cache_rules import rule_for
from workbench.models.prices import PriceTable, cost

MAP = {
    "sample_spec": {"litellm_provider": "one of many", "input_cost_per_token": 0.0},
    "gpt-4o": {
        "litellm_provider": "openai",
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-06,
        "max_input_tokens": 128000,
        "supports_function_calling": True,
    },
    "claude-sonnet-4-5": {
        "litellm_provider": "anthropic",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
        "cache_read_input_token_cost": 3e-07,
        "cache_creation_input_token_cost": 3.75e-06,
        "prompt_cache_min_tokens": 2048,
    },
    "gemini/gemini-2.5-pro": {
        "litellm_provider": "gemini",
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 1e-05,
        "input_cost_per_token_above_200k_tokens": 2e-06,
        "output_cost_per_token_above_200k_tokens": 1.5e-05,
    },
    "dashscope/qwen-plus": {
        "litellm_provider": "dashscope",
        "supports_function_calling": False,
        "tiered_pricing": [
            {"range": [0, 256000.0], "input_cost_per_token": 4e-07, "output_cost_per_token": 1e-06},
            {"range": [256000.0, 1000000.0], "input_cost_per_token": 1.2e-06, "output_cost_per_token": 4e-06},
        ],
    },
    "gemini/free-of-charge": {"litellm_provider": "gemini", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "mistral/mistral-large-latest": {
        "litellm_provider": "mistral",
        "input_cost_per_token": 5e-07,
        "output_cost_per_token": 1.5e-06,
        "cache_read_input_token_cost": 5e-08,
    },
    "eu.anthropic.claude-3-opus-20240229-v1:0": {"litellm_provider": "bedrock_converse", "input_cost_per_token": 2e-05},
    "anthropic.claude-3-opus-20240229-v1:0": {"litellm_provider": "bedrock_converse", "input_cost_per_token": 1.5e-05},
    "vercel_ai_gateway/xai/grok-4": {
        "litellm_provider": "vercel_ai_gateway",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
    },
}


@pytest.fixture
def table(tmp_path: Path) -> PriceTable:
    return PriceTable(file=written(tmp_path))


def written(folder: Path) -> Path:
    file = folder / "prices.json"
    file.write_text(json.dumps(MAP))
    return file


@pytest.mark.parametrize("name", ["gpt-4o", "openai/gpt-4o", "gpt-4o::high"])
def test_a_providers_own_model_has_an_exact_price(table: PriceTable, name: str) -> None:
    price = table.price(name)

    assert (price.input, price.output, price.cache_read, price.cache_write) == (2.5e-06, 1e-05, 1.25e-06, None)
    assert (price.source, price.grade) == ("litellm map, as gpt-4o", "exact")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("google/gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("mistralai/mistral-large", "mistral/mistral-large-latest"),
        ("qwen/qwen-plus:thinking", "dashscope/qwen-plus"),
        ("x-ai/grok-4", "vercel_ai_gateway/xai/grok-4"),
    ],
)
def test_a_routed_name_takes_the_native_price_as_an_estimate(table: PriceTable, name: str, source: str) -> None:
    price = table.price(name)

    assert price.input is not None
    assert (price.source, price.grade) == (f"litellm map, as {source}", "estimate")


@pytest.mark.parametrize("name", ["claude-3-opus-20240229", "litellm_proxy/claude-3-opus-20240229"])
def test_a_model_that_its_maker_retired_has_the_price_of_who_still_sells_it(table: PriceTable, name: str) -> None:
    price = table.price(name)
    assert (price.input, price.grade) == (1.5e-05, "estimate")
    assert price.source == "litellm map, as anthropic.claude-3-opus-20240229-v1:0"
    assert table.price("ollama/claude-3-opus-20240229").input is None, "a local server sells nothing"


@pytest.mark.parametrize(
    ("name", "key"),
    [("gemini-2.5-flash", "gemini-2.5-flash"), ("gemini-2.0-flash-001", "vertex_ai/gemini-2.0-flash")],
)
def test_a_model_at_vertex_ai_has_a_price(name: str, key: str) -> None:
    price = PriceTable().price(f"vertex_ai/{name}")
    assert price.input is not None
    assert price.source == f"litellm map, as {key}"


def test_who_answers_decides_the_grade(tmp_path: Path) -> None:
    routed = PriceTable(via=lambda name: "openrouter", file=written(tmp_path))
    unknown_host = PriceTable(via=lambda name: "", file=written(tmp_path))

    assert routed.price("openai/gpt-4o").grade == "estimate"
    assert unknown_host.price("gpt-4o").grade == "estimate"


@pytest.mark.parametrize("name", ["gemini/free-of-charge", "google/free-of-charge", "sample_spec", "x"])
def test_zero_and_missing_are_unknown_and_never_free(table: PriceTable, name: str) -> None:
    price = table.price(name)

    assert (price.input, price.output, price.grade) == (None, None, "unknown")
    assert not table.known(name)


def test_a_free_variant_of_a_routed_model_has_no_known_price(table: PriceTable) -> None:
    assert table.price("google/gemini-2.5-pro:free").input is None


def test_the_users_prices_win_and_are_per_million(tmp_path: Path) -> None:
    table = PriceTable({"gpt-4o": {"input": 1.0, "output": 2.0}}, file=written(tmp_path))
    price = table.price("gpt-4o")

    assert (price.input, price.output, price.cache_read) == (1e-06, 2e-06, None)
    assert (price.source, price.grade, price.rule.provider) == ("settings", "exact", "openai")


def test_a_long_request_has_the_price_of_long_requests(table: PriceTable) -> None:
    assert table.price("gemini/gemini-2.5-pro", 200_000).input == 1e-06
    assert table.price("gemini/gemini-2.5-pro", 200_001).input == 2e-06
    assert table.price("gemini/gemini-2.5-pro", 200_001).output == 1.5e-05
    assert table.price("dashscope/qwen-plus", 300_000).output == 4e-06


def test_cache_rules_are_the_makers_with_the_models_own_minimum(table: PriceTable) -> None:
    openai, anthropic = table.price("gpt-4o").rule, table.price("anthropic/claude-sonnet-4.5").rule

    assert (openai.minimum, openai.step, openai.writes) == (1024, 128, False)
    assert (anthropic.minimum, anthropic.step, anthropic.writes) == (2048, 1, True)
    assert table.price("mistralai/mistral-large").rule.provider == "mistral"
    assert table.price("dashscope/qwen-plus").rule.provider == "none"
    assert table.price("offline").rule.provider == "none"


@pytest.mark.parametrize(
    ("model", "minimum", "step", "own"),
    [
        ("xai/grok-4-fast", 64, 64, 158),
        ("xai/grok-3-mini", 64, 64, 0),
        ("deepseek/deepseek-chat", 64, 64, 0),
        ("deepseek/deepseek-v4-flash", 128, 128, 0),
        ("mistral/mistral-small-latest", 1024, 16, 0),
    ],
)
def test_a_cache_has_the_steps_that_its_provider_counted(model: str, minimum: int, step: int, own: int) -> None:
    rule = rule_for(model, {"cache_read_input_token_cost": 1e-7, "litellm_provider": model.partition("/")[0]})
    assert (rule.minimum, rule.step, rule.own) == (minimum, step, own)


def test_whether_a_model_takes_tools_is_read_or_unknown(table: PriceTable) -> None:
    assert table.supports_tools("openai/gpt-4o") is True
    assert table.supports_tools("qwen/qwen-plus") is False
    assert table.supports_tools("claude-sonnet-4-5") is None


def test_an_unreadable_map_leaves_every_price_unknown_and_says_so(tmp_path: Path) -> None:
    table = PriceTable(file=tmp_path / "missing.json")

    assert table.price("gpt-4o").input is None
    assert "cannot be read" in table.problem


def test_the_bundled_map_prices_the_default_model_without_importing_litellm() -> None:
    script = (
        "import sys\n"
        "from workbench.models.prices import PriceTable\n"
        "price = PriceTable().price('google/gemini-2.5-flash-lite')\n"
        "assert price.grade == 'estimate' and price.input > 0 and price.cache_read < price.input, price\n"
        "assert not {'litellm', 'tiktoken', 'httpx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


PRICE = Price(2.0, 10.0, 0.5, 2.5)


def test_cached_and_written_tokens_have_their_own_price() -> None:
    assert cost(Usage(input=100, output=10, cached=60, written=30), PRICE) == 10 * 2.0 + 60 * 0.5 + 30 * 2.5 + 100.0


@pytest.mark.parametrize(("price", "dollars"), [(4.0, 10 * 2.0 + 10 * 2.5 + 20 * 4.0), (None, 10 * 2.0 + 30 * 2.5)])
def test_tokens_kept_for_an_hour_have_their_own_price_where_there_is_one(price: float | None, dollars: float) -> None:
    usage = Usage(input=40, output=0, cached=0, written=30, written_hour=20)
    assert cost(usage, replace(PRICE, cache_write_hour=price)) == dollars


def test_cached_tokens_without_a_price_cost_what_fresh_ones_do() -> None:
    assert cost(Usage(input=100, output=0, cached=60), Price(2.0, 10.0)) == 200.0


@pytest.mark.parametrize("usage", [Usage(), Usage(input=1), Usage(output=1)])
def test_unknown_usage_has_no_cost(usage: Usage) -> None:
    assert cost(usage, PRICE) is None


def test_unknown_prices_have_no_cost() -> None:
    assert cost(Usage(input=1, output=1), Price()) is None
    assert cost(Usage(input=1, output=1), Price(input=1.0)) is None


@given(
    st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=8), st.text() | st.integers(), max_size=3)),
    st.sampled_from([4, 2, None]),
)
def test_a_map_parsed_in_pieces_is_the_map(table: dict[str, dict[str, Any]], indent: int | None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled, "PIECE", 20)
        assert bundled.parsed_in_pieces(json.dumps(table, indent=indent)) == table


@pytest.mark.parametrize("text", ["", "[]", '{"a": {"b": 1}', '{\n    "a": {},\n    "b": \n}'])
def test_what_is_no_map_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        bundled.parsed_in_pieces(text)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("litellm_proxy/anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("litellm_proxy/gpt-4o", "gpt-4o"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("claude-sonnet-4-0", 3e-6),
        ("anthropic/claude-3-5-haiku-latest", 8e-7),
        ("anthropic.claude-3-haiku-20240307-v1:0", 2.5e-7),
        ("arn:aws:bedrock:eu-west-1:1:profile/eu.anthropic.claude-haiku-4-5-20251001-v1", "claude-haiku-4-5-20251001"),
    ],
)
def test_a_name_behind_a_proxy_or_escaped_has_the_models_price_and_rule(name: str, known: str | float) -> None:
    """The map that is shipped: its key, or the US dollars of an input token where its versions list other resellers."""
    price = PriceTable().price(name)
    assert price.input is not None
    if isinstance(known, str):
        assert price.source == f"litellm map, as {known}"
    else:
        assert price.input == pytest.approx(known)
        assert price.source.startswith("litellm map, as ")
    assert price.rule.provider == ("openai" if "gpt" in name else "anthropic")
    assert price.rule.opt_in == ("claude" in name)


@pytest.mark.parametrize("name", ["llama3-0", "my-server/claude-sonnet-4-0", "ollama/gemma3:latest", "claude-1-0"])
def test_a_name_of_nobody_has_no_price(name: str) -> None:
    assert PriceTable().price(name).input is None


@pytest.mark.parametrize("name", ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-4o-2024-05-13", "openai/gpt-4"])
def test_a_model_without_a_price_for_cached_tokens_has_no_cache(name: str) -> None:
    price = PriceTable().price(name)
    assert (price.cache_read, price.rule.provider) == (None, "none")
    assert price.input is not None


def test_the_window_of_a_model_is_that_of_the_map() -> None:
    table = PriceTable()
    assert (table.window("gpt-4"), table.window("openai/gpt-4o"), table.window("nobody/knows")) == (8192, 128_000, None)


def test_an_unknown_model_has_its_makers_rule_once_cached_tokens_are_stated() -> None:
    table = PriceTable()
    price = table.price("anthropic/claude-opus-9.9-fast")
    assert (price.rule.provider, price.stated_rule.provider, price.stated_rule.opt_in) == ("none", "anthropic", True)
    assert table.price("lab/model-of-nobody").stated_rule.provider == "the record"


def test_a_retired_model_has_the_price_of_a_reseller_that_is_not_of_one_region_alone(tmp_path: Path) -> None:
    """Of an edition, too, if the reseller tells what cached tokens cost."""
    gov = {"input_cost_per_token": 3e-7, "litellm_provider": "bedrock"}
    sold = {"input_cost_per_token": 2.5e-7, "cache_read_input_token_cost": 3e-8, "litellm_provider": "vertex_ai"}
    file = tmp_path / "prices.json"
    keys = {
        "bedrock/us-gov-east-1/anthropic.claude-3-haiku-20240307-v1:0": gov,
        "vertex_ai/claude-3-haiku-20240229": sold,
    }
    file.write_text(json.dumps(keys))
    price = PriceTable(file=file).price("anthropic.claude-3-haiku-20240307-v1:0")
    assert (price.input, price.source) == (2.5e-7, "litellm map, as vertex_ai/claude-3-haiku-20240229")


def test_models_that_answer_messages_are_listed_with_those_of_either_protocol(tmp_path: Path) -> None:
    modes = {"gpt-4o": "chat", "gpt-5-codex": "responses", "text-embedding-3-small": "embedding"}
    entries = {name: {"litellm_provider": "openai", "mode": mode} for name, mode in modes.items()}
    (tmp_path / "map.json").write_text(json.dumps(entries))
    assert PriceTable(file=tmp_path / "map.json").chat_models() == ["openai/gpt-4o", "openai/gpt-5-codex"]
