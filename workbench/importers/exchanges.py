"""Reads a request and its response in the formats of providers: chat completions, responses, Anthropic, Gemini,
Bedrock, Ollama.

The shape decides the format, so that a proxy's address or a log that names no provider is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.marks import Marks
from workbench.context.message import WHOLE
from workbench.engine.forecasting import added_by_provider
from workbench.engine.journal.usage import StatedUsage
from workbench.importers.conversation import (
    Beside,
    Call,
    Conversation,
    ImportedMessage,
    Picture,
    Remarks,
    Unreadable,
    marks_of_messages,
    unmarked,
)
from workbench.importers.messages import ROLES, read_message, read_messages, tool_schemas
from workbench.importers.parts import mark_of
from workbench.importers.streams import messages_of, whole_response
from workbench.importers.threads import ObservedCall, linear, threads_of, unanswered
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, duration_between, mapping, moment, number, string

PARAMETERS = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "reasoning_effort",
    "reasoning",
    "tool_choice",
    "stop",
    "seed",
    "thinking",
    "response_format",
)
_PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("requestBody", "responseBody"),
    ("params", "result"),
    ("inputs", "output"),
    ("responses_create_params", "response"),
)
_CONFIGS = ("generationConfig", "generation_config", "config", "inferenceConfig")
"""Keys under which Gemini and Bedrock send parameters."""
IN_CONFIG = {
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "topP": "top_p",
    "temperature": "temperature",
    "seed": "seed",
}
_KEPT = ("conversation", "container", "mcp_servers")
"""Fields that refer to data stored at a provider: messages of a conversation, files, tools of servers."""
_RUN = ("server_tool_use", "mcp_tool_use", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_CALLERS = ("function_call", "custom_tool_call", "tool_call")
_NAME = 40
"""Characters of the name of a tool of the provider, in a sentence."""
_ROLLOUT = "a rollout states what its agent was given, not the requests that it made"
_RESULTS = ("function_call_output", "custom_tool_call_output")
_BY_RESPONSES = ("//openrouter.ai/", "//ai-gateway.vercel.sh/")
"""Gateways that turn chat completions into requests to OpenAI's Responses API: what they count for GPT-5 with tools is
what that counts."""
_MOST_KEPT = 50_000
"""Messages of responses that are remembered, the newest: later requests may name a response instead of sending them. A
picture counts as one for each KB.
"""
_IN_URL = re.compile(r"/(?:models?|deployments|engines)/([^/:?]+)")


def given_of(request: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request, in any of the known shapes; None if it asks no model."""
    for key in ("messages", "contents", "input"):
        found = request.get(key)
        if isinstance(found, list) and found and all(isinstance(one, dict) for one in found):
            listed = [{"role": "user", **one} for one in found] if key == "contents" else messages_of(found)
            return [*_system(request), *listed]
    for key in ("input", "prompt", "contents"):
        if isinstance(text := request.get(key), str):
            return [*_system(request), {"role": "user", "content": text}]
    return None


def _system(request: Mapping[str, Any]) -> list[Any]:
    config = mapping(request.get("config"))
    for outer, key in (
        (request, "system"),
        (request, "system_prompt"),
        (request, "instructions"),
        (request, "system_instructions"),
        (request, "systemInstruction"),
        (request, "system_instruction"),
        (config, "systemInstruction"),
        (config, "system_instruction"),
    ):
        if text := outer.get(key):
            return [{"role": "system", "content": text}]
    return []


def answered_of(response: Mapping[str, Any]) -> list[Any]:
    """The messages of a response; empty if it holds no answer."""
    choices = array(response.get("choices"))
    if choices:
        first = mapping(choices[0])
        body = mapping(first.get("message")) or {"content": first.get("text")}
        return [{**body, "role": "assistant"}]
    if candidates := array(response.get("candidates")):
        return [{**mapping(mapping(candidates[0]).get("content")), "role": "assistant"}]
    if steps := array(response.get("steps")):
        return messages_of(steps)
    if isinstance(response.get("output"), list):
        return [{"role": "assistant", **one} if _bare(one) else one for one in response["output"]]
    for inner in (mapping(response.get("output")), response):
        if message := mapping(inner.get("message")):
            return [{**message, "role": "assistant"}]
    if isinstance(response.get("content"), dict) and "parts" in response["content"]:
        return [{**response["content"], "role": "assistant"}]
    is_told = isinstance(response.get("content"), str) and "finish_reason" in response
    if is_told or response.get("role") == "assistant" or isinstance(response.get("content"), list):
        return [{"content": response.get("content"), "role": "assistant"} | dict(response)]
    return []


