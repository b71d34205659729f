"""Files are told apart by their shape, and none that is broken ends in anything but a sentence."""

from __future__ import annotations

import copy
import gzip
import importlib
import inspect
import io
import json
import pkgutil
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from tests.importers.examples import ADK, ANSWER, ASK, EXAMPLES, OPENAI, RESULT, SYSTEM, inspect_zip
from tests.importers.whole import STORED, told
from tests.support.stored import check_stored
from workbench.importers import formats
from workbench.importers.conversation import Conversation, Remarks, Unreadable
from workbench.importers.formats.table import BY_NAME, FORMATS, detect
from workbench.importers.messages import read_message
from workbench.importers.reading import read_file
from workbench.importers.source import rows, unpacked
from workbench.importers.usage import usage_of
from workbench.importers.values import moment

SINGLE = ("llm-log", "lm-eval", "promptfoo")
"""Formats whose files hold one call."""
WITHOUT_IDS = ("antigravity", "bfcl", "swe-agent", "mini-swe-agent", "smolagents")


def read(body: Any) -> Conversation:
    (found,) = read_file(json.dumps(body).encode())
    return found.conversation


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_told_to_be_its_own_format(name: str) -> None:
    found = detect(EXAMPLES[name])
    assert found is not None
    assert found.name == name


def test_every_format_has_an_example() -> None:
    assert {*EXAMPLES, "adk"} == set(BY_NAME)


@pytest.mark.parametrize("name", [*EXAMPLES, "adk"])
def test_a_conversation_is_the_stored_one(name: str) -> None:
    found = [told(one) for one in read_file(json.dumps({**EXAMPLES, "adk": ADK}[name]).encode())]
    check_stored(STORED / f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def test_what_is_stored_of_a_test_belongs_to_one() -> None:
    for file in STORED.glob("test_*.json"):
        written = (STORED.parent / f"{file.stem}.py").read_text("utf-8")
        for test in json.loads(file.read_text("utf-8")):
            assert f"def {test.partition('[')[0]}(" in written, f"{file.name} holds what {test} read"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_format_tells_the_same_story(name: str) -> None:
    (thread,) = read(EXAMPLES[name]).threads
    assert [one.role for one in thread.said if not one.observation] in (
        ["system", "user", "assistant", "tool", "assistant"],
        ["system", "user", "assistant", "assistant"],
    )
    texts = [one.text for one in thread.said]
    assert (texts[0], texts[1], texts[-1]) == (SYSTEM, ASK, ANSWER)
    assert texts[3].endswith(RESULT)
    assert thread.calls == (1 if name in SINGLE else 2)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {*SINGLE, *WITHOUT_IDS}))
def test_a_native_call_keeps_its_id_and_arguments(name: str) -> None:
    (thread,) = read(EXAMPLES[name]).threads
    (call,) = thread.said[2].calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "ls", {"path": "."})
    assert thread.said[3].call_id == "c1"


@pytest.mark.parametrize(
    "name",
    [
        *("openhands", "inspect", "otel", "openinference", "langfuse", "langsmith", "temporal", "vcr", "pydantic-ai"),
        "smolagents",
    ],
)
def test_usage_and_time_of_each_call_are_those_of_the_source(name: str) -> None:
    (thread,) = read(EXAMPLES[name]).threads
    first = thread.said[2].call
    assert first is not None
    assert (first.usage.input, first.usage.output, first.usage.cached) == (20, 5, None)
    assert first.at.startswith("2026-01-01T09:00:0")


def test_a_zip_of_inspect_says_what_its_json_says() -> None:
    (found,) = read_file(inspect_zip())
    assert found.format.name == "inspect"
    assert found.conversation == read(EXAMPLES["inspect"])


def test_json_that_was_encoded_twice_is_read() -> None:
    body = {"agents": [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}]}
    assert [one.text for one in read(json.dumps(body)).threads[0].said] == ["Hi", "Hello"]


