"""The real litellm against a provider on this machine: what is sent, what comes back, and every way it can go wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects import Reply
from tests.support.loopback import HOSTILE, Loopback
from tests.support.waiting import PATIENCE
from workbench.context.assembly import Request
from workbench.context.message import Image, Message, TextPart, ToolCall
from workbench.context.place import Place
from workbench.context.wire import wire_bytes
from workbench.engine.contracts import Answer, ModelFault
from workbench.engine.journal.usage import Usage
from workbench.models import calls
from workbench.models.library import imported
from workbench.models.litellm import LiteLLM
from workbench.models.names import NO_KEY, NoKey, Resolved, resolve
from workbench.models.outgoing import messages_for, parameters_for
from workbench.models.prices import PriceTable
from workbench.models.providers import BY_ID, named

KEY = "sk-" + "loop-0123456789abcdef"
TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
PRICES = {
    "gpt-4o": {
        "litellm_provider": "openai",
        "input_cost_per_token": 2e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1e-06,
    }
}
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 7},
}
KEYLESS = frozenset({"ollama_chat", "lm_studio", "hosted_vllm", "xinference"})
OTHERS = {"cerebras", "nvidia_nim", "sambanova", "deepinfra", "nebius", "novita", "hyperbolic", "vercel_ai_gateway"}
VIA = sorted({*BY_ID, *OTHERS} - {"xinference"})
ODD = '{"path":  "a"}'
HELLO = (Message("user", "hello"),)


@dataclass
class Session:
    """A provider, and calls to it."""

    provider: Loopback
    prices: PriceTable

    def ask(
        self,
        model: str = "gpt-4o",
        messages: tuple[Message, ...] = HELLO,
        *,
        parameters: Mapping[str, Any] | None = None,
        tools: tuple[Mapping[str, Any], ...] = (),
        images: Mapping[str, bytes] | None = None,
        via: str = "",
        stream: bool = True,
        timeout: float = PATIENCE,
        on_text: Callable[[str], None] = lambda text: None,
    ) -> Answer:
        request = Request(model, parameters or {}, tools, messages, "digest")

        async def call() -> Answer:
            llm = self.llm(via, stream=stream, timeout=timeout)
            try:
                return await llm.complete(request, Place(), images or {}, on_text)
            finally:
                await llm.aclose()

        return asyncio.run(call())

    def llm(self, via: str = "", *, stream: bool = True, timeout: float = PATIENCE) -> LiteLLM:
        at_url = lambda name: resolve(name, self.provider.url, {"WORKBENCH_API_KEY": KEY})  # noqa: E731
        routed = lambda name: self.routed(via, name)  # noqa: E731
        return LiteLLM(routed if via else at_url, self.prices, timeout_s=timeout, stream=stream)

    def routed(self, via: str, name: str) -> Resolved:
        """The model of a provider, which answers here."""
        variable, key = (f"{via.upper()}_API_KEY", KEY) if via not in KEYLESS else ("", "")
        return Resolved(name, f"{via}/{name}", named(via), variable, key, self.provider.url)

    def fault(self, model: str, **kwargs: Any) -> ModelFault:
        with pytest.raises(ModelFault) as caught:
            self.ask(model, **kwargs)
        return caught.value

    @property
    def sent(self) -> bytes:
        return self.provider.requests[-1].raw


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> PriceTable:
    file: Path = tmp_path_factory.mktemp("prices") / "map.json"
    file.write_text(json.dumps(PRICES))
    return PriceTable(file=file)


@pytest.fixture
def start(prices: PriceTable) -> Iterator[Callable[..., Session]]:
    running: list[Loopback] = []

    def begin(*replies: Reply) -> Session:
        running.append(Loopback(replies).__enter__())
        return Session(running[-1], prices)

    yield begin
    for provider in running:
        provider.__exit__(None, None, None)


Start = Callable[..., Session]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_has_text_usage_cost_and_names(start: Start, stream: bool) -> None:
    session, pieces = start(Reply("Good morning to you.", usage=USAGE)), list[str]()
    answer = session.ask(stream=stream, on_text=pieces.append)

    assert answer.text == "".join(pieces) == "Good morning to you."
    assert len(pieces) == (3 if stream else 1)
    assert answer.usage == Usage(input=100, output=20, cached=64, reasoning=7)
    assert answer.cost == pytest.approx(36 * 2e-06 + 64 * 1e-06 + 20 * 1e-05)
    assert (answer.cost_grade, answer.finish_reason, answer.partial) == ("exact", "stop", False)
    assert (answer.model, answer.provider, answer.provider_id) == ("gpt-4o", "openai", "chatcmpl-1")
    assert answer.first_token_s is not None
    assert answer.duration_s is not None
    assert 0 < answer.first_token_s <= answer.duration_s


def test_the_wire_is_the_body_as_sent_to_the_byte(start: Start) -> None:
    session = start()
    messages = (
        Message("system", "Sé brief, \ud800 and \x00"),
        Message("user", "look 漢字"),
        Message("assistant", "", (ToolCall("call_1", "read_file", ODD),)),
        Message("tool", "nothing", tool_call_id="call_1"),
    )
    answer = session.ask(messages=messages, tools=(TOOL,), parameters={"temperature": 0.5, "tool_choice": "none"})

    assert answer.wire is not None
    assert wire_bytes(answer.wire, answer.wire_style) == session.sent
    assert dict(answer.wire) == json.loads(session.sent)
    assert answer.wire == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Sé brief, \ud800 and \x00"},
            {"role": "user", "content": "look 漢字"},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":  "a"}'},
                    }
                ],
            },
            {"role": "tool", "content": "nothing", "tool_call_id": "call_1"},
        ],
        "temperature": 0.5,
        "tool_choice": "none",
        "tools": [TOOL],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("via", sorted({*VIA} - KEYLESS - {"anthropic", "gemini"}))
def test_every_provider_is_called_once_and_its_wire_is_known(start: Start, via: str) -> None:
    session = start(Reply("ok", calls=[("read_file", '{"path": "a"}')], usage=USAGE))
    answer = session.ask("some-model", tools=(TOOL,), via=via)

    assert (answer.text, answer.calls[0].arguments) == ("ok", '{"path": "a"}')
    assert len(session.provider.requests) == 1
    assert answer.wire is not None
    assert wire_bytes(answer.wire, answer.wire_style) == session.sent
    assert answer.wire["messages"] == [{"role": "user", "content": "hello"}]
    assert answer.wire["tools"] == [TOOL]
    assert set(answer.wire) <= {"model", "messages", "tools", "stream", "stream_options", "usage"}
    assert session.provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_fast_route_sends_what_the_default_route_sends(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm
    import openai

    session = start()
    messages = (Message("system", "be brief"), *HELLO)
    session.ask(messages=messages, tools=(TOOL,), parameters={"temperature": 0.5})
    monkeypatch.setenv("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "false")

    async def default_route() -> None:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=session.provider.url, max_retries=0) as client:
            response = await litellm.acompletion(
                model="openai/gpt-4o",
                messages=[{"role": m.role, "content": m.content} for m in messages],
                tools=[TOOL],
                temperature=0.5,
                stream=True,
                stream_options={"include_usage": True},
                client=client,
                api_key=KEY,
                api_base=session.provider.url,
                _skip_mcp_handler=True,
            )
            async for _ in response:
                pass

    asyncio.run(default_route())
    fast, default = session.provider.requests
    assert fast.raw != default.raw
    assert fast.body == default.body


RICH = (
    Message("system", "Sé brief, \ud800"),
    Message("user", (TextPart("Look at "), Image("ab" * 32, "image/png", 3))),
    Message("assistant", "I look.", (ToolCall("call_1", "read_file", ODD),)),
    Message("tool", "nothing", tool_call_id="call_1"),
    Message("user", "And now?"),
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
ASKED = {
    "temperature": 0.5,
    "max_tokens": 50,
    "parallel_tool_calls": False,
    "stop": ["END"],
    "seed": 7,
    "top_p": 0.9,
    "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": SCHEMA}},
}


@pytest.mark.parametrize("parameters", [{}, ASKED], ids=["plain", "rich"])
def test_what_is_sent_is_what_litellm_sends_when_it_is_asked_as_usual(
    start: Start, parameters: Mapping[str, Any]
) -> None:
    """To the byte, for each provider: the workbench leaves out what litellm does around a call, and nothing else."""
    session, different = start(), list[str]()
    images = {"ab" * 32: b"png"}
    tools, messages = ((TOOL,), RICH) if parameters else ((), HELLO)
    request = Request("some-model", parameters, tools, messages, "digest")

    async def usual(resolved: Resolved) -> None:
        os.environ[calls.DIRECT] = "true"
        answer = await imported().acompletion(
            model=resolved.litellm_name,
            messages=messages_for(request, images, resolved),
            api_key=resolved.api_key or NO_KEY,
            api_base=session.provider.url,
            max_retries=0,
            stream=True,
            stream_options={"include_usage": True},
            _skip_mcp_handler=True,
            **parameters_for(request, resolved),
        )
        await answer.fetch_stream()
        await anext(aiter(calls.pieces(answer)))

    async def both() -> None:
        for via in VIA:
            llm, before = session.llm(via), len(session.provider.requests)
            with suppress(ModelFault):  # one refuses the schema beside tools, some speak another dialect
                await llm.complete(request, Place(), images, lambda text: None)
            await llm.aclose()
            ours = session.provider.requests[before:]
            with suppress(Exception):
                await usual(session.routed(via, "some-model"))
            theirs = session.provider.requests[before + len(ours) :]
            if [(r.path, r.headers, r.raw) for r in ours] != [(r.path, r.headers, r.raw) for r in theirs]:
                different.append(via)

    asyncio.run(both())
    assert different == []
    assert len(session.provider.requests) >= 2 * (len(VIA) - 1)


def test_native_tool_calls_come_back_as_written(start: Start) -> None:
    arguments = '{"path": "data/app.log",  "limit": 1e2}'
    session = start(Reply("I look.", calls=[("read_file", arguments), ("read_file", "{}")]))
    answer = session.ask(tools=(TOOL,))

    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        ("call_1", "read_file", arguments),
        ("call_2", "read_file", "{}"),
    ]
    assert (answer.text, answer.finish_reason) == ("I look.", "tool_calls")


def test_the_variables_of_the_process_stay_while_the_first_call_is_prepared(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them all meanwhile, as httpx does for proxies, must find each one that it begins with."""
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere.pem")
    prepared = threading.Thread(target=lambda: asyncio.run(start().llm().warm()))
    prepared.start()
    missed = 0
    while prepared.is_alive():
        missed += "AWS_CA_BUNDLE" not in os.environ
    assert missed == 0


