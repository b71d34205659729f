"""What templates come to, each in a line of ``faults/templates.txt``: text, undefined names, a fault with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.stored import check_stored
from workbench.language.templates.names import TemplateFault
from workbench.language.templates.sandbox import CheckedText
from workbench.language.templates.template import Renderer, condition_shift, condition_template, truth

FAULTS = Path(__file__).parent / "faults"
NAMES: dict[str, Any] = {
    "input": {"a": 1, "list": ["x", "y"], "text": "hi", "nested": {"key": None, "items": 3}, "_own": "o"},
    "outputs": {
        "plain": "a crash",
        "made": CheckedText('{"n": 2, "rows": [{"k": "v"}]}', {"n": 2, "rows": [{"k": "v"}], "upper": "key"}),
        "listed": CheckedText("[1, 2]", [1, 2]),
    },
    "rows": [
        {"n": n, "t": t} for n, t in enumerate(["a b", "3", "", "x,y", None, "-a", "true", "ü", " a", 'q"', "1.5e3"])
    ],
    "deep": {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}},
}


def told(template: str) -> str:
    try:
        made = Renderer()(template, NAMES)
    except TemplateFault as fault:
        return f"fault {fault.line}:{fault.column} {fault.message}"
    missing = "".join(f"  undefined {name} {line}:{column}" for name, line, column in made.undefined)
    return f"{made.text!r}{missing}"


def test_templates_come_to_what_is_stored() -> None:
    lines = []
    for line in (FAULTS / "templates.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("    "):
            lines += [line, f"    {told(line)}"]
    check_stored(FAULTS / "templates.txt", "\n".join(lines) + "\n")


def test_a_condition_is_an_expression_or_a_template() -> None:
    told = [
        (text, condition_template(text), condition_shift(text)) for text in ("a", "{{ a }}", "{% if a %}1{% endif %}")
    ]
    assert told == [
        ("a", "{{ a }}", 3),
        ("{{ a }}", "{{ a }}", 0),
        ("{% if a %}1{% endif %}", "{% if a %}1{% endif %}", 0),
    ]
    false = ("", " ", "False", "no", "NONE", "null", "0", "0.0", "[]", "{}", "()", "\n")
    assert [text for text in (*false, "yes", "1", "0.00", "[0]", "a") if truth(text)] == [
        "yes",
        "1",
        "0.00",
        "[0]",
        "a",
    ]
