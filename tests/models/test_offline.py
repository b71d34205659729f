from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.support import FlatPrices
from workbench.context.assembly import Request
from workbench.context.cache import Price
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.contracts import Answer, ModelFault
from workbench.engine.journal.usage import Usage
from workbench.engine.toolcalls import read_calls
from workbench.models.encodings import Encodings
from workbench.models.offline import PIECES, Offline
from workbench.models.replies import Replies, json_schema, read_replies

TEXT = """\
defaults: {latency: 0.5}
replies:
  triage:
    - say: "I look at the log first."
      calls:
        - {tool: read_file, arguments: {path: data/app.log}}
        - {tool: search_files, arguments: '{"pattern": '}
      latency: 2
      usage: {input: 900, output: 61, cached: 512}
    - text: The process died of a full disk.
      closing: Disk full.
    - attempt: 2
      text: Once more.
    - branch: "*2"
      text: Another way.
    - aside: 1
      text: '{"winner": 2}'
  triage#2:
    - text: Seen before.
      finish: length
"""
TOOLS: tuple[Mapping[str, Any], ...] = ({"type": "function", "function": {"name": "read_file"}},)
COUNTER = Encodings()


@dataclass
class StillClock:
    """A clock that moves only by the sleeps asked of it."""

    time: float = 0.0
    naps: list[float] = field(default_factory=list)

    def now(self) -> str:
        return "2026-01-01T00:00:00.000000Z"

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.time += seconds


class Costly(FlatPrices):
    def price(self, model: str, input_tokens: int = 0) -> Price:
        return Price(0.001, 0.01, 0.0001) if model == "gpt-4o" else Price()


def replies(text: str = TEXT) -> Replies:
    read = read_replies(text, "/somewhere/triage.replies.yaml")
    parsed, problems = read.replies, read.problems
    assert problems == ()
    return parsed


def ask(
    place: Place,
    *,
    model: str = "gpt-4o",
    native: bool = False,
    script: Replies | None = None,
    clock: StillClock | None = None,
    on_text: Callable[[str], None] = lambda text: None,
    placeholders: bool = False,
) -> Answer:
    given = replies() if script is None else script
    offline = Offline(given, clock or StillClock(), COUNTER, Costly(), placeholders=placeholders)
    request = Request(model, {}, TOOLS if native else (), (Message("user", "go"),), "digest")
    assert offline.recorded(request, place) == "live"
    return asyncio.run(offline.complete(request, place, {}, on_text))


def at(turn: int, call: int = 1, *, attempt: int = 1, visit: int = 1, branch: str = "", phase: str = "triage") -> Place:
    return Place(branch, phase, visit, attempt, turn, call)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (at(2), "The process died of a full disk."),
        (at(2, 2), "Disk full."),
        (at(1, attempt=2), "Once more."),
        (at(1, branch="triage_1_2"), "Another way."),
        (at(2, branch="triage_1_2"), "The process died of a full disk."),
        (at(0, 1), '{"winner": 2}'),
        (at(1, visit=2), "Seen before."),
        (at(2, visit=3), "The process died of a full disk."),
    ],
)
def test_the_place_of_a_call_selects_its_reply(place: Place, text: str) -> None:
    assert ask(place).text == text


def test_calls_are_native_where_the_request_has_native_tools() -> None:
    answer = ask(at(1), native=True)

    assert answer.text == "I look at the log first."
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        ("call_1_1", "read_file", '{"path": "data/app.log"}'),
        ("call_1_2", "search_files", '{"pattern": '),
    ]
    assert answer.finish_reason == "tool_calls"


def test_calls_are_fenced_json_where_tools_are_text() -> None:
    answer = ask(at(1))
    first, second = read_calls(answer.text, {"read_file", "search_files"})

    assert answer.calls == ()
    assert answer.text.startswith("I look at the log first.\n\n```json\n")
    assert (first.tool, first.arguments, first.problem) == ("read_file", {"path": "data/app.log"}, "")
    assert (second.tool, bool(second.problem)) == ("search_files", True)


