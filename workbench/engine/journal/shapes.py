"""What the values of an event must be. A journal comes from a disk: a record may be whole and still say nonsense, and
what shows a run must not have to expect a number where a text belongs.

Fields are named alike in all kinds, so there is one table by name and a few exceptions. A field that is missing, or of
a name or kind that is not known, is no fault here: older and newer programs write other fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from workbench.context.assembly import Action, Grade, Kind
from workbench.engine.journal.event import KINDS, Event
from workbench.language.clean import clean_line

Check = Callable[[Any], str]
"""What is wrong with a value, in words that follow its name; empty for nothing."""


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else f"is {_named(value)} and not text"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else f"is {_named(value)} and not true or false"


def _count(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"is {_named(value)} and not a whole number"
    return "" if -(2**63) <= value < 2**63 else "is larger than any count"


def _number(value: Any) -> str:
    right = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if right else f"is {_named(value)} and not a number"


def _object(value: Any) -> str:
    return "" if isinstance(value, Mapping) else f"is {_named(value)} and not an object"


def _maybe(check: Check) -> Check:
    return lambda value: "" if value is None else check(value)


def _list(check: Check) -> Check:
    def of(value: Any) -> str:
        if not isinstance(value, list | tuple):
            return f"is {_named(value)} and not a list"
        for number, element in enumerate(value, 1):
            if wrong := check(element):
                return f"has an element {number} that {wrong}"
        return ""

    return of


def _values(check: Check) -> Check:
    """An object of any keys."""

    def of(value: Any) -> str:
        if not isinstance(value, Mapping):
            return _object(value)
        return next((f"has a '{clean_line(k, 40)}' that {wrong}" for k, v in value.items() if (wrong := check(v))), "")

    return of


def _record(required: str = "", /, **fields: Check) -> Check:
    """An object with these fields; those named in ``required`` must be there."""
    names = required.split()

    def of(value: Any) -> str:
        if not isinstance(value, Mapping):
            return _object(value)
        for name in names:
            if name not in value:
                return f"has no '{name}'"
        for name, element in value.items():
            if (check := fields.get(name)) is not None and (wrong := check(element)):
                return f"has a '{name}' that {wrong}"
        return ""

    return of


def _one_of(words: frozenset[str]) -> Check:
    return lambda value: (
        _text(value) or ("" if value in words else f"is '{clean_line(value, 40)}', which is no such word")
    )


def _place(value: Any) -> str:
    if wrong := _text(value):
        return wrong
    numbers = value.rsplit("/", 4)[1:]
    return "" if len(numbers) == 4 and all(n.isdecimal() for n in numbers) else "is no place in a run"


def _scalar(value: Any) -> str:
    return "" if value is None or isinstance(value, str | int | float) else f"is {_named(value)} and not a plain value"


def _named(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", tuple: "a list"}
    return names.get(type(value), "an object")


_USAGE = _record(
    input=_maybe(_count),
    output=_maybe(_count),
    cached=_maybe(_count),
    written=_maybe(_count),
    reasoning=_maybe(_count),
)
_ITEM: dict[str, Check] = {
    "m": _text,
    "kind": _one_of(frozenset(map(str, Kind))),
    "place": _place,
    "tool": _text,
    "is_error": _flag,
    "source": _text,
    "note": _text,
    "redacted": _count,
    "edited": _text,
}
_ENTRY = _record(
    "m kind place action reason rule line full sent grade",
    **_ITEM,
    action=_one_of(frozenset(map(str, Action))),
    reason=lambda value: (
        _list(_scalar)(value) or _text(value[0]) if isinstance(value, list) and value else "is no reason"
    ),
    rule=_text,
    line=_count,
    full=_count,
    sent=_count,
    grade=_one_of(frozenset(map(str, Grade))),
    s=_maybe(_text),
)
_IMAGE = _record(digest=_text, media_type=_text, size=_count, width=_count, height=_count)
_CALL = _record("id name arguments", id=_text, name=_text, arguments=_text, extra=_object)
_PART = _record(
    "type", type=_text, text=_text, digest=_text, media_type=_text, size=_count, width=_count, height=_count
)
_MESSAGE = _record(
    "role content",
    role=_text,
    content=lambda value: "" if isinstance(value, str) else _list(_PART)(value),
    tool_calls=_list(_CALL),
    tool_call_id=_text,
    name=_text,
    extra=_object,
)
_FAULT = _record(
    kind=_text,
    message=_text,
    status=_maybe(_count),
    retry_after=_maybe(_number),
    body=_text,
    partial=_text,
)
_MADE = _record(texts=_maybe(_number), by=_text, tokens=_maybe(_count), cost=_maybe(_number))
_WIRE = _record(
    "at remove messages order keys",
    at=_count,
    remove=_count,
    beside=_flag,
    keys=_object,
    messages=_list(_text),
    order=_list(_text),
    style=_text,
    tools=_text,
)


def _all(names: str, check: Check) -> dict[str, Check]:
    return dict.fromkeys(names.split(), check)


_FIELDS: dict[str, Check] = {
    **_all(
        "action arguments bank body_hash branch by call_id cascade_file cascade_id cascade_sha256 "
        "cascade_text check code content_hash context decided_by digest evaluator_reason file "
        "generator_model hash key kind media_type menu message mode model name output path "
        "prompt_id provider provider_id purpose question reason rule run_id sandbox session_id "
        "status strategy summary target text type version what finish_reason cost_grade",
        _text,
    ),
    **_all(
        "answer mutation_applied mutation_template mutation_type",
        _maybe(_text),
    ),
    **_all(
        "beside cached decided edited is_error native nobody own partial recorded redo "
        "side_effects timed_out untold valid",
        _flag,
    ),
    **_all(
        "at attempts column count factor index left line max_parallel max_turns number "
        "overhead_tokens size step tokens_full tokens_sent tools_tokens turns try",
        _maybe(
            _count,
        ),
    ),
    **_all(
        "evaluator_pick residual tokens tokens_in tokens_out winner",
        _maybe(_number),
    ),
    **_all(
        "cost drawn duration_s first_token_s retry_in scale score timeout",
        _maybe(
            _number,
        ),
    ),
    **_all(
        "assumed_costs assumed_scores compared frontier picked",
        _maybe(_list(_number)),
    ),
    **_all(
        "costs dominated qualities",
        _maybe(_values(_maybe(_number))),
    ),
    **_all(
        "keys notes of tools vectors",
        _list(_text),
    ),
    **_all(
        "conditions includes input ports state",
        _object,
    ),
    "added": _list(_record(**_ITEM)),
    "splices": _list(_record("at remove entries", at=_count, remove=_count, entries=_list(_ENTRY))),
    "request": _record(model=_text, parameters=_object, tools=_text),
    "grade": _one_of(frozenset(map(str, Grade))),
    "forecast": _maybe(
        _record(
            "cached fresh written cost break_at",
            cached=_count,
            fresh=_count,
            written=_count,
            cost=_maybe(_number),
            break_at=_count,
            reason=_text,
        )
    ),
    "price": _record(
        source=_text,
        grade=_text,
        input=_maybe(_number),
        output=_maybe(_number),
        cache_read=_maybe(_number),
        cache_write=_maybe(_number),
    ),
    "problems": _list(_list(_scalar)),
    "usage": _maybe(_USAGE),
    "wire": _maybe(_WIRE),
    "images": _list(_IMAGE),
    "whole": _maybe(_record("digest chars", digest=_text, chars=_count)),
    "embedded": _maybe(_MADE),
    "error": _FAULT,
    "fault": _text,
    "draws": _list(_number),
    "plans": _list(
        _record(
            index=_count,
            model=_maybe(_text),
            parameters=_maybe(_object),
            mutation_type=_maybe(_text),
            mutation_template=_maybe(_text),
        )
    ),
    "rejected": _maybe(_values(_text)),
    "parent": _maybe(
        _record(
            run_id=_text, session_id=_text, kind=_text, depth=_count, cascade_sha256=_text, at=_text, prompt_id=_text
        )
    ),
    "judged": _maybe(_object),
    "form": _maybe(_record(layout=_text, title=_text, sections=_list(_object))),
    "made": _maybe(_values(_maybe(_text))),
    "edit": _object,
    **_all("beyond node_type refused stop to unstated", _maybe(_text)),
    **_all("imported outputs", _maybe(_object)),
    **_all("assumed needs_trust", _maybe(_flag)),
    "remarks": _maybe(_list(_text)),
    "scores": _maybe(_values(_maybe(_number))),
}

_EXCEPTIONS: dict[str, dict[str, Check | None]] = {
    "audible": {"text": _maybe(_text), "tool": _maybe(_count)},
    "blob": {"size": _count},
    "candidate_finished": {"kind": None},
    "context_selected": {"offered": None},
    "tools_chosen": {"offered": _maybe(_count)},
    "evaluation_finished": {"offered": _maybe(_list(_number))},
    "edited": {"after": None, "before": None, "tool": _maybe(_text)},
    "embedded": {"fault": _FAULT, "texts": None},
    "hook": {"error": _maybe(_text), "index": None, "number": _maybe(_count), "text": _maybe(_text)},
    "human_asked": {"options": None, "candidates": None},
    "route_chosen": {"to": _maybe(_text), "candidates": _list(_text)},
    "run_resumed": {"after": _count},
    "run_started": {"options": _object},
    "tool_finished": {"value": None, "tool": _text},
    "tool_started": {"tool": _text},
    "tools_listed": {
        "tools": _text,
        "server": _text,
        "names": _values(_text),
        "read_only": _list(_text),
        "refused": _list(_text),
        "fault": _text,
    },
}
_BY_KIND: dict[str, dict[str, Check]] = {
    kind: {name: check for name, check in {**_FIELDS, **_EXCEPTIONS.get(kind, {})}.items() if check is not None}
    for kind in KINDS
}
_BODIES: dict[str, Check] = {"message": _MESSAGE, "wire": _text, "tools": _list(_object)}


def problem_of(event: Event) -> str:
    """What is wrong with the values of an event, in words; empty where nothing is."""
    kind, data = event.kind, event.data
    if wrong := _common(event):
        return wrong
    checks = _BY_KIND.get(kind)
    if checks is None:
        return ""
    for name, value in data.items():
        if (check := checks.get(name)) is not None and (wrong := check(value)):
            return f"'{name}' of {kind} {wrong}"
    if kind == "blob" and "body" in data and (check := _BODIES.get(str(data.get("kind")))) is not None:
        return f"'body' of blob {wrong}" if (wrong := check(data["body"])) else ""
    return ""


def _common(event: Event) -> str:
    for name, value, check in (
        ("seq", event.seq, _count),
        ("at", event.at, _time),
        ("run_id", event.run_id, _text),
        ("kind", event.kind, _text),
        ("data", event.data, _object),
    ):
        if wrong := check(value):
            return f"'{name}' {wrong}"
    branch, phase, *numbers = event.place
    for name, value, check in (("branch", branch, _text), ("phase", phase, _text)):
        if wrong := check(value):
            return f"'{name}' {wrong}"
    for number in numbers:
        if type(number) is not int or not 0 <= number < 2**31:
            return "its place has a value that is no count"
    return ""


def _time(value: Any) -> str:
    if wrong := _text(value):
        return wrong
    try:
        right = not value or datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        right = False
    return "" if right else "is no time in UTC"
