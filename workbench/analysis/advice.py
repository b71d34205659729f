"""Explains a failed model call to a person, and says what can be done about it, by the kind of its fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from workbench.context.assembly import Entry
    from workbench.engine.journal.parts import CallState


class FaultAdvice(NamedTuple):
    """Words for a kind of fault."""

    happened: str
    """The fact, in a few words."""
    do: str
    """The advice, in a few words."""
    again: bool = True
    """Asking the same again, later or elsewhere, can help."""


REMEDIES: Mapping[str, FaultAdvice] = {
    "authentication": FaultAdvice(
        "the provider wants another key",
        "Set the variable named here to a valid key and continue, or run without a provider: --model offline.",
    ),
    "permission": FaultAdvice(
        "the account may not do this",
        "Look at the provider's page for credit and for the rights of the key, or choose another model: --model.",
    ),
    "not_found": FaultAdvice(
        "there is no such model or address",
        "Compare the name of the model with the provider's list, and the base URL with its manual (most end in /v1).",
        again=False,
    ),
    "no_model": FaultAdvice(
        "no provider can be asked for the model",
        "Write provider/model in the cascade or after --model, or name the server: --base-url URL.",
        again=False,
    ),
    "unscripted": FaultAdvice(
        "the offline model has no answer for this call",
        "Write the line that the message ends with into the file named here, your answer in the place of TEXT; or let "
        "placeholders answer: --unscripted ok.",
    ),
    "bad_request": FaultAdvice(
        "the provider refused the request",
        "Look at the request as it was sent (w in the app, 'workbench context --wire'): what the provider names comes "
        "from the cascade, the model's name or its effort.",
        again=False,
    ),
    "context_length": FaultAdvice(
        "the request is longer than the model's context",
        "Shorten the largest messages: mask or clear old tool results, keep a window, set a token budget; "
        "'workbench diff' shows what another strategy would send, without a call.",
        again=False,
    ),
    "rate_limit": FaultAdvice(
        "the provider wants fewer requests",
        "Wait as long as it says, then continue; the setting 'tries' allows more tries, max_parallel fewer at once.",
    ),
    "server": FaultAdvice("the provider failed", "Try again in a while, or choose another model: --model."),
    "node_timeout": FaultAdvice(
        "the time limit of the node was over",
        "Give it more with 'timeout' in the file, or another execution with 'max_retries'.",
    ),
    "timeout": FaultAdvice(
        "no answer came in time",
        "Try again in a while; the setting 'timeout' gives each try more seconds.",
    ),
    "connection": FaultAdvice(
        "the provider cannot be reached",
        "Check the network and the base URL, and that a server of your own is running; then continue.",
    ),
    "bad_answer": FaultAdvice(
        "what came back is not the answer of a model",
        "A web page usually means a wrong base URL (most end in /v1), a proxy or a sign-in page. What came is kept "
        "with the failed call.",
    ),
    "too_large": FaultAdvice(
        "the answer is larger than any that is read",
        "No model answers like that: check the base URL, and any proxy between this machine and the provider. The "
        "beginning is kept with the failed call.",
    ),
    "stream_cut": FaultAdvice(
        "the answer broke off",
        "What had arrived is kept with the failed call and joined nothing; continuing asks again.",
    ),
    "blank": FaultAdvice(
        "the answer is empty",
        "If the finish reason is 'length', allow more output tokens; else word the task differently or choose another "
        "model: --model.",
    ),
}
"""By ``ModelFault.kind``."""

_UNKNOWN = FaultAdvice("the call failed", "Look at the failed call for what the provider said, then continue.")


def remedy_of(error: Mapping[str, Any]) -> FaultAdvice:
    """Of the ``error`` of a ``call_failed`` event, whatever is in it."""
    return REMEDIES.get(str(error.get("kind", "")), _UNKNOWN)


def name_of(error: Mapping[str, Any]) -> str:
    """``rate limit (HTTP 429)``: the kind in words, with the status if that is the reason."""
    kind, status = str(error.get("kind", "failed")).replace("_", " "), error.get("status")
    return f"{kind} (HTTP {status})" if isinstance(status, int) and status >= 300 else kind


def largest(call: CallState) -> list[tuple[int, Entry]]:
    """The three messages that took most of a request, the largest first, with their numbers (from 1)."""
    sent = [(index, entry) for index, entry in enumerate(call.entries, 1) if entry.sent is not None]
    return sorted(sent, key=lambda one: -one[1].tokens_sent)[:3]
