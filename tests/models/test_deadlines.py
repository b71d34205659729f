"""The deadline of a call: told as one, also where a library makes an ended connection of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.support.waiting import PATIENCE
from workbench.context.assembly import Request
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import ModelFault
from workbench.models import calls
from workbench.models.connections import RecordingClient
from workbench.models.embeddings import LiteLLMEmbedder
from workbench.models.litellm import LiteLLM
from workbench.models.names import Resolved, resolve
from workbench.models.prices import PriceTable

PIECE = json.dumps({"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": "Half of"}}]})


class Dropping(httpx.AsyncBaseTransport, httpx.AsyncByteStream):
    """Answers with a piece of text, or with nothing, and loses the connection when the reading of it is cancelled."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.extensions["trace"]("connection.connect_tcp.started", {})
        if not self._text:
            await self._lost()
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield f"data: {self._text}\n\n".encode()
        await self._lost()

    async def _lost(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise httpx.ReadError("the connection was lost") from None


class Slow(httpx.AsyncBaseTransport):
    """Has a time limit of its own, which is over at once."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("the proxy waited for 3 s")


@pytest.fixture(autouse=True)
def own_client() -> Iterator[None]:
    calls.rehearse()
    yield
    calls.send_with(RecordingClient())


def at(name: str) -> Resolved:
    return resolve(name, "http://127.0.0.1:9/v1", {})


def fault_of_call(transport: httpx.AsyncBaseTransport, *, stream: bool, timeout: float) -> ModelFault:
    calls.send_with(RecordingClient(transport))
    model = LiteLLM(at, PriceTable({}), timeout_s=timeout, stream=stream)
    request = Request("m", {}, (), (Message("user", "hello"),), "digest")
    with pytest.raises(ModelFault) as caught:
        asyncio.run(model.complete(request, Place(), {}, lambda text: None))
    return caught.value


@pytest.mark.parametrize("stream", [True, False])
def test_a_deadline_that_ends_the_connection_is_told_as_the_deadline(stream: bool) -> None:
    fault = fault_of_call(Dropping(), stream=stream, timeout=0.3)
    assert (fault.kind, fault.message) == ("timeout", "no answer within 0.3 s")


def test_a_deadline_in_the_middle_of_an_answer_keeps_its_text() -> None:
    """The deadline leaves a busy machine the time to read the text."""
    fault = fault_of_call(Dropping(PIECE), stream=True, timeout=2)
    assert (fault.kind, fault.message) == ("timeout", "the answer was cut off after 2 s")
    assert fault.partial == "Half of"


def test_a_time_limit_of_others_is_not_told_as_the_deadline() -> None:
    fault = fault_of_call(Slow(), stream=True, timeout=PATIENCE)
    assert (fault.kind, fault.message) == ("timeout", "the proxy waited for 3 s")


def test_the_deadline_of_embeddings_is_told_as_the_deadline() -> None:
    calls.send_with(RecordingClient(Dropping()))
    with pytest.raises(ModelFault, match=r"no embeddings within 0\.3 s"):
        asyncio.run(LiteLLMEmbedder(at, PriceTable({}), timeout_s=0.3).embed(["a"], "m"))
