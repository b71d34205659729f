"""Phases that show a page of HTML to a person: its form, its answer, and what comes next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.support import Played, play
from tests.engine.test_replay import check_replay
from workbench.context.place import Place
from workbench.engine.forms.spec import Select, fields_of
from workbench.engine.human.pages import page_form

PAGE = """
<style>p {color: red}</style><script>pay()</script><h1>Order {{ input.what }}</h1><p>Two&nbsp;tents,
 <b>blue</b></p>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>tent</td><td>90</td></tr></table>
<form hx-post="/apps/{{ cascade_id }}/{{ session_id }}/respond"><input type="hidden" name="lot" value="7">
<label for="n">Notes</label><textarea name="response[notes]" id="n">none</textarea>
<label><input type="radio" name="response[size]" value="s" checked> Small</label>
<label><input type="radio" name="response[size]" value="l"> Large</label>
<label><input type="checkbox" name="response[gift]" value="yes"> As a gift</label>
<select name="response[colour]"><option value="b">Blue</option><option>Red</option></select>
<input type="number" name="response[count]" required placeholder="How many?">
<button name="response[action]" value="approve">Approve</button>
<button name="response[action]" value="reject">Reject</button></form>
"""
DOCUMENT: dict[str, Any] = {
    "cascade_id": "shop",
    "phases": [
        {
            "name": "ask",
            "htmx": PAGE,
            "hitl_title": "An order",
            "hitl_description": "Look at it.",
            "routing": {"approve": "sent"},
            "handoffs": ["sent", "no"],
        },
        {
            "name": "sent",
            "instructions": "Send {{ state.ask.count }}: {{ outputs.ask.response.notes }}.",
            "handoffs": [],
        },
        {"name": "no", "instructions": "Refuse {{ state.ask.colour }}."},
    ],
}
ANSWER = {"notes": "by noon", "size": "l", "gift": True, "colour": "Red", "count": 2, "action": "approve"}


def asked(*answers: Any, **phase: Any) -> Played:
    first, *rest = DOCUMENT["phases"]
    document = {**DOCUMENT, "phases": [{**first, **phase}, *rest]}
    return play(document, ["done"], input={"what": "it"}, answers=[json.dumps(answer) for answer in answers])


def test_a_page_is_a_form_and_its_answer_is_state_output_and_route() -> None:
    played = asked(ANSWER)
    form = played.of_kind("human_asked")[0].data["form"]
    assert form["title"] == "An order"
    assert [section["type"] for section in form["sections"]] == (
        ["text", "text", "input", "select", "confirmation", "select", "input", "select"]
    )
    assert form["sections"][1]["text"] == "Order it\nTwo tents, blue\nItem | Price\ntent | 90"
    assert [section.get("label", "") for section in form["sections"][2:]] == (
        ["Notes", "size", "As a gift", "colour", "How many?", ""]
    )
    assert [section["id"] for section in form["sections"] if section.get("required")] == ["count", "action"]
    plain = {"lot": "7", **ANSWER, "gift": "yes"}
    assert json.loads(played.of_kind("tool_finished")[0].data["text"]) == plain | {"response": plain}
    assert played.texts(0)[-1] == ("user", "Send 2: by noon.")


def test_a_page_knows_its_session_its_cascade_and_its_place() -> None:
    played = asked(ANSWER, htmx="<p>{{ session_id }}, {{ cascade_id }}, {{ checkpoint_id }}" + PAGE)
    (form,) = [event.data["form"] for event in played.of_kind("human_asked")]
    assert form["sections"][1]["text"].split("\n")[0] == f"{played.state.session_id}, shop, {Place('', 'ask', 1)}"


@pytest.mark.parametrize(
    ("answer", "phase", "reached"),
    [
        ({**ANSWER, "action": "reject"}, {"routing": {"reject": "no"}}, "no"),
        ({**ANSWER, "action": "reject"}, {"routing": {"default": "no"}}, "no"),
        ({**ANSWER, "action": "reject"}, {"routing": {}}, "sent"),
        ({"_route": "no"}, {"htmx": "<button name=_route value=sent>x</button><button name=_route value=no>y"}, "no"),
        ({"_route": "no"}, {"htmx": "{{ route_button('Go', 'sent') }}{{ submit_button('No', route='no') }}"}, "no"),
        ({"action": "no"}, {"htmx": '<button hx-vals=\'{"action": "no"}\'>n</button><button name="action">y'}, "no"),
        ({"button": "continue"}, {"htmx": "<p>Read this."}, "sent"),
        (
            {"x": "y"},
            {"htmx": "<input name=x><button>Go</button>", "instructions": "left out", "await_input": True},
            "sent",
        ),
    ],
)
def test_what_is_pressed_says_what_comes_next(answer: Any, phase: dict[str, Any], reached: str) -> None:
    played = asked(answer, **{"routing": {}} | phase)
    assert [event.place.phase for event in played.of_kind("phase_started")][1] == reached
    assert len(played.model.requests) == 1


@pytest.mark.parametrize(
    ("html", "labels"),
    [
        ("<input type=checkbox name=m value=yes> Museum <b>too</b><br>Text<input name=x>", ["Museum too", "", "x"]),
        ("<input type=radio name=r value=a> First <input type=radio name=r value=b> Second<p>T", ["First|Second", ""]),
        ("<input type=checkbox id=c name=m><label for=c>Museum</label><input name=x>", ["Museum", "x"]),
        ("<label for=c>Museum</label><input type=checkbox id=c name=m> Text<input name=x>", ["Museum", "", "x"]),
        ("<input id=n name=note><label for=n>Notes</label>", ["Notes"]),
        ("<input type=checkbox name=m> One<label><input type=checkbox name=n> Two</label>", ["One", "Two"]),
        ("<input type=checkbox name=m value=yes>", ["m"]),
        ("<input type=checkbox name=m> One <input name=x> Two", ["One", "x", ""]),
        ("<input type=checkbox name=m> One <textarea name=x></textarea> Two", ["One", "x", ""]),
        ("<input type=checkbox name=m> One <select name=x></select> Two", ["One", "x", ""]),
        ("<input type=checkbox name=m> One <button name=x value=1>Y</button> Two", ["One", "", "Y|Go"]),
    ],
)
def test_a_label_is_found_where_pages_write_it(html: str, labels: list[str]) -> None:
    sections = page_form(f"{html}<button name=go value=1>Go</button>", "t").form.sections
    found = [
        "|".join(o.label for o in s.options) if isinstance(s, Select) else getattr(s, "label", "") for s in sections
    ]
    assert found == labels


@pytest.mark.parametrize(
    ("html", "default"),
    [
        ("<select name=s><option>One<option selected>Two</select>", "Two"),
        ("<select name=s><option value=1>One<option value=2 selected>Two</select>", "2"),
        ("<select name=s><option>One<option>Two</select>", None),
        ("<select name=s multiple><option selected>One<option value=2 selected>Two</select>", ("One", "2")),
        ("<input type=radio name=r value=a> A <input type=radio name=r value=b checked> B", "b"),
        ("<input type=checkbox name=c value=1 checked> One <input type=checkbox name=c value=2> Two", ("1",)),
        ("<input type=checkbox name=c checked> One", True),
        ("<input type=checkbox name=c> One", None),
    ],
)
def test_what_a_page_has_chosen_is_chosen_in_its_form(html: str, default: object) -> None:
    (section, *_) = fields_of(page_form(f"{html}<button name=go value=1>Go</button>", "t").form)
    assert getattr(section, "default", "none") == default


def test_a_page_is_replayed_without_a_person() -> None:
    played = asked(ANSWER)
    check_replay(played)


def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    played = asked({**ANSWER, "count": "many"}, ANSWER)
    assert "count" in played.of_kind("human_answered")[0].data["refused"]
    assert played.outcome.status == "success"


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<",
        "<input name=comment><input name=comment>",
        "<select name=s></select>",
        "<input type=checkbox name=c><input type=radio name=r>",
        "<button>a</button>" * 300,
        "<p>a<input name=i>" * 100,
        "<button hx-vals='[1'>a",
        "<textarea name=t><b>",
        "<label><label></label></form></select></option></button>",
    ],
)
def test_any_page_gives_a_form_that_can_be_answered(html: str) -> None:
    made = page_form(html, "t")
    assert len(made.form.sections) <= 60
    assert fields_of(made.form)