def test_an_image_goes_out_whole_as_a_data_url(start: Start) -> None:
    session, data = start(), bytes(range(256)) * 20
    image = Image("d" * 64, "image/png", len(data), 8, 8)
    answer = session.ask(messages=(Message("user", (TextPart("look"), image)),), images={image.digest: data})

    assert answer.wire is not None
    text, part = answer.wire["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    assert base64.b64decode(part["image_url"]["url"].removeprefix("data:image/png;base64,")) == data


def test_an_image_without_bytes_is_not_sent(start: Start) -> None:
    session = start()
    fault = session.fault("gpt-4o", messages=(Message("user", (Image("d" * 64, "image/png", 9),)),))

    assert (fault.kind, fault.retryable, session.provider.requests) == ("bad_request", False, [])


@pytest.mark.fault("F24")
def test_unknown_usage_and_cost_stay_unknown(start: Start) -> None:
    for stream in (True, False):
        answer = start().ask("nousage", stream=stream)
        assert (answer.text, answer.usage) == ("ok", Usage())
        assert (answer.cost, answer.cost_grade) == (None, "unknown")


def test_what_the_provider_billed_wins_over_the_price_map(start: Start) -> None:
    session = start(Reply("ok", usage={**USAGE, "cost": 0.25}))
    answer = session.ask("openai/gpt-4o", via="openrouter")

    assert (answer.cost, answer.cost_grade) == (0.25, "billed")
    assert answer.wire is not None
    assert answer.wire["usage"] == {"include": True}


def test_an_unknown_model_costs_nobody_knows_what(start: Start) -> None:
    assert start(Reply("ok", usage=USAGE)).ask("somebody/new").cost is None


@pytest.mark.parametrize(("total", "output"), [(120, 20), (127, 27)])
def test_reasoning_that_a_provider_counts_beside_the_output_is_a_part_of_it(
    start: Start, total: int, output: int
) -> None:
    """As xAI does; what it bills is both."""
    usage = start(Reply("ok", usage={**USAGE, "total_tokens": total})).ask().usage
    assert (usage.output, usage.reasoning) == (output, 7)


@pytest.mark.fault("F21", "F22", "F23")
@pytest.mark.parametrize(
    ("model", "kind", "status", "said"),
    [
        ("429", "rate_limit", 429, "answered 429: Rate limit reached"),
        ("500", "server", 500, "answered 500: The server had an error"),
        ("503html", "server", 503, "answered 503: Service Unavailable"),
        ("307", "not_found", 307, "answered 307: Temporary Redirect"),
        ("400", "bad_request", 400, "answered 400: Unknown parameter: 'foo'"),
        ("401", "authentication", 401, "refused the key in WORKBENCH_API_KEY"),
        ("402", "permission", 402, "Insufficient credits"),
        ("403", "permission", 403, "Your key may not use this model"),
        ("404", "not_found", 404, "The model does not exist"),
        ("ctx", "context_length", 400, "maximum context length is 8192 tokens"),
        ("badjson", "bad_answer", 200, "cannot be read"),
        ("html200", "bad_answer", 200, "a web page instead of an answer: 'Sign in to the network'"),
        ("badutf8", "bad_answer", 200, "cannot be read: it is not UTF-8; it begins with"),
        ("error200", "server", 502, "Upstream is overloaded"),
        ("empty", "blank", 200, "is blank"),
        ("nullcontent", "blank", 200, "is blank (finish reason stop)"),
        ("blank", "blank", 200, "is blank (finish reason stop)"),
        ("reset", "connection", None, "no connection to http://127.0.0.1"),
        ("short", "stream_cut", 200, "broke off"),
        ("nohttp", "bad_answer", None, "does not answer in HTTP: illegal status line"),
        ("endlesshead", "too_large", None, "begins with a line or headers longer than any that are read"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_has_its_kind_and_the_providers_words(
    start: Start, model: str, kind: str, status: int | None, said: str, stream: bool
) -> None:
    session = start()
    fault = session.fault(model, stream=stream)

    assert (fault.kind, fault.status) == (kind, status)
    assert said in fault.message
    assert len(session.provider.requests) == 1
    assert fault.wire == session.provider.requests[0].body


@pytest.mark.fault("F23")
@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("503html", "<h1>503 Service Unavailable</h1>"),
        ("badjson", '"choices": [{'),
        ("html200", "Sign in to the network"),
        ("badutf8", "\ufffd"),
    ],
)
def test_the_body_of_a_bad_answer_is_kept(start: Start, model: str, body: str) -> None:
    assert body in start().fault(model).body


def test_a_long_body_is_cut(start: Start) -> None:
    assert len(start().fault("snodone", stream=False).body) <= 4000


@pytest.mark.fault("F20")
def test_the_wait_that_a_provider_asks_for_is_told(start: Start) -> None:
    assert start().fault("429").retry_after == 7.0
    assert start().fault("500").retry_after is None


def test_a_fault_that_passes_is_over_at_the_next_call(start: Start) -> None:
    session = start(Reply("now"))

    assert [session.fault("429@2").kind for _ in range(2)] == ["rate_limit", "rate_limit"]
    assert session.ask("429@2").text == "now"


@pytest.mark.fault("F22")
def test_the_key_is_in_no_part_of_a_fault(start: Start) -> None:
    fault = start().fault("401")

    assert KEY not in fault.message + fault.body + str(fault) + repr(fault.__cause__)
    assert "[redacted WORKBENCH_API_KEY]" in fault.message
    assert fault.__suppress_context__


def test_without_a_key_the_variables_are_named_and_nothing_is_sent(start: Start) -> None:
    session = start()

    def no_key(name: str) -> Resolved:
        return resolve(name, "", {})

    llm = LiteLLM(no_key, session.prices, env={})
    request = Request("openai/gpt-4o", {}, (), HELLO, "digest")
    with pytest.raises(ModelFault, match="OPENAI_API_KEY or OPENROUTER_API_KEY") as caught:
        asyncio.run(llm.complete(request, Place(), {}, lambda text: None))
    assert isinstance(caught.value.__cause__, NoKey)
    assert caught.value.kind == "authentication"


def test_the_environments_key_is_not_sent_to_a_base_url(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-real-secret")
    session = start()
    llm = LiteLLM(lambda name: resolve(name, session.provider.url, {}), session.prices)

    async def call() -> None:
        await llm.complete(Request("gpt-4o", {}, (), HELLO, "digest"), Place(), {}, lambda text: None)
        await llm.aclose()

    asyncio.run(call())
    assert "the-real-secret" not in repr(session.provider.requests[0].headers)


@pytest.mark.fault("F25")
@pytest.mark.parametrize("stream", [True, False])
def test_one_deadline_holds_for_the_whole_call(start: Start, stream: bool) -> None:
    fault = start().fault("hang", timeout=0.3, stream=stream)

    assert (fault.kind, fault.message) == ("timeout", "no answer within 0.3 s")


@pytest.mark.fault("F26")
def test_a_stream_that_stands_still_runs_into_the_deadline_and_keeps_its_text(start: Start) -> None:
    """The deadline leaves a busy machine the time to read what comes before."""
    fault = start().fault("sstall", timeout=3)

    assert (fault.kind, fault.partial) == ("timeout", "The first half of an")
    assert fault.message == "the answer was cut off after 3 s"


@pytest.mark.fault("F26")
def test_a_stream_that_is_cut_keeps_its_text(start: Start) -> None:
    pieces: list[str] = []
    fault = start().fault("scut", on_text=pieces.append)

    assert (fault.kind, fault.retryable, fault.partial) == ("stream_cut", True, "The first half of an")
    assert pieces == ["The first half", " of an"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("usage", "told", "cost"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 20}, Usage(input=100, output=20), 100 * 2e-06 + 20 * 1e-05),
        ({"prompt_tokens": 100}, Usage(input=100), 100 * 2e-06),
        ({"completion_tokens": 20}, Usage(output=20), 20 * 1e-05),
        (None, None, None),
    ],
)
def test_an_answer_without_a_text_fails_with_what_may_be_billed_for_it(
    start: Start, stream: bool, usage: dict[str, int] | None, told: Usage | None, cost: float | None
) -> None:
    fault = start(Reply("", usage=usage)).fault("gpt-4o", stream=stream)

    assert fault.usage == told
    assert fault.cost == (None if cost is None else pytest.approx(cost))


def test_a_stream_without_a_finish_reason_is_marked(start: Start) -> None:
    answer = start().ask("snodone")

    assert (answer.text, answer.partial, answer.finish_reason) == ("The first half of an", True, "unknown")
    assert answer.usage == Usage()


def test_an_event_that_cannot_be_read_is_no_text_lost_in_silence(start: Start) -> None:
    fault = start().fault("sgarbled")

    assert (fault.kind, fault.partial) == ("stream_cut", "The first half of an")
    assert fault.message.endswith("broke off after 20 characters, which are kept: a piece of it is not JSON")


@pytest.mark.parametrize("text", ["I am [DONE] now.", "data: [DONE]", "<s>[INST] </s><|im_end|>"])
def test_text_that_looks_like_a_marker_is_text(start: Start, text: str) -> None:
    answer = start(Reply(text, piece=100)).ask()

    assert (answer.text, answer.finish_reason) == (text, "stop")


def test_an_answer_that_ran_out_of_tokens_says_so(start: Start) -> None:
    answer = start().ask("length")

    assert (answer.finish_reason, answer.partial) == ("length", False)


@pytest.mark.fault("F28")
def test_hostile_text_arrives_as_it_is(start: Start) -> None:
    for stream in (True, False):
        assert start().ask("hostile", stream=stream).text == HOSTILE


def test_equal_pieces_are_no_fault(start: Start) -> None:
    text = "ha " * 500

    assert start(Reply(text, piece=3)).ask().text == text


@pytest.mark.fault("F30")
def test_malformed_arguments_are_handed_on(start: Start) -> None:
    answer = start().ask("toolbad", tools=(TOOL,))

    assert (answer.text, answer.calls[0].arguments) == ("", '{"path": "data/app.log"')


@pytest.mark.fault("F27")
def test_ten_megabytes_arrive(start: Start) -> None:
    answer = start().ask("big", stream=False)

    assert len(answer.text) > 10_000_000
    assert answer.text.index("\n") == 1_000_000


@pytest.mark.parametrize("model", ["hang", "sstall"])
def test_cancelling_ends_the_request(start: Start, model: str) -> None:
    session = start()

    async def scenario() -> None:
        llm = session.llm()
        request = Request(model, {}, (), HELLO, "digest")
        call = asyncio.create_task(llm.complete(request, Place(), {}, lambda text: None))
        assert await asyncio.to_thread(session.provider.arrived.acquire, timeout=PATIENCE)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(session.provider.left.acquire, timeout=PATIENCE)
        await llm.aclose()

    asyncio.run(scenario())
    assert len(session.provider.requests) == 1


def test_cancelling_before_the_request_leaves_sends_nothing(start: Start) -> None:
    session = start()

    async def scenario() -> None:
        llm = session.llm()
        await llm.warm()
        call = asyncio.create_task(llm.complete(Request("gpt-4o", {}, (), HELLO, "d"), Place(), {}, lambda text: None))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await llm.aclose()

    asyncio.run(scenario())
    assert session.provider.requests == []


def test_calls_at_once_keep_their_own_wire_and_usage(start: Start) -> None:
    session = start()

    async def scenario() -> list[Answer]:
        llm = session.llm()
        requests = [Request("gpt-4o", {}, (), (Message("user", f"number {n}"),), "digest") for n in range(12)]
        calls = [llm.complete(request, Place(), {}, lambda text: None) for request in requests]
        answers = await asyncio.gather(*calls)
        await llm.aclose()
        return list(answers)

    answers = asyncio.run(scenario())
    said = [answer.wire["messages"][0]["content"] for answer in answers if answer.wire]
    assert said == [f"number {n}" for n in range(12)]


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("openrouter", {"reasoning": {"max_tokens": 2000}}),
        ("xai", {"reasoning_effort": "high"}),
    ],
)
def test_a_budget_for_reasoning_goes_to_those_who_take_one(start: Start, via: str, expected: dict[str, Any]) -> None:
    session = start(Reply("ok", usage={"input_tokens": 1, "output_tokens": 1}))
    thinking = {"type": "enabled", "budget_tokens": 2000}
    parameters = {"reasoning_effort": "high", "thinking": thinking}
    session.ask("claude-sonnet-4-5", via=via, parameters=parameters)

    body = session.provider.requests[0].body
    assert {key: body.get(key) for key in ("thinking", "reasoning", "reasoning_effort") if key in body} == expected


