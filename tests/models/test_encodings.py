from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.context.assembly import Grade
from workbench.context.direct import direct_assembly
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.place import Place
from workbench.models.encodings import Encodings
from workbench.models.families import FAMILIES, Again, Family, Patches, Tiles, anthropic_area, family, gemini_tiles

COUNTER = Encodings()
TOOL = {
    "type": "function",
    "function": {
        "name": "find_files",
        "description": "Find files by name.",
        "parameters": {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "A glob"},
                "limit": {"type": "integer", "default": 10},
                "kind": {"enum": ["file", "folder"]},
                "where": {
                    "type": "object",
                    "properties": {"folders": {"type": "array", "items": {"type": "string"}}},
                    "required": ["folders"],
                },
            },
            "required": ["pattern"],
        },
    },
}


@pytest.mark.parametrize(("model", "tokens"), [("gpt-4", 6), ("openai/gpt-4o", 6), ("openrouter/openai/gpt-4.1", 6)])
def test_a_text_message_is_three_and_its_role_and_its_content(model: str, tokens: int) -> None:
    """``user`` is one token, ``hello world`` two, in both encodings."""
    assert COUNTER.message(Message("user", "hello world"), model) == (tokens, Grade.EXACT)
    assert COUNTER.overhead(model) == 3


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=200)), max_size=6))
def test_the_rule_is_additive_over_messages(parts: list[tuple[str, str]]) -> None:
    for role, content in parts:
        message = Message(role, content)  # type: ignore[arg-type]
        tokens, grade = COUNTER.message(message, "gpt-4")
        assert tokens == 3 + COUNTER.text(role, "gpt-4") + COUNTER.text(content, "gpt-4")
        assert grade is Grade.EXACT


@pytest.mark.parametrize(
    ("names", "encoding"),
    [
        (("gpt-5", "openai/gpt-5", "openrouter/openai/gpt-5", "gpt-5::high"), "o200k_base"),
        (("gpt-4", "openai/gpt-4-turbo", "azure/gpt-4", "GPT-4"), "cl100k_base"),
        (("gpt-4o", "openai/gpt-4o-2024-08-06", "ft:gpt-4o"), "o200k_base"),
        (("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "databricks-claude-opus-4-5"), "cl100k_base"),
        (("google/gemini-2.5-flash-lite", "somebody/unknown:free"), "o200k_base"),
    ],
)
def test_the_spelling_of_a_name_does_not_change_the_encoding(names: tuple[str, ...], encoding: str) -> None:
    assert {family(name).encoding for name in names} == {encoding}


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "google/gemini-2.5-flash", "gpt-5", "o3", "offline"])
def test_other_vendors_and_reasoning_models_are_estimates(model: str) -> None:
    assert COUNTER.message(Message("user", "hello"), model)[1] is Grade.ESTIMATE


def test_calls_results_names_and_provider_metadata_are_estimates() -> None:
    call = Message("assistant", "", (ToolCall("call_1", "find_files", '{"pattern": "*.py"}'),))
    result = Message("tool", "a.py", tool_call_id="call_1")
    named = Message("user", "hi", name="ann")
    thinking = Message("assistant", "hi", extra={"thinking_blocks": []})

    for message in (call, result, named, thinking):
        tokens, grade = COUNTER.message(message, "gpt-4o")
        assert grade is Grade.ESTIMATE
        assert tokens > 3
    assert COUNTER.message(call, "gpt-4o")[0] > COUNTER.message(Message("assistant", ""), "gpt-4o")[0] + 8


@pytest.mark.parametrize(
    ("model", "alone", "behind_system", "of_three"),
    [
        ("llama3-8b-8192", 10, 15, 20),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", 35, 35, 45),
        ("meta.llama3-1-8b-instruct-v1:0", 35, 35, 45),
        ("deepseek-chat", 4, 4, 6),
        ("mistral-large-latest", 3, 5, 7),
        ("qwen3:8b", 8, 13, 18),
        ("mistral-small-latest", 15, 17, 19),
        ("qwen-turbo", 12, 17, 22),
        ("Qwen/Qwen3.5-9B", 10, 15, 20),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 10, 15, 20),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", 10, 15, 20),
        ("gemini-2.5-pro", 1, 2, 3),
        ("vertex_ai/gemini-2.5-pro", 0, 0, 0),
        ("glm-4.7", 5, 6, 7),
        ("us.amazon.nova-micro-v1:0", 0, 0, 0),
        ("gemma3:1b", 9, 10, 19),
    ],
)
def test_open_models_count_what_their_chat_templates_add(
    model: str, alone: int, behind_system: int, of_three: int
) -> None:
    def beside(*roles: str) -> int:
        said = [Message(role, "hello") for role in roles]  # type: ignore[arg-type]
        text = len(said) * COUNTER.text("hello", model)
        return COUNTER.overhead(model) + sum(COUNTER.message(one, model)[0] for one in said) - text

    found = beside("user"), beside("system", "user"), beside("user", "assistant", "user")
    assert found == (alone, behind_system, of_three)


