"""Files as they are found: packed, cut off, in other encodings, several values in one, one value in many wrappings."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from contextlib import suppress
from typing import Any

import pyarrow
import pytest

from tests.importers.examples import ADK, ANSWER, ASK, EXAMPLES, OPENAI, RESULT, inspect_zip
from workbench.importers.conversation import Unreadable
from workbench.importers.reading import FoundConversation, read_file

TEXT = json.dumps({"messages": OPENAI}, ensure_ascii=False)


def found(data: bytes | str) -> list[FoundConversation]:
    return list(read_file(data.encode() if isinstance(data, str) else data))


def zstd(data: bytes) -> bytes:
    packed = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    found: bytes = packed.getvalue().to_pybytes()
    return found


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"logs/{name}", data)
    return packed.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd, lambda data: zipped(a=data)])
def test_a_packed_file_is_what_is_in_it(pack: Any) -> None:
    assert found(pack(TEXT.encode()))[0].conversation == found(TEXT)[0].conversation
    assert found(pack(inspect_zip()))[0].format.name == "inspect"
    with pytest.raises(Unreadable, match=r"cannot be unpacked|is cut off"):
        found(pack(TEXT.encode() * 20)[:-9])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_in_another_encoding_is_read(encoding: str) -> None:
    lines = f"{TEXT}\r\n\r\n{TEXT}\r\n"
    assert [len(one.conversation.threads[0].said) for one in found(lines.encode(encoding))] == [5, 5]


def test_the_members_of_an_archive_that_are_no_run_are_named() -> None:
    (one,) = found(zipped(a=b"readme", b=TEXT.encode()))
    assert one.evidence == "logs/b: messages with roles"
    told = "logs/a, which looks like text that is not JSON (Expecting value: line 1 column 1 (char 0)), is left out"
    assert one.conversation.notes == (told,)


def test_an_archive_with_a_wrong_byte_is_read_or_refused_in_words() -> None:
    data = zipped(a=TEXT.encode(), b=TEXT.encode() * 2)
    for at in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[at] ^= 0x5A
        with suppress(Unreadable):
            assert found(bytes(damaged))


def test_values_behind_one_another_are_read_as_lines_are() -> None:
    span = EXAMPLES["openinference"]
    (one,) = found("\n".join(json.dumps(value, indent=4) for value in span))
    assert (one.format.name, one.conversation.threads[0].calls) == ("openinference", 2)
    assert len(found(f"{json.dumps({'messages': OPENAI}, indent=1)},\n{TEXT}")) == 2


def test_a_trailing_comma_is_read_over_and_said() -> None:
    (one,) = found(TEXT[:-2] + ",\n]," + "}")
    assert one.conversation.notes == ("commas before a closing bracket are read over",)
    assert one.conversation.threads[0].said[-1].text == ANSWER
    assert found('[{"role": "user", "content": "a,]"}, {"role": "assistant", "content": "b,}"},]')[0]


def test_a_last_line_that_was_cut_off_is_left_out_and_said() -> None:
    first, second = found(f"\ufeff\n{TEXT}\n\n{TEXT}\n{TEXT[:50]}")
    assert first.conversation.notes == ()
    assert second.conversation.notes == ("the last line (5), which is not a whole JSON value, is left out",)
    with pytest.raises(Unreadable, match="line 2 is not JSON"):
        found(f"{TEXT}\n{TEXT[:50]}\n{TEXT}")


def test_a_file_that_was_cut_off_is_refused_as_such() -> None:
    for cut in (len(TEXT) - 1, len(TEXT) // 2):
        with pytest.raises(Unreadable, match="JSON that is cut off"):
            found(TEXT[:cut])


def test_a_text_of_quotes_that_was_cut_off_is_looked_through_once() -> None:
    with pytest.raises(Unreadable, match="JSON that is cut off"):
        found('{"arguments": "' + 'a\\"' * 300_000)


def test_a_line_that_holds_no_run_is_named_beside_the_others() -> None:
    first, second = found(f'{TEXT}\n{{"error": 1}}\n{TEXT}')
    assert (first.conversation.notes, len(second.conversation.notes)) == ((), 1)
    assert second.conversation.notes[0].startswith("what cannot be read (line 2 looks like a JSON object with 'error'")


def test_messages_one_a_line_are_one_conversation() -> None:
    (one,) = found("\n".join(json.dumps(message) for message in OPENAI))
    assert [said.text for said in one.conversation.threads[0].said][1::2] == [ASK, RESULT]


def test_a_line_may_hold_the_end_of_a_line_in_unicode() -> None:
    text = json.dumps([{"role": "user", "content": "a\u2028b"}, OPENAI[4]], ensure_ascii=False)
    assert [one.conversation.threads[0].said[0].text for one in found(f"{text}\n{text}")] == ["a\u2028b"] * 2


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_an_export_wraps_is_found_inside(name: str) -> None:
    (one,) = found(json.dumps({"data": EXAMPLES[name], "page": 1}))
    assert one.format.name == name
    assert found(json.dumps({"first": EXAMPLES[name], "second": EXAMPLES[name]}))[1].format.name == name


def test_lists_that_are_parts_of_something_else_are_no_runs() -> None:
    with pytest.raises(Unreadable, match="'prompt', 'chosen', 'rejected'"):
        found(json.dumps({"prompt": OPENAI[:2], "chosen": OPENAI[4:], "rejected": OPENAI[4:]}))


def test_messages_may_be_json_in_a_text_and_deep_inside() -> None:
    (one,) = found(json.dumps({"results": [{"id": 1, "trace": {"messages": json.dumps(OPENAI)}}]}))
    assert [said.text for said in one.conversation.threads[0].said][-1] == ANSWER
    assert one.evidence == "in 'results': in '[0]': in 'trace': messages with roles"


def test_python_literals_are_read_as_what_they_stand_for() -> None:
    (one,) = found(repr(OPENAI))
    assert one.conversation.threads == found(TEXT)[0].conversation.threads
    assert one.conversation.notes == ("it is written as Python writes it, not as JSON",)


def test_the_evidence_names_what_else_a_file_could_be() -> None:
    (one,) = found(json.dumps(EXAMPLES["anthropic"]))
    assert (one.evidence, one.also) == ("Anthropic's blocks, or 'system' beside", ("openai",))


def test_a_session_of_the_adk_tells_the_story() -> None:
    (one,) = found(json.dumps(ADK))
    (thread,) = one.conversation.threads
    assert (one.format.name, [said.role for said in thread.said]) == ("adk", ["user", "assistant", "tool", "assistant"])
    assert (thread.said[1].calls[0].id, thread.said[2].call_id, thread.said[3].text) == ("c1", "c1", ANSWER)
    call = thread.said[1].call
    assert call is not None
    assert (call.usage.input, call.at) == (20, "2026-01-01T09:00:01.000000Z")


def test_a_case_of_the_adk_says_that_its_results_are_not_known() -> None:
    turn = {
        "user_content": {"parts": [{"text": ASK}]},
        "intermediate_data": {"tool_uses": [{"id": None, "name": "ls", "args": {}}]},
        "final_response": {"role": "model", "parts": [{"text": ANSWER}]},
    }
    (one,) = found(json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "a/b", "conversation": [turn]}]}))
    roles = [said.role for said in one.conversation.threads[0].said]
    assert (one.conversation.title, roles) == ("b", ["user", "assistant", "tool", "assistant"])
    assert any("result is not in the file" in note for note in one.conversation.notes)


def test_a_search_tree_gives_a_context_for_each_branch() -> None:
    def tried(name: str, *below: Any) -> dict[str, Any]:
        inputs = {"node_type": "Action Input", "description": "{}", "observation": RESULT, "children": list(below)}
        action = {"node_type": "Action", "description": name, "children": [inputs]}
        return {"node_type": "Thought", "description": f"try {name}", "children": [action]}

    tree = {"tree": {"children": [tried("a", tried("b"), tried("c"))]}}
    (one,) = found(json.dumps({"win": False, "tree": tree, "answer_generation": {"query": ASK}}))
    first, second = one.conversation.threads
    assert [said.calls[0].name for said in first.said if said.calls] == ["a", "b"]
    assert [said.calls[0].name for said in second.said if said.calls] == ["a", "c"]
    assert (first.calls, second.calls, one.conversation.status) == (2, 1, "failed")


def test_a_log_of_burr_without_a_conversation_says_what_it_is() -> None:
    ended = {"type": "end_entry", "action": "count", "sequence_id": 0, "state": {"n": 1}}
    with pytest.raises(Unreadable, match=r"a Burr log, but no step.* its actions \(count\)"):
        found(json.dumps([ended]))
    spoken = {**ended, "state": {"chat_history": [f"Human: {ASK}", f"AI: {ANSWER}"]}}
    assert [said.text for said in found(json.dumps([spoken]))[0].conversation.threads[0].said] == [ASK, ANSWER]


def test_turns_of_sharegpt_are_messages() -> None:
    turns = [{"from": "human", "value": ASK}, {"from": "gpt", "value": ANSWER}]
    (one,) = found(json.dumps([{"id": "x", "conversations": turns}]))
    assert [said.role for said in one.conversation.threads[0].said] == ["user", "assistant"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of more than 3,000 bytes are long, and are read 100 bytes at a time."""
    monkeypatch.setattr("workbench.importers.source.WHOLE", 3_000)
    monkeypatch.setattr("workbench.importers.source._PIECE", 100)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_long_list_of_conversations_is_read_one_at_a_time(indent: int | None, pack: Any) -> None:
    body = [{"messages": [*OPENAI, {"role": "user", "content": f"{i} ä"}]} for i in range(9)]
    data = json.dumps(body, indent=indent, ensure_ascii=False).encode()
    assert len(found(pack(data))) == 9
    conversations = read_file(pack(data[:-20]))
    assert next(conversations).format.name == "openai"
    with pytest.raises(Unreadable, match=r"item \[8\] is not JSON"):
        list(conversations)


