"""Answers requests through litellm: one try, one deadline, every fault typed, and the body exactly as sent.

The import takes seconds, so it happens in a worker thread at the first call, or at ``warm``.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx
from msgspec.structs import replace

from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.context.wire import MissingImage
from workbench.engine.contracts import Answer, Images, ModelFault
from workbench.models import calls
from workbench.models.collect import Collector, loose, usage_of
from workbench.models.destinations import located
from workbench.models.faults import build, fault_of, unreadable
from workbench.models.library import is_argument
from workbench.models.names import NoKey, Resolved
from workbench.models.outgoing import messages_for, parameters_for, placed
from workbench.models.prices import PriceTable, cost
from workbench.models.tape import NotSent, Tape, Unreached

CONNECT = 20.0
"""Seconds to reach a host, within the deadline of the call."""


class LiteLLM:
    """Implements ``Model``.

    ``resolve`` says how a model name is sent, and raises NoKey. In ``env`` (default: the process's environment)
    litellm looks for keys and addresses. ``timeout_s`` is the deadline of one call in seconds,
    from the request to the last byte of the answer. ``stream`` is for servers that cannot.
    """

    name = "litellm"

    def __init__(
        self,
        resolve: Callable[[str], Resolved],
        prices: PriceTable,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300.0,
        stream: bool = True,
    ) -> None:
        self._resolve = resolve
        self._env = os.environ if env is None else env
        self._prices = prices
        self._timeout = timeout_s
        self._stream = stream
        self._found: dict[Resolved, Resolved] = {}
        """The resolved destination of each model, once known."""

    def recorded(self, request: Request, place: Place) -> str:
        return "live"

    async def warm(self) -> None:
        """Load litellm now, with what it loads only at its first call, so that the first call need not wait for it."""
        await asyncio.to_thread(calls.rehearse, dict(self._env))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await calls.client().close_here()

    async def complete(self, request: Request, place: Place, images: Images, on_text: Callable[[str], None]) -> Answer:
        await calls.ready()
        try:
            resolved = await self._located(self._resolve(request.model))
            arguments = self._arguments(request, images, resolved)
        except NoKey as fault:
            raise ModelFault(fault.kind, str(fault)) from fault
        except (MissingImage, ValueError) as fault:
            raise ModelFault("bad_request", str(fault)) from fault
        tape = Tape("reasoning_details" if "reasoning_details" in resolved.provider.returns else "")
        answer = Collector(on_text)
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                await self._exchange(arguments, resolved, tape, answer)
        except (Exception, NotSent, Unreached) as error:  # noqa: BLE001 - litellm raises what it likes: all are faults
            # Asked first: a library may make an ended connection of the deadline, and its own time-outs are others.
            if deadline.expired():
                message = "the answer was cut off after" if answer.text else "no answer within"
                late = build("timeout", f"{message} {self._timeout:g} s", tape, resolved, answer.text)
                raise self._with_usage(late, request.model, tape, answer) from None
            if not _read_whole(tape, answer):
                broken = fault_of(error, tape, resolved, answer.text)
                raise self._with_usage(broken, request.model, tape, answer) from None
        finally:
            await tape.close()
        return self._answer(request, resolved, arguments["messages"], tape, answer, begin)

    async def _located(self, resolved: Resolved) -> Resolved:
        """With the address and the key that litellm finds. Raises NoKey."""
        if resolved not in self._found:
            self._found[resolved] = await located(resolved, self._env)
        return self._found[resolved]

    def _arguments(self, request: Request, images: Images, resolved: Resolved) -> dict[str, Any]:
        """Returns the arguments of litellm for a request. Raises MissingImage, ValueError."""
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if self._stream else {}
        return {
            "model": resolved.litellm_name,
            "messages": messages_for(request, images, resolved),
            "api_key": resolved.sent_key,
            "api_base": resolved.base_url or None,
            "timeout": httpx.Timeout(self._timeout + 10, connect=CONNECT),
            **placed(parameters_for(request, resolved), resolved.litellm_name, is_argument),
            **streaming,
        }

    async def _exchange(self, arguments: Mapping[str, Any], resolved: Resolved, tape: Tape, answer: Collector) -> None:
        response = await calls.completion(self._env, tape, direct=resolved.direct, **arguments)
        if not self._stream:
            answer.add(response)
            return
        async for piece in calls.pieces(response):
            answer.add(piece)
        if tape.broken is not None:  # Some parsers take it for the end.
            raise tape.broken

    def _with_usage(self, fault: ModelFault, model: str, tape: Tape, answer: Collector) -> ModelFault:
        """A fault with what the provider reported before it: that may be billed, too."""
        usage, billed = usage_of(answer.usage, tape.said)
        if usage.input is not None or usage.output is not None:
            price = self._prices.price(model, usage.input or 0)
            known = replace(usage, input=usage.input or 0, output=usage.output or 0)
            fault.usage, fault.cost = usage, cost(known, price) if billed is None else billed
        return fault

    def _answer(
        self,
        request: Request,
        resolved: Resolved,
        messages: Sequence[Mapping[str, Any]],
        tape: Tape,
        answer: Collector,
        begin: float,
    ) -> Answer:
        """The typed answer, without what litellm invents if the provider states nothing: finish reason and usage."""
        if not answer.text.strip() and not answer.calls and not _read_whole(tape, answer):
            nothing = _nothing(resolved, tape, answer, self._stream)
            raise self._with_usage(nothing, request.model, tape, answer)
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
            finish_reason="refusal" if answer.refused else answer.finish_reason if "finish" in tape.said else "unknown",
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
            partial=self._stream and tape.sent and not tape.ended,
            remarks=tuple(_remarks(tape, answer)),
        )


def _read_whole(tape: Tape, answer: Collector) -> bool:
    """Take the answer from the raw response if litellm could not read it: it came whole although a stream was
    requested, or its usage is invalid. Returns whether there is one.
    """
    if answer.text or answer.calls or tape.status != 200 or tape.garbled:
        return False
    body = loose(tape.whole())
    if body is None:
        return False
    try:
        answer.add(body)
    except (AttributeError, TypeError):
        return False
    return bool(answer.text.strip() or answer.calls)


def _remarks(tape: Tape, answer: Collector) -> Iterator[str]:
    """Yields the faults of an answer that can be used all the same."""
    if tape.garbled:
        yield "the answer holds bytes that are not UTF-8; they are shown as \ufffd"
    if shared := answer.shared_ids:
        yield f"{shared + 1} tool calls came with the same id; each has one of its own now"
    if answer.refused:
        yield "the model refused to answer; its words are the answer"


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