@pytest.mark.parametrize(
    ("place", "text", "line"),
    [
        (
            at(3),
            "no reply is scripted for phase 'triage', turn 3 in triage.replies.yaml",
            "Add this line at the end of the list below 'triage': - {branch: \"\", turn: 3, text: TEXT}",
        ),
        (
            at(1, phase="x"),
            "no reply is scripted for phase 'x', turn 1 in triage.replies.yaml",
            "Add this line below 'replies:', indented like the other phases: x: TEXT",
        ),
        (
            at(2, attempt=2),
            "no reply is scripted for phase 'triage', turn 2 of attempt 2 in triage.replies.yaml",
            "Add this line at the end of the list below 'triage': - {branch: \"\", attempt: 2, turn: 2, text: TEXT}",
        ),
        (
            at(3, branch="s1"),
            "no reply is scripted for phase 'triage', turn 3 in triage.replies.yaml",
            "Add this line at the end of the list below 'triage': - {branch: \"s1\", turn: 3, text: TEXT}",
        ),
        (
            at(1, 2),
            "no closing reply is scripted for phase 'triage', turn 1 in triage.replies.yaml",
            "Add this key to entry 1 of 'triage': closing: TEXT",
        ),
        (
            at(0, 2),
            "no reply is scripted for phase 'triage', call 2 outside turns in triage.replies.yaml",
            "Add this line at the end of the list below 'triage': - {aside: 2, text: TEXT}",
        ),
        (
            at(2, visit=2),
            "no reply is scripted for phase 'triage', turn 2 of visit 2 in triage.replies.yaml",
            "Add this line at the end of the list below 'triage#2': - TEXT",
        ),
    ],
)
def test_what_is_not_scripted_is_a_fault_that_shows_what_to_write_or_a_placeholder(
    place: Place, text: str, line: str
) -> None:
    with pytest.raises(ModelFault) as fault:
        ask(place, native=True)
    told = (fault.value.kind, fault.value.message, fault.value.retryable)
    assert told == ("unscripted", f"{text}. {line}", False)
    assert ask(place, native=True, placeholders=True).text == f"[offline] {text}"


def test_without_a_file_the_fault_says_how_to_name_one() -> None:
    with pytest.raises(ModelFault, match=r"with \.replies\.yaml"):
        ask(at(1), script=Replies())


def test_a_reply_may_depend_on_what_the_request_holds() -> None:
    """Entries with ``when`` and the entry behind them are alternatives for one turn."""
    read = read_replies(
        """
replies:
  judge:
    - {when: Dear customer, text: Too stiff.}
    - {when: Hi, text: Too loose.}
    - text: Good.
    - text: The second turn.
    - {aside: 1, when: Dear customer, text: Aside one.}
    - {aside: 1, text: Aside two.}
    - {aside: 1, branch: s*, text: Aside of a candidate.}
"""
    )
    assert not read.problems
    offline = Offline(read.replies, StillClock(), COUNTER, Costly())

    def say(asked: str, turn: int, branch: str = "") -> str:
        request = Request("gpt-4o", {}, (), (Message("user", "Judge."), Message("user", asked)), "digest")
        place = at(turn, phase="judge")._replace(branch=branch)
        return asyncio.run(offline.complete(request, place, {}, lambda text: None)).text

    letters = ("Dear customer, hello", "Hi there", "Hello", "hi")
    assert [say(letter, 1) for letter in letters] == ["Too stiff.", "Too loose.", "Good.", "Good."]
    assert say("Dear customer", 2) == "The second turn."
    assert [say(letter, 0) for letter in letters[:2]] == ["Aside one.", "Aside two."]
    assert [say("Hello", 0, branch) for branch in ("s1", "r1.0")] == ["Aside of a candidate.", "Aside two."]


def test_usage_is_reported_as_scripted_and_never_made_up() -> None:
    assert ask(at(1)).usage == Usage(input=900, output=61, cached=512)
    usage = ask(at(2)).usage
    assert usage == Usage(output=COUNTER.text("The process died of a full disk.", "gpt-4o"))


def test_the_cost_is_that_of_the_model_it_stands_in_for() -> None:
    answer = ask(at(1))

    assert answer.cost == pytest.approx((900 - 512) * 0.001 + 512 * 0.0001 + 61 * 0.01)
    assert answer.cost_grade == "as gpt-4o"
    assert answer.model == answer.provider == "offline"


def test_an_unknown_price_or_input_leaves_the_cost_unknown() -> None:
    assert (ask(at(1), model="nobody").cost, ask(at(2)).cost) == (None, None)
    assert ask(at(2)).cost_grade == "unknown"


