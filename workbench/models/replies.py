"""Reads ``<name of the cascade>.replies.yaml``: what the offline model answers, by phase, attempt and turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.language.diagnose import mistyped, name_of
from workbench.language.model.base import DeferredModel
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity
from workbench.language.read.source import Source, Spot
from workbench.language.read.text import read_source

SUFFIX = ".replies.yaml"
EXAMPLE = """\
defaults: {latency: 0.3}
replies:
  triage:                               # a phase; triage#2 is its second visit
    - say: I look at the log first.     # turn 1
      calls: [{tool: read_file, arguments: {path: data/app.log}}]
      usage: {input: 900, output: 61, cached: 512}
    - text: The process died of a full disk.   # turn 2
    - attempt: 2                        # from here on, turns are counted within attempt 2
      text: "Once more: the disk was full."
    - branch: "s1"                      # from here on, for candidate s1
      text: Another way to say it.
    - aside: 1                          # the first call outside turns, of an evaluator here
      text: '{"winner": 2, "reason": "shorter"}'
  judge:                                # a phase of a nested cascade
    - when: Dear customer               # only if the request holds this text; else the next entry answers
      text: '{"valid": false, "reason": "too stiff"}'
    - text: '{"valid": true, "reason": ""}'
  thanks: You are welcome.              # short for a list of one text