def test_json_lines_are_one_conversation_a_line() -> None:
    lines = "\n".join(json.dumps({"messages": EXAMPLES["openai"]}) for _ in range(3))
    assert [found.format.name for found in read_file(lines.encode())] == ["openai"] * 3


def test_spans_as_json_lines_are_one_trace() -> None:
    lines = "\n".join(json.dumps(span) for span in EXAMPLES["openinference"][:2])
    (found,) = read_file(lines.encode())
    assert (found.format.name, len(found.conversation.threads)) == ("openinference", 1)


def test_a_rewritten_context_begins_a_thread_of_its_own() -> None:
    body = copy.deepcopy(EXAMPLES["langfuse"])
    body["observations"][1]["input"] = json.dumps([{"role": "user", "content": "summary of what was"}])
    first, second = read(body).threads
    assert (first.calls, second.calls) == (1, 1)
    assert second.said[0].text == "summary of what was"


def test_what_cannot_be_mapped_is_kept_and_said() -> None:
    conversation = read(EXAMPLES["langfuse"])
    assert conversation.kept["scores"] == [{"name": "right", "value": 1}]
    assert any("not a model call" in note for note in conversation.notes)
    remarks = Remarks()
    (said,) = read_message({"role": "user", "content": [{"type": "video", "id": 7}]}, remarks)
    assert json.loads(said.text) == {"type": "video", "id": 7}
    assert remarks.notes == ("a message part of type 'video' is kept as JSON text",)


def test_anthropics_input_is_counted_with_what_was_cached() -> None:
    body = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1}
    usage = usage_of(body, beside=True)
    assert (usage.input, usage.cached, usage.written) == (105, 90, 5)
    assert usage_of({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 90}}).input == 100
    assert usage_of({"prompt_tokens": -1, "completion_tokens": "7"}).input is None
    assert usage_of({"prompt_tokens": 2**53 - 1}).input == 2**53 - 1
    assert usage_of({"prompt_tokens": 2**53}).input is None, "JSON may have rounded it"
    rounds = [{"type": "compaction", "input_tokens": 900, "output_tokens": 7}, {"type": "message", "input_tokens": 10}]
    whole = usage_of({**body, "iterations": rounds})
    assert (whole.input, whole.output) == (1005, 8), "the provider bills what it summed up as well"


def test_a_gateway_that_states_tokens_as_read_and_written_has_them_in_its_input() -> None:
    details = {"cached_tokens": 90, "cache_write_tokens": 90}
    usage = usage_of({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details})
    assert (usage.input, usage.cached, usage.written) == (100, 90, 10)


def test_coheres_tokens_are_those_that_it_bills() -> None:
    counts = {"billed_units": {"input_tokens": 5, "output_tokens": 9}, "tokens": {"input_tokens": 500}}
    usage = usage_of({**counts, "cached_tokens": 400})
    assert (usage.input, usage.output, usage.cached) == (5, 9, None)


@pytest.mark.parametrize(
    "value", [1_767_258_000, 1_767_258_000_000, "1767258000000000000", "2026-01-01T10:00:00+01:00"]
)
def test_times_are_read_in_every_unit(value: object) -> None:
    assert moment(value) == "2026-01-01T09:00:00.000000Z"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\xff\xfe\x00", "binary data"),
        (b"SQLite format 3\x00rest", "SQLite database"),
        (b"# A page\n", "not JSON"),
        (b"interactions:\n- request: {}\n", "(VCR, HAR), but none of its 1 request"),
        (b"{}", "empty JSON object"),
        (b"[]", "looks like an empty JSON list; expected one of"),
        (b"42", "JSON int"),
        (b'{"a": 1, "b": 2}', "JSON object with 'a', 'b'"),
        (b'{"eval_set_id": 1, "eval_cases": []}', "ADK session or evaluation set, but its session has no events"),
        (b'[{"role": "user", "content": "hi"}]', "no answer of a model"),
        (b'{"eval": {}, "plan": {}, "samples": []}', "looks like an Inspect log, but it has no samples"),
        (b'{"history": [{"role": "wizard"}], "trajectory": []}', "role that is known: 'wizard'"),
        (b"[" * 100_000, "not JSON"),
        (b"PK\x03\x04 cut", "is cut off: the list of its members is missing"),
        (inspect_zip()[:-40], "is cut off: the list of its members is missing"),
        (inspect_zip(sample=b'{"id": '), "cannot be unpacked"),
    ],
)
def test_what_is_no_run_is_refused_with_what_it_looks_like(data: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=r"looks like|is empty") as caught:
        list(read_file(data))
    assert words in str(caught.value)


