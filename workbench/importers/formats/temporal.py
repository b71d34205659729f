"""Workflow histories of Temporal: activities whose input is a request to a model and whose result is its response."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any

from workbench.importers.conversation import Call, Conversation, Remarks, Unreadable
from workbench.importers.exchanges import Exchanges, answered_of
from workbench.importers.threads import ObservedCall, attempted, threads_of
from workbench.importers.values import array, as_text, duration_between, loads, mapping, moment, string


def is_temporal(body: Any) -> bool:
    """Events with types and the attributes of each."""
    events = array(mapping(body).get("events"))
    return bool(events) and all("eventType" in mapping(one) for one in events[:5])


def read_temporal(body: Any) -> list[Conversation]:
    """A run of the activities that call a model. Raises Unreadable if none does."""
    remarks, calls, names = Remarks(), list[ObservedCall](), list[str]()
    exchanges = Exchanges(remarks)
    events = [mapping(one) for one in array(mapping(body).get("events"))]
    results = {as_text(told.get("scheduledEventId")): (one, told) for one in events if (told := _completed(one))}
    title = ""
    for one in events:
        title = title or string(mapping(mapping(_told(one, "StartedEvent")).get("workflowType")).get("name"))
        told = _told(one, "activityTaskScheduled")
        if not told:
            continue
        ended, result = results.get(as_text(one.get("eventId")), ({}, {}))
        names.append(string(mapping(told.get("activityType")).get("name")))
        at = moment(one.get("eventTime"))
        call = Call(at=at, duration_s=duration_between(at, moment(ended.get("eventTime"))))
        response = _response(_payloads(result.get("result")))
        for request in map(mapping, _payloads(told.get("input"))):
            if observed := attempted(partial(exchanges.read, request, response, call), remarks):
                calls.append(observed)
                names.pop()
                break
    if not calls:
        told_names = ", ".join(dict.fromkeys(name[:40] for name in names)) or "none"
        raise Unreadable(f"no activity of it is an answered call of a model (activities: {told_names})")
    kept = {"activities": names}
    if names:
        remarks.left_out("an activity that is not a model call", count=len(names), kept=True)
    return [Conversation(threads_of(calls), title, remarks=remarks.all, kept=kept)]


def _told(event: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    return next((mapping(value) for key, value in event.items() if prefix in key and key.endswith("Attributes")), {})


def _completed(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return _told(event, "activityTaskCompleted")


def _response(results: list[Any]) -> Mapping[str, Any]:
    """A model's response in an activity's result: the last complete one, if it streamed."""
    found = [one for result in results for one in (result if isinstance(result, list) else [result])]
    whole = [one for one in map(mapping, found) if answered_of(one) and one.get("partial") is not True]
    return whole[-1] if whole else {}


def _payloads(value: object) -> list[Any]:
    """The JSON of a list of payloads; other encodings are skipped."""
    found: list[Any] = []
    for one in map(mapping, array(mapping(value).get("payloads"))):
        try:
            found.append(loads(base64.b64decode(string(one.get("data")), validate=True).decode("utf-8")))
        except (binascii.Error, ValueError):
            continue
    return found
