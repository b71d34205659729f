"""A phase gets another name everywhere: in the fields and templates that name it, with all else unchanged."""

from __future__ import annotations

import json

import pytest
import yaml
from msgspec.structs import replace

from workbench.language.edit.completion import Names
from workbench.language.edit.errors import EditError
from workbench.language.edit.navigate import Definitions, definitions_of, named_at
from workbench.language.edit.phase_names import phase_uses, renamed_phase
from workbench.language.lint.environment import LintEnvironment, ToolFacts, ValidatorFacts
from workbench.language.load import load
from workbench.language.model.context import SOURCE_KEYWORDS
from workbench.language.read.source import Source
from workbench.language.read.text import read_source

TEXT = """\
cascade_id: x
phases:
  - name: look   # the first
    instructions: Look at looking.
    tackle: [ask_human]
    handoffs: [tell, "look"]
  - name: tell
    instructions: |
      Say {{ outputs.look }}, {{ state.output_look }}, {{ outputs['look'] | upper }} and {{ state.look }}.
      {% if outputs.look is defined %}look{% endif %} {{ outputs.looking }} {# outputs.look #}
    context:
      from: [look, {phase: look, include: [output]}]
      exclude: ['look']
    on_error: look
  - name: last
    instructions: "a\\u0020{{ outputs.look }}"
    handoffs:
      - target: look
        description: look again
token_budget:
  phase_overrides:
    look: {max_total: 5000}
"""
PLACES = 14


def source_of(text: str, file: str = "x.yaml") -> Source:
    source, problems = read_source(text, file)
    assert not problems
    return source


def test_every_place_that_names_the_phase_changes_and_nothing_else_does() -> None:
    changed = renamed_phase(source_of(TEXT), "look", "search")
    assert changed.count("search") == PLACES
    for kept in ("Look at looking.", "outputs.looking", "%}look{%", "{# outputs.look #}", "look again", "# the first"):
        assert kept in changed
    assert renamed_phase(source_of(changed), "search", "look") == TEXT


def test_the_same_in_json() -> None:
    text = json.dumps(yaml.safe_load(TEXT), indent=1)
    assert renamed_phase(source_of(text, "x.json"), "look", "search").count("search") == PLACES


CODE = """\
cascade_id: x
phases:
  - {name: raw_rows, tool: sql_data, inputs: {query: SELECT 1 AS raw_rows}}
  - name: raw
    tool: sql_data
    inputs:
      query: |
        -- of _raw_rows
        SELECT _raw_rows.a, x._raw_rows, '_raw_rows' FROM _raw_rows
        JOIN "_raw_rows_items" ON {{ outputs.raw_rows.rows }}
  - {name: code, tool: python_data, inputs: {code: "result = data.raw_rows, data['raw_rows']  # data.raw_rows"}}
  - {name: other, tool: js_data, inputs: {code: "result = data.raw_rows.length // data.raw_rows"}}
  - {name: lisp, tool: clojure_data, inputs: {code: "(count (:raw-rows data))"}}
  - {name: shell, tool: bash_data, inputs: {script: cat _raw_rows, input_table: _raw_rows}}
  - {name: each, for_each_row: {table: _raw_rows_items, instructions: x}}
  - {name: end_, instructions: x, context: {from: ["raw_rows#2"], exclude: [raw_rows]}}
  - {name: asks, instructions: x, human_input: {on_timeout: escalate, escalate_to: raw_rows}}
  - name: told
    instructions: |
      {{ state._decision_raw_rows.choice }} {{ state['human_input']['raw_rows'] }} {{ state.human_notes.raw_rows }}
"""


def test_tables_code_and_visits_name_the_phase_too() -> None:
    changed = renamed_phase(source_of(CODE), "raw_rows", "first_rows")
    assert changed.count("first_rows") + changed.count("first-rows") == 17
    for kept in (
        "-- of _raw_rows",
        "x._raw_rows",
        "'_raw_rows'",
        "# data.raw_rows",
        "// data.raw_rows",
        "cat _raw_rows",
    ):
        assert kept in changed
    assert "(:first-rows data)" in changed
    assert "first_rows#2" in changed
    assert renamed_phase(source_of(changed), "first_rows", "raw_rows") == CODE
    with pytest.raises(EditError, match="there - means minus"):
        renamed_phase(source_of(CODE), "raw_rows", "first-rows")


@pytest.mark.parametrize("word", SOURCE_KEYWORDS)
def test_no_keyword_of_a_source_becomes_a_name(word: str) -> None:
    with pytest.raises(EditError, match="means something else"):
        renamed_phase(source_of(TEXT), "look", word)


