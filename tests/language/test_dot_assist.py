"""An editor of pipelines: what is offered where the cursor stands, what it explains, how it is coloured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.language.edit.completion import Names, complete, field_help
from workbench.views.syntax import dot_lines

NAMES = Names(phases={"plan": "line 2", "pack": "line 3"}, tools={"read_file": "builtin"}, models={"gpt-5.2": ""})


def offered(text: str) -> tuple[str, ...]:
    """What is offered at the bar."""
    at = text.index("|")
    return tuple(item.text for item in complete(text.replace("|", "", 1), at, "dot", NAMES).items)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("digraph g {\n a [sha|", "shape"),
        ("digraph g {\n a [prompt=x, goal_g|]", "goal_gate"),
        ("digraph g {\n a -> b [wei|", "weight"),
        ("digraph g {\n node [fid|", "fidelity"),
        ("digraph g {\n graph [default_f|", "default_fidelity"),
        ("digraph g {\n mod|", "model_stylesheet"),
        ("digraph g {\n a -> pl|", "plan"),
        ("digraph g {\n a -> plan -> pa|", "pack"),
        ("digraph g {\n a [shape=hex|", "hexagon"),
        ('digraph g {\n a [fidelity="summary:m|', "summary:medium"),
        ("digraph g {\n a [goal_gate=t|", "true"),
        ("digraph g {\n a [retry_target=pa|", "pack"),
        ('digraph g {\n a -> b [condition="outcome=f|', "fail"),
        ('digraph g {\n a -> b [condition="outc|', "outcome"),
        ('digraph g {\n a [workbench.tools="read|', "read_file"),
    ],
)
def test_what_may_stand_at_the_cursor_is_offered(text: str, first: str) -> None:
    assert offered(text)[:1] == (first,)


def test_nothing_is_offered_in_a_prompt_or_a_comment() -> None:
    assert offered('digraph g {\n a [prompt="sha|') == ()


def test_an_attribute_explains_itself_in_its_scope() -> None:
    text = "digraph g {\n retry_target=a;\n a [max_retries=2, script=ls];\n a -> b [fidelity=full] }"
    helped = {word: field_help(text, text.index(word) + 2, "dot") for word in ("retry_target", "max_ret", "fidelity")}
    assert [found.path for found in helped.values() if found] == [
        "graph.retry_target",
        "node.max_retries",
        "edge.fidelity",
    ]
    found = field_help(text, text.index("script") + 1, "dot")
    assert found is not None
    assert found.path == "node.tool_command"


def test_strings_and_comments_are_coloured_over_several_lines() -> None:
    lines = ['a [prompt="one // no', "two = 3", 'three", label=x] /* so', "on */ b -> c"]
    painted = [dict(reversed(spans)) for spans in dot_lines(lines)]
    assert painted[0]['"one // no'] == "code-string"
    assert painted[1] == {"two = 3": "code-string"}
    assert painted[2]['three"'] == "code-string"
    assert painted[2]["label"] == "code-key"
    assert painted[3]["on */"] == "code-comment"


@given(st.text(alphabet='ab"\\\n/*=[]->;#', max_size=40))
def test_colours_lose_no_character_and_no_place_fails(text: str) -> None:
    lines = text.split("\n")
    assert ["".join(part for part, _ in spans) for spans in dot_lines(lines)] == lines
    for at in range(len(text) + 1):
        complete(text, at, "dot", NAMES)
        field_help(text, at, "dot")
