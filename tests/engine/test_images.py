"""Images and long results of tools: what the model sees of them, what is kept, and what the next phases get."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from typing import Any

import pytest

from tests.engine.support import FlatPrices, Played, Words, call, play
from tests.engine.test_replay import check_replay, replayed
from tests.support.equal_runs import comparable
from workbench.analysis.what_if import what_if
from workbench.context.assembly import Action
from workbench.context.message import Image, Message, TextPart
from workbench.context.pictured import pictured
from workbench.context.reasons import origin
from workbench.engine.contracts import ToolImage, ToolResult
from workbench.engine.definition import Options
from workbench.engine.journal.parts import FullResult
from workbench.engine.past.recording import Kind


def picture(number: int) -> ToolImage:
    return ToolImage(b"\x89PNG" + bytes([number]), "image/png", 8, 6)


def cascade(*phases: dict[str, Any]) -> dict[str, Any]:
    return {"cascade_id": "c", "phases": list(phases)}


def drawing(name: str = "draw", turns: int = 3, **more: Any) -> dict[str, Any]:
    return {"name": name, "instructions": "Draw.", "tackle": ["pen"], "rules": {"max_turns": turns}, **more}


def drawn(*phases: dict[str, Any], replies: list[str], options: Options | None = None) -> Played:
    """Each call of ``pen`` draws another picture."""
    count = iter(range(100))
    pen = {"pen": lambda: ToolResult("drawn", images=(picture(next(count)),))}
    return play(cascade(*phases), list(replies), input={"what": "it"}, tools=pen, options=options)


def images(message: Message) -> list[str]:
    return [image.digest[:8] for image in message.images]


def digest(number: int) -> str:
    return hashlib.sha256(picture(number).data).hexdigest()[:8]


def seen(played: Played, request: int) -> list[str]:
    return [one for message in played.model.requests[request][1].messages for one in images(message)]


def test_an_image_follows_the_result_as_a_user_message_and_the_next_call_sees_it() -> None:
    played = drawn(drawing(), replies=[call("pen"), "done"])
    messages = played.model.requests[1][1].messages
    assert [m.text for m in messages[-2:]] == ["[Tool result: pen]\ndrawn", "[Images from pen]:"]
    assert (messages[-1].role, images(messages[-1])) == ("user", [digest(0)])
    assert played.blobs[hashlib.sha256(picture(0).data).hexdigest()] == picture(0).data
    assert played.state.calls[0].tools[0].pictures == (
        Image(hashlib.sha256(picture(0).data).hexdigest(), "image/png", 5, 8, 6),
    )


def test_images_bear_the_names_of_the_tools_that_returned_them_not_of_the_last_call() -> None:
    tools = {
        "pen": lambda: ToolResult("drawn", images=(picture(0),)),
        "brush": lambda: ToolResult("painted", images=(picture(1),)),
        "ruler": lambda: ToolResult("7 cm"),
    }
    phase = {"name": "p", "instructions": "Draw.", "tackle": list(tools), "rules": {"max_turns": 2}}
    calls = ["pen", "brush", "pen", "ruler"]
    played = play(cascade(phase), ["\n".join(map(call, calls)), "done"], input={"what": "it"}, tools=tools)
    assert origin(played.state.calls[1].entries[-1]) == "turn 1 pen, brush"
    check_replay(played)


def test_an_image_that_an_earlier_result_of_the_turn_shows_is_sent_once_and_counted() -> None:
    pages = iter([(0, 0), (0, 1), (1, 0)])
    look = {"look": lambda: ToolResult("seen", images=tuple(picture(number) for number in next(pages)))}
    phase = {"name": "p", "instructions": "Look.", "tackle": ["look"], "rules": {"max_turns": 2}}
    played = play(cascade(phase), ["\n".join([call("look")] * 3), "done"], input={"what": "it"}, tools=look)
    told = played.model.requests[1][1].messages[-1]
    assert images(told) == [digest(0), digest(0), digest(1)], "one result shows all that it has"
    header = "[Images from look]:"
    assert told.text == f"{header}\n{header} (1 of 2 shown above)\n{header} (2 of 2 shown above)"
    assert [len(tool.pictures) for tool in played.state.calls[0].tools] == [2, 2, 2]
    check_replay(played)


@pytest.mark.parametrize(("keep", "expected"), [(None, [0, 1]), (1, [1]), (0, [])])
def test_only_the_newest_images_of_a_phase_are_sent_where_the_setting_says_so(
    keep: int | None, expected: list[int]
) -> None:
    options = Options("test", "gpt-4o-mini", keep_recent_images=keep)
    played = drawn(drawing(), replies=[call("pen"), call("pen"), "done"], options=options)
    assert seen(played, 2) == [digest(number) for number in expected]
    masked = [e for e in played.state.calls[2].entries if e.action is Action.MASKED]
    assert len(masked) == 2 - len(expected)
    assert all(e.rule.path == "keep_recent_images" for e in masked)


def test_images_of_an_earlier_phase_are_never_culled() -> None:
    shown = {"name": "look", "instructions": "Look.", "context": {"from": ["draw"]}}
    options = Options("test", "gpt-4o-mini", keep_recent_images=0)
    played = drawn(drawing(), shown, replies=[call("pen"), call("pen"), "done", "seen"], options=options)
    assert seen(played, 3) == [digest(0), digest(1)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [({}, [0, 1, 2]), ({"images_filter": "last"}, [2]), ({"images_filter": "last_n", "images_count": 2}, [1, 2])],
)
def test_a_source_filters_the_images_that_it_hands_on(source: dict[str, Any], expected: list[int]) -> None:
    look = {"name": "look", "instructions": "Look.", "context": {"from": [{"phase": "draw", **source}]}}
    played = drawn(drawing(turns=4), look, replies=[*[call("pen")] * 3, "done", "seen"])
    assert seen(played, 4) == [digest(number) for number in expected]
    (header,) = [m for m in played.model.requests[4][1].messages if m.images]
    assert header.text == "[Images from draw]:"


def test_a_phase_without_a_model_hands_its_images_on_too() -> None:
    chart = {"name": "chart", "tool": "pen", "inputs": {}}
    look = {"name": "look", "instructions": "Look.", "context": {"from": ["chart"]}}
    played = drawn(chart, look, replies=["seen"])
    assert seen(played, 0) == [digest(0)]
    check_replay(played)


# Results that are cut for the model.


def long_result(text: str = "a" * 50 + "middle" + "z" * 50) -> ToolResult:
    return ToolResult(f"{text[:10]}\n[… left out …]\n{text[-10:]}", whole=text)


def cut_run() -> Played:
    again = {"name": "again", "tool": "dump", "inputs": {}}
    dump = {"name": "dump", "instructions": "Dump.", "tackle": ["dump"], "rules": {"max_turns": 2}}
    return play(cascade(dump, again), [call("dump"), "done"], input={"what": "it"}, tools={"dump": long_result})


def test_all_of_a_result_is_kept_once_beside_what_the_model_saw() -> None:
    played = cut_run()
    assert "middle" not in str(played.texts())
    whole = long_result().whole
    kept = FullResult(hashlib.sha256(whole.encode()).hexdigest(), len(whole))
    assert played.blobs[kept.digest].decode() == whole
    assert [e.data["kind"] for e in played.events if e.data.get("hash") == kept.digest] == ["text"]
    tool = played.state.calls[0].tools[0]
    assert tool.whole == kept
    assert played.state.visits[1].tool_tries[0].whole == kept
    message = next(e.item.message for e in played.state.calls[1].entries if e.item.tool == "dump")
    assert played.state.wholes[message.body_hash] == kept


def test_a_replay_of_a_cut_result_is_equal_event_by_event() -> None:
    played = cut_run()
    events, status, replay = replayed(played)
    assert (status, replay.asked[Kind.TOOL]) == ("success", 0)
    assert comparable(events) == comparable(played.events)


def test_secrets_are_replaced_in_what_the_model_does_not_see_as_well() -> None:
    dump = {"name": "dump", "instructions": "Dump.", "tackle": ["dump"], "rules": {"max_turns": 2}}
    redact = lambda text: (text.replace("middle", "***"), text.count("middle"))  # noqa: E731 - a port, written in place
    played = play(cascade(dump), [call("dump"), "done"], tools={"dump": long_result}, redact=redact)
    whole = played.state.calls[0].tools[0].whole
    assert whole is not None
    assert b"***" in played.blobs[whole.digest]
    assert not any(b"middle" in data for data in played.blobs.values())


def refined(soundings: dict[str, Any], reforge: dict[str, Any]) -> dict[str, Any]:
    """Two candidates, one after the other, and refinements of the winner."""
    return {"factor": 2, "max_parallel": 1, **soundings, "reforge": {"honing_prompt": "Clearer axes.", **reforge}}


def said(winner: int) -> str:
    return json.dumps({"winner": winner})


def shown_to(played: Played, branch: str, call_number: int = 0) -> list[str]:
    """The images of a request that a branch made."""
    requests = [request for place, request in played.model.requests if place.branch == branch and place.turn]
    return [one for message in requests[call_number].messages for one in images(message)]


def test_a_refinement_sees_the_images_of_what_it_refines() -> None:
    reforge = {"steps": 2, "factor_per_step": 1}
    replies = [call("pen"), "one", call("pen"), "two", said(2), "words alone", said(2), call("pen"), "redrawn", said(2)]
    options = Options("test", "gpt-4o-mini", keep_recent_images=1)
    played = drawn(drawing(soundings=refined({}, reforge)), replies=replies, options=options)
    assert played.outcome.output == "redrawn", played.outcome.reason
    task, refine = next(r for p, r in played.model.requests if p.branch == "r1.0").messages[-2:]
    assert (images(task), images(refine)) == ([], [digest(1)])
    assert refine.text.startswith("Current best answer:\ntwo")
    assert shown_to(played, "r2.0") == [digest(1)], "who made no picture hands on what it was given"
    assert shown_to(played, "r2.0", 1) == [digest(1), digest(2)], "its own picture does not hide what it works on"
    judged = [request.messages[1] for place, request in played.model.requests if not place.turn]
    assert [images(message) for message in judged] == [
        [digest(0), digest(1)],
        [digest(1), digest(1)],
        [digest(1), digest(2)],
    ]
    check_replay(played)


def test_a_refined_walk_sees_the_images_of_the_walk_that_it_refines() -> None:
    phases = [drawing(), {"name": "tell", "instructions": "Tell."}]
    document = {**cascade(*phases), "soundings": refined({}, {"steps": 1, "factor_per_step": 1})}
    pen = {"pen": lambda count=iter(range(9)): ToolResult("drawn", images=(picture(next(count)),))}
    replies = [call("pen"), "one", "end", call("pen"), "two", "end", said(2), "three", "end", said(2)]
    played = play(document, replies, input={"what": "it"}, tools=pen)
    assert played.outcome.status == "success", played.outcome.reason
    assert shown_to(played, "r1.0") == [digest(1)]
    evaluator = [request for place, request in played.model.requests if not place.turn]
    assert images(evaluator[0].messages[1]) == [digest(0), digest(1)]


def test_a_refined_walk_whose_first_phase_has_candidates_is_told_what_to_refine() -> None:
    inner = {"factor": 2, "max_parallel": 1}
    document = {**cascade(drawing(soundings=inner)), "soundings": refined({"factor": 1}, {"factor_per_step": 1})}
    pen = {"pen": lambda: ToolResult("drawn", images=(picture(0),))}
    replies = [call("pen"), "one", "two", said(1), "three", "four", said(1), said(2)]
    played = play(document, replies, input={"what": "it"}, tools=pen)
    assert played.outcome.output == "three", played.outcome.reason
    told = {place.branch: request.messages[-1] for place, request in played.model.requests if place.turn}
    for branch in ("r1.0/s0", "r1.0/s1"):
        assert "Clearer axes." in told[branch].text
        assert images(told[branch]) == [digest(0)]


def real(red: int) -> bytes:
    """A PNG whose header can be read."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 4, 3) + bytes([red])


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def test_a_data_url_in_what_a_person_gives_is_sent_as_an_image() -> None:
    """In instructions, in the original input, and once however often it stands there; no text of it is left."""
    first, second = real(1), real(2)
    asks = {"name": "a", "instructions": "Compare {{ input.one }} with {{ input.two }}, and {{ input.one }} again."}
    tells = {"name": "b", "instructions": "Tell.", "context": {"include_input": True}}
    given = {"one": url(first), "two": url(second), "none": "data:image/png;base64,AAAA"}
    played = play(cascade(asks, tells), ["alike", "told"], input=given)
    (task,) = played.model.requests[0][1].messages
    assert task.text == "Compare [image 1] with [image 2], and [image 1] again."
    digests = [hashlib.sha256(data).hexdigest() for data in (first, second)]
    assert task.images == tuple(Image(digest, "image/png", len(first), 4, 3) for digest in digests)
    carried = played.model.requests[1][1].messages[0]
    assert [image.digest for image in carried.images] == digests
    assert json.loads(carried.text.partition("\n")[2]) == {**given, "one": "[image 1]", "two": "[image 2]"}
    assert [played.blobs[digest] for digest in digests] == [first, second]
    again = what_if(played.state, played.definition, None, Words(), FlatPrices())
    assert [one.assembly.request.digest for one in again] == [call.digest for call in played.state.calls]