def _bare(one: object) -> bool:
    return isinstance(one, dict) and "role" not in one and one.get("type") == "message"


def is_response(response: Mapping[str, Any]) -> bool:
    """Returns whether it is a response of a model."""
    return bool(answered_of(response))


def answer_of(response: Mapping[str, Any], remarks: Remarks) -> ImportedMessage:
    """The answer in a response. Raises Unreadable."""
    further = len(array(response.get("choices")) or array(response.get("candidates"))) - 1
    if further > 0:
        remarks.left_out("a further choice of a response", count=further)
    said = read_messages(answered_of(response), remarks, "response")
    found = [one for one in said if one.role == "assistant"]
    if not found:
        raise Unreadable("the response holds no answer")
    return whole(found)


def whole(answers: Sequence[ImportedMessage]) -> ImportedMessage:
    """Calls and texts that came as items of their own are one answer."""
    if len(answers) == 1:
        return answers[0]
    reasoning = [part for one in answers for part in array(one.extra.get("reasoning"))]
    extra = {key: value for one in answers for key, value in one.extra.items()}
    return ImportedMessage(
        "assistant",
        tuple(part for one in answers for part in one.parts),
        tuple(call for one in answers for call in one.calls),
        extra=extra | ({"reasoning": reasoning} if reasoning else {}),
    )


def finish_of(response: Mapping[str, Any]) -> str:
    """Returns why the answer ended, as the provider says."""
    first = mapping(next(iter(array(response.get("choices")) or array(response.get("candidates"))), None))
    for outer, key in (
        (first, "finish_reason"),
        (first, "finishReason"),
        (response, "finish_reason"),
        (response, "stop_reason"),
        (response, "stopReason"),
        (response, "done_reason"),
        (response, "status"),
    ):
        if reason := outer.get(key):
            return as_text(reason)
    return ""


def parameters_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a request that shape its answer."""
    inner = next((one for key in _CONFIGS if (one := mapping(request.get(key)))), {})
    found = {IN_CONFIG[key]: value for key, value in inner.items() if key in IN_CONFIG}
    outer = {**mapping(request.get("additionalModelRequestFields")), **request}
    found |= {name: outer[name] for name in PARAMETERS if name in outer}
    if (shaped := _answer_form(request, inner)) is not None:
        found["response_format"] = shaped
    return {name: value for name, value in found.items() if value is not None}


def _answer_form(request: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema that a request sets for its answer, in the form of OpenAI's chat completions, from that of its
    Responses, Anthropic's, Bedrock's or Gemini's (``inner``: its configuration of the answer); None without one.
    """
    for outer in (
        mapping(request.get("text")).get("format"),
        request.get("output_format"),
        mapping(request.get("output_config")).get("format"),
    ):
        asked = mapping(outer)
        if "schema" in asked:
            return {"type": "json_schema", "json_schema": {k: v for k, v in asked.items() if k != "type"}}
    shape = mapping(mapping(mapping(request.get("outputConfig")).get("textFormat")).get("structure"))
    if named := mapping(shape.get("jsonSchema")):
        return {"type": "json_schema", "json_schema": {**named, "schema": decoded(named.get("schema"))}}
    keys = ("responseSchema", "responseJsonSchema", "response_schema", "response_json_schema", "_responseJsonSchema")
    schema = next((one for key in keys if (one := mapping(inner.get(key)))), None)
    return None if schema is None else {"type": "json_schema", "json_schema": {"schema": schema}}