@pytest.mark.parametrize(
    ("model", "prompt"),
    [
        *(("deepseek-chat", 217), ("qwen3", 75), ("qwen-max", 165), ("glm-5", 90)),
        *(("qwen3.5-397b-a17b", 215), ("llama-4-scout", 620), ("meta.llama4-maverick-17b-instruct-v1:0", 620)),
    ],
)
def test_open_models_see_definitions_behind_a_prompt(model: str, prompt: int) -> None:
    tool = ping("name")
    assert COUNTER.tools([tool], model)[0] == prompt + COUNTER.text(json.dumps(tool), model)
    assert COUNTER.tools([tool["function"]], model) == COUNTER.tools([tool], model)


def test_vertex_counts_the_words_of_tools() -> None:
    """ping, object; name, A text, string; kind, string, a, b."""
    tool = ping("name", enum=("a", "b"))
    assert COUNTER.tools([tool], "vertex_ai/gemini-2.5-pro")[0] == 10 < COUNTER.tools([tool], "gemini-2.5-pro")[0]


@pytest.mark.parametrize(("size", "tokens"), [((512, 512), 255), ((1024, 1024), 765), ((2048, 4096), 1105)])
def test_images_at_openai_cost_by_tiles_of_512(size: tuple[int, int], tokens: int) -> None:
    assert Tiles(85, 170)(*size) == tokens


def test_images_elsewhere_have_their_own_rules() -> None:
    assert anthropic_area(1000, 1000) == 1334
    assert anthropic_area(8000, 8000) < 1_600
    assert gemini_tiles(300, 300) == 258
    assert gemini_tiles(960, 540) == 6 * 258


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4.1-mini", (1024, 1024), round(1024 * 1.62)),
        ("gpt-4.1-mini", (1800, 2400), round(1452 * 1.62)),
        ("gpt-4.1-nano", (128, 64), round(8 * 2.46)),
        ("gpt-5-nano", (4000, 4000), round(1521 * 1.5)),
        ("o3", (128, 64), 75 + 150),
        ("gpt-5", (512, 512), 70 + 140),
        ("us.anthropic.claude-haiku-4-5-20251001-v1%3A0", (1000, 1000), 1334),
        ("litellm_proxy/gemini-3-pro-preview", (2000, 100), 149 * 7),
        ("gemini-3-pro-preview", (330, 291), 35 * 31),
        ("gemini-flash-latest", (330, 291), 35 * 31),
        ("mistral-large-latest", (330, 291), 13 * 11),
        ("mistral-medium-2508", (3080, 1540), 56 * 28),
        ("pixtral-12b", (512, 512), 33 * 32),
        ("qwen3-vl-flash", (330, 291), 10 * 9 + 2),
        ("qwen/qwen3.5-9b", (10, 10), 2 * 2 + 2),
        ("qwen2.5-vl-72b-instruct", (330, 291), 12 * 10 + 2),
        ("qwen2.5-vl-72b-instruct", (4000, 4000), 35 * 35 + 2),
        ("gemini-2.0-flash", (960, 540), 7 * 258),
        ("gemini-2.0-flash", (300, 300), 258),
        ("claude-opus-4-8", (2000, 1500), 72 * 54),
        ("claude-opus-4-7", (6000, 6000), 4784),
    ],
)
def test_an_image_costs_by_the_formula_of_the_model(model: str, size: tuple[int, int], tokens: int) -> None:
    image = Image("d" * 64, "image/png", 1000, *size)
    without = COUNTER.message(Message("user", (TextPart("look"),)), model)[0]
    assert COUNTER.message(Message("user", (TextPart("look"), image)), model)[0] - without == tokens


@pytest.mark.parametrize(
    ("model", "detail", "tokens"),
    [
        ("gpt-4o", "low", 85),
        ("gpt-4o", "high", 765),
        ("gpt-4o", "", 765),
        ("gpt-4o-mini", "low", 2833),
        ("gpt-5", "low", 70),
        ("gpt-4.1-mini", "low", round(256 * 1.62)),
        ("claude-sonnet-4-5", "low", 1399),
    ],
)
def test_an_image_in_low_detail_costs_less_at_openai(model: str, detail: str, tokens: int) -> None:
    image = Image("d" * 64, "image/png", 1000, 1024, 1024, detail)
    without = COUNTER.message(Message("user", (TextPart("look"),)), model)[0]
    assert COUNTER.message(Message("user", (TextPart("look"), image)), model)[0] - without == tokens
    assert Image.from_json(image.to_json()) == image


def test_patches_never_pass_their_most() -> None:
    count = Patches(1.0)
    for width, height in ((4000, 1474), (1, 100_000), (1600, 1600), (33, 33)):
        assert 0 < count(width, height) <= 1536


def test_an_image_part_adds_its_tiles_to_the_text() -> None:
    image = Image("d" * 64, "image/png", 1000, 1024, 1024)
    text = COUNTER.message(Message("user", "look"), "gpt-4o")[0]

    assert COUNTER.message(Message("user", (TextPart("look"), image)), "gpt-4o") == (text + 765, Grade.ESTIMATE)
    unsized = Image("e" * 64, "image/png", 1000)
    assert COUNTER.message(Message("user", (unsized,)), "gpt-4o")[0] > 700