def test_line_ends_and_a_byte_order_mark_stay() -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    changed = renamed_phase(read_source(text, "x.yaml")[0], "look", "search")
    assert changed.startswith("\ufeff")
    assert changed.count("\r\n") == text.count("\r\n")
    assert changed.count("search") == PLACES


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("tell", "there is a phase tell already"),
        ("look", "that is its name already"),
        ("all", "means something else in context.from"),
        ("two words", "a name begins with"),
        ("", "a name begins with"),
        ("true", "a name begins with"),
        ("a: b", "a name begins with"),
        ("\x1b[31m", "a name begins with"),
        ("to-do", "there - means minus"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_reason(new: str, said: str) -> None:
    with pytest.raises(EditError, match=said):
        renamed_phase(source_of(TEXT), "look", new)


def test_a_name_behind_an_alias_is_refused() -> None:
    text = "cascade_id: x\nphases:\n  - name: &n look\n    instructions: a\n    handoffs: [*n]\n"
    with pytest.raises(EditError, match="alias"):
        renamed_phase(source_of(text), "look", "search")


def test_a_keyword_of_a_context_is_no_phase() -> None:
    text = "cascade_id: x\nphases:\n  - name: all\n    instructions: a\n    context: {from: [all]}\n"
    assert len(phase_uses(source_of(text), "all")) == 1


AROUND = LintEnvironment(
    {"count_words": ToolFacts("function", description="Counts.", parameters=("text",), file="/w/tools/a.py", line=4)}
)
NAMED = TEXT.replace("[ask_human]", "[count_words]").replace("name: tell\n", "name: tell\n    model: openai/gpt-4.1\n")


@pytest.mark.parametrize(
    ("before", "kind", "name"),
    [
        ("name: lo", "phase", "look"),
        ("[tel", "phase", "tell"),
        ("{{ outputs.lo", "phase", "look"),
        ("outputs['lo", "phase", "look"),
        ("state.output_lo", "phase", "look"),
        ("| upp", "filter", "upper"),
        ("[count", "tool", "count_words"),
        ("model: openai/gp", "model", "openai/gpt-4.1"),
        ("Look at lo", None, ""),
        ("    lo", "phase", "look"),
    ],
)
def test_what_is_named_at_a_place(before: str, kind: str | None, name: str) -> None:
    at = NAMED.rindex(before) if before == "    lo" else NAMED.index(before)
    thing = named_at(NAMED, at + len(before), "yaml")
    assert (thing.kind if thing else None) == kind
    assert (thing.name if thing else "") == name


def test_what_a_name_stands_for_is_known_also_of_a_file_with_errors() -> None:
    known = definitions_of(load(NAMED + "nonsense: 1\n", "x.yaml"), AROUND)
    assert known.phases["tell"].line == 7
    assert known.phases["tell"].about[0].startswith("phase of line 7 · openai/gpt-4.1")
    assert known.tools["count_words"].about == ("count_words(text)", "Counts.")
    assert (known.tools["count_words"].file, known.tools["count_words"].line) == ("/w/tools/a.py", 4)


def test_a_validator_stands_for_that_of_the_file_or_for_one_around_it() -> None:
    text = NAMED + "validators:\n  short:\n    instructions: Is it short?\n"
    around = LintEnvironment(validators={"is_json": ValidatorFacts("function", file="/w/tools/a.py", line=9)})
    found = definitions_of(load(text, "x.yaml"), around).validators
    assert (found["short"].about, found["short"].line) == (("A validator of this file.",), text.count("\n") - 1)
    assert found["is_json"].about == ("function validator",)
    assert (found["is_json"].file, found["is_json"].line) == ("/w/tools/a.py", 9)


def test_a_validator_says_its_arguments_and_how_the_input_is_written() -> None:
    facts = ValidatorFacts("function", "At most input.most, at least input.least.", parameters=("content", "input?"))
    told = replace(facts, example='{"most": 3}')
    around = LintEnvironment(validators={"near": facts, "told": told, "bare": ValidatorFacts("function", "Says ok.")})
    found = definitions_of(load(NAMED, "x.yaml"), around).validators
    assert found["near"].about == (
        'near(content, input?)  input: {"most": …, "least": …}',
        "At most input.most, at least input.least.",
        "input is the input of the run: in its input file, or after --input.",
    )
    assert found["told"].about[0] == 'told(content, input?)  input: {"most": 3}'
    assert found["bare"].about == ("Says ok.",)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_no_place_of_a_broken_text_breaks_the_search(form: str) -> None:
    text = TEXT[:400] + "{{ outputs.[ \x1b]0;x\x07 '\"" + TEXT[400:]
    for at in range(0, len(text), 7):
        thing = named_at(text, at, "yaml" if form == "yaml" else "json")
        if thing is not None:
            assert text[thing.start : thing.end] or thing.name == ""
            Definitions().of(thing, Names())
