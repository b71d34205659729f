"""What forms ask, how they are shown as lines, what they take and what they say of the rest, word by word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from tests.engine.test_forms import ONE_OF_EACH, TABLE, form
from tests.support.stored import check_stored
from workbench.engine.forms.intent import QuestionContent, intent_of, options_of, template
from workbench.engine.forms.plain import asked_line, steps, table_lines
from workbench.engine.forms.spec import DataTable, Form, FormInvalid, Image
from workbench.engine.forms.values import AnswerRefused, read_answer
from workbench.engine.human.custom_form import hinted, in_words, spec_request
from workbench.engine.human.pages import page_form

STORED = Path(__file__).parent / "stored"
RARE: list[dict[str, Any]] = [
    {
        "type": "select",
        "id": "a_b",
        "title": "Which one",
        "other": True,
        "options": [
            {
                "id": "x",
                "description": "first",
                "facts": {"cost": 3, "safe": True, "bad": False, "note": None},
                "image": "a.png",
                "comment": True,
            }
        ],
    },
    {"type": "rating", "id": "r", "labels": ["bad", "good"], "max": 2},
    {"type": "confirmation", "id": "c", "yes": "Ship", "no": "Hold"},
    {"type": "input", "id": "answer", "kind": "multiline"},
    {"type": "input", "id": "where", "label": "Where", "title": "Place", "kind": "url", "required": True, "max": 3},
    {"type": "multi_select", "id": "some", "options": ["a"], "min": 1},
    {"type": "multi_select", "id": "any", "options": ["a"]},
    {"type": "card_grid", "id": "cards", "options": ["a"], "multiple": True},
    {
        "type": "data_table",
        "id": "mixed",
        "columns": ["A", "B"],
        "rows": [{"A": 1, "B": None}, ["x"], ["y", "z", "w"], 7],
        "selectable": "one",
    },
    {"type": "data_table", "id": "looked_at", "columns": ["A"], "rows": [["x  y\nz" * 20]], "selectable": "none"},
    {"type": "code", "text": "a\nb"},
    {"type": "text", "text": "\n".join(f"line {number}" for number in range(1, 63))},
    {
        "type": "image",
        "digest": "abcdef0123456",
        "media_type": "image/png",
        "size": 12345,
        "width": 3,
        "height": 4,
        "caption": "C",
    },
    {"type": "Data-Table", "id": "spelled", "columns": ["A"], "rows": [["1"]]},
    {"type": "hologram", "beam": "ü"},
]
WIDE = {"type": "data_table", "columns": ["Task", "Long"], "rows": [["a", "b" * 50], ["cc", "d"]]}


def _shown() -> Iterator[str]:
    for sections in (ONE_OF_EACH, RARE):
        for lines, section in steps(form(*sections).sections):
            yield from lines
            if section is not None:
                yield f"    {asked_line(section)}"
    table = form(WIDE).sections[0]
    assert isinstance(table, DataTable)
    for room in (None, 80, 40, 20, 5):
        yield from (f"in {room}:", *table_lines(table, room))


QUESTIONS = {
    "words": QuestionContent("q"),
    "tables by name": QuestionContent("q", data={"a": [{"x": 1}], "b": {"columns": ["y"], "rows": [[2]]}}),
    "one is no table": QuestionContent("q", data={"a": [{"x": 1}], "b": [2]}),
    "a table that cannot be read": QuestionContent("q", data={"columns": 3, "rows": [[1]]}),
    "no rows": QuestionContent("q", data={"columns": ["x"], "rows": []}),
    "a line": QuestionContent("q", data="plain"),
    "lines": QuestionContent("q", data="a\nb"),
    "code": QuestionContent("q", data={"code": "x", "language": "py"}),
    "a change": QuestionContent("q", data={"after": "x", "original": "y"}),
    "an empty change": QuestionContent("q", data={"after": "x", "before": None}),
    "a list": QuestionContent("q", data=[1, 2]),
    "an empty list": QuestionContent("q", data=[]),
    "facts": QuestionContent("q", context=" ", data={"a": 1, "b": "t", "c": None}),
    "rows to choose": QuestionContent("q", "Look.", data=TABLE, ui_hint="Data Review"),
    "rows beside words": QuestionContent("q", data=TABLE, ui_hint="confirm"),
    "a layout": QuestionContent("q", layout_hint=" Two_Column"),
    "a word for a layout": QuestionContent("q", layout_hint="columns"),
    "no layout": QuestionContent("q", layout_hint="nope"),
    "six options": QuestionContent("q", options=options_of(list("abcdef"))),
    "seven options": QuestionContent("q", options=options_of(["a"] * 7)),
    "an option with facts": QuestionContent("q", options=options_of(["a", {"id": "b", "facts": {"c": 1}}])),
    "an option with a picture": QuestionContent("q", options=options_of([{"value": "b", "image": "c.png"}])),
    "an option by its label": QuestionContent("q", options=options_of([{"title": "B", "content": 3}])),
    "a picture": QuestionContent("q", images=(Image(path="p"),)),
    "a wizard": QuestionContent("q", ui_hint="wizard"),
    "a rating": QuestionContent("q", ui_hint="rating:x"),
    "checkboxes": QuestionContent("q", options=options_of(["a"]), ui_hint="Checkboxes"),
}


def _made() -> Iterator[str]:
    for name, asked in QUESTIONS.items():
        intent = intent_of(asked)
        yield f"{name}: {intent.level}, {intent.why}"
        yield f"    {json.dumps(template(asked).to_json())}"


ANSWERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"type": "input", "min": 2, "max": 3}, ["a", "ab", "abc", "abcd", "12", '{"a": 1}']),
    ({"type": "input", "kind": "number", "min": 1, "max": 3}, ["1", "3", "2.5", "0.9", "3.1", "x", "nan", "inf"]),
    ({"type": "input", "kind": "integer"}, ["2.0", " 7 ", "2.5", "-inf"]),
    ({"type": "input", "kind": "date"}, ["2026-02-30", " 2026-01-31 "]),
    ({"type": "input", "kind": "email"}, ["a@b.c", "a@b", "a b@c.d"]),
    ({"type": "input", "kind": "url"}, ["http://x", "https://x y", "ftp://x"]),
    ({"type": "input", "pattern": "(a+)+b"}, ["aab", "aabc"]),
    ({"type": "confirmation"}, ["Y", "approved!", "abort", "no", "Ok: fine", "true", "0", "perhaps"]),
    ({"type": "confirmation", "yes": "Ship", "no": "Hold"}, ["ship", "HOLD", "yes", "maybe"]),
    ({"type": "rating", "max": 3, "labels": ["bad"]}, ["BAD", "3 stars", "1", "0", "4", "x"]),
    ({"type": "multi_select", "options": ["mo", "tu", "we"], "min": 2}, ["mo", "we,mo,we", '["mo", 5]', "3, ,1"]),
    ({"type": "multi_select", "options": ["mo", "tu", "we"], "max": 2}, ["mo,tu", "mo,tu,we"]),
    ({"type": "select", "options": ["a", "b"], "other": True}, ['["b"]', '["a","b"]', "3", " c "]),
    ({"type": "select", "options": ["a", "2", "1"]}, ["1", "3", "4", "0", "A"]),
    ({"type": "data_table", **TABLE}, ["Store, 1", "1,1", "0", "3", '[{"Task": "no"}]']),
    ({"type": "data_table", **TABLE, "selectable": "one"}, ["2", "1,2"]),
    ({"type": "card_grid", "options": ["a", "b"]}, ["a,b", "b"]),
    ({"type": "card_grid", "options": ["a", "b"], "multiple": True}, ["b,a", "c"]),
    ({"type": "comparison", "options": ["a", "b"]}, ["2", " "]),
]
X, Y = {"type": "input", "id": "x"}, {"type": "input", "id": "y"}
NEEDED = {"required": True}
SEVERAL: dict[str, dict[str, Any]] = {
    "both are needed": {"sections": [X | NEEDED, Y | NEEDED]},
    "y is needed": {"sections": [X, Y | NEEDED]},
    "neither is needed": {"sections": [X, Y]},
    "nothing is asked": {"sections": [{"type": "text", "text": "t"}]},
    "a comment is needed": {"sections": [{"type": "confirmation", "id": "x"}], "comment": "required"},
    "an option needs a comment": {
        "sections": [{"type": "multi_select", "id": "x", "options": ["a", {"id": "yes", "comment": True}]}]
    },
}
SAID = (
    "hi",
    '{"x": "1", "comment": " c "}',
    '{"values": {"x": "yes"}, "comment": null}',
    '{"z": 1}',
    "yes, so",
    "[1, 2]",
    "",
)


def _taken(asked: Form, text: str) -> str:
    try:
        return f"    {text!r}: {read_answer(asked, text).to_text()}"
    except AnswerRefused as fault:
        return f"    {text!r}: no: {fault}"


def _answered() -> Iterator[str]:
    for field, texts in ANSWERS:
        yield json.dumps(field)
        yield from (_taken(form({"id": "x", "required": True, **field}), text) for text in texts)
    for name, body in SEVERAL.items():
        yield name
        yield from (_taken(Form.of(body), text) for text in SAID)


def _nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "text", "text": "t"}
    for _ in range(depth):
        inner = {"type": "tabs", "panels": [{"title": "p", "sections": [inner]}]}
    return {"sections": [inner]}


BODIES: list[Any] = [
    "x",
    {"sections": 3},
    {"sections": []},
    {"layout": "two_column", "sections": [{"type": "Text", "text": "a"}], "more": 1},
    {"layout": "x", "sections": [{"type": "text"}]},
    {"sections": [{"type": "multi-select", "id": "x", "options": ["a", 2, True, None]}]},
    {"sections": [{"type": "select", "id": "x", "options": ["a", 2, True, {"label": "B", "facts": 3}]}]},
    {"sections": [{"type": "tabs", "panels": [{"title": "p"}, {"label": "q", "text": 3}]}]},
    {"sections": [{"type": "tabs", "panels": [{"title": "p"}, "q"]}]},
    {"sections": [{"type": "accordion", "items": [{"name": "n", "open": True, "content": "c"}], "column": 2}]},
    {"sections": [{"type": "data_table", "rows": []}]},
    {"sections": [{"type": "data_table", "rows": "x"}]},
    {"sections": [{"type": "data_table", "rows": [[1]], "columns": 3}]},
    {"sections": [{"type": "rating", "key": "x", "column": 5}]},
    {"sections": [{"type": "rating", "key": "x", "max": 21}]},
    {"sections": [{"type": "rating", "key": "x" * 81}]},
    {"sections": [{"type": "input", "name": "x", "question": "Why?", "hint": "say", "pattern": "a[", "default": 3}]},
    {"sections": [{"type": "input", "name": "x", "prompt": "Why?", "description": "say", "default": 3.5}]},
    {"sections": [{"type": "code", "code": "a", "diff_from": "b"}, {"type": "image", "src": "c"}]},
]


def _read() -> Iterator[str]:
    for body in BODIES:
        yield json.dumps(body)
        try:
            yield f"    {json.dumps(Form.of(body).to_json())}"
        except FormInvalid as fault:
            yield f"    no: {fault}"


HINTS: list[dict[str, Any]] = [
    {"question": "Q?"},
    {"question": "Q?", "context": "c", "ui_hint": " Yes-No "},
    *({"question": "Q?", "ui_hint": hint} for hint in ("confirm", "rating", "rating:3", "rating:0", "rating:21")),
    *({"question": "Q?", "ui_hint": hint} for hint in ("number", "date", "email", "multiline", "dashboard")),
    *({"question": "Q?", "ui_hint": hint} for hint in ("a|b", " a | |b ", "choice: a|b", "multi-select: a|b", "a|")),
]


def _hinted() -> Iterator[str]:
    for arguments in HINTS:
        asked = hinted(arguments)
        form = json.dumps(asked.form.to_json()) if asked.form is not None else "no form"
        yield f"{arguments.get('ui_hint', '')!r}: {asked.kind}, {list(asked.options)}, {asked.context!r}, {form}"
        if asked.form is not None:
            yield f"    {asked.made}"
        for said in ("2", "a, b") if asked.form is not None else ():
            try:
                yield f"    {said!r}: {in_words(asked, said)!r}"
            except AnswerRefused as fault:
                yield f"    {said!r}: no: {fault}"
    full = QuestionContent(
        "Which?",
        "c" * 6001,
        (Image(path="a.png", caption="A"), Image(digest="d")),
        {"deep": ["ü" * 3000] * 3},
        options_of([{"id": "a", "pros": ["p"]}]),
        "wizard",
        "grid",
        "Draw a map.",
    )
    for message in (*spec_request(QuestionContent("Only this?")), spec_request(full)[1]):
        lines = message.text.splitlines()
        yield from (f"{line[:60]}… {len(line)}" if len(line) > 400 else line for line in (message.role, *lines))


GO = "<button name=go value=1>Go</button>"
PAGES = (
    "<h1>Title</h1><p>One<br>two <b>three</b><ul><li>a<li>b</ul><script>x</script><style>y</style>" + GO,
    "<table><tr><th>A<th>B<tr><td>1<td>2</table>" + GO,
    "<input name=t><input name=u value=v placeholder=p required><input name=p type=password><input type=text>" + GO,
    *(f"<input name=k type={kind} value=3 min=1 max=5>{GO}" for kind in ("number", "range", "tel")),
    "<input type=hidden name=h value=1><input type=hidden value=2><input type=file name=f><input type=reset name=r>"
    + GO,
    "<textarea name=a required> b\n c</textarea><textarea name=response[d]></textarea>" + GO,
    "<select name=s><option value=1>One<option selected>Two<option value=3 selected>Three</select>" + GO,
    "<select name=s multiple required><option value=1 selected>One</option><option>Two</option></select>" + GO,
    "<select><option>a</select><select name=e></select>" + GO,
    "<input type=radio name=r value=a checked>A<input type=radio name=r value=b>B<input type=radio name=r>" + GO,
    "<input type=checkbox name=c value=1 checked> One <input type=checkbox name=c value=2> Two" + GO,
    "<input type=checkbox name=c> Yes<p>more" + GO,
    "<input type=submit name=go value=Send><input type=button name=b value=x><input type=submit>",
    "<button>Plain</button><button type=reset name=r>No</button><button name=a value=1 type=submit> Do  it </button>",
    "<button hx-vals='{\"a\": 1, \"b\": [2]}'>V</button><button hx-vals='[1]'>w</button>",
    "<button name=response[x] value=y>z",
    "<form><label>Whole <input name=w></label><label for=q>Q</label><input id=q name=q></form>" + GO,
    "<p>only text",
    "",
    "<input name='a b'><input name='response[a][b]'><input name=comment>" + GO,
)


def _pages() -> Iterator[str]:
    for html in PAGES:
        made = page_form(html, "t")
        yield html.replace("\n", "\\n")
        yield f"    {json.dumps(made.form.to_json())}"
        yield f"    { ({one.name: getattr(made, one.name) for one in fields(made) if one.name != 'form'}) }"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("pages", _pages),
        ("hinted", _hinted),
        ("shown", _shown),
        ("made", _made),
        ("answered", _answered),
        ("read", _read),
    ],
)
def test_forms_are_shown_made_and_read_as_stored(name: str, lines: Any) -> None:
    check_stored(STORED / f"forms-{name}.txt", "\n".join(lines()) + "\n")


def test_sections_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(FormInvalid):
        Form.of(_nested(2000))


@pytest.mark.parametrize(("options", "words"), [("x", "must be a list"), ([{"label": " "}], "needs an id or a label")])
def test_options_that_cannot_be_read_are_refused_in_words(options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"'options'.* {words}"):
        options_of(options)
    assert options_of("") == options_of(None) == ()