def ping(*properties: str, enum: Sequence[str] = ()) -> dict[str, Any]:
    fields: dict[str, Any] = {name: {"type": "string", "description": "A text"} for name in properties}
    if enum:
        fields["kind"] = {"type": "string", "description": "", "enum": list(enum)}
    return {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": fields}}}


def test_openai_shows_tools_as_the_types_of_a_namespace() -> None:
    """One less for each tool after the first; Chat Completions and Responses add their own."""
    shown = (
        "namespace functions {\n\n// Answers.\ntype ping = (_: {\n// A text\nat?: string,\n"
        'kind?: "red" | "blue",\n}) => any;\n\n} // namespace functions'
    )
    tool = ping("at", enum=("red", "blue"))
    tool["function"]["description"] = "Answers."
    assert COUNTER.tools([], "gpt-4o") == (0, Grade.EXACT)
    assert COUNTER.tools([tool], "gpt-4o") == (COUNTER.text(shown, "gpt-4o") + 6, Grade.ESTIMATE)
    assert COUNTER.tools([tool], "gpt-4o", responses=True)[0] == COUNTER.text(shown, "gpt-4o") + 3
    bare = "type ping = () => any;\n\n"
    both = f"namespace functions {{\n\n{bare}{bare}}} // namespace functions"
    assert COUNTER.tools([ping(), ping()], "gpt-4o")[0] == COUNTER.text(both, "gpt-4o") + 6 - 1


def test_titles_of_a_tool_and_its_properties_are_comments_at_openai() -> None:
    plain = ping("at")
    titled = {"title": "Ping", **plain["function"]["parameters"]}
    titled["properties"] = {"at": {"title": "At", **titled["properties"]["at"]}}
    shown = (
        "namespace functions {\n\ntype ping = (_: \n// Ping\n{\n// At\n//\n// A text\nat?: string,\n"
        "}) => any;\n\n} // namespace functions"
    )
    tool = {**plain, "function": {"name": "ping", "parameters": titled}}
    assert COUNTER.tools([tool], "gpt-4o")[0] == COUNTER.text(shown, "gpt-4o") + 6


def test_a_title_alone_has_no_empty_comment_behind_it_at_openai() -> None:
    """Measured on five requests of gpt-4o and gpt-4o-mini with one and three such properties: one less for each."""
    tool = ping("at")
    tool["function"]["parameters"]["properties"] = {"at": {"title": "At", "type": "string"}}
    shown = "namespace functions {\n\ntype ping = (_: {\n// At\nat?: string,\n}) => any;\n\n} // namespace functions"
    assert COUNTER.tools([tool], "gpt-4o")[0] == COUNTER.text(shown, "gpt-4o") + 6


def test_the_description_of_a_tools_arguments_is_a_comment_at_openai() -> None:
    """As frameworks write beside that of the tool; measured on GPT-5.2 to 5.6: 14 and 15 tokens, which were missing."""
    plain = ping("at")
    described = {"description": "What ping takes.", **plain["function"]["parameters"]}
    shown = (
        "namespace functions {\n\ntype ping = (_: \n// What ping takes.\n{\n// A text\nat?: string,\n"
        "}) => any;\n\n} // namespace functions"
    )
    tool = {**plain, "function": {"name": "ping", "parameters": described}}
    assert COUNTER.tools([tool], "gpt-4o")[0] == COUNTER.text(shown, "gpt-4o") + 6


def test_gpt_5_has_82_tokens_more_for_tools_by_chat_completions() -> None:
    chat, responses = (COUNTER.tools([TOOL], "gpt-5-mini", responses=each)[0] for each in (False, True))
    assert chat - responses == 82


def test_what_nobody_is_shown_widens_the_count_of_first_requests() -> None:
    """A provider whose rule is known adds nothing; one that nobody measured may add a prompt, or count no tools."""
    assert COUNTER.unseen("gpt-4o", tools=50, beside=53) == (0, 0)
    assert COUNTER.unseen("command-r", tools=0, beside=3) == (3, 80)
    assert COUNTER.unseen("command-r", tools=50, beside=53) == (53, 350)
    assert COUNTER.unseen("claude-sonnet-4-5", tools=600, beside=603) == (298, 40), "it had a smaller prompt for tools"


def test_gemini_2_counts_the_words_of_tools_and_later_ones_their_json() -> None:
    bare, full = ping(), ping("at", "to")
    words, more = (COUNTER.tools([one], "gemini-2.0-flash")[0] for one in (bare, full))
    assert words < more < COUNTER.tools([full], "gemini-3-flash")[0] / 2
    assert COUNTER.message(Message("user", "Hello"), "gemini-2.0-flash")[0] == 1, "its roles are not counted"


@pytest.mark.parametrize(
    ("model", "early"),
    [("gemini-1.5-pro", True), ("gemini-2.0-flash", True), ("gemini-2.5-flash", False), ("gemini-3-flash", False)],
)
def test_what_google_counts_changed_with_gemini_2_5(model: str, early: bool) -> None:
    kind = family(model)
    assert (kind.bare, kind.thoughts, kind.again == Again(0, 0)) == (early, not early, early)
    assert (kind.message, kind.system) == ((0, 0) if early else (1, 1))


def test_anthropic_says_something_about_tools_itself() -> None:
    """Its own prompt, once; then each definition as JSON. Being made to call one costs another number of tokens."""
    one, two = (COUNTER.tools([TOOL] * count, "claude-sonnet-4-5")[0] for count in (1, 2))
    assert 496 < one < 800
    assert two - one == pytest.approx(one - 496, abs=1)
    assert COUNTER.tools([TOOL], "claude-sonnet-4-5", forced=True)[0] - one == 588 - 496
    assert COUNTER.tools([TOOL], "claude-sonnet-4")[0] == one - 496 + 313


@pytest.mark.parametrize(
    ("model", "auto", "forced"),
    [
        ("claude-3-haiku-20240307", 264, 340),
        ("claude-3-7-sonnet-latest", 346, 313),
        ("claude-opus-4-1", 313, 315),
        ("claude-haiku-4-5", 496, 588),
        ("claude-sonnet-4-6", 497, 589),
        ("claude-opus-4-7", 675, 804),
        ("claude-opus-4-8", 290, 410),
        ("claude-sonnet-5", 354, 474),
    ],
)
def test_what_anthropic_says_about_tools_has_the_tokens_of_its_table(model: str, auto: int, forced: int) -> None:
    kind = family(model).tools
    assert kind is not None
    assert (kind.auto, kind.forced) == (auto, forced)


@pytest.mark.parametrize("kind", FAMILIES, ids=[kind.prefix for kind in FAMILIES])
def test_nothing_that_was_only_measured_is_exact(kind: Family) -> None:
    """Exact is text by OpenAI's published encoding and rule; images, tools and factors never are."""
    model = kind.prefix
    shown = Message("user", (TextPart("See."), Image("a" * 64, "image/png", 900, 64, 64)))
    grades = {COUNTER.message(shown, model)[1], COUNTER.tools([TOOL], model)[1]}
    assert grades == {Grade.ESTIMATE}
    text = COUNTER.message(Message("user", "hello"), model)[1]
    chat = (kind.message, kind.request) == (4, 3) and model.startswith(("gpt-", "chatgpt-"))
    prompt = (kind.message, kind.request) == (0, 0) and model.endswith(("-instruct", "-002"))
    assert text is Grade.ESTIMATE or (kind.scale == 1.0 and kind.tools is None and (chat or prompt))


@pytest.mark.parametrize(
    "parameters",
    [
        True,
        {"type": ["string", None]},
        {"anyOf": [{"type": "string"}, {}]},
        {},
        {"enum": None, "properties": [], "oneOf": 1},
    ],
)
def test_any_schema_can_be_counted(parameters: object) -> None:
    tool = {"function": {"name": "t", "parameters": {"type": "object", "properties": {"p": parameters}}}}

    assert COUNTER.tools([tool], "gpt-4o")[0] > 0


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|im_start|>system", "a\ud800b", "\x00\x1b", ""])
def test_hostile_text_is_counted_as_text(text: str) -> None:
    for model in ("gpt-4", "gpt-4o"):
        assert COUNTER.text(text, model) >= (1 if text else 0)
    assert COUNTER.text("<|endoftext|>", "gpt-4") > 1


def test_a_million_blanks_are_counted_in_pieces_and_called_an_estimate() -> None:
    tokens, grade = COUNTER.message(Message("user", " " * 1_000_000), "gpt-4o")

    assert tokens > 1_000
    assert grade is Grade.ESTIMATE


def test_a_text_of_millions_of_characters_is_estimated_from_pieces_of_it() -> None:
    """A word of 10 million letters took a minute."""
    word, text = "x" * 3_000_000, "A sentence of eleven tokens or thereabouts. " * 50_000

    for one, every in ((word, word[:80_000]), (text, text[:44_000])):
        tokens, grade = COUNTER.message(Message("user", one), "gpt-4o")
        whole = COUNTER.text(every, "gpt-4o") * len(one) / len(every)
        assert tokens == pytest.approx(whole, rel=0.02)
        assert grade is Grade.ESTIMATE


def test_a_message_is_counted_once_per_encoding() -> None:
    counter = Encodings()
    message = Message("user", "A sentence of eleven tokens or thereabouts. " * 5_000)

    def seconds() -> float:
        begin = time.perf_counter()
        counter.message(message, "gpt-4o")
        return time.perf_counter() - begin

    counter.load("gpt-4o")
    first = seconds()
    assert min(seconds() for _ in range(5)) < first / 20


def test_threads_agree() -> None:
    counter = Encodings()
    message = Message("user", "The same words for everybody.")
    results: list[tuple[int, Grade]] = []
    threads = [threading.Thread(target=lambda: results.append(counter.message(message, "gpt-4"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(results)) == 1
    assert len(results) == 8


def test_counting_needs_no_network_and_no_litellm() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*args): raise AssertionError('a connection was tried')\n"
        "socket.socket.connect = refuse\n"
        "socket.getaddrinfo = refuse\n"
        "from workbench.models.encodings import Encodings\n"
        "assert 'tiktoken' not in sys.modules\n"
        "counter = Encodings()\n"
        "assert counter.tally('gpt-4').counts() == []\n"
        "assert 'tiktoken' not in sys.modules, 'loaded before there is anything to count'\n"
        "assert counter.text('hello world', 'gpt-4') == counter.text('hello world', 'gpt-4o') == 2\n"
        "assert counter.text('hello world', 'text-davinci-003') == 2\n"
        "assert 'litellm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_definition_that_a_tool_refers_to_is_counted_where_it_stands() -> None:
    inner = {"type": "object", "properties": {"street": {"type": "string", "description": "With the number"}}}
    written, named = (
        {"name": "f", "parameters": {"type": "object", "properties": {"home": home}, **more}}
        for home, more in ((inner, {}), ({"$ref": "#/$defs/Address"}, {"$defs": {"Address": inner}}))
    )
    assert COUNTER.tools([named], "gpt-4o") == COUNTER.tools([written], "gpt-4o")


def test_definitions_that_name_themselves_or_double_each_other_end() -> None:
    nested = {
        f"D{i}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/D{i + 1}"} for key in "ab"}}
        for i in range(60)
    }
    for definitions in ({"D0": {"properties": {"me": {"$ref": "#/$defs/D0"}}}}, nested):
        tool = {"name": "f", "parameters": {"properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": definitions}}
        assert 0 < COUNTER.tools([tool], "gpt-4o")[0] < 20_000


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        *(("gpt-4o", 8), ("gpt-5", 7), ("gpt-3.5-turbo-instruct", 1), ("claude-sonnet-4-5", 8)),
        *(("gemini-2.5-flash", 2), ("openai.gpt-oss-120b-1:0", 68), ("xai/grok-4-fast", 163), ("grok-3-mini", 8)),
        *(("cohere/command-r-08-2024", 1), ("cohere.command-r-plus-v1:0", 1), ("amazon.titan-text-express-v1", 1)),
        *(("writer/palmyra-x4", 33), ("us.writer.palmyra-x4-v1:0", 33)),
    ],
)
def test_a_request_of_one_word_has_the_tokens_that_providers_reported(model: str, tokens: int) -> None:
    hello = Message("user", "Hello")
    assert COUNTER.message(hello, model)[0] + COUNTER.overhead(model) == tokens