def marks_in(request: Mapping[str, Any], said: Sequence[ImportedMessage]) -> Marks | None:
    """The cache marks of a request; None if it has none. ``said``: its messages as they were read."""
    return marks_of_messages(said, marked_beside(request))


def marked_beside(request: Mapping[str, Any]) -> Beside:
    """What a request marks for the cache beside its messages: its tools, and by itself, its end."""
    beside = unmarked(tool_schemas(_declared(request)))[1]
    return (*beside, ("last", ttl)) if (ttl := mark_of(request)) else beside


def served_by(tools: object) -> str:
    """That a request has tools of its provider's own, in words: what they add to the request, no record shows."""
    names = [_own_tool(mapping(one)) for one in array(tools)]
    named = ", ".join(name for name in dict.fromkeys(names) if name)
    return f"tools of the provider add to the request what the file does not show: {named}" if named else ""


def _own_tool(tool: Mapping[str, Any]) -> str:
    """The name of a tool that a provider runs or defines itself (``web_search`` and its kind); empty for a function."""
    if tool.get("defer_loading"):
        return f"{string(tool.get('name'))[:_NAME] or 'a tool'}, which it shows when it is searched for"
    if any(tool.get(key) for key in ("function", "functionDeclarations", "function_declarations", "toolSpec")):
        return ""
    kind = string(tool.get("type"))
    if ":" not in kind and any(key in tool for key in ("input_schema", "parameters", "inputSchema", "cachePoint")):
        return ""
    return (kind or string(tool.get("name")) or next(iter(tool), ""))[:_NAME]


def _run_by_provider(body: object) -> str:
    """The kind of what a provider ran or keeps, if a message or an item of a request is or holds that; else empty."""
    one = mapping(body)
    for part in (one, *map(mapping, array(one.get("content"))), *map(mapping, array(one.get("parts")))):
        kind = string(part.get("type"))
        own = kind.endswith("_call") and kind not in _CALLERS and "call_id" not in part
        results = kind.endswith("_tool_result") or kind in ("compaction", "item_reference")
        if own or results or kind in _RUN:
            return kind
        if found := next((key for key in _RUN if key in part), ""):
            return found
    return ""


def _goes_on_from(request: Mapping[str, Any]) -> str:
    """The id under which the provider keeps the messages before those of a request; empty for none."""
    return string(request.get("previous_response_id")) or string(request.get("cachedContent"))


class AskedCall(Struct, frozen=True):
    """The content of a request to a model."""

    input: tuple[ImportedMessage, ...]
    model: str
    """Empty if neither the request nor its address names one."""
    tools: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Any]
    marks: Marks | None
    """Its cache marks; None if it has none."""
    unstated: str
    """The parts of it that are unknown, in words."""
    responses: bool = False
    """Whether it goes to OpenAI's Responses API."""
    whole: bool = False
    """Whether it asks Google for an answer of Gemini 2.5 that is no stream."""


def _observed(asked: AskedCall, answer: ImportedMessage, call: Call, model: str) -> ObservedCall:
    return ObservedCall(
        asked.input, answer, call, model, asked.tools, asked.parameters, asked.unstated, asked.responses, True
    )


