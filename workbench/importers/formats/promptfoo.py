"""Results of promptfoo: a prompt, a provider's response and its usage for each case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.messages import read_messages
from workbench.importers.threads import ObservedCall, threads_of
from workbench.importers.usage import usage_of
from workbench.importers.values import array, as_text, decoded, mapping, moment, number, string


def is_promptfoo(body: Any) -> bool:
    """An evaluation with the results of its cases."""
    return ("evalId" in mapping(body) or "version" in mapping(mapping(body).get("results"))) and bool(_results(body))


def _results(body: Any) -> list[Mapping[str, Any]]:
    found = mapping(body).get("results")
    listed = array(found) or array(mapping(found).get("results"))
    return [mapping(one) for one in listed if "prompt" in mapping(one)]


def read_promptfoo(body: Any) -> list[Conversation]:
    """A conversation for each case that was answered. Raises Unreadable."""
    at = moment(mapping(mapping(body).get("results")).get("timestamp"))
    found = [one for result in _results(body) if (one := _result(result, at)) is not None]
    if not found:
        raise Unreadable("none of its cases was answered")
    return found


def _result(result: Mapping[str, Any], at: str) -> Conversation | None:
    response, remarks = mapping(result.get("response")), Remarks()
    output = response.get("output")
    if output is None or output == "":
        return None
    prompt = mapping(result.get("prompt")).get("raw", result.get("prompt"))
    asked = decoded(prompt)
    bodies = asked if isinstance(asked, list) else [{"role": "user", "content": as_text(prompt)}]
    provider = result.get("provider")
    model = as_text(mapping(provider).get("id", provider)).replace(":chat:", "/").replace(":", "/")
    millis = number(response.get("latencyMs") or result.get("latencyMs"))
    if response.get("cached") is True:
        remarks.add("the answer came from promptfoo's own cache: no time was taken")
        millis = None
    call = Call(
        usage_of(response.get("tokenUsage") or result.get("tokenUsage")),
        number(result.get("cost")),
        finish_reason=string(response.get("finishReason")),
        duration_s=millis / 1000 if millis is not None else None,
        at=at,
    )
    observed = ObservedCall(
        tuple(read_messages(bodies, remarks, "prompt")), ImportedMessage("assistant", (as_text(output),)), call, model
    )
    numbers = (("case", result.get("testIdx")), ("prompt", result.get("promptIdx")))
    case = " ".join(f"{name} {as_text(number)}" for name, number in numbers if number is not None)
    kept = {key: result[key] for key in ("vars", "gradingResult", "score", "namedScores") if result.get(key)}
    failed = result.get("success") is False
    reason = as_text(mapping(result.get("gradingResult")).get("reason") or result.get("error"))[:500] if failed else ""
    status = "failed" if failed else "success"
    return Conversation(threads_of([observed]), f"{model} {case}".rstrip(), status, reason, remarks.all, kept)