@pytest.mark.parametrize(
    ("model", "tokens"), [("claude-sonnet-4-5", 29), ("us.anthropic.claude-sonnet-4-20250514-v1:0", 29), ("gpt-5", 0)]
)
def test_a_budget_for_reasoning_has_the_tokens_that_its_provider_reported(model: str, tokens: int) -> None:
    assert COUNTER.overhead(model, thinking=True) - COUNTER.overhead(model) == tokens


@pytest.mark.parametrize(
    ("model", "counted"),
    [
        *(("gemini-2.5-flash", True), ("gemini/gemini-3-flash", True), ("claude", True), ("gemini-2.0-flash", False)),
        *(("vertex_ai/gemini-3-pro", False), ("vertex_ai/gemini-2.5-pro", True), ("gemini-pro-latest", True)),
    ],
)
def test_the_model_tells_whether_reasoning_that_goes_back_is_counted(model: str, counted: bool) -> None:
    assert COUNTER.recounts(model) == counted


@pytest.mark.parametrize(
    ("model", "names", "counted", "result", "grown"),
    [
        ("gpt-4o", ["bash"], 146, 6, 159),
        ("gpt-4o", ["get_weather_in_city"], 17, 2, 29),
        ("gpt-4o", ["get_country", "get_product_name"], 40, 5, 59),
        ("gpt-5.4-mini", ["get_exchange_rate"], 24, 8, 44),
        ("claude-sonnet-4-5", ["get_capital"], 50, 1, 63),
        ("claude-sonnet-4-5", ["get_weather", "get_elevation"], 91, 3, 160),
        ("claude-3-5-sonnet-20241022", ["python"], 321, 12, 341),
        ("gemini-3-flash-preview", ["get_thing"], 50, 10, 67),
        ("deepseek-reasoner", ["get_name"], 63, 3, 78),
        ("mistral-large-latest", ["get_weather"], 12, 7, 23),
        ("us.amazon.nova-lite-v1:0", ["add"], 13, 1, 42),
        ("xai/grok-4-fast", ["weather"], 119, 3, 132),
        ("grok-code-fast-1", ["add", "multiply"], 253, 2, 271),
        ("openai/gpt-oss-20b", ["weather"], 51, 3, 67),
    ],
)
def test_an_answer_and_the_results_of_its_calls_have_the_tokens_that_providers_reported(
    model: str, names: list[str], counted: int, result: int, grown: int
) -> None:
    """``counted``: tokens of the answer. ``result``: those of the text of all results. ``grown``: by how much the next
    request was larger."""
    answer = Message("assistant", "", tuple(ToolCall(f"c{i}", name, "{}") for i, name in enumerate(names)))
    empty = COUNTER.message(Message("tool", "", tool_call_id="c0"), model)[0]
    found = counted + COUNTER.sent_back(answer, model).beside + len(names) * empty + result
    assert abs(found - grown) <= 2


