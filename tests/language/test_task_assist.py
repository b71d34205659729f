"""An editor of task decompositions: what is offered where the cursor stands (``|~``), explained and gone to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.language.edit.completion import Names, complete, field_help, names_of
from workbench.language.edit.errors import EditError
from workbench.language.edit.navigate import named_at
from workbench.language.edit.phase_names import renamed_phase
from workbench.language.lint.environment import LintEnvironment
from workbench.language.load import load
from workbench.language.read.source import Format

MARK = "|~"
NAMES = Names(
    phases={"fetch": "line 4", "tell": "line 9", "synthesis": "line 12"},
    tools={"read_file": "builtin"},
    models={"openai/gpt-4.1": ""},
)
HEAD = '{"original_request": "x", "sub_tasks": [{"id": "fetch", '


def offered(marked: str, form: Format = "json", names: Names = NAMES) -> list[str]:
    at = marked.index(MARK)
    return [item.text for item in complete(marked.replace(MARK, "", 1), at, form, names).items]


def accepted(marked: str, form: Format = "json") -> str:
    """The text after the first offer was taken."""
    at = marked.index(MARK)
    text = marked.replace(MARK, "", 1)
    found = complete(text, at, form, NAMES)
    item = found.items[0]
    return text[: found.start] + (item.insert or item.text) + text[found.end :]


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ('{"original_request": "x", "sub|~', ["sub_tasks"]),
        ('{"original_request": "x", "sub_tasks": [], |~}', ["intent", "entities", "title"]),
        (HEAD + '"act|~', ["action_type"]),
        (HEAD + "|~", ["action_type", "tool_or_prompt", "dependencies"]),
        (HEAD + '"action_type": "inf|~', ["inference"]),
        (HEAD + '"dependencies": ["te|~', ["tell"]),
        (HEAD + '"dependencies": [|~]', ["fetch", "tell"]),
        (HEAD + '"tool_or_prompt": {"name": "re|~"', ["read_file"]),
        (HEAD + '"tool_or_prompt": {"name": "inference", "params": {"pr|~', ["prompt"]),
        (HEAD + '"tool_or_prompt": {"params": {"model": "gpt|~', ["openai/gpt-4.1"]),
        (
            HEAD + '"tool_or_prompt": {"params": {"prompt": "Say <Res|~',
            ["<Result of Task fetch>", "<Result of Task tell>"],
        ),
        (HEAD + '"entity_context": [{"us|~', ["usage_note"]),
        (HEAD + '"dependency_config": {"summarize_strategy": "|~', ["truncate", "extract_key_sections", "none"]),
        (HEAD + '"entity_context_config": {"include_all": |~', ["true", "false"]),
        ('{"sub_tasks": [], "intent": {"pri|~', ["primary"]),
        ('{"sub_tasks": [], "clarification_needed": t|~', ["true"]),
    ],
)
def test_what_may_stand_at_the_cursor_is_offered(marked: str, first: list[str]) -> None:
    assert offered(marked)[: len(first)] == first


def test_the_same_in_yaml() -> None:
    head = "original_request: x\nsub_tasks:\n  - id: fetch\n"
    assert offered(head + "    act|~", "yaml")[:1] == ["action_type"]
    assert offered(head + "    action_type: to|~", "yaml") == ["tool"]
    assert offered(head + "    dependencies: [te|~]", "yaml") == ["tell"]


def test_what_was_taken_is_readable() -> None:
    assert json.loads(accepted(HEAD + '"dependencies": ["te|~"]}]}'))["sub_tasks"][0]["dependencies"] == ["tell"]
    assert accepted('{"sub_tasks": [], "tit|~') == '{"sub_tasks": [], "title": '
    assert accepted(HEAD + '"thou|~": ""}]}').endswith('"thought": ""}]}')
    filled = accepted(HEAD + '"tool_or_prompt": {"params": {"prompt": "Say <res|~ now"}}}]}')
    assert json.loads(filled)["sub_tasks"][0]["tool_or_prompt"]["params"]["prompt"] == "Say <Result of Task fetch> now"


def test_ids_of_a_text_that_cannot_be_read_are_offered_all_the_same() -> None:
    assert offered(HEAD + '"dependencies": ["|~', names=Names()) == ["fetch"]
    assert offered("sub_tasks:\n  - id: a\n  - id: b\n    dependencies: [|~", "yaml", Names()) == ["a", "b"]


def test_nothing_is_offered_in_a_prompt_and_no_key_of_a_cascade_anywhere() -> None:
    assert offered(HEAD + '"tool_or_prompt": {"params": {"prompt": "pha|~') == []
    assert "instructions" not in offered(HEAD + "|~")


def test_a_field_explains_itself() -> None:
    text = HEAD + '"dependency_config": {"max_output_length": 5}, "action_type": "tool"}]}'
    found = field_help(text, text.index("max_out") + 3, "json")
    assert found is not None
    assert (found.path, found.default) == ("sub_tasks[].dependency_config.max_output_length", "2000")
    chosen = field_help(text, text.index('"tool"') + 2, "json")
    assert chosen is not None
    assert chosen.choices == ("tool", "inference", "skill")


def test_a_dependency_a_placeholder_and_a_tool_name_what_they_stand_for() -> None:
    text = (
        HEAD
        + '"dependencies": ["tell"], "tool_or_prompt": {"name": "read_file", "params": {"p": "<Result of Task a b>"}}}]'
    )
    found = [named_at(text, text.index(word) + 1, "json") for word in ("fetch", "tell", "read_file", "a b")]
    assert [(one.kind, one.name) for one in found if one] == [
        ("phase", "fetch"),
        ("phase", "tell"),
        ("tool", "read_file"),
        ("phase", "a b"),
    ]
    loaded = load(text.replace("a b", "fetch") + "}", "j.json")
    assert names_of(loaded, LintEnvironment()).phases == {"fetch": "line 1"}


RENAMED = """\
{"original_request": "001", "sub_tasks": [
 {"id": "001", "description": "001", "tool_or_prompt": {"params": {"prompt": "fetch 001"}}, "dependencies": []},
 {"id": 2, "dependencies": ["1"], "dependency_outputs": [{"task_id": "001", "output": "001"}],
  "tool_or_prompt": {"params": {"prompt": "\\"x\\" <Result of Task 001> and <results from task 1>"}}},
 {"id": "c", "dependencies": "001", "tool_or_prompt": {"params": {"deep": [{"a": "<Result of Task 001>"}]}}}
]}"""


def test_a_task_gets_another_id_wherever_it_is_named() -> None:
    source = load(RENAMED, "j.json").source
    changed = renamed_phase(source, "001", "first")
    wanted = (
        RENAMED.replace('"id": "001"', '"id": "first"')
        .replace('["1"]', '["first"]')
        .replace('"task_id": "001"', '"task_id": "first"')
        .replace('"dependencies": "001"', '"dependencies": "first"')
        .replace("Task 001>", "Task first>")
        .replace("task 1>", "task first>")
    )
    assert changed == wanted
    assert '{"id": "two", ' in renamed_phase(source, "2", "two")
    for old, new, said in (
        ("z", "y", "no task z"),
        ("001", "c", "a task c"),
        ("c", "1", "a task 001"),
        ("c", "a/b", "letters"),
    ):
        with pytest.raises(EditError, match=said):
            renamed_phase(source, old, new)


@given(st.integers(0, 300), st.integers(0, 300))
def test_no_place_of_a_broken_text_fails(cut: int, offset: int) -> None:
    text = (HEAD + '"dependencies": ["tell"], "tool_or_prompt": {"params": {"prompt": "<Result of Task x>"}}}]}')[:cut]
    at = min(offset, len(text))
    complete(text, at, "json", NAMES)
    field_help(text, at, "json")
    named_at(text, at, "json")
