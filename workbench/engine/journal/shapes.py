"""The types that the values of an event must have. A journal comes from a disk: a record may be whole and still say
nonsense, and what shows a run must not have to expect a number where a text belongs.

Fields are named alike in all kinds, so there is one table by name and a few exceptions, from which msgspec checks
the data of an event. A field that is missing, or of a name or kind that is not known, is no fault here: older and newer
programs write other fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, defstruct

from workbench.context.assembly import Action, Grade, Kind
from workbench.engine.journal.event import KINDS, Event
from workbench.language.clean import clean_line

_Count = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seq = _Count
"""Of a record."""
Index = Annotated[int, Meta(ge=0, lt=2**31)]
"""Of a place: visit, attempt, turn or call."""
_Amount = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Number = int | float
_Quantity = Annotated[float, Meta(ge=0, le=1e15)]
"""Seconds or US dollars. A whole number is one, too."""
_Price_of_token = Annotated[float, Meta(ge=0, le=1)]
_Scalar = str | int | float | bool | None
_Object = dict[Any, Any]
_Place = Annotated[str, Meta(pattern=r"/\d+/\d+/\d+/\d+\Z")]


class _Common(Struct):
    """Fields of every event."""

    seq: _Count
    at: str
    run_id: str
    kind: str
    place: tuple[str, str, Index, Index, Index, Index]
    data: _Object


class _Item(Struct):
    m: str = ""
    kind: Kind = Kind.USER
    place: _Place = ""
    tool: str = ""
    is_error: bool = False
    source: str = ""
    note: str = ""
    redacted: _Count = 0
    edited: str = ""


class _Entry(Struct, kw_only=True):
    m: str
    kind: Kind
    place: _Place
    action: Action
    reason: Annotated[list[str | int | float], Meta(min_length=1)]
    rule: str
    line: _Count
    full: _Count
    sent: _Count
    grade: Grade
    s: str | UnsetType | None = UNSET
    tool: str = ""
    is_error: bool = False
    source: str = ""
    note: str = ""
    redacted: _Count = 0
    edited: str = ""
    parts: list[tuple[str, Action, str, _Count, _Count]] = []

    def __post_init__(self) -> None:
        if not isinstance(self.reason[0], str):
            raise ValueError("has a 'reason' without a word")
        if self.s is None and self.sent:
            raise ValueError("has an 's' that says nothing was sent, and tokens of it")


class _Splice(Struct):
    at: _Count
    remove: _Count
    entries: list[_Entry]


class _Image(Struct):
    digest: str = ""
    media_type: str = ""
    size: _Count = 0
    width: _Count = 0
    height: _Count = 0


class _Part(_Image, kw_only=True):
    type: str
    text: str = ""


class _Call(Struct):
    id: str
    name: str
    arguments: str
    extra: _Object = {}


class _Message(Struct):
    role: str
    content: str | Annotated[list[_Part], Meta(min_length=1)]
    tool_calls: list[_Call] = []
    tool_call_id: str = ""
    name: str = ""
    extra: _Object = {}


class _Usage(Struct):
    input: _Amount | None = None
    output: _Amount | None = None
    cached: _Amount | None = None
    written: _Amount | None = None
    reasoning: _Amount | None = None
    written_hour: _Amount | None = None


class _Fault(Struct):
    kind: str = ""
    message: str = ""
    status: _Count | None = None
    retry_after: _Quantity | None = None
    body: str = ""
    partial: str = ""


class _Embedding(Struct):
    texts: _Number | None = None
    by: str = ""
    tokens: _Amount | None = None
    cost: _Quantity | None = None
    recorded: bool = False


class _Wire(Struct):
    at: _Count
    remove: _Count
    messages: list[str]
    order: list[str]
    keys: _Object
    beside: bool = False
    style: str = ""
    tools: str = ""


class _Request(Struct):
    model: str = ""
    parameters: _Object = {}
    tools: str = ""


class _Forecast(Struct):
    cached: _Amount
    fresh: _Amount
    written: _Amount
    cost: _Quantity | None
    break_at: _Count
    reason: str = ""
    tokens: _Amount | None = None
    low: _Amount | None = None
    high: _Amount | None = None
    cost_low: _Quantity | None = None
    cost_high: _Quantity | None = None

    def __post_init__(self) -> None:
        if self.tokens is None and self.low is None:  # Of 0.1.0.
            return
        low, tokens, high = self.low, self.tokens, self.high
        if low is None or tokens is None or tokens != self.cached + self.fresh + self.written:
            raise ValueError("has 'tokens' that are not the sum of their parts")
        if low > max(tokens, 1) or (high is not None and high < tokens):
            raise ValueError("has 'tokens' outside of their bounds")
        costs = self.cost_low, self.cost, self.cost_high if high is not None else self.cost
        missing = {cost is None for cost in costs}
        counts = low, tokens, high if high is not None else tokens
        if len(missing) > 1 or (high is None and self.cost_high is not None) or not _near(costs, counts):
            raise ValueError("has a 'cost' outside of its bounds")


def _near(costs: Sequence[float | None], counts: Sequence[float]) -> bool:
    """Returns whether a cost and its bounds are of the same order, or the prices of a token that they come to: a cached
    token may cost a hundredth. The counts may differ by any factor, as a hidden prompt may have any size."""
    known = [cost for cost in costs if cost is not None]
    if not known or max(known) <= max(1000 * min(known), 1e-3) or 0.0 in known:
        return True
    each = [cost / max(count, 1) for cost, count in zip(costs, counts, strict=True) if cost is not None]
    return max(each) <= 1000 * min(each)


class _Price(Struct):
    source: str = ""
    grade: str = ""
    input: _Price_of_token | None = None
    output: _Price_of_token | None = None
    cache_read: _Price_of_token | None = None
    cache_write: _Price_of_token | None = None


class _Whole(Struct):
    digest: str
    chars: _Count


class _Plan(Struct):
    index: _Count = 0
    model: str | None = None
    parameters: _Object | None = None
    mutation_type: str | None = None
    mutation_template: str | None = None


class _Parent(Struct):
    run_id: str
    session_id: str = ""
    kind: str = ""
    depth: _Count = 0
    cascade_sha256: str = ""
    at: str = ""
    prompt_id: str = ""


class _Verdict(Struct):
    edge: _Count
    to: str
    label: str = ""
    weight: _Count = 0
    condition: str = ""
    holds: bool | None = None
    values: dict[str, str] = {}
    fault: str = ""


class _Form(Struct):
    layout: str = ""
    title: str = ""
    sections: list[_Object] = []


def _all(names: str, type_: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), type_)


_OPTIONS: dict[str, Any] = {
    **_all("session_id default_model rewrite_model embedding_model card_model start folder strategy", str),
    **_all("tries max_visits max_depth restarts", _Amount),
    **_all("keep_recent_images max_calls max_tokens", _Amount | None),
    **_all("max_cost max_seconds", _Quantity | None),
    "backoff": _Quantity,
    "done": bool,
    "context": _Object,
}
"""Of ``run_started``, each as ``engine.definition.Options`` has it."""

_FIELDS: dict[str, Any] = {
    **_all(
        "action arguments bank body_hash branch by call_id cascade_file cascade_id cascade_sha256 "
        "cascade_text check code content_hash context decided_by digest evaluator_reason fault file "
        "generator_model hash key kind media_type menu message mode model name output path "
        "prompt_id provider provider_id purpose question reason rule run_id sandbox session_id "
        "status strategy summary target text type version what finish_reason cost_grade",
        str,
    ),
    **_all(
        "answer beyond mutation_applied mutation_template mutation_type node_type refused stop to unstated", str | None
    ),
    **_all(
        "beside cached decided edited is_error late native nobody over own partial recorded redo "
        "side_effects timed_out untold valid",
        bool,
    ),
    **_all("assumed needs_trust", bool | None),
    **_all(
        "at attempts column count factor index left line max_parallel max_turns number "
        "overhead_tokens size step wave tokens_full tokens_sent tools_tokens turns try",
        _Count | None,
    ),
    **_all(
        "drawn evaluator_pick residual score tokens tokens_in tokens_out winner",
        _Number | None,
    ),
    **_all("cost duration_s first_token_s retry_in scale timeout", _Quantity | None),
    "draws": list[_Number],
    **_all("assumed_costs assumed_scores compared frontier picked", list[_Number] | None),
    **_all("costs dominated qualities scores", dict[str, _Number | None] | None),
    **_all("keys notes of tools vectors", list[str]),
    "remarks": list[str] | None,
    **_all("conditions edit includes input state", _Object),
    "ports": dict[str, str],
    **_all("imported judged outputs replaces took unanswered", _Object | None),
    "seconds": _Quantity,
    "ended": str,
    "edge": _Count | None,
    "verdicts": list[_Verdict] | None,
    "outcome": _Object | None,
    "rejected": dict[str, str] | None,
    "made": dict[str, str | None] | None,
    "problems": list[list[_Scalar]],
    "added": list[_Item],
    "splices": list[_Splice],
    "request": _Request,
    "grade": Grade,
    "forecast": _Forecast | None,
    "price": _Price,
    "usage": _Usage | None,
    "wire": _Wire | None,
    "images": list[_Image],
    "whole": _Whole | None,
    "embedded": _Embedding | None,
    "error": _Fault,
    "plans": list[_Plan],
    "parent": _Parent | None,
    "form": _Form | None,
}

_EXCEPTIONS: dict[str, dict[str, Any]] = {
    "audible": {"text": str | None, "tool": _Count | None},
    "blob": {"size": _Count},
    "candidate_finished": {"kind": Any},
    "tools_chosen": {"offered": _Count | None},
    "evaluation_finished": {"offered": list[_Number] | None},
    "edited": {"tool": str | None},
    "embedded": {"fault": _Fault, "texts": Any},
    "what_if": {
        **_all("strategy invalid", str),
        **_all("tokens cached sent_tokens all_tokens all_sent_tokens", _Count),
        **_all("cost sent_cost all_cost all_sent_cost", _Quantity | None),
    },
    "exchange": {
        **_all("provider path sha256 alike content_type body by fault", str),
        "status": _Count,
        "first_byte_s": _Quantity | None,
    },
    "hook": {"error": str | None, "index": Any, "number": _Count | None, "text": str | None},
    "route_chosen": {"to": str | None, "candidates": list[str]},
    "run_resumed": {"after": _Count, "until": str},
    "context_assembled": _all("after overhead_tokens tokens_full tokens_sent tools_tokens", _Count),
    "run_started": {"options": defstruct("_Options", [(name, type_, None) for name, type_ in _OPTIONS.items()])},
    "tool_finished": {"tool": str, "index": _Count},
    "tool_started": {"tool": str, "index": _Count},
    "tools_listed": {
        "tools": str,
        "server": str,
        "names": dict[str, str],
        "read_only": list[str],
        "refused": list[str],
        "fault": str,
    },
}
_BODIES: dict[str, Any] = {"message": _Message, "wire": str, "tools": list[_Object]}


@cache
def _fields_of(kind: str) -> dict[str, Any]:
    """The fields and types that the data of a kind of event may hold."""
    return {**_FIELDS, **_EXCEPTIONS.get(kind, {})}


_shapes: dict[tuple[str, ...], type[Struct]] = {}
"""By kind and names of fields, as they follow each other."""
_MOST_SHAPES = 500
"""Programs write some hundred; a journal with more is made to cost."""


def _shape_of(kind: str, data: Mapping[str, Any]) -> type[Struct]:
    """Returns the structure that data of a kind must have, for the fields that these have: msgspec looks for every
    field of a structure, and of all that a kind may hold an event has a tenth."""
    key = (kind, *data)
    shape = _shapes.get(key)
    if shape is None:
        if len(_shapes) >= _MOST_SHAPES:
            return _whole_shape_of(kind)
        fields = [(name, type_, None) for name, type_ in _fields_of(kind).items() if name in data]
        shape = _shapes[key] = defstruct(kind, fields)
    return shape


@cache
def _whole_shape_of(kind: str) -> type[Struct]:
    """The same with all fields that a kind may hold."""
    return defstruct(kind, [(name, type_, None) for name, type_ in _fields_of(kind).items()])


def problem_of(event: Event) -> str:
    """Describes the first invalid value of an event, in words; empty if all are valid."""
    try:
        convert(event, _Common, from_attributes=True)
    except ValidationError as error:
        return _worded(str(error), "")
    except UnicodeEncodeError:
        return "the data has a name or a word that is not text"
    return problem_within(event)


def problem_within(event: Event) -> str:
    """The same, of an event whose own fields are of the right types."""
    kind, data, within = event.kind, event.data, f" of {event.kind}"
    try:
        if not _is_time(event.at):
            return "'at' is not a time in UTC"
        if kind not in KINDS:
            return ""
        convert(data, _shape_of(kind, data))
        if kind == "blob" and "body" in data and (body := _BODIES.get(str(data.get("kind")))) is not None:
            within = "'body' of blob"
            convert(data["body"], body)
    except ValidationError as error:
        return _worded(str(error), within)
    except UnicodeEncodeError:
        what = within if within.startswith("'") else f"the data{within}"
        return f"{what} has a name or a word that is not text"
    return ""


def _is_time(text: str) -> bool:
    try:
        return not text or datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_SAID = re.compile(r"(?P<what>.*?)(?: - at `(?:key` in `)?\$(?P<where>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_NO_WORD = re.compile(r"Invalid enum value ('.*')", re.DOTALL)
_WANTED = {
    **{"str": "text", "bool": "true or false", "int": "a whole number", "float": "a number", "int | float": "a number"},
    **{"array": "a list", "object": "an object", "str | array": "text or a list"},
    "int | float | str": "a plain value",
}
_GIVEN = {"str": "text", "bool": "true or false", "int": "a number", "float": "a number", "array": "a list"}


def _worded(said: str, within: str) -> str:
    """A message of msgspec in this program's words; a message of unknown form stays unchanged.

    ``within`` follows the name of the first field, or replaces it if there is none.
    """
    found = _SAID.fullmatch(said)
    what, where = (found["what"], found["where"] or "") if found else (said, "")
    names = [
        f"a '{name}'" if name else f"an element {int(number) + 1}" if number else "a value"
        for name, number in _STEP.findall(where)
    ]
    first = within if within.startswith("'") else f"{names.pop(0).removeprefix('a ') if names else 'it'}{within}"
    return " ".join([first, *(f"has {name} that" for name in names), _wrong(what)])


def _wrong(what: str) -> str:
    if expected := _EXPECTED.fullmatch(what):
        wanted, given = expected[1].removesuffix(" | null"), expected[2]
        shown = "null" if given == "null" else _GIVEN.get(given, "an object")
        return f"is {shown} and not {_WANTED.get(wanted, wanted)}"
    if missing := _MISSING.fullmatch(what):
        return f"has no '{missing[1]}'"
    if word := _NO_WORD.fullmatch(what):
        return f"is {clean_line(word[1], 40)}, which is no such word"
    if what.startswith(("Expected `int` >= 0", "Expected `float` >= 0")):
        return "is less than 0"
    if what.startswith(("Expected `int` <=", "Expected `int` >=")):
        return "is larger than any count"
    if what.startswith("Expected `float` <="):
        return "is larger than any such number"
    if what.startswith("Expected `array` of length"):
        return "is empty"
    if what.startswith("Expected `str` matching regex"):
        return "is not a place in a run"
    return clean_line(what, 80)