@pytest.mark.parametrize(
    ("model", "beside"),
    [
        *(("gpt-4o", 4), ("gpt-5", 2), ("qwen3-32b", 4), ("kimi-k2", 4), ("deepseek-chat", 3), ("glm-4.7", 3)),
        *(("claude-3-5-sonnet-20241022", 0), ("claude-sonnet-4-5", 0), ("claude-opus-4-6", 0)),
        *(("gemini-2.0-flash", 0), ("gemini-2.5-flash", 0), ("mistral-large-latest", 0), ("command-r", 0)),
    ],
)
def test_a_text_that_goes_back_has_the_tokens_around_it_of_its_provider(model: str, beside: int) -> None:
    assert COUNTER.sent_back(Message("assistant", "Yes, it is."), model).beside == beside


@pytest.mark.parametrize(
    ("model", "counted", "whole"),
    [
        ("gpt-4o", 40, True),
        ("gpt-4o", 158, False),
        ("gpt-4o", 4, False),
        ("claude-3-5-sonnet-20241022", 70, True),
        ("claude-3-5-sonnet-20241022", 160, False),
        ("claude-fable-5", 400, True),
        ("some-other-model", 90, True),
        ("some-other-model", 400, False),
    ],
)
def test_what_is_counted_of_an_answer_tells_whether_it_goes_back_whole(model: str, counted: int, whole: bool) -> None:
    """Claude's reasoning may go back without a record showing it; models without reasoning have none to go back."""
    answer = Message("assistant", "", (ToolCall("c1", "submit", '{"answer": "one two three four five six seven"}'),))
    text = Message(
        "assistant", "A longer text beside it, which is sent back as well, word for word.", answer.tool_calls
    )
    found = COUNTER.sent_back(text, model)
    assert (found.low <= counted <= found.high) == whole


