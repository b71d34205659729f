"""What an editor is told of the place under its cursor: ``|~`` stands for it in these texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.language.edit.completion import Names, complete, field_help, names_of
from workbench.language.edit.cursor import cursor_at
from workbench.language.edit.navigate import named_at
from workbench.language.lint.environment import LintEnvironment, ToolFacts
from workbench.language.load import load
from workbench.language.model.base import Model
from workbench.language.model.cascade import Cascade
from workbench.language.model.shape import shape
from workbench.language.read.source import Format

MARK = "|~"
NAMES = Names(
    phases={"look": "line 4", "crash": "line 9"},
    tools={"read_file": "builtin", "set_state": "builtin"},
    validators={"length_check": "Checks the length"},
    models={"openai/gpt-4.1": "in this file"},
    inputs={"path": "the log"},
    state={"severity": "extracted by look"},
)
PHASE = "phases:\n  - name: look\n"


def split(marked: str) -> tuple[str, int]:
    at = marked.index(MARK)
    return marked.replace(MARK, "", 1), at


def offered(marked: str, form: Format = "yaml") -> list[str]:
    text, at = split(marked)
    return [item.text for item in complete(text, at, form, NAMES).items]


def accepted(marked: str, form: Format = "yaml") -> str:
    """The text after the first thing that is offered was taken."""
    text, at = split(marked)
    found = complete(text, at, form, NAMES)
    item = found.items[0]
    return text[: found.start] + (item.insert or item.text) + text[found.end :]


def test_a_key_is_found_by_a_word_of_its_meaning_where_no_name_has_it() -> None:
    found = offered(PHASE + "    check|~\n")
    assert {"wards", "output_schema"} & set(found), found
    assert offered(PHASE + "    ch|~\n") == offered(PHASE + "    CH|~\n")
    assert offered(PHASE + "    war|~\n") == ["wards"], "a name that fits leaves meanings aside"
    assert offered(PHASE + "    xyz|~\n") == []


def test_a_key_that_mostly_holds_a_name_goes_on_in_its_line() -> None:
    assert accepted(PHASE + "    wards:\n      post:\n        - valid|~\n").endswith("- validator: \n")
    assert accepted(PHASE + "    rules:\n      loop_unt|~\n").endswith("loop_until: \n")


def path_of(marked: str, form: Format = "yaml") -> str:
    text, at = split(marked)
    found = field_help(text, at, form)
    return found.path if found is not None else ""


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("cas|~", ["cascade_id"]),
        (PHASE + "    rul|~\n    tackle: []\n", ["rules"]),
        (PHASE + "    rules:\n      max_turns: 2\n      |~", ["max_attempts", "loop_until"]),
        (PHASE + "    rules: {max_turns: 2, |~}", ["max_attempts", "loop_until"]),
        (PHASE + "    use_native_tools: |~", ["true", "false"]),
        (PHASE + "    tackle: [re|~]", ["read_file"]),
        (PHASE + "    tackle:\n      - read_file\n      - se|~", ["set_state"]),
        (PHASE + "    handoffs:\n      - |~", ["look", "crash", "target"]),
        (PHASE + "    handoffs: [{target: cr|~}]", ["crash"]),
        (PHASE + "    handoffs: [\n      {target: look},\n      {target: cr|~},\n    ]", ["crash"]),
        (PHASE + "    context:\n      from: [|~]", ["all", "first", "previous", "look"]),
        (PHASE + "    context:\n      from:\n        - phase: look\n          include: [|~]", ["images", "output"]),
        (PHASE + "    wards:\n      post:\n        - validator: le|~", ["length_check"]),
        (
            PHASE + "    wards:\n      post:\n        - validator: x\n          mode: |~",
            ["blocking", "retry", "advisory"],
        ),
        (PHASE + "    model: |~", ["openai/gpt-4.1"]),
        (PHASE + "    instructions: |\n      Say {{ out|~ }}", ["outputs"]),
        (PHASE + "    instructions: |\n      note: x\n        {{ outputs.|~", ["look", "crash"]),
        (PHASE + "    instructions: 'Say {{ input.|~'", ["path"]),
        (PHASE + "    instructions: '{{ state.|~'", ["severity"]),
        (PHASE + "    instructions: '{{ input.path | low|~'", ["lower"]),
        (PHASE + "    rules:\n      turn_prompt: '{{ tu|~'", ["turn", "max_turns"]),
        ("token_budget:\n  phase_overrides:\n    |~", ["look", "crash"]),
        ("tool_caching:\n  tools:\n    |~", ["read_file", "set_state"]),
        ("phases:\n- name: each\n  for_each_row:\n    table: |~", ["_look", "_crash"]),
        (PHASE + "    soundings:\n      validator: |~", ["length_check"]),
        (PHASE + "    soundings:\n      models:\n        - |~", ["openai/gpt-4.1"]),
        (PHASE + "    soundings:\n      models:\n        |~", ["openai/gpt-4.1"]),
        (PHASE + "    human_input:\n      escalate_to: |~", ["look", "crash"]),
        ("phases:\n- name: look\n  |~", ["instructions", "tackle"]),
    ],
)
def test_yaml_offers_what_may_stand_there(marked: str, first: list[str]) -> None:
    assert offered(marked)[: len(first)] == first


WARD = PHASE + "    wards:\n      post:\n"


@pytest.mark.parametrize(
    "marked",
    [
        WARD + "        - {validator: length_check, mode: retry, |~",
        WARD + "        - {validator: length_check, mode: retry, |~}\n",
        WARD + "        - {validator: length_check, mode: retry,\n           |~}\n",
        WARD + "        - {validator: length_check, mode: retry, |~\n    rules:\n      max_attempts: 3\n",
        WARD
        + "        - {validator: length_check, mode: retry, |~\n        - validator: a\n          max_attempts: 3\n",
        WARD + "        - validator: length_check\n          mode: retry\n          |~\n",
        WARD + "        - validator: length_check\n          mode: retry\n          |~\n      turn:\n        - a\n",
        WARD + "        - validator: length_check\n          mode: retry\n          |~",
    ],
)
def test_a_mapping_in_a_list_that_is_begun_offers_the_keys_that_it_lacks_and_no_names(marked: str) -> None:
    assert offered(marked) == ["max_attempts"]


def test_an_item_may_be_a_name_where_it_begins_alone() -> None:
    assert offered(WARD + "        - |~\n")[0] == "length_check"
    assert offered(WARD + "        - le|~\n") == ["length_check"]
    assert offered(WARD + "        - {|~}\n") == ["validator", "mode", "max_attempts"]
    assert offered(WARD + "        - |~\n          mode: retry\n") == ["validator", "max_attempts"]
    assert offered(WARD + "        - {validator: a, mode: retry, max_attempts: 2, |~}\n") == []
    assert "read_file" in offered(PHASE + "    tackle: [|~]\n")


def _models(model: type[Model], seen: dict[type[Model], None]) -> None:
    if model not in seen:
        seen[model] = None
        for field in shape(model).values():
            if field.model is not None:
                _models(field.model, seen)


def test_each_field_that_is_called_like_what_it_names_says_so() -> None:
    found: dict[type[Model], None] = {}
    _models(Cascade, found)
    ends = {"model": "model", "validator": "validator", "phase": "source", "phases": "source", "models": "model"}
    wrong = {
        f"{model.__name__}.{field.key}": field.names
        for model in found
        for field in shape(model).values()
        if field.model is None and (end := field.key.rsplit("_", 1)[-1]) in ends and field.names != ends[end]
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ('{"phases": [{"name": "a", "ta|~"}]}', ["tackle"]),
        ('{"phases": [{"name": "a", "tackle": ["re|~"]}]}', ["read_file"]),
        ('{"phases": [{"name": "a", "handoffs": [{"target": "|~', ["look", "crash"]),
        ('{"phases": [{|~"instructions": "x"}]}', ["name", "tackle"]),
        ("{|~}", ["cascade_id", "phases"]),
        ('{"cascade_id": "x" "phases": [{"name": "look", "rules": {|~', ["max_turns"]),
        ('{"phases": [{"name": "look" "model": "op|~', ["openai/gpt-4.1"]),
        ('{"phases": [{"name": "look", "handoffs": ["|~"]}, {"name": "tell"', ["look", "crash"]),
        ('{"phases": [{"name": "look", "rules": {} "ta|~', ["tackle"]),
    ],
)
def test_json_offers_what_may_stand_there(marked: str, first: list[str]) -> None:
    assert offered(marked, "json")[: len(first)] == first


@pytest.mark.parametrize(
    "marked",
    [
        PHASE + "    instructions: |\n      some rul|~",
        PHASE + "    nonsense:\n      |~",
        "# rul|~",
        PHASE + "    instructions: 'plain {{ x }} rul|~",
    ],
)
def test_nothing_is_offered_in_plain_text_or_below_unknown_keys(marked: str) -> None:
    assert offered(marked) == []


def test_a_key_that_is_written_already_is_not_offered_again() -> None:
    found = offered(PHASE + "    |~\n    tackle: []\n    rules: {}\n  - name: other\n    model: x\n")
    assert not {"name", "tackle", "rules"} & set(found)
    assert "model" in found


def test_what_is_taken_replaces_the_word_and_brings_what_stands_below() -> None:
    assert accepted("phases:\n  - na|~me: x").endswith("- name: x")
    assert accepted(PHASE + "    rul|~").endswith("    rules:\n  ")
    assert accepted(PHASE + "    tackle: [re|~, set_state]").endswith("[read_file, set_state]")
    assert accepted('{"casc|~"', "json") == '{"cascade_id": '
    assert accepted('{"phases": [{"tackle": ["re|~"]}]}', "json") == '{"phases": [{"tackle": ["read_file"]}]}'


@pytest.mark.parametrize(
    ("marked", "path"),
    [
        (PHASE + "    rules:\n      max_|~turns: 2", "phases[].rules.max_turns"),
        (PHASE + "    rules:\n      max_turns: 2|~", "phases[].rules.max_turns"),
        (PHASE + "    rules: {max_turns: |~2}", "phases[].rules.max_turns"),
        (PHASE + "    instructions: |\n      a\n\n      b|~", "phases[].instructions"),
        (PHASE + "    handoffs:\n      - target: a\n        desc|~ription: b", "phases[].handoffs[].description"),
        (PHASE + "    nonsense: |~1", ""),
    ],
)
def test_help_is_about_the_field_under_the_cursor(marked: str, path: str) -> None:
    assert path_of(marked) == path


def test_help_says_type_default_and_meaning() -> None:
    text, at = split(PHASE + "    wards:\n      post:\n        - validator: x\n          mode: |~retry\n")
    found = field_help(text, at, "yaml")
    assert found is not None
    assert (found.type, found.default) == ("blocking · retry · advisory", "blocking")
    assert found.choices == ("blocking", "retry", "advisory")
    assert "stop the run" in found.description.lower()


def test_names_come_from_the_file_even_if_it_has_errors() -> None:
    text = "cascade_id: x\ninputs_schema: {log: a file}\nphases:\n  - name: look\n    rules: {max_turns: many}\n"
    found = names_of(load(text, "x.yaml"), LintEnvironment({"read_file": ToolFacts("builtin")}))
    assert found.phases == {"look": "line 4"}
    assert found.inputs == {"log": "a file"}
    assert "read_file" in found.tools
    assert "output_look" in found.state


BLOCK = (
    "cascade_id: x\nphases:\n  - name: look\n    instructions: |\n      a: b\n        - c\n    handoffs:\n"
    "    - {target: x, description: 'it''s'}\n    - target: y\n    rules:\n      max_turns: 3 # n\n"
)


@given(
    st.integers(0, len(BLOCK)), st.text(alphabet="a:- \n{}[]\"'#|>&*{%", max_size=6), st.sampled_from(["yaml", "json"])
)
def test_no_text_and_no_place_in_it_breaks_the_search(at: int, typed: str, form: Format) -> None:
    text = BLOCK[:at] + typed + BLOCK[at:]
    offset = at + len(typed)
    cursor = cursor_at(text, offset, form)
    assert 0 <= cursor.start <= offset <= len(text)
    found = complete(text, offset, form, NAMES)
    assert 0 <= found.start <= found.end <= len(text)
    field_help(text, offset, form)


@pytest.mark.parametrize(
    ("form", "indent"), [("yaml", None), ("json", 1), ("json", 0)], ids=["yaml", "json", "json-without-indents"]
)
def test_every_key_of_a_sound_file_is_found_where_the_parser_finds_it(form: Format, indent: int | None) -> None:
    written = load(BLOCK, "x.yaml").source
    text = json.dumps(written.data, indent=indent) if form == "json" else BLOCK
    source = load(text, f"x.{form}").source
    for path in (("phases", 0, "name"), ("phases", 0, "rules", "max_turns"), ("phases", 0, "handoffs", 0, "target")):
        spot = source.spot(path)
        assert spot is not None
        assert spot.key is not None
        found = cursor_at(text, spot.key[0] + 1, form)
        assert found.target == tuple("[]" if isinstance(part, int) else part for part in path)
        assert cursor_at(text, spot.end, form).target == found.target


TEMPLATE = """\
cascade_id: c
phases:
  - name: tell
    instructions: "{{ outputs.look | upper }} {{ state.output_read }} {{ state.sum.a }} {{ input.log }} {{ turn }}"
"""


@pytest.mark.parametrize(
    ("before", "kind", "name", "text"),
    [
        ("outputs.lo", "phase", "look", "look"),
        ("| up", "filter", "upper", "upper"),
        ("state.output_re", "phase", "read", "read"),
        ("state.su", "name", "state.sum", "sum"),
        ("input.l", "name", "input.log", "log"),
        ("{{ tu", "name", "turn", "turn"),
        ("name: te", "phase", "tell", "tell"),
    ],
)
def test_a_name_in_a_template_is_what_it_stands_for(before: str, kind: str, name: str, text: str) -> None:
    found = named_at(TEMPLATE, TEMPLATE.index(before) + len(before), "yaml")
    assert found is not None
    assert (found.kind, found.name, TEMPLATE[found.start : found.end]) == (kind, name, text)
