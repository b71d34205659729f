"""Samples of EleutherAI's evaluation harness (``lm_eval --log_samples``): what each request was and what came back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.importers.conversation import Call, Conversation, ImportedMessage, Remarks, Unreadable
from workbench.importers.exchanges import parameters_of
from workbench.importers.messages import read_messages
from workbench.importers.threads import ObservedCall, threads_of
from workbench.importers.values import array, as_text, decoded, mapping

_LIMITS = ("max_gen_toks", "max_new_tokens", "max_length")


def is_lm_eval(body: Any) -> bool:
    """Returns whether it is a sample."""
    return all(key in mapping(body) for key in ("doc_id", "arguments", "resps"))


def read_lm_eval(body: Any) -> list[Conversation]:
    """One conversation. Raises Unreadable."""
    remarks, sample = Remarks(), mapping(body)
    calls = list(_calls(sample, remarks))
    if not calls:
        raise Unreadable("its requests ask how likely given texts are: there is no answer in words")
    kept = {key: value for key, value in sample.items() if key not in ("arguments", "resps")}
    title = f"sample {as_text(sample.get('doc_id'))[:40]}"
    return [Conversation(threads_of(calls), title, remarks=remarks.all, kept=kept)]


def _calls(sample: Mapping[str, Any], remarks: Remarks) -> Iterator[ObservedCall]:
    """Each request with each of its answers: a request may be repeated."""
    listed = sample.get("arguments")
    requests = [list(mapping(one).values()) for one in listed.values()] if isinstance(listed, dict) else array(listed)
    for request, answers in zip(requests, array(sample.get("resps")), strict=False):
        prompt, *further = array(request) or [""]
        asked = decoded(prompt)
        bodies = asked if isinstance(asked, list) else [{"role": "user", "content": as_text(prompt)}]
        options = mapping(further[0]) if further else {}
        limit = next((options[name] for name in _LIMITS if name in options), None)
        parameters = parameters_of({"max_tokens": limit, "stop": options.get("until"), **options})
        for answer in array(answers):
            if isinstance(answer, str):
                said = tuple(read_messages(bodies, remarks, "arguments"))
                yield ObservedCall(said, ImportedMessage("assistant", (answer,)), Call(), parameters=parameters)
