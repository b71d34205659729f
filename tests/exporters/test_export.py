"""``workbench export``: what goes out can be imported again, and says what the run says."""

from __future__ import annotations

import base64
import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.examples import EXAMPLES
from tests.importers.test_journal import imported
from tests.support.command import run_cli
from tests.support.workspaces import GREETING, filled
from workbench import exporters
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.exporters.messages import conversations
from workbench.exporters.otel import spans_of_run
from workbench.store.store import Store
from workbench.workspace import exporting
from workbench.workspace.exporting import FORMATS, TEXTS

PICTURE = "data:image/png;base64,iVBORw0KGgpyZXN0"
PICTURED = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PICTURE}}],
    },
    {"role": "assistant", "content": "a square"},
]


@pytest.fixture
def folder(folder: Path) -> Path:
    """A folder with two stored runs: ``greet``, which was run here, and ``seen``, which was imported with an image."""
    filled(folder, {**GREETING, "seen.json": {"title": "seen", "messages": PICTURED}})
    assert run_cli("run", "greet.yaml", "--session", "greet", "-q").code == 0
    assert run_cli("import", "seen.json").code == 0
    return folder


def state_of(name: str) -> RunState:
    store = Store(Path(".workbench"))
    return store.state(store.find(name))


def seen(state: RunState) -> list[list[tuple[object, ...]]]:
    """What each call saw and answered: role, name, text, images, calls, what a provider gave beside them."""
    return [
        [
            (
                message.role,
                message.name,
                message.text,
                tuple(image.digest for image in message.images),
                message.tool_calls,
                message.extra,
            )
            for message in (*(entry.sent for entry in call.entries), call.answer)
            if message is not None
        ]
        for call in state.calls
    ]


def imported_again(name: str, format_name: str) -> list[RunState]:
    ended = run_cli("export", name, "--as", format_name, "--output", f"{name}.out")
    assert ended.code == 0, ended.err
    return [state_of(run["run_id"]) for run in run_cli("import", f"{name}.out", "--json").json]


@pytest.mark.parametrize("name", ["greet", "seen"])
def test_spans_hold_what_every_call_saw(folder: Path, name: str) -> None:
    before = state_of(name)
    (again,) = imported_again(name, "otel")
    assert sorted(seen(again)) == sorted(seen(before))
    assert [call.usage for call in again.calls] == [call.usage for call in before.calls]
    assert [call.tools_hash for call in again.calls] == [call.tools_hash for call in before.calls]


@pytest.mark.parametrize("name", ["greet", "seen"])
def test_messages_are_what_the_last_call_of_each_visit_was_sent(folder: Path, name: str) -> None:
    before = state_of(name)
    found = imported_again(name, "messages")
    last = [one for one, call in zip(seen(before), before.calls, strict=True) if call is _last(before, call)]
    assert [seen(one)[-1] for one in found] == last


def _last(state: RunState, call: Any) -> Any:
    visit = state.visit_of(call.place)
    assert visit is not None
    return visit.calls[-1]