@pytest.mark.parametrize("name", ["api_base", "api_key", "num_retries", "extra_headers", "messages", "_skip", "a b"])
def test_a_request_cannot_set_where_it_goes(start: Start, name: str) -> None:
    session = start()
    fault = session.fault("gpt-4o", parameters={name: "http://elsewhere"})

    assert (fault.kind, fault.message) == ("bad_request", fault.message)
    assert fault.message.startswith(f"the parameter '{name}' cannot be sent: ")
    assert session.provider.requests == []


@pytest.mark.parametrize("via", sorted(BY_ID))
def test_a_parameter_that_nobody_knows_stands_in_the_body_as_it_is(start: Start, via: str) -> None:
    session = start(Reply("ok"))
    # The first is an argument of litellm, which would answer by itself.
    further = {"grammar_options": {"rules": [1, None]}, "cache_prompt": True}
    further |= {} if via == "anthropic" else {"mock_response": "no"}
    answer = session.ask("claude-sonnet-4-5", via=via, parameters={**further, "temperature": 0.5})

    body = session.provider.requests[0].body
    assert {name: body.get(name) for name in further} == further
    assert answer.text == "ok"
    assert answer.wire == body


def test_a_parameter_that_could_not_get_through_is_refused_and_not_lost(start: Start) -> None:
    session = start()
    fault = session.fault("claude-sonnet-4-5", via="anthropic", parameters={"mock_response": "no"})

    assert fault.kind == "bad_request"
    assert "'mock_response' cannot be sent to this provider" in fault.message
    assert session.provider.requests == []