class Exchanges:
    """Reads requests with their responses, in the order of one log."""

    def __init__(self, remarks: Remarks) -> None:
        self.remarks = remarks
        self._weight = 0
        self._kept: dict[str, list[ImportedMessage]] = {}
        """The messages that a provider keeps under an id that later requests name instead of sending them again."""

    def read(
        self, request: Mapping[str, Any], response: Mapping[str, Any], call: Call | None = None, url: str = ""
    ) -> ObservedCall | None:
        """One model call; None if the request asks no model or the response holds no answer. Raises Unreadable.

        ``call``: what the log itself says of it; its usage, model and end are those of the response.
        """
        asked = self.asked(request, url)
        if asked is None:
            return None
        if not is_response(response):
            return self._unanswered(asked, call or Call(), _fault_of(response))
        answer, full = self.answered(asked, response, call or Call())
        return _observed(asked, answer, full, asked.model or full.model)

    def asked(self, request: Mapping[str, Any], url: str = "") -> AskedCall | None:
        """The call that a request makes; None if it asks no model. Raises Unreadable."""
        given = given_of(request)
        if given is None:
            return None
        given, compacted = self._after_compaction(given)
        earlier = [] if compacted else self._earlier(request)
        said = [*earlier, *read_messages(given, self.remarks, "request")]
        named = _IN_URL.search(url)
        model = string(request.get("model")) or string(request.get("model_name")) or (named[1] if named else "")
        if "aiplatform.googleapis.com" in url and model.startswith("gemini"):
            model = f"vertex_ai/{model}"  # Vertex AI counts otherwise than Google's other interface to the same models.
        tools, parameters = _tools_of(request), parameters_of(request)
        marks, unstated = marks_in(request, said), self._unstated(request, url)
        responses = bool(request.get("input")) or any(host in url for host in _BY_RESPONSES)
        whole = model.startswith("gemini-2.5") and ":generateContent" in url
        return AskedCall(tuple(said), model, tools, parameters, marks, unstated, responses, whole)

    def _after_compaction(self, given: list[Any]) -> tuple[list[Any], bool]:
        """Returns the messages of a request that a provider uses: those from the last compaction on, and the
        instructions; and whether there is one. Source: Anthropic's and OpenAI's guides "Compaction".
        """
        found = [i for i, body in enumerate(given) if _run_by_provider(body) == "compaction"]
        if not found:
            return given, False
        kept = [body for body in given[: found[-1]] if ROLES.get(string(mapping(body).get("role"))) == "system"]
        if left := found[-1] - len(kept):
            self.remarks.left_out("a message before a compaction, which the provider does not use,", count=left)
        return [*kept, *given[found[-1] :]], True

    def answered(
        self, asked: AskedCall, response: Mapping[str, Any], told: Call = Call()
    ) -> tuple[ImportedMessage, Call]:
        """The answer to a request, and what the response says of the call over what ``told`` does. Raises
        Unreadable."""
        answer = answer_of(response, self.remarks)
        if asked.whole:
            answer = replace(answer, extra={**answer.extra, WHOLE: True})
        usage = mapping(response.get("usage")) or mapping(response.get("usageMetadata")) or response
        full = Call(
            usage_of(usage),
            told.cost if told.cost is not None else number(usage.get("cost")),
            string(response.get("model")) or string(response.get("modelVersion")) or told.model,
            told.provider or string(response.get("provider")),
            finish_of(response),
            told.duration_s,
            told.at or moment(response.get("created") or response.get("created_at")),
            asked.marks,
        )
        if asked.responses and (key := string(response.get("id"))):  # No other kind of response can be named.
            self._remember(key, [*asked.input, answer])
        return answer, full

    def refused(
        self, request: Mapping[str, Any], response: Mapping[str, Any], told: Call, reason: str
    ) -> ObservedCall | None:
        """A model call that the provider refused, for ``reason``; None if the request asks no model. Raises
        Unreadable.
        """
        asked = self.asked(request)
        return None if asked is None else self._unanswered(asked, told, f"{reason}: {_fault_of(response)}")

    @staticmethod
    def _unanswered(asked: AskedCall, told: Call, fault: str) -> ObservedCall:
        """A request whose response holds no answer: the request and the reason are kept."""
        answer, call = unanswered(told, fault)
        return _observed(asked, answer, call, asked.model or told.model)

    def _unstated(self, request: Mapping[str, Any], url: str) -> str:
        """Returns which parts of a request the file does not show, in words."""
        key = _goes_on_from(request)
        kept = [f"{name} that the provider keeps" for name in _KEPT if request.get(name)]
        if isinstance(request.get("prompt"), dict):
            kept.append("a prompt that the provider keeps")
        if len(array(request.get("prompt"))) > 1:
            kept.append("further prompts of the same request")
        if key and key not in self._kept:
            kept.append("messages that the provider keeps")
        if url.endswith("/compact"):
            kept.append("how the provider asks for a compaction")
        parts = [served_by(_declared(request)), added_by_provider(string(request.get("model")), request)]
        ran = dict.fromkeys(filter(None, map(_run_by_provider, given_of(request) or ())))
        parts += [f"a provider may count otherwise what it ran or keeps: {', '.join(ran)}"] if ran else []
        if any(map(_cites, given_of(request) or ())):
            parts.append("the provider divides documents for citations, and says how to cite them")
        parts += [f"the request names what the file does not show: {', '.join(kept)}"] if kept else []
        return "; ".join(filter(None, parts))

    def keep(self, key: str, request: Mapping[str, Any]) -> None:
        """Messages that a provider was given beforehand, to be named by this key. Raises Unreadable."""
        if key and (given := given_of(request)) is not None:
            self._remember(key, read_messages(given, self.remarks, "request"))

    def _remember(self, key: str, said: list[ImportedMessage]) -> None:
        self._weight += _weight(said) - _weight(self._kept.pop(key, []))
        self._kept[key] = said
        while self._weight > _MOST_KEPT and len(self._kept) > 1:
            self._weight -= _weight(self._kept.pop(next(iter(self._kept))))

    def _earlier(self, request: Mapping[str, Any]) -> list[ImportedMessage]:
        key = _goes_on_from(request)
        if not key:
            return []
        if key not in self._kept:
            self.remarks.add("a call goes on from what the provider kept: those messages are not in the file")
        return self._kept.get(key, [])


