"""Reads ``<name of the cascade>.replies.yaml``: what the offline model says, by phase, attempt and turn.

```yaml
defaults: {latency: 0.3}                # seconds per call; 0 when left out
replies:
  triage:                               # a phase; "triage#2" is its second visit, else "triage" serves every visit
    - say: "I look at the log first."   # turn 1: text beside its calls
      calls: [{tool: read_file, arguments: {path: data/app.log}}]
      latency: 0.8
      usage: {input: 900, output: 61, cached: 512, written: 0, reasoning: 0}   # what is left out is unknown
    - text: "The process died of …"     # turn 2: an answer
      closing: "In short: …"            # answers the closing call that follows a last turn with tools
      redo: ["In French: …"]            # answers when a person has the turn taken again, the first time and later
    - attempt: 2                        # from here on turns are counted within attempt 2
      text: "Once more: …"
      finish: length                    # finish reason; stop (or tool_calls) when left out
    - branch: "*1"                      # from here on: candidates whose path matches (* and ?), attempt 1
      text: "Another way: …"
    - aside: 1                          # the first call of the visit outside turns: an evaluator, a selector, a rewrite
      text: '{"winner": 2, "reason": "…"}'
  judge:                                # a phase of a nested cascade: a validator, say, which is asked more than once
    - when: "Dear customer"             # only where the request holds this text; else the next entry answers this turn
      text: '{"valid": false, "reason": "…"}'
    - text: '{"valid": true, "reason": "…"}'
```
``arguments`` may also be text, for arguments that are not valid JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from workbench.context.assembly import Request
from workbench.context.place import Place
from workbench.dataclass import dataclass
from workbench.language.diagnose import name_of
from workbench.language.load import read_source
from workbench.language.problem import Problem, Severity
from workbench.language.shape import nearest
from workbench.language.source import Source

SUFFIX = ".replies.yaml"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ScriptedUsage(_Strict):
    """Token counts to report; None is unknown."""

    input: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)
    cached: int | None = Field(default=None, ge=0)
    written: int | None = Field(default=None, ge=0)
    reasoning: int | None = Field(default=None, ge=0)


class ScriptedCall(_Strict):
    """A tool call to make."""

    tool: str
    arguments: Any = Field(default_factory=dict)

    @field_validator("arguments")
    @classmethod
    def _object_or_text(cls, value: Any) -> Any:
        if not isinstance(value, dict | str):
            raise PydanticCustomError("arguments", "must be a mapping, or text")
        return value


class Reply(_Strict):
    """One entry: a turn, or a call outside turns."""

    attempt: int | None = Field(default=None, ge=1)
    branch: str | None = None
    aside: int | None = Field(default=None, ge=1)
    when: str | None = Field(default=None, min_length=1)
    text: str | None = None
    say: str = ""
    calls: list[ScriptedCall] = Field(default_factory=list)
    closing: str | None = None
    redo: list[str] = Field(default_factory=list)
    latency: float | None = Field(default=None, ge=0, le=600)
    usage: ScriptedUsage = ScriptedUsage()
    finish: str = ""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Reply:
        if self.text is not None and (self.calls or self.say):
            raise PydanticCustomError("both", "'text' is a whole answer; beside 'calls' write 'say'")
        if self.text is None and not self.calls and not self.say and self.closing is None:
            raise PydanticCustomError("nothing", "says nothing: write 'text', or 'calls'")
        return self


class _Defaults(_Strict):
    latency: float = Field(default=0.0, ge=0, le=600)


class _File(_Strict):
    defaults: _Defaults = _Defaults()
    replies: dict[str, list[Reply]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Replies:
    """The replies of a cascade. ``at`` depends on place and request alone: a fork or a resumed run hears the same."""

    by_phase: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)
    latency: float = 0.0
    """Seconds, of a reply that has none of its own."""
    file: str = ""

    def at(self, place: Place, asked: Request) -> Reply | None:
        """The entry that answers a call, or None where nothing is scripted."""
        entries = self.by_phase.get(f"{place.phase}#{place.visit}") or self.by_phase.get(place.phase, ())
        if place.turn == 0:
            return next((entry for entry in entries if entry.aside == place.call and _fits(entry, asked)), None)
        branch, attempt, turn, same_turn = "", 1, 0, False
        found: dict[str, Reply] = {}
        for entry in entries:
            if entry.aside is not None:
                continue
            if entry.branch is not None:
                branch, attempt, turn, same_turn = entry.branch, 1, 0, False
            if entry.attempt is not None:
                attempt, turn, same_turn = entry.attempt, 0, False
            turn += not same_turn
            same_turn = entry.when is not None
            here = (attempt, turn) == (place.attempt, place.turn) and (not branch or fnmatchcase(place.branch, branch))
            if here and _fits(entry, asked):
                found.setdefault("own" if branch else "all", entry)
        return found.get("own") or found.get("all")


def _fits(entry: Reply, asked: Request) -> bool:
    return entry.when is None or any(entry.when in message.text for message in asked.messages)


def read_replies(text: str | bytes, file: str = "") -> tuple[Replies, tuple[Problem, ...]]:
    """The replies, and what is wrong with the file; with an error in it there are none."""
    source, problems = read_source(text, file or SUFFIX)
    if source.data is None:
        return Replies(file=file), tuple(problems)
    try:
        parsed = _File.model_validate(source.data)
    except ValidationError as fault:
        found = fault.errors(include_url=False, include_context=True)
        return Replies(file=file), (*problems, *(_problem(error, source) for error in found))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return Replies(file=file), tuple(problems)
    replies = {phase: tuple(entries) for phase, entries in parsed.replies.items()}
    return Replies(replies, parsed.defaults.latency, file), tuple(problems)


def _problem(error: ErrorDetails, source: Source) -> Problem:
    path, span, hint = error["loc"], source.span(error["loc"]), ""
    if error["type"] == "extra_forbidden":
        message, span = f"unknown key {name_of(path)}", source.key_span(path)
        guess = nearest(
            str(path[-1]), tuple(Reply.model_fields) if len(path) > 2 else ("defaults", "replies", "latency")
        )
        hint = f"did you mean '{guess}'?" if guess else "phases stand below 'replies'" if len(path) == 1 else ""
    else:
        message = f"{name_of(path)}: {error['msg'][:1].lower()}{error['msg'][1:]}"
    return Problem(Severity.ERROR, "replies", message, source.file, span, path, hint)