def test_a_zip_of_other_things_is_refused(tmp_path: Any) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(Unreadable, match="zip file that holds no run"):
        list(read_file((tmp_path / "other.zip").read_bytes()))


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e308, 10**30, "", "\ud800", "x", [], {}, [None], [[]], {"role": 3}, ["a", 1]]
)


def mutated(body: Any, path: int, junk: Any) -> Any:
    """The body with the value at one of its places replaced; places are counted depth first."""
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(one, dict | list):
                visit(one)

    changed = copy.deepcopy(body)
    visit(changed)
    parent, key = places[path % len(places)]
    if junk == "drop" and isinstance(parent, dict):
        del parent[key]
    else:
        parent[key] = junk
    return changed


@pytest.mark.parametrize("name", EXAMPLES)
@given(path=st.integers(0, 10_000), junk=st.one_of(JUNK, st.just("drop")))
def test_a_mutated_file_is_read_or_refused_in_words(name: str, path: int, junk: Any) -> None:
    body = mutated(EXAMPLES[name], path, junk)
    for wanted in ("", name):
        with suppress(Unreadable):
            found = list(read_file(json.dumps(body).encode(), wanted))
            assert all(any(thread.calls for thread in one.conversation.threads) for one in found)


@given(at=st.integers(0, 5_000), byte=st.integers(0, 255))
def test_a_zip_with_a_wrong_byte_is_read_or_refused_in_words(at: int, byte: int) -> None:
    data = bytearray(inspect_zip())
    data[at % len(data)] = byte
    with suppress(Unreadable):
        assert len(list(read_file(bytes(data)))) == 1


def test_a_value_of_countless_parts_is_refused_before_it_is_parsed() -> None:
    packed = gzip.compress(b'{"a":[' + b"[]," * 11_000_000 + b"[]]}", 1)
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable, match="holds more than 10,000,000 values in one"):
            list(read_file(io.BytesIO(packed)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300_000_000


def test_a_text_that_stands_in_many_rows_of_a_table_takes_its_room_once(tmp_path: Path) -> None:
    table = pyarrow.table({"messages": ["a" * 2_000_000] * 64})
    parquet.write_table(table, tmp_path / "rows.parquet", compression="zstd")
    del table
    before = pyarrow.total_allocated_bytes()
    with (tmp_path / "rows.parquet").open("rb") as stream:
        documents = rows(unpacked(stream))
        assert next(documents).where == "row 1"
        assert pyarrow.total_allocated_bytes() - before < 20_000_000


def test_every_format_that_a_module_detects_is_in_the_table() -> None:
    detected = set()
    for module in pkgutil.iter_modules(formats.__path__, f"{formats.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(value) and value.__module__ == module.name and name.startswith("is_"):
                detected.add(value)
    assert detected <= {format.detect for format in FORMATS}


def test_conversations_in_the_results_of_a_report_are_a_run_each() -> None:
    one = {"task": "t", "success": True, "conversation_log": {"total_messages": 5, "messages": OPENAI}, "calls": [{}]}
    found = list(read_file(json.dumps({"metadata": {"model": "m"}, "results": [one, {**one, "task": "u"}]}).encode()))
    assert [each.conversation.threads[0].calls for each in found] == [2, 2]
    assert [each.conversation.kept["task"] for each in found] == ["t", "u"]