def _cites(message: object) -> bool:
    """Returns whether a message holds a document that answers are to cite. What that adds is not published (Anthropic's
    guide "Citations", section on token costs); recordings show some 560 to 800 tokens."""
    parts = map(mapping, array(mapping(message).get("content")))
    return any(mapping(part.get("citations")).get("enabled") is True for part in parts)


def _weight(said: Sequence[ImportedMessage]) -> int:
    pictures = sum(len(part.data) for one in said for part in one.parts if isinstance(part, Picture))
    return len(said) + pictures // 1024


# -- one exchange as a file --------------------------------------------------------------------------------------------


_BEGINS = ("startTime", "start_time", "start", "timestamp", "created")
_ENDS = ("endTime", "end_time", "end")
_ANSWERS = ("outputs", "output", "response", "completion")
"""Names under which a log keeps an answer without its response: the text, or a list of answers."""


def is_log(body: Any) -> bool:
    """A request and its response in one object, or the error that came in its place."""
    request, response = _exchange(mapping(body))
    return given_of(request) is not None and (is_response(response) or bool(response.get("error")))


def read_log(body: Any) -> list[Conversation]:
    """One model call: the request's messages, then the response's. A response that holds results of tools as well
    stands for all calls of an agent."""
    remarks, outer = Remarks(), mapping(body)
    request, response = _exchange(outer)
    if any(mapping(one).get("type") in _RESULTS for one in array(response.get("output"))):
        return [_of_agent(outer, request, response, remarks)]
    told = {**mapping(outer.get("metrics")), **outer}
    start = moment(next((told[key] for key in _BEGINS if told.get(key)), None))
    passed = number(outer.get("latency_sec"))
    if passed is None:
        passed = duration_between(start, moment(next((told[key] for key in _ENDS if told.get(key)), None)))
    cost = next((found for key in ("cost", "response_cost") if (found := number(outer.get(key))) is not None), None)
    call = Call(cost=cost, duration_s=passed, at=start, model=string(outer.get("model")))
    extra = {**mapping(outer.get("kwargs")), **mapping(outer.get("optional_params")), **mapping(request.get("kwargs"))}
    url = string(mapping(outer.get("request")).get("url"))
    observed = Exchanges(remarks).read({**extra, **request}, response, call, url)
    if observed is None:
        raise Unreadable("its response holds no answer")
    if "responses_create_params" in outer:
        observed = replace(observed, unstated=_ROLLOUT)
    return [Conversation(threads_of([observed]), remarks=remarks.all, kept=_beside(outer))]


def _beside(outer: Mapping[str, Any]) -> dict[str, Any]:
    """What a log says beside the request and the response."""
    taken = {key for pair in _PAIRS for key in pair} | {"messages", "tools", "input"}
    return {key: value for key, value in outer.items() if key not in taken}