def test_what_a_forced_call_begins_with_is_counted_when_it_goes_back() -> None:
    answer = Message("assistant", "", (ToolCall("c1", "add", "{}"),))
    free, forced = (COUNTER.sent_back(answer, "claude-sonnet-4-5", forced=each).beside for each in (False, True))
    assert forced - free == 14


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("claude-sonnet-4-6", True),
        ("claude-opus-5", True),
        ("claude-opus-4-5", True),
        ("claude-sonnet-4-5", False),
        ("claude-opus-4-1", False),
        ("gpt-5", False),
    ],
)
def test_the_model_tells_whether_the_reasoning_of_earlier_turns_stays(model: str, kept: bool) -> None:
    assert COUNTER.sent_back(Message("assistant", "Yes."), model).keeps == kept


@pytest.mark.parametrize(
    ("model", "told"),
    [("deepseek-v4-flash", True), ("qwen3:8b", True), ("glm-4.7", True), ("gpt-oss-120b", True), ("gpt-4o", False)],
)
def test_the_model_tells_whether_it_reads_its_reasoning_as_text(model: str, told: bool) -> None:
    assert COUNTER.sent_back(Message("assistant", "Yes."), model).told == told


@pytest.mark.parametrize(
    ("model", "held"),
    [
        ("xai/grok-4.3", False),
        ("xai/grok-4-0709", True),
        ("grok-code-fast-1", True),
        ("openrouter/x-ai/grok-4.1-fast", False),
    ],
)
def test_xai_itself_keeps_what_a_model_thought_before_a_call(model: str, held: bool) -> None:
    assert COUNTER.sent_back(Message("assistant", "Yes."), model).held == held
    assert COUNTER.sent_back(Message("assistant", "Yes."), "xai/grok-3-mini").held is False


@pytest.mark.parametrize("place", ["[image: https://a.test/a/very/long/address.png]", "[file: report.docx, 90 bytes]"])
def test_a_text_in_the_place_of_an_image_or_a_file_is_none_of_the_request(place: str) -> None:
    said, empty = (Message("user", (TextPart("Look."), TextPart(text))) for text in (place, ""))
    assert COUNTER.message(said, "gpt-4o") == (COUNTER.message(empty, "gpt-4o")[0], Grade.ESTIMATE)
    assert COUNTER.message(Message("user", f"{place}\nLook."), "gpt-4o")[0] <= COUNTER.message(said, "gpt-4o")[0] + 1


def test_the_ids_that_openrouter_gives_to_calls_of_gemini_are_counted_with_their_results() -> None:
    ids = ("tool_weather_fRoXur7LpnOd7IAx6Tad", "c1")
    given, other = (COUNTER.message(Message("tool", "40 C", tool_call_id=id), "gemini-3-flash")[0] for id in ids)
    assert given - other == 17