def exported(body: Any, format_name: str) -> tuple[RunState, list[RunState]]:
    """A file as a run, and the runs that its export is read as. All its images are the same."""
    state, events = imported(body)
    shown = [image for call in state.calls for entry in call.entries for image in entry.item.message.images]
    images = {image.digest: base64.b64decode(PICTURE.partition(",")[2]) for image in shown}
    if format_name == "otel":
        return state, [imported(spans_of_run(state, events, images))[0]]
    return state, [imported(document)[0] for document in conversations(state, images, details=True)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_imported_format_survives_a_round_trip(name: str) -> None:
    before, (again,) = exported(EXAMPLES[name], "otel")
    assert seen(again) == seen(before)
    before, found = exported(EXAMPLES[name], "messages")
    assert [seen(one)[-1] for one in found] == [seen(before)[-1]]


@pytest.mark.parametrize(
    ("extra", "told", "back"),
    [
        ({"reasoning_content": "I count."}, ["I count."], {"reasoning_content": "I count."}),
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "I count.", "signature": "s"}]},
            ["I count."],
            {"reasoning": [{"type": "thinking", "thinking": "I count.", "signature": "s"}]},
        ),
        (
            {"thinking_blocks": [{"type": "thinking", "thinking": "I count."}], "reasoning_content": "In short."},
            ["I count.", "In short."],
            {"reasoning": [{"type": "thinking", "thinking": "I count."}], "reasoning_content": "In short."},
        ),
    ],
)
def test_spans_hold_reasoning_in_each_form(extra: dict[str, Any], told: list[str], back: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": "how many?"}, {"role": "assistant", "content": "two", **extra}]
    _, (again,) = exported({"model": "deepseek/deepseek-chat", "messages": messages}, "otel")
    assert [call.answer and call.answer.extra for call in again.calls] == [back]
    held = [one for _, one in spans({"model": "deepseek/deepseek-chat", "messages": messages})]
    ((said,),) = (json.loads(one["gen_ai.output.messages"]) for one in held if "gen_ai.output.messages" in one)
    assert [part["content"] for part in said["parts"] if part["type"] == "reasoning"] == told


def test_spans_hold_pictures_in_results_names_and_all_parameters() -> None:
    picture = {"type": "image_url", "image_url": {"url": PICTURE}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "name": "ann", "content": "see"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": [{"type": "text", "text": "so"}, picture]},
        {"role": "assistant", "tool_calls": [{**call, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": one} for one in ("so", "on")]},
        {"role": "assistant", "content": "a square"},
    ]
    schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
    asked = {"model": "gpt-4o", "temperature": 0, "stop": ["."], "response_format": schema, "messages": messages}
    before, (again,) = exported(asked, "otel")
    assert seen(again) == seen(before)
    assert before.calls[1].entries[-1].item.message.images
    contents = [[entry.item.message.content for entry in call.entries] for call in (before.calls[-1], again.calls[-1])]
    assert contents[0] == contents[1]
    assert again.calls[-1].parameters == before.calls[-1].parameters
    assert again.calls[-1].parameters["response_format"] == schema


NAMES = frozenset(
    "gen_ai." + name
    for name in (
        *("operation.name", "provider.name", "conversation.id", "workflow.name", "agent.name", "output.type"),
        *(f"request.{n}" for n in ("model", "temperature", "top_p", "top_k", "max_tokens", "seed", "stop_sequences")),
        *("request.frequency_penalty", "request.presence_penalty", "response.id", "response.model"),
        *("response.finish_reasons", "usage.input_tokens", "usage.output_tokens", "usage.reasoning.output_tokens"),
        *("usage.cache_read.input_tokens", "usage.cache_creation.input_tokens"),
        *("system_instructions", "input.messages", "output.messages", "tool.definitions"),
        *("tool.name", "tool.type", "tool.call.id", "tool.call.arguments", "tool.call.result"),
    )
)
"""Attributes of OpenTelemetry's GenAI conventions (1.41) that a run has values for."""
PARTS = {
    "text": {"content"},
    "reasoning": {"content"},
    "tool_call": {"id", "name", "arguments"},
    "tool_call_response": {"id", "response"},
    "blob": {"modality", "mime_type", "content"},
}


def spans(body: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each span with its attributes as plain values."""
    state, events = imported(body)
    shown = [image for call in state.calls for entry in call.entries for image in entry.item.message.images]
    images = {image.digest: base64.b64decode(PICTURE.partition(",")[2]) for image in shown}
    return [
        (span, {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]})
        for resource in spans_of_run(state, events, images)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


KINDS = ("string", "bool", "int", "double", "array", "kvlist", "bytes")


def as_phoenix_gives_it(value: Any) -> Any:
    """OTLP's JSON in the form of Phoenix's API: snake_case, and a null for each kind that a value is not."""
    if isinstance(value, list):
        return [as_phoenix_gives_it(one) for one in value]
    if not isinstance(value, dict):
        return value
    told = {
        re.sub("([A-Z])", lambda m: f"_{m[1].lower()}", key): as_phoenix_gives_it(one) for key, one in value.items()
    }
    nulls = {f"{kind}_value": None for kind in KINDS} if any(key.endswith("Value") for key in value) else {}
    return nulls | {key: int(one) if key == "int_value" else one for key, one in told.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_spans_come_back_from_phoenix_as_they_were(name: str) -> None:
    state, events = imported(EXAMPLES[name])
    shown = [image for call in state.calls for entry in call.entries for image in entry.item.message.images]
    images = {image.digest: base64.b64decode(PICTURE.partition(",")[2]) for image in shown}
    (resource,) = spans_of_run(state, events, images)["resourceSpans"]
    spans = as_phoenix_gives_it(resource["scopeSpans"][0]["spans"])
    for span in spans:  # Phoenix writes its own names beside those of the conventions.
        text = {"string_value": "derived"}
        span["attributes"].append({"key": "llm.output_messages.0.message.content", "value": text})
    again, _ = imported({"data": spans})
    assert seen(again) == seen(state)


@pytest.mark.parametrize("name", EXAMPLES)
def test_spans_keep_to_the_conventions(name: str) -> None:
    for span, attributes in spans(EXAMPLES[name]):
        operation = attributes["gen_ai.operation.name"]
        assert {key for key in attributes if key.startswith("gen_ai.")} <= NAMES
        assert attributes["gen_ai.conversation.id"]
        assert ("error.type" in attributes) is (span.get("status", {}).get("code") == 2)
        for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
            for message in json.loads(attributes.get(key, "[]")):
                assert message["role"] in ("system", "user", "assistant", "tool", "developer")
                assert ("finish_reason" in message) is (key == "gen_ai.output.messages")
                for part in message["parts"]:
                    assert PARTS[part["type"]] <= part.keys()
        for tool in json.loads(attributes.get("gen_ai.tool.definitions", "[]")):
            assert {"type", "name"} <= tool.keys()
            assert "function" not in tool
        if operation == "chat":
            assert span["name"] == f"chat {attributes.get('gen_ai.request.model', '')}".strip()


def test_spans_of_a_long_run_grow_with_it_and_are_read_back_as_they_were() -> None:
    def said(turns: int) -> list[dict[str, Any]]:
        turn = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
        asked = [{**one, "content": f"{one['content']}{number}"} for number in range(turns) for one in turn]
        return [{"role": "system", "content": "be brief"}, *asked]

    def size(turns: int) -> int:
        state, events = imported(said(turns))
        return len(json.dumps(spans_of_run(state, events, {})))

    before, (again,) = exported(said(30), "otel")
    assert [seen_at(call) for call in again.calls] == [seen_at(call) for call in before.calls]
    short, long, longer = map(size, (100, 150, 200))
    assert longer - long < 1.2 * (long - short), "no more for each turn, however long it is"


def seen_at(call: CallState) -> list[tuple[str, str]]:
    return [(e.sent.role, e.sent.text) for e in call.entries if e.sent is not None]


def test_arguments_are_objects_and_read_back_as_they_were_written() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":  [1,2.0]}'}}
    said = [{"role": "user", "content": "see"}, {"role": "assistant", "tool_calls": [call]}]
    (attributes,) = (a for _, a in spans(said) if "gen_ai.output.messages" in a)
    (message,) = json.loads(attributes["gen_ai.output.messages"])
    assert message["parts"][0]["arguments"] == {"a": [1, 2.0]}
    before, (again,) = exported(said, "otel")
    assert seen(again) == seen(before)
    assert again.calls[0].answer is not None
    assert again.calls[0].answer.tool_calls[0].arguments == '{"a":  [1,2.0]}'


@pytest.mark.parametrize("name", ["greet", "seen"])
def test_messages_for_fine_tuning_have_the_keys_of_the_chat_form_alone(folder: Path, name: str) -> None:
    lines = run_cli("export", name).lines
    assert lines
    assert {key for line in lines for key in line} <= {"messages", "tools"}
    for message in (message for line in lines for message in line["messages"]):
        assert message.keys() <= {"role", "content", "name", "tool_calls", "tool_call_id"}
        assert all(call.keys() == {"id", "type", "function"} for call in message.get("tool_calls", ()))
    asked = run_cli("export", name, "--details").lines
    assert {"session_id", "at", "model"} <= asked[0].keys()
    assert run_cli("export", name, "--as", "html", "--details").code == 2


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)
CALLS = st.lists(st.tuples(st.sampled_from(["ls", "cat"]), st.dictionaries(WORDS, WORDS, max_size=2)), max_size=3)


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A conversation with parallel calls, their results in some order, thoughts and signatures."""
    said: list[dict[str, Any]] = [{"role": "system", "content": draw(WORDS)}, {"role": "user", "content": draw(WORDS)}]
    for turn in range(draw(st.integers(1, 4))):
        calls = [
            {"id": f"c{turn}.{i}", "function": {"name": name, "arguments": json.dumps(told)}, "thought_signature": "s"}
            for i, (name, told) in enumerate(draw(CALLS))
        ]
        block = {"type": "thinking", "thinking": draw(WORDS), "signature": "s"}
        thoughts = {"thinking_blocks": [block]} if draw(st.booleans()) else {}
        said.append({"role": "assistant", "content": draw(WORDS), "tool_calls": calls, **thoughts})
        results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(WORDS)} for call in calls]
        said += draw(st.permutations(results)) or [{"role": "user", "content": draw(WORDS)}]
    return [*said, {"role": "assistant", "content": draw(WORDS)}]


@given(turns(), st.sampled_from(["otel", "messages"]))
def test_what_is_exported_is_read_as_it_was(said: list[dict[str, Any]], format_name: str) -> None:
    before, (again,) = exported(said, format_name)
    assert seen(again)[-1] == seen(before)[-1]
    if format_name == "otel":
        assert seen(again) == seen(before)


def test_the_same_run_exports_to_the_same_spans_that_name_their_parents(folder: Path) -> None:
    first, second = (run_cli("export", "greet", "--as", "otel") for _ in range(2))
    assert first.out == second.out
    (resource,) = first.json["resourceSpans"]
    spans = resource["scopeSpans"][0]["spans"]
    ids = {span["spanId"] for span in spans}
    assert len(ids) == len(spans)
    assert {span["parentSpanId"] for span in spans} <= ids | {""}
    assert all(int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 0 for span in spans)
    failed = [span["name"] for span in spans if span.get("status", {}).get("code") == 2]
    assert failed == ["execute_tool read_file"]


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_is_written_and_explained(folder: Path, format_name: str) -> None:
    assert re.search(rf"^  {format_name}\s+\w", run_cli("export", "--help").out, re.MULTILINE)
    ended = run_cli("export", "greet", "--as", format_name, "-o", "written")
    assert ended.code == 0, ended.err
    files = [file for file in (Path("written"), *Path("written").rglob("*")) if file.is_file()]
    assert sum(file.stat().st_size for file in files) > 0
    printed = run_cli("export", "greet", "--as", format_name)
    assert (printed.code, bool(printed.out)) == ((0, True) if format_name in TEXTS else (2, False))


def test_every_exporter_is_offered() -> None:
    offered = Path(exporting.__file__).read_text("utf-8")
    written = [module.name for module in pkgutil.iter_modules(exporters.__path__)]
    modules = [name for name in written if name != "live_otel"]  # No file: it sends while a run goes on.
    assert [name for name in modules if f"from workbench.exporters.{name} import" not in offered] == []


def test_what_was_edited_by_hand_is_told_in_every_export(folder: Path) -> None:
    edit = ("--at", "look:1", "--edit", "2=Look twice.", "--session", "forked", "-q")
    assert run_cli("fork", "greet", *edit, "-m", "offline", "--unscripted", "ok").code == 0
    (first, *_) = run_cli("export", "forked", "--details").lines
    assert first["edited"] is True
    assert "edited" not in run_cli("export", "forked").lines[0]
    spans = run_cli("export", "forked", "--as", "otel").json["resourceSpans"][0]["scopeSpans"][0]["spans"]
    said = [{one["key"]: one["value"] for one in span["attributes"]} for span in spans]
    edited = {
        one["workbench.place"]["stringValue"]: one["workbench.edited"] for one in said if "workbench.edited" in one
    }
    assert edited == {"look/1/1/1/1": {"boolValue": True}}
    assert "edited by hand" in run_cli("export", "forked", "--as", "html").out
    assert "edited by hand" not in run_cli("export", "greet", "--as", "html").out