def test_a_data_url_in_the_output_of_a_phase_reaches_the_next_one_as_an_image() -> None:
    after = {"name": "b", "instructions": "Tell.", "context": {"from": ["a"]}}
    played = play(cascade({"name": "a", "instructions": "Draw."}, after), [f"Here: {url(real(1))}", "told"])
    carried = played.model.requests[1][1].messages[1]
    assert carried.text == "[Output from a]:\nHere: [image 1]"
    assert [image.digest for image in carried.images] == [hashlib.sha256(real(1)).hexdigest()]


def test_a_run_with_data_urls_replays_and_its_images_are_bounded() -> None:
    text = " ".join(url(real(number)) for number in range(22))
    played = play(cascade({"name": "a", "instructions": text}), ["seen"], input={"what": "it"})
    (task,) = played.model.requests[0][1].messages
    assert len(task.images) == 20
    assert task.text.count("data:image/png;base64,") == 2
    check_replay(played)


def test_a_phase_that_tries_again_is_told_with_images_too() -> None:
    rules = {"max_attempts": 2, "retry_instructions": "As here: {{ input.what }}"}
    phase = {"name": "a", "instructions": "Say.", "output_schema": {"type": "object"}, "rules": rules}
    played = play(cascade(phase), ["no", "{}"], input={"what": url(real(7))})
    told = played.model.requests[1][1].messages[-1]
    assert told.text.endswith("As here: [image 1]")
    assert [image.digest for image in told.images] == [hashlib.sha256(real(7)).hexdigest()]


def test_an_image_that_a_message_has_already_leaves_no_text_of_itself() -> None:
    data = real(1)
    image = Image(hashlib.sha256(data).hexdigest(), "image/png", len(data), 4, 3)
    made = pictured(Message("user", (TextPart(f"See {url(data)}."), image)), lambda *_: None)
    assert (made.text, made.images) == ("See [image 1].", (image,))


@pytest.mark.parametrize(("size", "sent"), [(5_000_000, 1), (5_000_001, 0)])
def test_an_image_that_is_too_large_to_send_stays_text(size: int, sent: int) -> None:
    kept: list[bytes] = []
    made = pictured(Message("user", f"See {url(real(1).ljust(size))}."), lambda _, data: kept.append(data))
    assert ([len(data) for data in kept], len(made.images)) == ([size] * sent, sent)
    assert [(image.size, image.width, image.height) for image in made.images] == [(size, 4, 3)] * sent
