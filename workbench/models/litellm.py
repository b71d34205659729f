"""Answers requests through litellm: one try, one deadline, every fault typed, and the body exactly as it was sent.

The import takes seconds, so it happens in a worker thread at the first call, or at ``warm``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import httpx

from workbench import __version__
from workbench.collector import no_collection
from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.context.wire import MissingImage
from workbench.engine.ports import Answer, Images, ModelFault
from workbench.models.collect import Collector, usage_of
from workbench.models.cost import cost
from workbench.models.faults import build, fault_of, unreadable
from workbench.models.names import NoKey, Resolved
from workbench.models.outgoing import messages_for, parameters_for
from workbench.models.prices import PriceTable
from workbench.models.tape import Tape, current, recording_client

NO_KEY = "no-key"
"""Sent where no key is known: with an empty one litellm would take OPENAI_API_KEY, and send it to any host."""

CONNECT = 20.0
"""Seconds to reach a host, within the deadline of the call."""

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER": "true",
    "MAX_BASE64_LENGTH_FOR_LOGGING": "0",
}
"""Before the import: no price map from the network, no ``.env`` read, the route whose CPU does not grow
with every message, and no search of each message for images to shorten in logs."""

_import_lock = threading.Lock()


class LiteLLM:
    """Implements ``Model``.

    ``resolve`` says how a model name is sent, and raises NoKey. ``timeout_s`` is the deadline of one call in seconds,
    from the request to the last byte of the answer. ``stream`` is for servers that cannot.
    """

    name = "litellm"

    def __init__(
        self, resolve: Callable[[str], Resolved], prices: PriceTable, *, timeout_s: float = 300.0, stream: bool = True
    ) -> None:
        self._resolve = resolve
        self._prices = prices
        self._timeout = timeout_s
        self._stream = stream
        self._clients: dict[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, Any]] = {}

    def recorded(self, request: Request, place: Place) -> str:
        return "live"

    async def warm(self) -> None:
        """Load litellm now, with what it loads only at its first call, so that the first call need not wait for it."""
        await asyncio.to_thread(_rehearsed)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client, _ = self._clients.pop(asyncio.get_running_loop(), (None, None))
        if client is not None:
            await client.aclose()

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        try:
            resolved = self._resolve(request.model)
            messages, parameters = messages_for(request, images, resolved), parameters_for(request, resolved)
        except NoKey as fault:
            raise ModelFault(fault.kind, str(fault)) from fault
        except (MissingImage, ValueError) as fault:
            raise ModelFault("bad_request", str(fault)) from fault
        litellm = _ready or await asyncio.to_thread(_imported)
        tape = Tape("reasoning_details" if "reasoning_details" in resolved.provider.returns else "")
        answer = Collector(on_text)
        begin = time.perf_counter()
        token = current.set(tape)
        try:
            async with asyncio.timeout(self._timeout):
                await self._exchange(litellm, resolved, {"messages": messages, **parameters}, tape, answer)
        except TimeoutError:
            message = "the answer was cut off after" if answer.text else "no answer within"
            raise build("timeout", f"{message} {self._timeout:g} s", tape, resolved, answer.text) from None
        except Exception as error:  # noqa: BLE001 - litellm raises what it likes; every one of them becomes a fault
            raise fault_of(error, tape, resolved, answer.text) from None
        finally:
            current.reset(token)
            await tape.close()
        return self._answer(request, resolved, messages, tape, answer, begin)

    async def _exchange(
        self, litellm: Any, resolved: Resolved, arguments: dict[str, Any], tape: Tape, answer: Collector
    ) -> None:
        if self._stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        response = await _uncancelled_before_sending(
            litellm.acompletion(
                model=resolved.litellm_name,
                api_key=resolved.api_key or NO_KEY,
                api_base=resolved.base_url or None,
                client=self._client(litellm),
                timeout=httpx.Timeout(self._timeout + 10, connect=CONNECT),
                max_retries=0,
                num_retries=0,
                _skip_mcp_handler=True,
                **arguments,
            ),
            tape,
        )
        if not self._stream:
            answer.add(response)
            return
        async for chunk in await _provider_stream(litellm, response):
            answer.add(chunk)

    def _answer(
        self,
        request: Request,
        resolved: Resolved,
        messages: list[dict[str, Any]],
        tape: Tape,
        answer: Collector,
        begin: float,
    ) -> Answer:
        """The typed answer, without what litellm makes up where the provider said nothing: finish reason and usage."""
        if not answer.text.strip() and not answer.calls:
            raise _nothing(resolved, tape, answer, self._stream)
        answer.details(tape.kept())
        usage, billed = usage_of(answer.usage, tape.said)
        price = self._prices.price(request.model, usage.input or 0)
        spent = cost(usage, price) if billed is None else billed
        event = tape.first_event()
        wire, style = tape.wire(messages)
        return Answer(
            answer.text,
            answer.calls,
            extra=answer.extra,
            finish_reason=answer.finish_reason if "finish" in tape.said else "unknown",
            usage=usage,
            cost=spent,
            cost_grade="billed" if billed is not None else "unknown" if spent is None else price.grade,
            model=str(event.get("model") or answer.model),
            provider=str(event.get("provider") or resolved.provider.id),
            provider_id=str(event.get("id") or answer.id),
            first_token_s=None if answer.started is None else answer.started - begin,
            duration_s=time.perf_counter() - begin,
            wire=wire,
            wire_style=style,
            partial=self._stream and not tape.ended,
        )

    def _client(self, litellm: Any) -> Any:
        """litellm's handler around our recording client, one per event loop: connections belong to a loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for stale in [known for known in self._clients if known.is_closed()]:
                del self._clients[stale]
            client = recording_client(f"cascade-workbench/{__version__}")
            self._clients[loop] = (client, _handler(litellm, client))
        return self._clients[loop][1]