def test_vertex_counts_less_of_a_call_of_gemini_3_and_no_roles() -> None:
    answer = Message("assistant", "", (ToolCall("c1", "ls", "{}"),))
    google, vertex = (COUNTER.sent_back(answer, f"{at}gemini-3-pro-preview") for at in ("gemini/", "vertex_ai/"))
    assert google.beside - vertex.beside == 16
    both = [COUNTER.message(Message("user", "Hi"), f"{at}gemini-2.5-flash")[0] for at in ("gemini/", "vertex_ai/")]
    assert both[0] - both[1] == 1


@pytest.mark.parametrize(("shown", "grown"), [(17, 57), (24, 64)])
def test_vertex_counts_no_signs_of_calls_and_results_of_gemini_2_5(shown: int, grown: int) -> None:
    """``grown``: tokens by which a request grew for a call of ``shown`` tokens and its result, reasoning apart, which
    counts for good."""
    model = "gemini-2.5-flash"
    answer = Message("assistant", "", (ToolCall("c1", "weather", '{"latitude":"52.5200","longitude":"13.4050"}'),))
    told = '{"name":"weather","content":[{"text":"Current weather at 52.5200, 13.4050: 15°C, Wind: 10 km/h"}]}'
    result = Message("tool", told, tool_call_id="c1", name="weather")
    google, vertex = (COUNTER.sent_back(answer, f"{at}{model}") for at in ("gemini/", "vertex_ai/"))
    assert abs(shown + vertex.beside + COUNTER.message(result, f"vertex_ai/{model}")[0] - grown) <= 3
    assert (google.stays, vertex.stays) == (False, True)


def test_vertex_counts_the_schema_of_an_answer_of_gemini_3() -> None:
    properties = '{"age":{"type":"integer"},"name":{"type":"string"}}'
    schema = f'{{"properties":{properties},"required":["name","age"],"type":"object"}}'
    beside = {at: COUNTER.overhead(f"{at}gemini-3-flash", schema) for at in ("gemini/", "vertex_ai/")}
    assert beside["gemini/"] == 0
    assert abs(beside["vertex_ai/"] - 65) <= 10


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "qwen3-32b", "mistral-large-latest", "gemma-3-27b-it"])
def test_each_digit_is_a_token_where_the_tokenizer_has_it_so(model: str) -> None:
    """OpenAI's have up to three in one; nothing changes for other text."""
    words, number = "Sum of what was sold", "1234567"
    assert COUNTER.text(number, model) == len(number)
    assert COUNTER.text(number, "gpt-4o") == 3
    said, told = (COUNTER.message(Message("user", text), model)[0] for text in (f"{words}: {number}", f"{words}: 1"))
    assert said - told == len(number) - 1
    counted = COUNTER.tally(model)
    counted.add(Message("user", f"{words}: {number}"))
    assert counted.counts() == [(said, Grade.ESTIMATE)], "together as one by one"
    tool = {"type": "function", "function": {"name": "add", "description": number, "parameters": {}}}
    same = {"type": "function", "function": {"name": "add", "description": "1", "parameters": {}}}
    assert COUNTER.tools([tool], model)[0] - COUNTER.tools([same], model)[0] == len(number) - 1


@pytest.mark.parametrize(("model", "extra"), [("claude-opus-4-1", True), ("claude-opus-4-6", False)])
def test_our_own_count_tells_how_much_of_an_answer_of_claude_was_reasoning(model: str, extra: bool) -> None:
    """Anthropic does not state it. It is needed where the reasoning is left out when a person writes again."""
    call = (ToolCall("c1", "bash", '{"cmd": "ls"}'),)
    thinking = Message("assistant", "Look.", call, extra={"thinking_blocks": [{"type": "thinking"}]})
    own = COUNTER.message(thinking, model)[0]
    found = COUNTER.sent_back(thinking, model)
    assert found.shown == (own - found.beside if extra else None)
    assert COUNTER.sent_back(Message("assistant", "Look.", call), model).shown is None


@pytest.mark.parametrize(("model", "more"), [("gpt-5-nano", 2), ("gpt-5.4", 2), ("gpt-oss:120b", 2), ("gpt-4o", 0)])
def test_an_answer_of_a_reasoning_model_names_its_channel(model: str, more: int) -> None:
    """As OpenAI counted conversations of gpt-5-nano, gpt-5.4 and gpt-5.6, and Ollama one of gpt-oss."""
    asked, said = (COUNTER.message(Message(role, "Four."), model)[0] for role in ("user", "assistant"))
    assert said - asked == more
    call = Message("assistant", "", (ToolCall("c1", "add", "{}"),))
    assert COUNTER.message(call, model)[0] == COUNTER.message(call, "gpt-4o")[0]


