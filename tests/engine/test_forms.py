"""Forms: how one is made of a question, what it takes for an answer, and what stands where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.engine.forms.intent import QuestionContent, intent_of, options_of, table_of, template
from workbench.engine.forms.plain import how, shown_lines, steps
from workbench.engine.forms.spec import LAYOUTS, TYPES, DataTable, Form, FormInvalid, Image, fields_of
from workbench.engine.forms.values import AnswerRefused, check_values, read_answer
from workbench.engine.human.custom_form import read_spec
from workbench.tui.widgets.form_sections import columns_of

TABLE = {"columns": ["Task", "Status"], "rows": [["Parse", "open"], ["Store", "done"]]}
PLANS = [
    {"id": "a", "title": "Wait", "pros": ["safe"], "cons": ["slow"]},
    {"id": "b", "title": "Ship", "pros": ["fast"], "cons": ["risky"]},
]
ONE_OF_EACH: list[dict[str, Any]] = [
    {"type": "text", "text": "Look at this."},
    {"type": "markdown", "content": "# A heading"},
    {"type": "input", "id": "name", "label": "Name", "required": True},
    {"type": "select", "id": "team", "options": ["blue", "green"]},
    {"type": "multi_select", "id": "days", "options": ["mo", "tu", "we"], "max": 2},
    {"type": "confirmation", "id": "sure"},
    {"type": "rating", "id": "stars", "max": 3},
    {"type": "image", "path": "chart.png"},
    {"type": "data_table", "id": "tasks", **TABLE},
    {"type": "code", "text": "b = 2\n", "before": "b = 1\n", "language": "python"},
    {"type": "card_grid", "id": "card", "cards": PLANS},
    {"type": "comparison", "id": "plan", "items": PLANS},
    {"type": "accordion", "panels": [{"title": "More", "content": "Details"}]},
    {"type": "tabs", "tabs": [{"label": "One", "sections": [{"type": "input", "id": "inner", "kind": "integer"}]}]},
]


def form(*sections: dict[str, Any], **more: Any) -> Form:
    return Form.of({"sections": list(sections), **more})


def test_every_type_of_section_is_read_and_told_again_as_it_was() -> None:
    whole = form(*ONE_OF_EACH, title="All of it", layout="two_column")
    assert [section.type for section in whole.sections] == list(TYPES)
    assert Form.of(json.loads(json.dumps(whole.to_json()))) == whole
    assert [field.id for field in fields_of(whole)] == [
        *("name", "team", "days", "sure", "stars", "tasks", "card", "plan", "inner"),
    ]


def test_an_unknown_section_is_shown_as_its_json() -> None:
    shown = form({"type": "hologram", "beam": 3}).sections[0]
    assert shown.type == "text"
    assert '"beam": 3' in shown.text


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([], "at least 1"),
        ([{"type": "select", "id": "x", "options": []}], "at least 1"),
        ([{"type": "input"}], "id: Field required"),
        ([{"type": "input", "id": "x"}, {"type": "rating", "id": "x"}], "two sections have the id 'x'"),
        ([{"type": "input", "id": "comment"}], "no section may have the id 'comment'"),
        ([{"type": "input", "id": "x", "pattern": "("}], "not a valid expression"),
        ([{"type": "input", "id": "x"}] * 61, "at most 60"),
    ],
)
def test_what_is_no_form_is_refused_in_words(sections: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(FormInvalid, match=message):
        form(*sections)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "select", "options": ["blue", "green"]}, "2", "green"),
        ({"type": "select", "options": [{"id": "b", "label": "Team Blue"}]}, "team blue", "b"),
        ({"type": "select", "options": ["a"], "other": True}, "neither", "neither"),
        ({"type": "multi_select", "options": ["mo", "tu", "we"]}, "we, 1", ["mo", "we"]),
        ({"type": "multi_select", "options": ["mo", "tu"]}, '["tu"]', ["tu"]),
        ({"type": "confirmation"}, "yes", True),
        ({"type": "confirmation", "yes": "Ship", "no": "Hold"}, "hold", False),
        ({"type": "rating", "max": 5}, "4", 4),
        ({"type": "rating", "labels": ["bad", "good"]}, "good", 2),
        ({"type": "input", "kind": "integer"}, "12", 12),
        ({"type": "input", "kind": "number"}, "1.5", 1.5),
        ({"type": "input", "kind": "date"}, "2026-01-31", "2026-01-31"),
        ({"type": "data_table", **TABLE}, "2", [{"Task": "Store", "Status": "done"}]),
        (
            {"type": "data_table", **TABLE},
            '[{"Task": "Parse", "Status": "open"}]',
            [{"Task": "Parse", "Status": "open"}],
        ),
        ({"type": "card_grid", "options": PLANS, "multiple": True}, "1,2", ["a", "b"]),
        ({"type": "comparison", "options": PLANS}, "Ship", "b"),
    ],
)
def test_an_answer_is_read_by_the_section(field: dict[str, Any], text: str, value: Any) -> None:
    answered = read_answer(form({"id": "x", "required": True, **field}), text)
    assert answered.values == {"x": value}
    again = read_answer(form({"id": "x", "required": True, **field}), answered.to_text())
    assert again == answered


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ({"type": "select", "options": ["blue", "green"]}, "red", "choose one of blue, green"),
        ({"type": "multi_select", "options": ["a", "b"], "max": 1}, "a,b", "choose at most 1"),
        ({"type": "confirmation"}, "perhaps", "answer yes or no"),
        ({"type": "rating", "max": 5}, "6", "a number from 1 to 5"),
        ({"type": "input", "kind": "integer"}, "1.5", "a whole number"),
        ({"type": "input", "kind": "number", "min": 3}, "2", "at least 3"),
        ({"type": "input", "kind": "email"}, "me", "an address"),
        ({"type": "input", "pattern": "[a-z]+"}, "A1", "must match"),
        ({"type": "data_table", **TABLE}, "3", "not a row; rows count from 1 to 2"),
        ({"type": "data_table", **TABLE, "selectable": "one"}, "1,2", "choose one row"),
        ({"type": "input", "kind": "text"}, "  ", "an answer is needed"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_in_words(field: dict[str, Any], text: str, problem: str) -> None:
    with pytest.raises(AnswerRefused, match=problem):
        read_answer(form({"id": "x", "required": True, **field}), text)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"kind": "integer", "min": 1, "max": 5}, "a whole number, 1 to 5"),
        ({"kind": "number", "max": 0.5}, "a number, at most 0.5"),
        ({"min": 2}, "text, at least 2 characters"),
        ({"kind": "date"}, "a date as 2026-01-31"),
    ],
)
def test_a_question_says_between_which_limits_its_answer_lies(field: dict[str, Any], words: str) -> None:
    (section,) = fields_of(form({"type": "input", "id": "x", **field}))
    assert how(section) == words


def test_a_form_with_an_option_that_needs_a_comment_has_room_for_one() -> None:
    options = ["keep", {"id": "drop", "comment": True}]
    made = Form.of({"sections": [{"type": "select", "id": "x", "options": options}], "comment": "none"})
    assert made.comment == "optional"
    assert check_values(made, {"x": "drop"}, "too old").comment == "too old"


def test_a_remark_behind_yes_or_no_is_the_comment() -> None:
    answered = read_answer(form({"type": "confirmation", "id": "x", "required": True}), "no, too long")
    assert (answered.values, answered.comment) == ({"x": False}, "too long")


def test_an_option_may_ask_for_a_comment() -> None:
    asked = form({"type": "select", "id": "x", "options": ["fine", {"id": "else", "comment": True}]})
    assert check_values(asked, {"x": "fine"}).comment == ""
    with pytest.raises(AnswerRefused, match="'else' needs a comment"):
        check_values(asked, {"x": "else"})


def test_everything_that_is_wrong_is_said_at_once_by_the_id_of_its_section() -> None:
    with pytest.raises(AnswerRefused) as refused:
        read_answer(form(*ONE_OF_EACH), '{"values": {"stars": 9, "team": "red", "nope": 1}}')
    assert set(refused.value.problems) == {"name", "stars", "team", "nope"}


FORMS = [form(section) for section in ONE_OF_EACH]


@example(",")
@given(st.text(max_size=60) | st.integers().map(str) | st.lists(st.text(max_size=5), max_size=4).map(json.dumps))
def test_whatever_is_said_is_read_or_refused(text: str) -> None:
    for asked in FORMS:
        try:
            answered = read_answer(asked, text)
        except AnswerRefused:
            continue
        assert read_answer(asked, answered.to_text()) == answered


@pytest.mark.parametrize(
    ("asked", "level"),
    [
        (QuestionContent("Go on?"), "low"),
        (QuestionContent("Which?", options=options_of(["a", "b"])), "low"),
        (QuestionContent("Which?", options=options_of(PLANS)), "medium"),
        (QuestionContent("All right?", images=(Image(path="a.png"),)), "medium"),
        (QuestionContent("Which rows?", data=TABLE), "medium"),
        (QuestionContent("All?", images=(Image(path="a.png"),), data=TABLE, options=options_of(["a"])), "high"),
        (QuestionContent("What now?", data={"deep": {"er": [1, {"x": 2}]}}), "high"),
        (QuestionContent("What now?", ui_hint="dashboard"), "high"),
        (QuestionContent("What now?", instructions="a form with a map"), "high"),
    ],
)
def test_rules_say_how_much_of_a_form_a_question_needs(asked: QuestionContent, level: str) -> None:
    assert intent_of(asked).level == level
    assert fields_of(template(asked)), "even where a model would write it, the template can be answered"


@pytest.mark.parametrize(
    ("asked", "types"),
    [
        (QuestionContent("Go on?", ui_hint="confirmation"), ["confirmation"]),
        (QuestionContent("How good?", ui_hint="rating:3"), ["rating"]),
        (QuestionContent("Which?", options=options_of(["a", "b"])), ["select"]),
        (QuestionContent("Which?", options=options_of(["a", "b"]), ui_hint="multi_select"), ["multi_select"]),
        (QuestionContent("Which?", options=options_of(PLANS)), ["comparison"]),
        (QuestionContent("Which?", options=options_of([{"id": "a", "description": "first"}])), ["card_grid"]),
        (QuestionContent("Rows?", "See below.", data=TABLE, ui_hint="data_review"), ["markdown", "data_table"]),
        (
            QuestionContent("Fine?", images=(Image(path="a.png"),), options=options_of(["yes", "no"])),
            ["image", "select"],
        ),
        (QuestionContent("Fine?", data={"before": "a", "after": "b"}), ["code", "input"]),
        (QuestionContent("Fine?", data={"total": 12, "open": 3}, options=options_of(["ok"])), ["data_table", "select"]),
        (QuestionContent("Fine?", data={"total": 12, "open": 3}), ["data_table", "input"]),
    ],
)
def test_a_template_shows_what_there_is_and_asks_once(asked: QuestionContent, types: list[str]) -> None:
    assert [section.type for section in template(asked).sections] == types


@pytest.mark.parametrize(
    ("hint", "options", "answer"),
    [
        ("", [{"id": "a", "pros": ["+"]}, "b"], ("comparison", "Choose one", 2)),
        ("comparison", [f"plan {number}" for number in range(13)], ("comparison", "Choose one", 12)),
        ("multi_select", ["a", "b"], ("multi_select", "Choose", 2)),
        ("cards", ["a", "b"], ("card_grid", "Choose one", 2)),
        ("card_grid", ["a", "b"], ("card_grid", "Choose one", 2)),
        ("", ["a", "b"], ("select", "Choose one", 2)),
        ("confirmation", [], ("confirmation", "Is this all right?", 0)),
        ("rating", [], ("rating", "Your rating", 5)),
        ("rating_3", [], ("rating", "Your rating", 3)),
        ("rating:30", [], ("rating", "Your rating", 20)),
        ("", [], ("input", "Your answer", 0)),
    ],
)
def test_the_answer_of_a_template_is_asked_for_as_the_hint_says(
    hint: str, options: list[Any], answer: tuple[str, str, int]
) -> None:
    (section,) = template(QuestionContent("What now?", options=options_of(options), ui_hint=hint)).sections
    size = getattr(section, "max", None) or len(getattr(section, "options", ()))
    assert (section.type, getattr(section, "label", None), size) == answer
    assert getattr(section, "required", False)


def test_a_table_beside_options_does_not_ask_for_rows() -> None:
    table = template(QuestionContent("Fine?", data=TABLE, options=options_of(["ok"]))).sections[0]
    assert isinstance(table, DataTable)
    assert (table.selectable, table.label) == ("none", "")


def test_a_list_of_objects_is_a_table() -> None:
    table = table_of([{"a": 1, "b": None}, {"b": True, "c": [1]}])
    assert table is not None
    assert (table.columns, table.rows[1]) == (("a", "b", "c"), ("", "yes", "[1]"))


def test_a_models_form_is_read_out_of_its_prose() -> None:
    text = 'Here it is:\n```json\n{"sections": [{"type": "rating", "id": "stars"}]}\n```'
    assert read_spec(text, QuestionContent("How good?")).title == "How good?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Sorry, no.", "no JSON object with 'sections'"),
        ('{"sections": [{"type": "markdown", "text": "hm"}], "comment": "none"}', "nothing in it can be answered"),
        ('{"sections": [{"type": "image", "path": "/etc/passwd"}]}', "was not given"),
        ('{"sections": [{"type": "select", "id": "x"}]}', "options"),
    ],
)
def test_a_models_form_that_cannot_be_used_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(FormInvalid, match=message):
        read_spec(text, QuestionContent("How good?"))


def test_a_form_without_a_screen_names_its_folded_parts() -> None:
    panels = [{"title": "More", "sections": [{"type": "markdown", "text": "why"}]}]
    ask = {"type": "rating", "id": "stars"}
    for title, head in (("Details", [["## Details"]]), ("", [[]])):
        folded = form({"type": "accordion", "title": title, "panels": panels}, ask)
        told = [lines for lines, _ in steps(folded.sections)]
        assert told[:2] == [*head, ["[More]"]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_places_every_section_once_and_stacks_them_below_100_cells(layout: str) -> None:
    asked = form(*ONE_OF_EACH, layout=layout)
    wide = columns_of(asked, 120)
    assert sorted(position for column in wide for position in column) == list(range(len(asked.sections)))
    assert columns_of(asked, 99) == (tuple(range(len(asked.sections))),)
    assert len(wide) == {"vertical": 1, "three-column": 3, "horizontal": 4}.get(layout, 2)


def test_a_sidebar_holds_what_is_looked_at() -> None:
    asked = form({"type": "image", "path": "a"}, {"type": "input", "id": "x"}, layout="sidebar-right")
    assert columns_of(asked, 120) == ((1,), (0,))


def test_a_form_is_numbered_lines_where_there_is_no_app() -> None:
    asked = form(*ONE_OF_EACH)
    lines = [line for shown, _ in steps(asked.sections) for line in shown]
    assert "  1. blue" in lines
    assert "  1. Parse  open" in lines
    assert "    -b = 1" in lines
    assert "[More]" in lines
    assert "     + safe" in lines
    assert [section.id for _, section in steps(asked.sections) if section] == [f.id for f in fields_of(asked)]
    assert list(shown_lines(asked.sections[7])) == ["chart.png"]