def test_the_latency_passes_on_the_clock_and_the_text_streams_in_pieces() -> None:
    clock, pieces = StillClock(), list[str]()
    answer = ask(at(2), clock=clock, on_text=pieces.append)

    assert "".join(pieces) == answer.text
    assert 2 < len(pieces) <= PIECES
    assert answer.first_token_s == 0.25
    assert answer.duration_s == pytest.approx(0.5)
    assert ask(at(1)).duration_s == pytest.approx(2.0)
    assert ask(at(1, visit=2)).finish_reason == "length"


@given(
    st.builds(
        Place,
        st.sampled_from(["", "triage_1_2"]),
        st.sampled_from(["triage", "other"]),
        *[st.integers(0, 3)] * 4,
    )
)
def test_the_same_place_hears_the_same_whatever_was_asked_before(place: Place) -> None:
    assert ask(place, placeholders=True) == ask(place, placeholders=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("look:\n  - text: x\n", "r.yaml:1:1: error: unknown key 'look' (phases stand below 'replies') [L901]"),
        (
            "latency: 1\nreplies: {}\n",
            "r.yaml:1:1: error: unknown key 'latency' (it stands below 'defaults') [L901]",
        ),
        ("default: {}\n", "r.yaml:1:1: error: unknown key 'default' (did you mean 'defaults'?) [L901]"),
        (
            "defaults: {latncy: 1}\n",
            "r.yaml:1:12: error: unknown key 'latncy' (did you mean 'latency'?) [L901]",
        ),
        ("replies:\n  a:\n    - txt: x\n", "r.yaml:3:7: error: unknown key 'txt' (did you mean 'text'?) [L901]"),
        (
            "replies:\n  a:\n    - text: 3\n",
            "r.yaml:3:13: error: 'text' must be text, got number 3 (put it in quotes) [L901]",
        ),
        ("replies:\n  a: [3]\n", "r.yaml:2:7: error: 'a[0]' must be a mapping, got number 3 [L901]"),
        ("replies:\n  a: 3\n", "r.yaml:2:6: error: 'a' must be a list, got number 3 [L901]"),
        (
            "replies:\n  a:\n    - {text: x, calls: [{tool: t}]}\n",
            "r.yaml:3:7: error: 'a[0]': 'text' is a whole answer; beside 'calls' write 'say' [L901]",
        ),
        (
            "replies:\n  a:\n    - {usage: {}}\n",
            "r.yaml:3:7: error: 'a[0]': says nothing: write 'text', or 'calls' [L901]",
        ),
        (
            "replies:\n  a:\n    - calls:\n        - {tool: t, arguments: [1]}\n",
            "r.yaml:4:32: error: 'arguments': must be a mapping, or text [L901]",
        ),
        ("replies: {str: [{latency: -1, text: x}]}\n", "'latency' must be at least 0 (got number -1)"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(text: str, problem: str) -> None:
    read = read_replies(text, "r.yaml")
    assert not any(entry.text for entries in read.replies.by_phase.values() for entry in entries)
    assert problem in str(read.problems[0])


@pytest.mark.parametrize("said", ["hi", ["hi"], [{"text": "hi"}]])
def test_a_text_alone_is_an_entry_and_a_list_of_one(said: object) -> None:
    written = {"replies": {"triage": said}}
    answer = ask(at(1), script=read_replies(json.dumps(written)).replies)

    assert answer.text == "hi"
    jsonschema.validate(written, json_schema())


def test_broken_yaml_is_a_problem_too() -> None:
    read = read_replies("replies: [", "r.yaml")
    parsed, problems = read.replies, read.problems

    assert parsed.by_phase == {}
    assert str(problems[0]).startswith("r.yaml:1:")


def test_an_empty_file_is_no_replies() -> None:
    assert read_replies("", "r.yaml").replies.by_phase == {}


def test_arguments_keep_what_they_hold() -> None:
    script = read_replies('replies: {p: [{calls: [{tool: t, arguments: {text: "é\\n", list: [1, null]}}]}]}').replies

    call = ask(at(1, phase="p"), native=True, script=script).calls[0]
    assert json.loads(call.arguments) == {"text": "é\n", "list": [1, None]}