"""
"""A file that uses every kind of entry; the reference shows it."""


class _Strict(DeferredModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ScriptedUsage(_Strict):
    """The tokens that the offline model reports. A count that is left out is unknown."""

    input: int | None = Field(default=None, ge=0, description="Tokens of the request.")
    output: int | None = Field(default=None, ge=0, description="Tokens of the answer; counted if left out.")
    cached: int | None = Field(default=None, ge=0, description="Tokens of the request read from the prompt cache.")
    written: int | None = Field(default=None, ge=0, description="Tokens of the request written to the prompt cache.")
    reasoning: int | None = Field(default=None, ge=0, description="Tokens of the answer spent on reasoning.")


class ScriptedCall(_Strict):
    """One tool call of an answer."""

    tool: str = Field(description="Name of the tool.")
    arguments: Any = Field(
        default_factory=dict, description="A mapping; or text, for arguments that are not valid JSON."
    )

    @field_validator("arguments")
    @classmethod
    def _object_or_text(cls, value: Any) -> Any:
        if not isinstance(value, dict | str):
            raise PydanticCustomError("arguments", "must be a mapping, or text")
        return value


class Reply(_Strict):
    """One entry: the answer of one turn, or of one call outside turns. Without `attempt`, `turn`, `branch` or `aside`,
    entries answer the turns of attempt 1 in their order. A text alone is an entry with nothing but `text`."""

    attempt: int | None = Field(
        default=None, ge=1, description="This entry is turn 1 of this attempt; the entries after it are its next turns."
    )
    turn: int | None = Field(
        default=None,
        ge=1,
        description="This entry is this turn of its attempt, whatever stands before it; the entries after it are the "
        "next turns.",
    )
    branch: str | None = Field(
        default=None,
        description="This entry and those after it answer the candidates of this name, from turn 1 of attempt 1: s0, "
        "s1, r1.0 for the first of a reforge step; * and ? match. They win over entries without branch. An empty text "
        "goes back to entries for all. With aside, it means the calls outside turns of this branch, and this entry "
        "alone.",
    )
    aside: int | None = Field(
        default=None,
        ge=1,
        description="This entry answers the call of this number outside turns: of an evaluator, a selector, a rewrite. "
        "The evaluator of whole walks of the cascade asks at its first phase, without a branch.",
    )
    when: str | None = Field(
        default=None,
        min_length=1,
        description="This entry counts only if the request holds this text; else the next entry answers this turn.",
    )
    text: str | None = Field(default=None, description="The whole answer. Excludes say and calls.")
    say: str = Field(default="", description="The text beside the tool calls.")
    calls: list[ScriptedCall] = Field(default_factory=list, description="The tool calls of the answer.")
    closing: str | None = Field(
        default=None, description="Answers the closing call that follows when the last turn ended with tool calls."
    )
    redo: list[str] = Field(
        default_factory=list,
        description="Answers when a person has the turn taken again: the first time, the second time, and so on.",
    )
    latency: float | None = Field(
        default=None, ge=0, le=600, description="Seconds that the call takes; defaults.latency if left out."
    )
    usage: ScriptedUsage = Field(default=ScriptedUsage(), description="The tokens to report.")
    finish: str = Field(default="", description="The finish reason; stop or tool_calls if left out.")

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_one_thing(self) -> Reply:
        if self.text is not None and (self.calls or self.say):
            raise PydanticCustomError("both", "'text' is a whole answer; beside 'calls' write 'say'")
        if self.text is None and not self.calls and not self.say and self.closing is None:
            raise PydanticCustomError("nothing", "says nothing: write 'text', or 'calls'")
        return self


class Defaults(_Strict):
    """Defaults for all entries."""

    latency: float = Field(default=0.0, ge=0, le=600, description="Seconds that each call takes.")


class RepliesFile(_Strict):
    """A file of offline replies."""

    defaults: Defaults = Field(default=Defaults(), description="Defaults for all entries.")
    replies: dict[str, list[Reply]] = Field(
        default_factory=dict,
        description="The entries by phase. `phase#2` holds those of the second visit; without it, the entries of the "
        "phase answer every visit. Phases of nested cascades and names of inline validators stand here too. A text is "
        "a list of this one entry.",
    )

    @field_validator("replies", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        return {phase: _listed(said) for phase, said in value.items()} if isinstance(value, dict) else value


def _listed(said: Any) -> Any:
    return [said] if isinstance(said, str) else said


Form = Literal["", "text", "flow", "block"]
"""How a list of entries, or the mapping of phases, is written; empty for one that is not there."""


class Walked(NamedTuple):
    """An entry for a turn, and the turn that it answers."""

    number: int
    """From 0, those outside turns counted too."""
    entry: Reply
    branch: str
    attempt: int
    turn: int


def walk(entries: Iterable[Reply]) -> Iterator[Walked]:
    """The entries for turns, in the order of the file."""
    branch, attempt, turn, same_turn = "", 1, 0, False
    for index, entry in enumerate(entries):
        if entry.aside is not None:
            continue
        if entry.branch is not None:
            branch, attempt, turn, same_turn = entry.branch, 1, 0, False
        if entry.attempt is not None:
            attempt, turn, same_turn = entry.attempt, 0, False
        turn = entry.turn if entry.turn is not None else turn + (not same_turn)
        same_turn = entry.when is not None
        yield Walked(index, entry, branch, attempt, turn)


def next_place(entries: Iterable[Reply]) -> tuple[str, int, int]:
    """Branch, attempt and turn that one more entry would answer behind these if it gave none."""
    walked = [*walk(entries)]
    if not walked:
        return "", 1, 1
    last = walked[-1]
    return last.branch, last.attempt, last.turn + (last.entry.when is None)


def answered_by(by_phase: Mapping[str, Sequence[Reply]], place: Place) -> str:
    """The key whose entries answer the calls of a place: that of the visit, if it has any, else the phase."""
    visit = f"{place.phase}#{place.visit}"
    return visit if by_phase.get(visit) else place.phase


class Replies(Struct, frozen=True):
    """The replies of a cascade. ``at`` depends on place and request alone: a fork or a resumed run hears the same."""

    by_phase: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)
    latency: float = 0.0
    """Seconds, of a reply that has none of its own."""
    file: str = ""
    forms: Mapping[str, Form] = field(default_factory=dict)
    """How the entries of each phase are written; below the empty name, all of them."""

    def at(self, place: Place, asked: Request) -> Reply | None:
        """The entry that answers a call, or None if nothing is scripted."""
        entries = self.by_phase.get(answered_by(self.by_phase, place), ())
        if place.turn == 0:
            beside = [entry for entry in entries if entry.aside == place.call and _fits(entry, asked)]
            own = (one for one in beside if one.branch is not None and fnmatchcase(place.branch, one.branch))
            return next(own, None) or next((one for one in beside if one.branch is None), None)
        found: dict[str, Reply] = {}
        for _, entry, branch, attempt, turn in walk(entries):
            here = (attempt, turn) == (place.attempt, place.turn) and (not branch or fnmatchcase(place.branch, branch))
            if here and _fits(entry, asked):
                found.setdefault("own" if branch else "all", entry)
        return found.get("own") or found.get("all")


def _fits(entry: Reply, asked: Request) -> bool:
    return entry.when is None or any(entry.when in message.text for message in asked.messages)


class ReadReplies(Struct, frozen=True):
    """A file of replies and its problems."""

    replies: Replies
    problems: tuple[Problem, ...]
    source: Source


def read_replies(text: str | bytes, file: str = "") -> ReadReplies:
    """The replies, the problems of the file, and its text. Entries with errors say nothing, and are there so that the
    others can be checked: a file with errors answers no call."""
    source, problems = read_source(text, file or SUFFIX)
    data = source.data
    try:
        parsed = RepliesFile.model_validate({} if data is None else data)
    except ValidationError as fault:
        found = fault.errors(include_url=False, include_context=True)
        problems = [*problems, *(_problem(error, source) for error in found)]
        parsed = _without(data, [error["loc"] for error in found])
    replies = {phase: tuple(entries) for phase, entries in parsed.replies.items()}
    return ReadReplies(Replies(replies, parsed.defaults.latency, file, _forms(source)), tuple(problems), source)


def _forms(source: Source) -> dict[str, Form]:
    """How the mapping of phases, and the entries of each, are written."""
    replies = source.data.get("replies") if isinstance(source.data, dict) else None
    paths: dict[str, Path] = {"": ("replies",)}
    paths |= {str(phase): ("replies", phase) for phase in replies} if isinstance(replies, dict) else {}
    spots = {name: spot for name, path in paths.items() if (spot := source.spot(path)) is not None}
    return {name: "text" if spot.kind == "scalar" else _style(spot) for name, spot in spots.items()}


def _style(spot: Spot) -> Form:
    return "flow" if spot.style == "flow" else "block"


def _without(data: Any, faults: Sequence[Path]) -> RepliesFile:
    """What is left where an entry with a fault is one that says nothing, and anything else with a fault is left out."""
    replies = data.get("replies") if isinstance(data, dict) else None
    if not isinstance(replies, dict):
        return RepliesFile()
    listed = {str(phase): _listed(said) for phase, said in replies.items()}
    left: dict[str, Any] = {phase: [*said] for phase, said in listed.items() if isinstance(said, list)}
    for path in faults:
        if len(path) > 2 and path[0] == "replies" and path[1] in left and isinstance(path[2], int):
            left[str(path[1])][path[2]] = {"text": "", **_valid_place(replies[path[1]][path[2]], faults, path[:3])}
    return RepliesFile.model_validate({"replies": left})


def _valid_place(entry: Any, faults: Sequence[Path], path: Path) -> dict[str, Any]:
    """Where an entry with a fault belongs, as far as that itself has none."""
    keys = ("attempt", "turn", "branch", "aside", "when") if isinstance(entry, dict) else ()
    return {key: entry[key] for key in keys if key in entry and (*path, key) not in faults}


def json_schema() -> dict[str, Any]:
    """The schema of a file of replies, draft 2020-12, for editors."""
    schema = RepliesFile.model_json_schema()
    listed = schema["properties"]["replies"]["additionalProperties"]
    text = {"type": "string"}
    listed |= {"minItems": 1, "items": {"anyOf": [text, listed["items"]]}}
    schema["properties"]["replies"]["additionalProperties"] = {"anyOf": [text, listed]}
    schema["$defs"]["Reply"] |= {  # what _says_one_thing refuses
        "anyOf": [{"required": [key]} for key in ("text", "calls", "say", "closing")],
        "not": {"required": ["text"], "anyOf": [{"required": ["calls"]}, {"required": ["say"]}]},
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Offline replies"}


def _meant(path: tuple[int | str, ...]) -> str:
    """What may have been meant by a key that is not known where it stands; empty for no idea."""
    key = str(path[-1])
    if len(path) == 1 and key in Defaults.model_fields:
        return "it stands below 'defaults'"
    models: dict[int, type[_Strict]] = {1: RepliesFile, 2: Defaults}
    guess = nearest(key, tuple(models.get(len(path), Reply).model_fields))
    return f"did you mean '{guess}'?" if guess else "phases stand below 'replies'" if len(path) == 1 else ""


def _problem(error: ErrorDetails, source: Source) -> Problem:
    path, span, hint = error["loc"], source.span(error["loc"]), ""
    if error["type"] == "extra_forbidden":
        message, span = f"unknown key {name_of(path)}", source.key_span(path)
        hint = _meant(path)
    else:
        message, hint = mistyped(error, name_of(path))
    return Problem(Severity.ERROR, "L901", message, source.file, span, path, hint)