def test_reasoning_goes_back_to_those_who_want_it_and_to_nobody_else(start: Start) -> None:
    session = start(Reply("ok", extra={"reasoning_content": "Let me think."}), Reply("done"))
    answer = session.ask(via="deepseek")
    assert answer.extra == {"reasoning_content": "Let me think."}

    history = (*HELLO, Message("assistant", answer.text, extra=answer.extra), Message("user", "and?"))
    session.ask(messages=history, via="deepseek")
    assert json.loads(session.sent)["messages"][1]["reasoning_content"] == "Let me think."
    session.ask(messages=history, via="groq")
    assert json.loads(session.sent)["messages"][1] == {"role": "assistant", "content": "ok"}


def test_the_pieces_of_reasoning_details_are_joined_and_go_back(start: Start) -> None:
    details = [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": None}]
    more = [{"type": "reasoning.text", "text": " so", "index": 0, "signature": "sig"}]
    session = start(Reply("ok", extra={"reasoning_details": [*details, *more]}))
    answer = session.ask("anthropic/claude-sonnet-4.5", via="openrouter")
    joined = [{"type": "reasoning.text", "text": "hm so", "index": 0, "signature": "sig"}]
    assert answer.extra["reasoning_details"] == joined

    history = (*HELLO, Message("assistant", answer.text, extra=answer.extra), Message("user", "and?"))
    session.ask("anthropic/claude-sonnet-4.5", messages=history, via="openrouter")
    assert json.loads(session.sent)["messages"][1]["reasoning_details"] == joined


def test_neighbours_merge_only_where_the_provider_insists(start: Start) -> None:
    session = start()
    messages = (Message("user", "one"), Message("user", "two"))

    session.ask(messages=messages, via="perplexity")
    assert json.loads(session.sent)["messages"] == [{"role": "user", "content": "one\n\ntwo"}]
    session.ask(messages=messages)
    assert len(json.loads(session.sent)["messages"]) == 2


ANTHROPIC_USAGE = {
    "input_tokens": 10,
    "output_tokens": 20,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
}
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic_reports_cached_and_written_tokens_and_signed_thoughts(start: Start, stream: bool) -> None:
    reply = Reply(
        "I look.",
        calls=[("read_file", '{"path": "a"}')],
        usage=ANTHROPIC_USAGE,
        extra={"thinking_blocks": [THOUGHT]},
    )
    session = start(reply)
    answer = session.ask("claude-sonnet-4-5", via="anthropic", tools=(TOOL,), stream=stream)

    assert answer.text == "I look."
    assert answer.usage == Usage(input=140, output=20, cached=100, written=30, written_hour=20)
    assert json.loads(answer.calls[0].arguments) == {"path": "a"}
    assert answer.extra["thinking_blocks"] == [THOUGHT]
    assert (answer.provider_id, answer.finish_reason) == ("msg_1", "tool_calls")
    assert answer.wire is not None
    assert wire_bytes(answer.wire, answer.wire_style) == session.sent


def test_anthropic_gets_its_thoughts_back_and_its_breakpoints(start: Start) -> None:
    session = start(Reply("ok", usage=ANTHROPIC_USAGE))
    call = ToolCall("toolu_1", "read_file", '{"path": "a"}')
    messages = (
        Message("system", "be brief"),
        *HELLO,
        Message("assistant", "I look.", (call,), extra={"thinking_blocks": [THOUGHT]}),
        Message("tool", "nothing", tool_call_id="toolu_1"),
    )
    session.ask("claude-sonnet-4-5", messages, via="anthropic", tools=(TOOL,))
    body = json.loads(session.sent)

    assert body["system"] == [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
    assert body["messages"][1]["content"][0] == THOUGHT
    assert body["messages"][2]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert session.provider.requests[0].headers["x-api-key"] == KEY


@pytest.mark.parametrize("stream", [True, False])
def test_gemini_keeps_the_signature_of_a_call(start: Start, stream: bool) -> None:
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 10, "cachedContentTokenCount": 32, "totalTokenCount": 60}
    reply = Reply("", calls=[("read_file", '{"path": "a"}')], usage=usage, extra={"thought_signature": "c2ln"})
    session = start(reply)
    answer = session.ask("gemini-2.5-flash", via="gemini", tools=(TOOL,), stream=stream)

    assert answer.usage == Usage(input=50, output=10, cached=32)
    assert (answer.calls[0].name, answer.partial) == ("read_file", False)
    assert answer.wire is not None
    assert wire_bytes(answer.wire, answer.wire_style) == session.sent

    call = answer.calls[0]
    messages = (
        *HELLO,
        Message("assistant", "", (ToolCall(call.id, call.name, call.arguments, call.extra),), extra=answer.extra),
        Message("tool", "nothing", tool_call_id=call.id),
    )
    session.ask("gemini-2.5-flash", messages, via="gemini", tools=(TOOL,), stream=stream)
    part = json.loads(session.sent)["contents"][1]["parts"][0]
    assert part["thoughtSignature"] == "c2ln"


@pytest.mark.parametrize("stream", [True, False])
def test_ollama_is_asked_without_a_key(start: Start, stream: bool) -> None:
    session = start(Reply("Good morning.", usage={"prompt_eval_count": 7, "eval_count": 3}))
    answer = session.ask("llama3:8b", via="ollama_chat", stream=stream)

    assert (answer.text, answer.usage) == ("Good morning.", Usage(input=7, output=3))
    assert answer.wire is not None
    assert wire_bytes(answer.wire, answer.wire_style) == session.sent


@pytest.mark.parametrize(
    ("model", "stream", "kind", "said"),
    [
        ("endlessline", True, "too_large", "has a line of more than 32 MB"),
        pytest.param("endlessblank", True, "too_large", "has more than 2,000,000 lines", marks=pytest.mark.proof),
        pytest.param("endlessjson", False, "too_large", "has a line of more than 32 MB", marks=pytest.mark.proof),
        pytest.param("endlesserror", True, "server", "answered 500", marks=pytest.mark.proof),
        ("endlesserror", False, "server", "answered 500"),
        ("bomb", True, "too_large", "has a line of more than 32 MB"),
        ("brotli", True, "bad_answer", "is encoded as 'br', which was not asked for"),
        ("notgzip", False, "bad_answer", "is not compressed in the way that it says"),
    ],
)
def test_of_an_answer_without_end_only_so_much_is_taken(
    start: Start, model: str, stream: bool, kind: str, said: str
) -> None:
    session = start()
    fault = session.fault(model, stream=stream)

    assert (fault.kind, said in fault.message) == (kind, True), fault.message
    assert len(fault.body) <= 4000


@pytest.mark.proof
@pytest.mark.parametrize(
    ("model", "stream", "said"),
    [
        ("endlesstext", True, "longer than 64 MB"),
        ("endlessnodes", False, "1,000,000 objects and lists"),
        ("bomb", True, "has a line of more than 32 MB"),
    ],
)
def test_an_answer_without_end_takes_little_memory(start: Start, model: str, stream: bool, said: str) -> None:
    session = start()
    session.fault("429", stream=stream)  # what is loaded at the first call is no memory of the answer
    tracemalloc.start()  # It takes what makes many objects three times as long.
    try:
        fault = session.fault(model, stream=stream)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 400 << 20
    assert (fault.kind, said in fault.message) == ("too_large", True), fault.message
    assert len(fault.body) <= 4000


@pytest.mark.parametrize(
    "via",
    ["anthropic", *(pytest.param(via, marks=pytest.mark.proof) for via in ("gemini", "ollama_chat", "openrouter"))],
)
def test_no_dialect_takes_an_answer_without_end(start: Start, via: str) -> None:
    fault = start().fault("endlessline", via=via)

    assert (fault.kind, "has a line of more than 32 MB" in fault.message) == ("too_large", True)


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_is_compressed_unasked_is_read(start: Start, stream: bool) -> None:
    answer = start().ask("gzip", stream=stream)

    assert (answer.text, answer.finish_reason, answer.usage.input) == ("packed", "stop", 11)