def _handler(litellm: Any, client: httpx.AsyncClient) -> Any:
    """litellm's handler around a client of ours. Its own client would be made at once, unless it has a transport."""
    handler_class = litellm.llms.custom_httpx.http_handler.AsyncHTTPHandler
    handler = handler_class(transport=httpx.MockTransport(lambda request: httpx.Response(500)))
    handler.client = client
    handler.create_client = _no_second_try
    return handler


def _no_second_try(**_: Any) -> Any:
    """Stands where litellm makes a new client to repeat a request whose connection was lost: the loss is the answer."""
    raise sys.exc_info()[1] or ConnectionError("the connection was lost")


async def _provider_stream(litellm: Any, response: Any) -> Any:
    """The chunks as the provider's parser gives them.

    litellm's wrapper around them costs as much as all the rest of a call, and makes up a finish reason and usage where
    there were none. The parser's reader of lines takes every line that mentions ``[DONE]`` for the end, and passes over
    what is not JSON: text would be lost without a word.
    """
    if response.completion_stream is None:
        await response.fetch_stream()
    stream = response.completion_stream
    base = litellm.llms.base_llm.base_model_iterator.BaseModelResponseIterator
    if getattr(type(stream), "_handle_string_chunk", None) is base._handle_string_chunk:
        read = stream._handle_string_chunk

        def read_line(str_line: str) -> Any:
            field, _, value = str_line.partition(":")
            if field != "data" or value.strip() == "[DONE]":
                return read(str_line)
            return stream.chunk_parser(chunk=json.loads(value))

        stream._handle_string_chunk = read_line
    return stream


async def _uncancelled_before_sending(call: Any, tape: Tape) -> Any:
    """Await a call; on cancellation end it where that leaves nothing behind.

    Before the request is sent litellm works in a thread that cannot be stopped and returns a coroutine: cancelling
    there would drop it unawaited. So the request is refused at the client, and the call ends by itself.
    """
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        tape.cancelled = True
        if tape.sent:
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


def _nothing(resolved: Resolved, tape: Tape, answer: Collector, stream: bool) -> ModelFault:
    """Neither text nor calls: an answer that could not be read, or a blank one."""
    provider = resolved.where
    if not tape.readable():
        return build("bad_answer", unreadable(tape, resolved), tape, resolved)
    if stream and not tape.ended:
        return build("stream_cut", f"the answer of {provider} ended before it began", tape, resolved)
    reasoned = ", all of it reasoning" if answer.extra.get("reasoning_content") else ""
    reason = f" (finish reason {answer.finish_reason}{reasoned})" if "finish" in tape.said else ""
    return build("blank", f"the answer of {provider} is blank{reason}", tape, resolved)


class _LazyEncoding:
    """In place of the tokenizer that litellm builds before its first call, one step of 0.15 s in which no other thread
    runs. It is only asked for an answer without usage that litellm would count itself."""

    def __getattr__(self, name: str) -> Any:
        from workbench.models.encodings import load_encoding

        return getattr(load_encoding("cl100k_base"), name)


def _no_cost(**_: Any) -> None:
    """Prices are ours; litellm's sum would count the tokens of every streamed request, with that tokenizer."""


_ready: Any = None


def _imported() -> Any:
    """litellm, imported once and with its switches set.

    Python's collector rests meanwhile: among so many new objects it would stall all other threads.
    """
    global _ready
    with _import_lock:
        if _ready is not None:
            return _ready
        os.environ.update(_ENVIRONMENT)
        with no_collection():
            import litellm
            import litellm.llms.base_llm.base_model_iterator
            import litellm.llms.custom_httpx.http_handler
            import litellm.main

            litellm.main._encoding_cache = _LazyEncoding()
            litellm.response_cost_calculator = _no_cost
            gc.freeze()
        # At its first call litellm describes types to pydantic, which has a remark on some: nothing a user can mend.
        warnings.filterwarnings("ignore", "(Item|Extra item).*`ReadOnly` qualifier", UserWarning)
        litellm.suppress_debug_info = True
        litellm.disable_hf_tokenizer_download = True
        litellm.telemetry = False
        litellm.drop_params = litellm.modify_params = False
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        _ready = litellm
        return _ready


_REHEARSAL = (
    b'data: {"id":"0","model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"0","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n'
)
"""With usage: without it litellm would count tokens itself, and load a tokenizer for that."""


def _rehearsed() -> None:
    """One call that leaves neither this thread nor this process: it loads 0.3 s worth of modules."""
    litellm = _imported()

    async def call() -> None:
        transport = httpx.MockTransport(
            lambda request: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=_REHEARSAL)
        )
        async with httpx.AsyncClient(transport=transport) as client:
            response = await litellm.acompletion(
                model="openai/gpt-4o",
                messages=[{"role": "user", "content": "a"}],
                api_key=NO_KEY,
                api_base="http://127.0.0.1",
                client=_handler(litellm, client),
                stream=True,
                _skip_mcp_handler=True,
            )
            async for _ in await _provider_stream(litellm, response):
                pass

    asyncio.run(call())


async def loaded() -> Any:
    """litellm, imported in a thread where it is not there yet. For what is asked beside completions."""
    return _ready or await asyncio.to_thread(_imported)


handler_around, ended_cleanly = _handler, _uncancelled_before_sending