def _of_agent(
    outer: Mapping[str, Any], request: Mapping[str, Any], response: Mapping[str, Any], remarks: Remarks
) -> Conversation:
    """The run of an agent, recorded as one response with the calls and results in its output (NeMo Gym): each answer in
    it is a call that saw what stands before it, and the usage is the sum of all."""
    model = string(response.get("model")) or string(request.get("model"))
    given = read_messages(given_of(request) or [], remarks, "request")
    made = [
        replace(one, call=Call(model=model)) if one.role == "assistant" else one
        for one in read_messages(messages_of(array(response.get("output"))), remarks, "response.output")
    ]
    said, tools, parameters = [*given, *made], _tools_of(request), parameters_of(request)
    thread = replace(linear(said, model=model, tools=tools, parameters=parameters, made=False), unstated=_ROLLOUT)
    stated = StatedUsage(usage_of(mapping(response.get("usage"))))
    return Conversation((thread,), remarks=remarks.all, kept=_beside(outer), stated=stated)


def _tools_of(request: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return unmarked(tool_schemas(_declared(request)))[0]


def _declared(request: Mapping[str, Any]) -> object:
    """The tools of a request, wherever a provider's form has them."""
    tools = request.get("tools") or request.get("functions") or mapping(request.get("config")).get("tools")
    return tools or mapping(request.get("toolConfig")).get("tools")


def _fault_of(response: Mapping[str, Any]) -> str:
    """Returns why a response holds no answer, as far as it says."""
    error = response.get("error") or response.get("message") or response.get("detail")
    told = as_text(mapping(error).get("message") or error)[:500]
    return ": ".join(filter(None, ("its response holds no answer", told)))


def _exchange(outer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    for asked, answered in sorted(_PAIRS, key=lambda pair: pair[0] not in outer):
        if response := _json_of(outer.get(answered)):
            request = mapping(decoded(outer.get(asked)))
            return mapping(decoded(request.get("body"))) or request or outer, _body(response)
    return _plain_exchange(outer)


def _plain_exchange(outer: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The request and response of a log that keeps an answer without its response: DSPy's history, litellm's log,
    Braintrust's spans. The log has to name a model or count tokens: else it may be any pair of texts."""
    about, said = mapping(outer.get("metadata")), next((one for key in _ANSWERS if (one := outer.get(key))), None)
    usage = next((found for key in ("usage", "metrics") if (found := mapping(outer.get(key)))), outer)
    model = string(outer.get("model")) or string(about.get("model"))
    choices = [_choice_of(one) for one in (said if isinstance(said, list) else [said])]
    if not all(choices) or (not model and usage_of(usage).output is None):
        return outer, {}
    request = {**about, **outer}
    if isinstance(outer.get("input"), list) and "messages" not in outer:
        request |= {"messages": outer["input"], "input": None}
    given = given_of(request)
    if not given or mapping(given[-1]).get("role") == "assistant":  # A conversation that holds its answer already.
        return outer, {}
    return request, {"choices": choices, "usage": usage, "model": model}


def _choice_of(answer: object) -> Mapping[str, Any]:
    """An answer as a choice of a response, from a text, a choice or a message; empty for anything else."""
    one = mapping(answer)
    text = answer if isinstance(answer, str) else string(one.get("text"))
    if text:
        return {"message": {"content": text, "tool_calls": one.get("tool_calls")}}
    return one if mapping(one.get("message")) else {"message": one} if one.get("role") == "assistant" else {}


def _body(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response, which a log may wrap with its status and headers; claude-trace has streams beside the body."""
    return _json_of(response.get("body")) or _json_of(response.get("body_raw")) or response


def _json_of(value: object) -> Mapping[str, Any]:
    """A response that may be kept as text: of its JSON, or of the stream that it came as. Empty if it is neither."""
    return mapping(decoded(value)) or (mapping(whole_response(value)) if isinstance(value, str) else {})


def system_said(text: object, remarks: Remarks) -> list[ImportedMessage]:
    """A system text that is sent beside the messages."""
    return read_message({"role": "system", "content": text}, remarks) if text else []