def test_grok_4_3_has_a_longer_prompt_and_sees_tools_as_json() -> None:
    """As xAI counted them: 199 for a question of seven tokens, 322 beside the text with this tool."""
    assert COUNTER.overhead("xai/grok-4.3") == 188
    place = {"type": "string", "description": "Latitude (e.g., 52.5200)"}
    other = {"type": "string", "description": "Longitude (e.g., 13.4050)"}
    schema: dict[str, Any] = {"type": "object", "properties": {"latitude": place, "longitude": other}}
    schema |= {"required": ["latitude", "longitude"], "additionalProperties": False, "strict": True}
    weather = {"name": "weather", "description": "Gets current weather for a location", "parameters": schema}
    tool = {"type": "function", "function": {**weather, "strict": False}}
    assert abs(COUNTER.tools([tool], "xai/grok-4.3")[0] - 130) <= 2
    assert COUNTER.sent_back(Message("assistant", "Yes."), "xai/grok-4.3").keeps
    assert COUNTER.overhead("xai/grok-4.3", "{}") == 188 + 22 + 1


def test_mistral_small_has_no_settings_where_the_answer_follows_a_schema() -> None:
    """As Mistral counted a question of five words: 8 tokens with a schema, 20 without."""
    plain, bound = (COUNTER.overhead("mistral-small-latest", schema) for schema in ("", '{"type": "object"}'))
    assert (plain, bound) == (13, 1)
    assert COUNTER.overhead("mistral-large-latest", '{"type": "object"}') == 1


@pytest.mark.parametrize(("form", "tokens"), [({}, 36), ({"response_format": {"type": "json_object"}}, 24)])
def test_mistral_small_has_no_settings_in_json_mode_either(form: dict[str, Any], tokens: int) -> None:
    """As Mistral counted this question in JSON mode: 24 tokens."""
    asked = Message("user", "What is the square root of 64? Answer with a JSON object with the key `result`.")
    assert direct_assembly([asked], "mistral-small-latest", form, Place(), COUNTER).tokens_sent == tokens


@pytest.mark.parametrize(
    ("model", "choice", "beside"),
    [
        ("gpt-4o", "{'type': 'function', 'function': {'name': 'ping'}}", 9),
        ("gpt-4.1", "{'type': 'function', 'name': 'ping'}", 9),
        ("gpt-4o", "required", 0),
        ("gpt-4o", "none", 0),
        ("gpt-4o", "{'mode': 'required', 'tools': [{'name': 'ping'}, {'name': 'pong'}]}", 0),
    ],
)
def test_a_tool_that_has_to_be_called_is_named_at_openai(model: str, choice: str, beside: int) -> None:
    tools, how = [ping("name"), pong()], {"forced": True, "responses": False}
    assert COUNTER.chosen(tools, model, choice, **how) - COUNTER.tools(tools, model)[0] == beside


@pytest.mark.parametrize("model", ["mistral-small-latest", "deepseek-v4-flash", "qwen3.5-9b"])
def test_open_models_are_shown_the_tools_that_they_may_call(model: str) -> None:
    tools, how = [ping("name"), pong()], {"forced": False, "responses": False}
    assert COUNTER.chosen(tools, model, "auto", **how) == COUNTER.tools(tools, model)[0]
    assert COUNTER.chosen(tools, model, "none", **how) == COUNTER.chosen(tools, model, "{'mode': 'NONE'}", **how) == 0
    assert COUNTER.chosen(tools, model, "{'type': 'auto', 'name': None}", **how) > 0
    named = '{"type": "function", "function": {"name": "pong"}}'
    assert COUNTER.chosen(tools, model, named, **how) == COUNTER.tools([pong()], model)[0]


def pong() -> dict[str, Any]:
    return {"type": "function", "function": {"name": "pong", "description": "Answers.", "parameters": {}}}


@pytest.mark.parametrize(
    ("model", "page"), [("claude-sonnet-4-5", 1580), ("gemini-2.5-flash", 258), ("gemini-3-flash", 528), ("gpt-4o", 0)]
)
def test_a_page_of_a_pdf_has_the_tokens_of_its_picture(model: str, page: int) -> None:
    def tokens(told: str) -> int:
        return COUNTER.message(Message("user", (TextPart(f"[file: application/pdf, 5,000 bytes{told}]"),)), model)[0]

    assert tokens(", 3 pages") - tokens("") == pytest.approx(3 * page, abs=5)


def test_gemini_2_counts_no_punctuation_of_calls_and_results() -> None:
    """As Google counted a result and a call of Gemini 2.0 Flash."""
    result = Message("tool", '{"return_value": "hello"}', tool_call_id="c1", name="bar")
    assert COUNTER.message(result, "gemini-2.0-flash")[0] in (5, 6)
    assert COUNTER.message(result, "gemini-2.5-flash")[0] == 10


def test_a_schema_of_the_answer_has_the_tokens_of_its_provider() -> None:
    schema = '{"properties":{"name":{"type":"string"}},"type":"object"}'
    beside = {
        model: COUNTER.overhead(model, schema) - COUNTER.overhead(model) for model in ("gpt-4o", "claude-sonnet-4-5")
    }
    assert beside["gpt-4o"] == COUNTER.text(schema, "gpt-4o")
    assert beside["claude-sonnet-4-5"] == 109 + round(1.85 * COUNTER.text(schema, "claude-sonnet-4-5"))
    for model in ("gemini-2.5-flash", "qwen3.5-9b"):
        assert COUNTER.overhead(model, schema) == COUNTER.overhead(model)