@pytest.mark.usefixtures("short")
def test_a_long_list_of_messages_is_one_conversation_and_of_lines_many() -> None:
    (one,) = found(json.dumps(OPENAI * 20))
    assert len(one.conversation.threads[0].said) == len(OPENAI) * 20
    assert len(found(f"{json.dumps(OPENAI)}\n" * 20)) == 20


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("", r"item \[9\] is not JSON"),
        (', {"messages": [', r"item \[9\] is not JSON"),
        (f", {{messages}} {' ' * 9000}]", r"item \[9\] is not JSON \(Expecting property name"),
        ("] 5", "something stands behind its 9 items"),
    ],
)
def test_a_long_list_that_is_damaged_is_refused_with_its_place(end: str, why: str) -> None:
    items = ",".join([TEXT] * 9)
    with pytest.raises(Unreadable, match=why):
        found(f"[{items}{end}")


@pytest.mark.usefixtures("short")
def test_one_value_that_is_too_large_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.importers.source.MAX_VALUE", 3_000)
    monkeypatch.setattr("workbench.importers.reading.MAX_VALUE", 3_000)
    body = {"messages": OPENAI * 20}
    for text in (json.dumps(body), json.dumps(body, indent=1), json.dumps([body]), json.dumps(OPENAI * 20)):
        with pytest.raises(Unreadable, match=r"than \d+ MB") as refused:
            found(text)
        assert "expected one of" not in str(refused.value)
    with pytest.raises(Unreadable, match=r"\(write one conversation a line\)"):
        found(json.dumps(body))
    with pytest.raises(Unreadable, match=r"\(of an Inspect log, the \.eval form is read .*convert --to eval\)"):
        found(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [body] * 9}))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[]\n" * 200, id="lines without anything"),
        pytest.param("1 " * 200, id="numbers behind one another"),
        pytest.param(f"[{'[], ' * 200}[]]", id="a list of empty lists"),
        pytest.param(f"[{'{}, ' * 2000}{{}}]", id="a long list, read item by item"),
        pytest.param(f'{{"runs": [{TEXT}, {"1, " * 200}1]}}', id="a list inside"),
    ],
)
@pytest.mark.usefixtures("short")
def test_more_values_than_can_be_held_together_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed file of three megabytes may hold a thousand million of them, each with its place and its room."""
    monkeypatch.setattr("workbench.importers.source.MOST_TOGETHER", 100)
    with pytest.raises(Unreadable, match="more than 100 values that would have to be held together"):
        found(gzip.compress(text.encode()))


def test_lines_that_belong_together_are_no_larger_than_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.importers.source.MAX_VALUE", 3_000)
    spans = "".join(f"{json.dumps(one)}\n" for one in OPENAI * 20)
    with pytest.raises(Unreadable, match=r"more than \d+ MB that would have to be held together"):
        found(spans)
    assert len(found(f"{json.dumps(OPENAI)}\n" * 20)) == 20, "those of one conversation each are read one at a time"


def test_a_conversation_of_more_calls_than_can_be_looked_at_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.importers.reading.MOST_CALLS", 9)
    with pytest.raises(Unreadable, match=r"has \d+ calls in one conversation: .* \(split it\)"):
        found(json.dumps(OPENAI * 20))
