"""Calls of a watched program are paused, edited, answered by hand and let go, in every protocol."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse
from msgspec.structs import replace

from tests.attach.support import LOCAL, Session, answer_socket, serving, session, socket_asked
from tests.support.loopback import Loopback, Reply
from tests.support.waiting import PATIENCE, soon, until
from workbench.attach.outgoing import rewritten
from workbench.context.assembly import Action, Entry, Item, Kind, Reason, Rule
from workbench.context.edits import AddMessage, ChangeMessage, DropMessage, EditError
from workbench.context.message import Message, ToolCall
from workbench.context.place import Place
from workbench.engine.debugger.condition import matches
from workbench.engine.debugger.stepper import Breakpoint, Mode, Stepper
from workbench.engine.edits import SetAnswer, SetModel
from workbench.engine.gate import Stop, StopKind
from workbench.engine.journal.event import Event
from workbench.importers.conversation import Remarks
from workbench.importers.exchanges import Exchanges
from workbench.views.call import CallView
from workbench.workspace.attaching import AttachOptions
from workbench.workspace.project import Project

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
REQUESTS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "chat": (
        "openai",
        "/chat/completions",
        {
            "model": "m",
            "seed": 7,
            "tools": [TOOL],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "a wall"},
            ],
        },
    ),
    "responses": (
        "openai",
        "/responses",
        {
            "model": "m",
            "store": False,
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "zz"},
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "x"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "a wall"},
            ],
        },
    ),
    "anthropic": (
        "anthropic",
        "/v1/messages",
        {
            "model": "c",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}},
                        {"type": "tool_use", "id": "c2", "name": "look", "input": {"at": "y"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "a wall"},
                        {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "a door"}]},
                        {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
                    ],
                },
            ],
        },
    ),
    "gemini": (
        "gemini",
        "/v1beta/models/g:generateContent",
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "x"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "a wall"}}}]},
            ],
        },
    ),
    "ollama": (
        "ollama",
        "/api/chat",
        {
            "model": "l",
            "stream": False,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
                {"role": "tool", "content": "a wall"},
            ],
        },
    ),
}


class Person:
    """Somebody at the stepper: waits for calls to be paused, and lets them go."""

    def __init__(self, mode: Mode = Mode.CONTINUE, *points: Breakpoint) -> None:
        self.reason = ""
        """Why the last call was paused."""
        self.stepper = Stepper(on_hold=self._paused, matches=matches)
        self.stepper.go(mode)
        self.stepper.breakpoints = list(points)
        self._last: Stop | None = None
        self._pool = ThreadPoolExecutor(4)

    def _paused(self, _: Stop, why: str) -> None:
        self.reason = why

    def start(
        self, attached: Session, provider: str, path: str, body: Mapping[str, Any], **headers: str
    ) -> Future[Any]:
        """A client that asks in a thread of its own."""
        return self._pool.submit(attached.post, provider, path, body, **headers)

    def held(self) -> Stop:
        """The next call that is paused."""

        def fresh() -> Stop | None:
            now = self.stepper.held
            return now if now is not None and now is not self._last else None

        found = self._last = until(fresh, "a paused call")
        assert found is not None
        return found


@pytest.fixture
def project(folder: Path) -> Project:
    return Project.at()


def _read(body: Mapping[str, Any], path: str) -> list[tuple[str, str]]:
    asked = Exchanges(Remarks()).asked(body, path)
    assert asked is not None
    return [(one.role, one.text) for one in asked.input]


@pytest.mark.parametrize("name", REQUESTS)
def test_an_edited_request_differs_in_what_was_edited_alone(project: Project, name: str) -> None:
    provider_name, path, body = REQUESTS[name]
    person = Person(Mode.OVER)
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        asked = person.start(attached, provider_name, path, body)
        person.held()
        person.stepper.go(Mode.OVER)
        assert asked.result(60).status_code == 200
        assert json.loads(provider.requests[0].raw) == body
        assert provider.requests[0].raw == httpx.Request("POST", "http://x", json=body).content

        asked = person.start(attached, provider_name, path, body)
        stop = person.held()
        assert stop.draft is not None
        texts = [item.message.text for item in (*(i for i, _ in stop.draft.entered.rows), *stop.draft.own)]
        at = next(i for i, text in enumerate(texts) if "a wall" in text)
        was = stop.draft.own[at - len(stop.draft.entered.rows)].message
        hidden = Message(
            was.role, was.text.replace("a wall", "a hidden wall"), was.tool_calls, was.tool_call_id, was.name
        )
        person.stepper.edit(ChangeMessage(at, hidden), AddMessage(len(stop.draft), Message("user", "Go on.")))
        assert person.held().edited
        person.stepper.go(Mode.CONTINUE)
        assert asked.result(60).status_code == 200
    sent = provider.requests[1].body
    before, after = _read(body, path), _read(sent, path)
    assert after == [*((r, t.replace("a wall", "a hidden wall")) for r, t in before), ("user", "Go on.")]
    assert {key for key in body if sent.get(key) != body[key]} <= {"messages", "input", "contents"}
    call = attached.state().calls[1]
    assert [entry.item.edited for entry in call.entries if entry.item.edited] == ["changed", "added"]


@pytest.mark.parametrize(("api", "sent"), [("chat", '{"at": "y"}'), ("ollama", {"at": "y"})])
def test_edited_arguments_of_a_call_go_out_in_the_form_that_they_had(project: Project, api: str, sent: Any) -> None:
    name, path, body = REQUESTS[api]
    person = Person(Mode.OVER)
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        asked = person.start(attached, name, path, body)
        stop = person.held()
        assert stop.draft is not None
        at, was = next((at, item.message) for at, item in enumerate(stop.draft.own) if item.message.tool_calls)
        call = replace(was.tool_calls[0], arguments='{"at": "y"}')
        edited = Message(was.role, was.content, (call,), was.tool_call_id, was.name)
        person.stepper.edit(ChangeMessage(len(stop.draft) - len(stop.draft.own) + at, edited))
        person.held()
        person.stepper.go(Mode.CONTINUE)
        asked.result(60)
    (call_sent,) = provider.requests[0].body["messages"][-2]["tool_calls"]
    assert call_sent["function"] == {"name": "look", "arguments": sent}


THOUGHT = {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
PLAIN = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
CUSTOM = {"type": "custom_tool_call", "id": "c2", "name": "see", "input": "x"}
LOOKED = (ToolCall("c1", "look", "{}"), ToolCall("c2", "see", "x"))


def output(*texts: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "role": "assistant", "content": parts, **more}


@pytest.mark.parametrize(
    ("pieces", "sent", "expected"),
    [
        ([THOUGHT, output("One.", id="m"), PLAIN], Message("assistant", "Two.", LOOKED),
         [THOUGHT, output("Two.", id="m"), PLAIN]),
        ([output("One."), output("more"), CUSTOM], Message("assistant", "Two.", LOOKED), [output("Two."), CUSTOM]),
        ([output("One.", "more"), THOUGHT], Message("assistant", "Two."), [output("Two."), THOUGHT]),
        ([THOUGHT, output("One.")], Message("assistant", ""), [THOUGHT]),
        ([THOUGHT, PLAIN, CUSTOM], Message("assistant", "", LOOKED[1:]), [THOUGHT, CUSTOM]),
        ([THOUGHT, PLAIN, CUSTOM],
         Message("assistant", "", (ToolCall("c1", "look", '{"at": 1}'), ToolCall("c2", "see", "y"))),
         [THOUGHT, PLAIN | {"arguments": '{"at": 1}'}, CUSTOM | {"input": "y"}]),
        ([THOUGHT, PLAIN], None, []),
        ([CUSTOM], Message("assistant", "", (ToolCall("c2", "see", "y"),)), [CUSTOM | {"input": "y"}]),
        ([PLAIN], Message("assistant", "", (ToolCall("c1", "look", "[]"),)), [PLAIN | {"arguments": "[]"}]),
    ],
)  # fmt: skip
def test_items_of_an_edited_answer_are_sent_with_its_text_and_its_calls(
    pieces: list[dict[str, Any]], sent: Message | None, expected: list[dict[str, Any]]
) -> None:
    """The text takes the place of the first one; calls that are left keep their items, with their arguments where their
    kind has them; what was reasoned goes along."""
    user = {"role": "user", "content": "Hi"}
    entries = [edited(Message("user", "Hi"), Message("user", "Hi")), edited(Message("assistant", "One."), sent)]
    body = {"model": "m", "input": [user, *pieces]}
    assert rewritten(body, "/responses", entries, [0, 1]) == {"model": "m", "input": [user, *expected]}


def edited(before: Message, sent: Message | None) -> Entry:
    """A message of a client, sent like this."""
    action = Action.DROPPED if sent is None else Action.KEPT
    return Entry(Item(before, Kind.TASK, Place()), sent, action, Reason("edited"), Rule(), 1, 1)


def test_a_call_waits_for_its_record_only_where_it_may_be_paused(project: Project) -> None:
    placed, stepper = threading.Event(), Stepper(matches=matches)

    def observe(event: Event) -> None:
        assert event.kind != "context_assembled" or placed.wait(PATIENCE)

    with (
        Loopback([Reply("fine")]) as provider,
        session(project, provider.url, stepper=stepper, observe=observe) as attached,
        ThreadPoolExecutor() as pool,
    ):
        assert attached.chat("Hi").status_code == 200
        stepper.breakpoints.append(Breakpoint(condition="'lo' in text"))
        late = pool.submit(attached.chat, "Hello")
        placed.set()
        until(lambda: stepper.held, "the paused call")
        assert len(provider.requests) == 1
        stepper.go(Mode.CONTINUE)
        assert late.result(PATIENCE).status_code == 200
    assert [call.entries[0].item.message.text for call in attached.state().calls] == ["Hi", "Hello"]


def test_where_a_breakpoint_cannot_be_asked_calls_go_on_and_the_record_says_so(project: Project) -> None:
    stepper = Stepper(matches=matches)
    stepper.breakpoints.append(Breakpoint(condition="tokens > "))
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=stepper) as attached:
        assert attached.chat("Hi").json()["choices"][0]["message"]["content"] == "fine"
    assert [call.status for call in attached.state().calls] == ["done"]
    words = "whether to pause here cannot be decided, so it goes on unchanged: SyntaxError: invalid syntax"
    told = [event.data["message"] for event in attached.state().warnings]
    assert told
    assert all(one.startswith(words) for one in told)


def test_a_result_for_gemini_that_is_no_object_is_sent_as_one(project: Project) -> None:
    name, path, body = REQUESTS["gemini"]
    person = Person(Mode.OVER)
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        asked = person.start(attached, name, path, body)
        stop = person.held()
        assert stop.draft is not None
        was = stop.draft.own[-1].message
        door = Message(was.role, "a door", was.tool_calls, was.tool_call_id, was.name)
        person.stepper.edit(ChangeMessage(len(stop.draft) - 1, door))
        person.held()
        person.stepper.go(Mode.CONTINUE)
        asked.result(60)
    (part,) = provider.requests[0].body["contents"][-1]["parts"]
    assert part == {"functionResponse": {"name": "look", "response": {"result": "a door"}}}


PICTURE = "data:image/png;base64,iVBORw0KGgo="
INLINE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize(
    ("provider_name", "path", "body", "sent"),
    [
        (
            "openai",
            "/responses",
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PICTURE}]}]},
            {"role": "user", "content": [{"type": "input_image"}, {"type": "input_text", "text": "a door"}]},
        ),
        (
            "openai",
            "/responses",
            {
                "input": [
                    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                    {
                        "type": "function_call_output",
                        "call_id": "c1",
                        "output": [{"type": "input_image", "image_url": PICTURE}],
                    },
                ]
            },
            {"output": [{"type": "input_text", "text": "a door"}, {"type": "input_image"}]},
        ),
        (
            "openai",
            "/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]}]},
            {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "a door"}]},
        ),
        (
            "anthropic",
            "/v1/messages",
            {
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": "Look."},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "c1",
                                "content": [{"type": "image", "source": INLINE}],
                            }
                        ],
                    },
                ],
            },
            {"content": [{"content": [{"type": "text", "text": "a door"}, {"type": "image"}]}]},
        ),
        (
            "openai",
            "/responses",
            {"input": [{"role": "assistant", "type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a door"}]},
        ),
        (
            "openai",
            "/chat/completions",
            {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]},
            {"role": "assistant", "content": [{"type": "text", "text": "a door"}]},
        ),
        (
            "openai",
            "/chat/completions",
            {"messages": [{"role": "assistant", "content": None, "refusal": "No."}]},
            {"role": "assistant", "content": "a door", "refusal": None},
        ),
    ],
)
def test_a_text_in_a_message_of_pictures_or_a_refusal_is_one_of_its_protocol(
    project: Project, provider_name: str, path: str, body: dict[str, Any], sent: dict[str, Any]
) -> None:
    person = Person(Mode.OVER)
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        asked = person.start(attached, provider_name, path, {"model": "m", **body})
        stop = person.held()
        assert stop.draft is not None
        was = stop.draft.own[-1].message
        door = Message(was.role, "a door", was.tool_calls, was.tool_call_id, was.name)
        person.stepper.edit(ChangeMessage(len(stop.draft) - 1, door))
        person.held()
        person.stepper.go(Mode.CONTINUE)
        asked.result(60)
    request = provider.requests[0].body
    assert _holds((request.get("messages") or request["input"])[-1], sent), request


def _holds(found: Any, part: Any) -> bool:
    """Whether JSON has all that another has; lists are equally long."""
    if isinstance(part, dict):
        return all(key in found and _holds(found[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(found) == len(part) and all(map(_holds, found, part))
    return bool(found == part)


def test_a_request_that_goes_on_from_what_its_provider_keeps_is_sent_as_it_is_and_that_is_said(
    project: Project,
) -> None:
    person = Person(Mode.CONTINUE)
    replies = [Reply("one"), Reply("two")]
    with Loopback(replies) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        first = attached.post("openai", "/responses", {"model": "m", "input": "Hi"}).json()["id"]
        person.stepper.pause()
        body = {"model": "m", "input": "More", "previous_response_id": first}
        asked = person.start(attached, "openai", "/responses", body)
        person.held()
        person.stepper.edit(ChangeMessage(0, Message("user", "Hello")))
        person.held()
        person.stepper.go(Mode.CONTINUE)
        asked.result(60)
    assert provider.requests[1].body == body
    told = [event.data["message"] for event in attached.state().warnings]
    assert "the provider keeps messages of this request that are not in it" in told[-1], told


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", REQUESTS)
def test_an_answer_is_edited_or_written_by_hand_in_the_protocol_of_its_client(
    project: Project, name: str, stream: bool
) -> None:
    provider_name, path, body = REQUESTS[name]
    if stream:
        path = path.replace(":generate", ":streamGenerate")
        body = body if "contents" in body else {**body, "stream": True}
    person = Person(Mode.INTO)
    with Loopback([Reply("from the model")]) as provider:
        with session(project, provider.url, AttachOptions(session="live"), stepper=person.stepper) as attached:
            asked = person.start(attached, provider_name, path, body)
            person.held()
            person.stepper.go(Mode.INTO)
            stop = person.held()
            assert stop.answer is not None
            assert stop.answer.text == "from the model"
            assert not asked.done(), "a paused answer is not handed on"
            person.stepper.edit(SetAnswer(Message("assistant", "from a person")))
            assert person.held().edited
            person.stepper.go(Mode.INTO)
            edited = asked.result(60)

            asked = person.start(attached, provider_name, path, body)
            person.held()
            person.stepper.edit(SetAnswer(Message("assistant", "by hand")))
            by_hand = asked.result(60)
        assert len(provider.requests) == 1, "nobody else is asked for what a person answers"
        with session(project, provider.url, AttachOptions(replay="live")) as again:
            assert again.post(provider_name, path, body).content == edited.content
    assert edited.headers["content-type"] == by_hand.headers["content-type"]
    calls = attached.state().calls
    assert [call.answer and call.answer.text for call in calls] == ["from a person", "by hand"]
    assert (calls[1].tokens_in, calls[1].usage.output, calls[1].cost) == (0, 0, 0.0), "nothing was sent, or billed"
    told = "\n".join(map(str, CallView(calls[1]).blocks()))
    assert "nothing was sent" in told
    assert "provider counts" not in told
    assert "predicted" not in told
    assert [call.answer and call.answer.text for call in again.state().calls] == ["from a person"]


async def test_calls_of_a_web_socket_are_paused_edited_and_answered_like_others(project: Project) -> None:
    person, said = Person(Mode.INTO), list[str]()
    ends: list[str] = []

    async def ended(socket: ClientWebSocketResponse) -> str:
        while (event := await socket.receive_json(timeout=PATIENCE))["type"] != "response.completed":
            pass
        return f"{event['stream_id']}: {event['response']['output'][0]['content'][0]['text']}"

    async with serving(answer_socket) as upstream, ClientSession() as client:
        with session(project, upstream, stepper=person.stepper, said=said) as attached:
            async with client.ws_connect(f"{attached.url('openai')}/responses") as socket:
                await socket.send_json(socket_asked("a", "one"))
                stop = await asyncio.to_thread(person.held)
                assert (stop.kind, stop.answerable) == (StopKind.BEFORE_CALL, True)
                person.stepper.edit(ChangeMessage(0, Message("user", "two")))
                assert (await asyncio.to_thread(person.held)).edited
                person.stepper.go(Mode.INTO)
                stop = await asyncio.to_thread(person.held)
                assert stop.answer is not None
                assert stop.answer.text == "To two"
                person.stepper.edit(SetAnswer(Message("assistant", "from a person")))
                assert (await asyncio.to_thread(person.held)).edited
                person.stepper.go(Mode.INTO)
                ends.append(await ended(socket))

                await socket.send_json(socket_asked("b", "other"))
                await asyncio.to_thread(person.held)
                person.stepper.edit(SetAnswer(Message("assistant", "by hand")))
                ends.append(await ended(socket))

                await socket.send_json(socket_asked("d", "plain"))
                for _ in ("request", "answer"):
                    await asyncio.to_thread(person.held)
                    person.stepper.go(Mode.INTO)
                ends.append(await ended(socket))

                await socket.send_json(socket_asked("c", "third"))
                await asyncio.to_thread(person.held)
            words = "the client gave up while its request was paused; it was not sent"
            await soon(lambda: any(words in one for one in said), "what the person is told")
    assert ends == ["a: from a person", "b: by hand", "d: To plain"]
    calls = attached.state().calls
    assert [call.answer and call.answer.text for call in calls] == ["from a person", "by hand", "To plain", None]


def test_breakpoints_pause_by_text_tokens_tool_and_what_is_said(project: Project) -> None:
    points = (
        Breakpoint(condition="'secret' in text"),
        Breakpoint(condition="tokens > 500 and model == 'm'"),
        Breakpoint(tool="look"),
        Breakpoint(condition="'rm -rf' in answer"),
        Breakpoint("agent", visit=6),
        Breakpoint(condition="breaks"),
    )
    person = Person(Mode.CONTINUE, *points)
    replies = [
        Reply("plain"),
        Reply("ok"),
        Reply("ok"),
        Reply("", calls=[("look", "{}")]),
        Reply("rm -rf /"),
        Reply("ok"),
    ]
    seen: list[tuple[str, str]] = []
    with Loopback(replies) as provider, session(project, provider.url, stepper=person.stepper) as attached:

        def ask(text: str, **more: Any) -> None:
            body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
            asked = person.start(attached, "openai", "/chat/completions", body)
            until(lambda: asked.done() or person.stepper.held is not None, "the end or a pause")
            if not asked.done():
                stop = person.held()
                seen.append((str(stop.kind), person.reason.removeprefix("breakpoint ")))
                person.stepper.go(Mode.CONTINUE)
            assert asked.result(60).status_code == 200

        ask("Hello")
        ask("a secret")
        ask("long " * 600)
        ask("Call it", tools=[TOOL])
        ask("Say it")
        ask("Another context")
    assert seen == [
        ("before_call", "'secret' in text"),
        ("before_call", "tokens > 500 and model == 'm'"),
        ("after_call", "tool look"),
        ("after_call", "'rm -rf' in answer"),
        ("before_call", "agent#6"),
    ]


def test_tokens_of_a_breakpoint_are_those_that_are_shown(project: Project) -> None:
    """The provider counted twice what is counted here: what is predicted of the next call pauses it."""
    person = Person(Mode.CONTINUE, Breakpoint(condition="tokens > 1300 and full == tokens"))
    said = [
        {"role": "user", "content": "long " * 700},
        {"role": "assistant", "content": "fine"},
        {"role": "user", "content": "more"},
    ]
    usage = {"prompt_tokens": 1_400, "completion_tokens": 1, "total_tokens": 1_401}
    with (
        Loopback([Reply("fine", usage=usage)]) as provider,
        session(project, provider.url, stepper=person.stepper) as attached,
    ):
        assert attached.chat(said[0]["content"], model="m").status_code == 200
        asked = person.start(attached, "openai", "/chat/completions", {"model": "m", "messages": said})
        stop = person.held()
        person.stepper.go(Mode.CONTINUE)
        assert asked.result(60).status_code == 200
    assert stop.assembly is not None
    assert stop.assembly.tokens_sent < 1_300
    assert attached.state().calls[1].expected > 1_300


def test_a_pause_is_no_time_of_a_context_that_waits(project: Project) -> None:
    """A program that waits for the call of one context goes on with no other one."""
    person = Person(Mode.OVER)
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        first = [{"role": "user", "content": "one"}]
        again = [*first, {"role": "assistant", "content": "fine"}, {"role": "user", "content": "go on"}]
        for messages in (first, [{"role": "user", "content": "two"}], again):
            asked = person.start(attached, "openai", "/chat/completions", {"model": "m", "messages": messages})
            person.held()
            person.stepper.go(Mode.OVER)
            assert asked.result(60).status_code == 200
    paused = [event.data["seconds"] for event in attached.events() if event.kind == "paused"]
    one, two = attached.state().visits
    assert one.pauses.until(one.finished) == pytest.approx(sum(paused), rel=0.05)
    assert two.pauses.until(two.finished) == pytest.approx(paused[1], rel=0.05)


def test_a_call_on_its_way_takes_time_while_another_context_is_paused(project: Project) -> None:
    person = Person(Mode.CONTINUE, Breakpoint(condition="'two' in text"))
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as attached:
        bodies = [
            {"model": model, "messages": [{"role": "user", "content": text}]}
            for model, text in (("hang", "one"), ("m", "two"))
        ]
        slow = person.start(attached, "openai", "/chat/completions", bodies[0])
        assert provider.arrived.acquire(timeout=PATIENCE)
        paused = person.start(attached, "openai", "/chat/completions", bodies[1])
        person.held()
        person.stepper.go(Mode.CONTINUE)
        assert paused.result(60).status_code == 200
        provider.resume()
        assert slow.result(60).status_code == 200
    one, two = attached.state().visits
    assert one.pauses.until(one.finished) == 0
    assert two.pauses.until(two.finished) > 0


def test_a_client_that_gives_up_is_said_and_nothing_is_sent(project: Project) -> None:
    person, said = Person(Mode.OVER), list[str]()
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    with (
        Loopback([Reply("late")]) as provider,
        session(project, provider.url, stepper=person.stepper, said=said) as live,
    ):

        def ask(text: str) -> None:
            other = body | {"messages": [{"role": "user", "content": text}]}
            with httpx.Client(**LOCAL, timeout=0.5) as client, pytest.raises(httpx.ReadTimeout):
                client.post(f"{live.url('openai')}/chat/completions", json=other)

        words = "the client gave up while its request was paused; it was not sent"
        for text, told in (("Hi", f"agent:1: {words}"), ("Something else", f"agent#2:1: {words}")):
            asking = threading.Thread(target=ask, args=[text])
            asking.start()
            person.held()
            asking.join(PATIENCE)
            until(partial(said.__contains__, told), "what the person is told")
            assert person.stepper.held is None
        assert provider.requests == []
        person.stepper.go(Mode.CONTINUE)
        assert live.post("openai", "/chat/completions", body).status_code == 200
    assert len(said) == 2
    first, second, third = live.state().calls
    assert (first.status, second.status, third.status) == ("failed", "failed", "done")
    assert "gave up" in first.failures[0]["error"]["message"]


def test_a_paused_answer_is_handed_back_before_its_client_gives_up(project: Project) -> None:
    person, said = Person(Mode.CONTINUE, Breakpoint(condition="answer != ''")), list[str]()
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    with (
        Loopback([Reply("paid")]) as provider,
        session(project, provider.url, stepper=person.stepper, said=said) as live,
    ):
        asked = person.start(live, "openai", "/chat/completions", body, **{"X-Stainless-Read-Timeout": "2"})
        stop = person.held()
        assert stop.client is not None
        assert stop.client.limit == 2
        assert asked.result(60).json()["choices"][0]["message"]["content"] == "paid"
    assert said == ["agent:1: the answer is handed back: its client waits 2 s at most"]


def test_model_and_parameters_are_edited_and_stay_for_the_context(project: Project) -> None:
    person = Person(Mode.OVER)
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 1}
    with Loopback([Reply("fine")]) as provider, session(project, provider.url, stepper=person.stepper) as live:
        asked = person.start(live, "openai", "/chat/completions", body)
        person.held()
        with pytest.raises(EditError):
            person.stepper.edit(DropMessage(5))
        person.stepper.edit(SetModel("other", {"temperature": 0.5}))
        person.held()
        person.stepper.go(Mode.CONTINUE)
        asked.result(60)
        said = [*body["messages"], {"role": "assistant", "content": "fine"}, {"role": "user", "content": "More"}]  # type: ignore[misc]
        live.post("openai", "/chat/completions", {**body, "messages": said})
    assert [(one.body["model"], one.body["temperature"]) for one in provider.requests] == [("other", 0.5)] * 2
    assert [call.model for call in live.state().calls] == ["other", "other"]
    (told,) = [event.data for event in live.events() if event.kind == "edited"]
    assert told["before"] == {"model": "m", "parameters": {"temperature": 1}}
    assert told["after"] == {"model": "other", "parameters": {"temperature": 0.5}}
