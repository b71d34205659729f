"""``check`` and ``schema``: what an editor and CI get to see of a cascade file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml

from tests.support.command import Cli
from tests.support.workspaces import CASCADE, REPLIES
from workbench.language.read.endings import FILE_ENDINGS
from workbench.models.replies import EXAMPLE

ROOT = Path(__file__).parents[2]
MORE = """\
  - name: tries
    instructions: Try.
    sub_cascades: [{ref: child.yaml}]
    soundings: {factor: 2, reforge: {honing_prompt: Better.}}
    wards: {post: [{validator: polite}]}
  - {name: table, tool: sql_data, inputs: {query: SELECT 1 AS n}}
  - {name: each, for_each_row: {table: _table, instructions: "Row {{ row.n }}"}}
validators: {polite: {instructions: "Is {{ input.content }} polite?"}}
"""


def test_a_sound_file_has_no_problems(cli: Cli) -> None:
    ended = cli("check", "greet.yaml")
    assert (ended.code, ended.out, ended.err) == (0, "", "1 file: no problems\n")


def test_every_problem_has_its_place_and_code(cli: Cli, workspace: Path) -> None:
    (workspace / "bad.yaml").write_text(CASCADE.replace("max_turns: 3", "max_turns: three").replace("from:", "form:"))
    ended = cli("check", "bad.yaml", "greet.yaml")
    assert ended.code == 1
    errors = [line for line in ended.out.splitlines() if ": error: " in line]
    assert errors[0].startswith("bad.yaml:7:24: error: 'max_turns' must be")
    assert errors[0].endswith("[L202]")
    assert any(line.startswith("bad.yaml:12:") and "did you mean 'from'?" in line for line in ended.out.splitlines())
    assert ended.err.startswith("2 files: 1 error, ")


def test_a_file_that_a_cascade_names_is_found_in_the_folders_of_cascades_too(cli: Cli, workspace: Path) -> None:
    for name, text in (("child.yaml", "Count."), ("task.md", "Say {{ input.name }}.")):
        file = workspace / "cascades" / "parts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        child = "cascade_id: inner\nphases: [{name: inside, instructions: Count.}]\n"
        file.write_text(child if name.endswith(".yaml") else text)
    phase = "{name: a, instructions: '@parts/task.md', sub_cascades: [{ref: parts/child.yaml}, {ref: parts/none.yaml}]}"
    (workspace / "outer.yaml").write_text(f"cascade_id: outer\nphases: [{phase}]\n")
    assert re.findall(r"file '([^']*)' not found", cli("check", "outer.yaml").out) == ["parts/none.yaml"]
    (workspace / "outer.yaml").write_text(
        f"cascade_id: outer\nphases: [{phase.replace(', {ref: parts/none.yaml}', '')}]\n"
    )
    ran = cli("run", "outer.yaml", "-m", "offline", "--unscripted", "ok", "--session", "o", "--input", '{"name": "Al"}')
    assert ran.code == 0, ran.err
    assert "Say Al." in cli("export", "o", "--details").out


def test_warnings_alone_are_no_failure(cli: Cli, workspace: Path) -> None:
    (workspace / "warn.yaml").write_text(
        CASCADE.replace("instructions: Refuse.", "instructions: Refuse.\n    tackel: []")
    )
    ended = cli("check", "warn.yaml")
    assert ended.code == 0
    assert "unknown key 'tackel' in phase" in ended.out


def test_a_sandbox_is_tried_only_for_tools_that_need_one(
    cli: Cli, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, tried = tmp_path / "programs", tmp_path / "tried"
    programs.mkdir()
    for name in ("docker", "bwrap"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tried}\nexit 1\n")
        (programs / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    text = "cascade_id: one\nphases: [{name: p, instructions: Look., tackle: [TOOL]}]\n"
    (workspace / "reads.yaml").write_text(text.replace("TOOL", "read_file"))
    (workspace / "runs.yaml").write_text(text.replace("TOOL", "linux_shell"))
    assert cli("check", "reads.yaml", "greet.yaml").code == 0
    assert not tried.exists()
    cli("check", "runs.yaml")
    assert tried.read_text().startswith("docker\n")


def test_what_lies_around_a_file_is_looked_at(cli: Cli, workspace: Path) -> None:
    (workspace / "painter.tool.json").write_text('{"tool_id": "painter", "type": "gradio", "space": "a/b"}')
    (workspace / "around.yaml").write_text(
        "cascade_id: c\nphases: [{name: a, instructions: x, tackle: [painter], rag: {directory: nowhere}}]\n"
    )
    ended = cli("check", "around.yaml")
    assert "tool type 'gradio' is not run yet: not offered (tool 'painter') [L802]" in ended.out
    assert "the folder 'nowhere' does not exist" in ended.out
    assert "[L501]" not in ended.out


def test_json_has_line_column_code_and_hint(cli: Cli, workspace: Path) -> None:
    (workspace / "bad.yaml").write_text(CASCADE.replace("target: answer", "target: anwser"))
    ended = cli("check", "bad.yaml", "--json")
    assert ended.code == 1
    (error,) = [problem for problem in ended.json if problem["severity"] == "error"]
    assert (error["file"], error["line"], error["code"]) == ("bad.yaml", 9, "L302")
    assert error["path"] == "phases[0].handoffs[0].target"
    assert cli("check", "greet.yaml", "--json").json == []


def test_a_file_that_cannot_be_read_does_not_hide_the_others(cli: Cli, workspace: Path) -> None:
    (workspace / "bad.yaml").write_text("cascade_id: [\n")
    ended = cli("check", "absent.yaml", "bad.yaml")
    assert ended.code == 2
    assert "absent.yaml: error: no such file" in ended.err
    assert ended.out.startswith("bad.yaml:")


def test_where_no_file_could_be_read_nothing_is_said_to_be_sound(cli: Cli) -> None:
    ended = cli("check", "absent.yaml")
    assert (ended.code, ended.out, ended.err) == (2, "", "absent.yaml: error: no such file\n")


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (
            "  lok: [{text: x}]",
            "2:3: error: 'lok' is not a phase of this cascade, or of one that it starts (did you mean 'look'?) [L902]",
        ),
        (
            "  lok: [{txt: x}]",
            "2:10: error: unknown key 'txt' (did you mean 'text'?) [L901]\n"
            "2:3: error: 'lok' is not a phase of this cascade, or of one that it starts (did you mean 'look'?) [L902]",
        ),
        ("  look#0: [{text: x}]", "2:3: error: 'look#0': visits count from 1 [L902]"),
        ("  answer: []", "2:3: error: 'answer' has no replies (write one, or remove it) [L903]"),
        (
            "  answer: [{branch: s0, text: x}]",
            "2:21: warning: no candidate of this phase is called 's0' (it has no soundings) [L904]",
        ),
        (
            "  answer: [{text: x}, {text: y}]",
            "2:23: warning: turn 2 is never reached: the phase has at most 1 (see rules.max_turns) [L905]",
        ),
        (
            "  look: [{attempt: 2, text: x}]",
            "2:20: warning: attempt 2 is never reached: the phase has at most 1 [L905]",
        ),
        (
            "  answer#2: [{text: x}]",
            "2:3: warning: visit 2 is never reached: no way leads back to phase 'answer' [L905]",
        ),
        (
            "  tries: [{branch: s7, text: x}]",
            "2:20: warning: no candidate of this phase is called 's7' (there are s0, s1, r1.0, r1.1) [L904]",
        ),
        (
            "  table: [{text: x}]",
            "2:3: warning: phase 'table' calls no model: these replies are never read (remove them) [L906]",
        ),
        (
            "  each: [{text: x}]",
            "2:3: warning: phase 'each' calls no model: these replies are never read "
            "(its rows and steps answer as 'each_row') [L906]",
        ),
        (
            "  answer: [{calls: [{tool: read_file}]}]",
            "2:28: warning: the phase does not offer the tool 'read_file': this call is refused "
            "(it has no tools) [L907]",
        ),
        ("  each_row: [{text: x}]", ""),
        ("  tries: [{branch: 'r1.*', text: x}]", ""),
        ("  polite: [{text: x}]", ""),
        ("  count: [{text: x}]", ""),
    ],
)
def test_replies_are_checked_against_their_cascade(cli: Cli, workspace: Path, replies: str, said: str) -> None:
    (workspace / "greet.yaml").write_text(CASCADE + MORE)
    (workspace / "child.yaml").write_text("cascade_id: child\nphases: [{name: count, instructions: Count.}]\n")
    (workspace / "greet.replies.yaml").write_text(f"replies:\n{replies}\n")
    lines = cli("check", "greet.replies.yaml").out.splitlines()
    assert lines == [f"greet.replies.yaml:{one}" for one in said.splitlines()]
    if ": error: " in said:
        ended = cli("run", "greet.yaml")
        assert (ended.code, ended.out) == (2, "")
        assert all(line in ended.err for line in lines)


def test_replies_of_a_pipeline_are_checked_against_its_edges_and_retries(cli: Cli, workspace: Path) -> None:
    (workspace / "way.dot").write_text(
        'digraph way { start -> write -> check -> once -> exit  check -> write [condition="outcome=fail"]\n'
        " write [max_retries=1] check [goal_gate=true, retry_target=look] look look -> write once }"
    )
    (workspace / "way.replies.yaml").write_text(
        "replies:\n  write#2: [{text: x}, {attempt: 2, text: y}, {attempt: 3, text: z}]\n"
        "  look#2: [{branch: split.look, text: x}]\n  once#2: [{text: x}]\n"
    )
    assert cli("check", "way.replies.yaml").out.splitlines() == [
        "way.replies.yaml:2:57: warning: attempt 3 is never reached: the phase has at most 2 "
        "(see max_retries and retry_policy) [L905]",
        "way.replies.yaml:4:3: warning: visit 2 is never reached: no way leads back to phase 'once' [L905]",
    ]


def test_what_a_model_may_start_by_name_may_have_any_phase(cli: Cli, workspace: Path) -> None:
    (workspace / "greet.yaml").write_text(CASCADE.replace("[read_file]", "[read_file, spawn_cascade]"))
    (workspace / "greet.replies.yaml").write_text("replies:\n  elsewhere: [{text: x}]\n")
    ended = cli("check", "greet.replies.yaml")
    assert ended.code == 0
    assert ": warning: 'elsewhere' is not a phase" in ended.out


def test_the_schema_of_replies_accepts_the_example_and_marks_a_mistake(cli: Cli) -> None:
    validator = jsonschema.Draft202012Validator(cli("schema", "replies").json)
    assert validator.is_valid(yaml.safe_load(EXAMPLE))
    faults: list[Any] = [
        [{"txt": "x"}],
        [],
        [{"text": "x", "say": "y"}],
        [{"text": "x", "calls": [{"tool": "t"}]}],
        [{}],
    ]
    for wrong in faults:
        assert not validator.is_valid({"replies": {"a": wrong}})


def test_replies_are_checked_as_replies(cli: Cli, workspace: Path) -> None:
    assert cli("check", "greet.replies.yaml").code == 0
    (workspace / "greet.replies.yaml").write_text(REPLIES.replace("text:", "txet:"))
    ended = cli("check", "greet.replies.yaml")
    assert ended.code == 1
    assert "did you mean 'text'?" in ended.out


@pytest.mark.parametrize("hostile", ["\x1b]0;title\x07", "\u202e", "\x9b"])
def test_what_a_file_says_is_shown_harmlessly(cli: Cli, workspace: Path, hostile: str) -> None:
    (workspace / "hostile.yaml").write_text(json.dumps({"cascade_id": "x", hostile: 1, "phases": []}))
    ended = cli("check", "hostile.yaml")
    assert hostile not in ended.out + ended.err


def test_the_schema_accepts_a_cascade_and_finds_a_mistake(cli: Cli) -> None:
    validator = jsonschema.Draft202012Validator(cli("schema").json)
    cascade = yaml.safe_load(CASCADE)
    assert list(validator.iter_errors(cascade)) == []
    cascade["phases"][0]["rules"]["max_turns"] = "three"
    assert [error.json_path for error in validator.iter_errors(cascade)] != []


def test_a_folder_means_the_cascades_in_it_and_below(cli: Cli, workspace: Path) -> None:
    (workspace / "below").mkdir()
    (workspace / "below" / "bad.yaml").write_text("cascade_id: bad\nphases: []\n")
    (workspace / "below" / "settings.yaml").write_text("theme: paper\n")
    (workspace / ".hidden").mkdir()
    (workspace / ".hidden" / "worse.yaml").write_text("phases: [\n")
    ended = cli("check", ".")
    assert ended.code == 1
    assert {line.partition(":")[0] for line in ended.out.splitlines()} == {"below/bad.yaml"}
    assert ended.err.startswith("3 files: "), "two cascades and the replies of one"


def test_a_folder_without_a_cascade_is_said_to_have_none(cli: Cli, workspace: Path) -> None:
    (workspace / "empty").mkdir()
    ended = cli("check", "empty")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "empty: error: no cascade in this folder (cascades have the key cascade_id)\n"


@pytest.mark.parametrize("command", ["check", "run"])
def test_what_is_no_file_is_named_and_waited_for_by_nobody(cli: Cli, workspace: Path, command: str) -> None:
    os.mkfifo(workspace / "pipe.yaml")
    (workspace / "round.yaml").symlink_to("round.yaml")
    (workspace / "holes.yaml").touch()
    os.truncate(workspace / "holes.yaml", 2**40)
    for name, words in (
        ("holes.yaml", "too large for a cascade: 1,099,511,627,776 bytes"),
        ("pipe.yaml", "is a pipe without a writer"),
        ("round.yaml", "cannot be read: Too many levels of symbolic links"),
    ):
        ended = cli(command, name)
        assert (ended.code, ended.out, ended.err) == (2, "", f"{name}: error: {words}\n")
    assert cli("check", ".").code == 0, "of a folder, files alone are looked at"
    endless = cli(command, "/dev/zero")
    assert endless.code in (1, 2)
    assert "/dev/zero:1:1: error: too large" in endless.out + endless.err


def test_a_pipe_that_is_written_to_is_read_to_its_end(cli: Cli) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"cascade_id: x\nphasse: []\n")
    os.close(writing)
    try:
        ended = cli("check", f"/dev/fd/{reading}")
    finally:
        os.close(reading)
    assert ended.code == 1
    assert "did you mean 'phases'?" in ended.out


def test_a_file_that_is_not_there_is_looked_for_among_its_neighbours(cli: Cli, workspace: Path) -> None:
    (workspace / "below").mkdir()
    (workspace / "below" / "triage.yaml").write_text(CASCADE)
    for typed, meant in (
        ("gret.yaml", "greet.yaml"),
        ("greet", "greet.yaml"),
        ("below/traige.yaml", "below/triage.yaml"),
    ):
        assert cli("check", typed).err == f"{typed}: error: no such file (did you mean '{meant}'?)\n"


def test_what_a_tackle_folder_holds_and_does_not_count_is_told(cli: Cli, workspace: Path) -> None:
    blind = "inputs_schema: {content: text}\nphases: [{name: a, instructions: Is it good?}]\n"
    (workspace / "tackle").mkdir()
    (workspace / "tackle" / "length.yaml").write_text(f"cascade_id: length_check\n{blind}")
    (workspace / "tackle" / "fetch.yaml").write_text("cascade_id: fetch_page\nphases: [{name: a, instructions: 3}]\n")
    (workspace / "tackle" / "draw.py").write_text("def draw(): ...\n")
    ward = "wards: {post: [{validator: length_check}, {validator: fetch_page}]}"
    (workspace / "c.yaml").write_text(
        f"cascade_id: c\nphases: [{{name: a, instructions: x, tackle: [fetch_page, draw], {ward}}}]\n"
    )
    told = cli("check", "c.yaml", "--plain").out
    assert "validator 'length_check' is a function here; the cascade tackle/length.yaml is not asked" in told
    assert "[L505]" not in told
    assert told.count("it would be the cascade tackle/fetch.yaml, which has errors") == 2
    assert "tackle/draw.py defines it, but functions are read from the folder tools/: move it there" in told


BAD = CASCADE.replace("target: answer", "target: anwser").replace("Refuse.", "Refuse.\n    tackel: []", 1)


def test_strict_makes_a_warning_a_failure(cli: Cli, workspace: Path) -> None:
    (workspace / "warn.yaml").write_text(CASCADE.replace("instructions: Refuse.", "instructions: Refuse.\n    x_y: 1"))
    assert cli("check", "warn.yaml").code == 0
    assert cli("check", "warn.yaml", "--strict").code == 1
    both = cli("check", ".", "warn.yaml", "--strict")
    assert (both.code, both.out.count("warn.yaml")) == (1, 1), "a file that is named twice is checked once"
    assert cli("check", "greet.yaml", "--strict").code == 0


def test_a_hook_passes_over_files_of_other_kinds(cli: Cli, workspace: Path) -> None:
    (workspace / "package.json").write_text('{"name": "x"}')
    assert cli("check", "package.json").code == 1
    ended = cli("check", "--skip-others", "package.json", "greet.yaml", "greet.replies.yaml")
    assert (ended.code, ended.err) == (0, "2 files: no problems\n")
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert hooks["workbench-check"]["entry"] == "workbench check --skip-others"
    assert all(re.search(hook["files"], f"flow{ending}") for hook in hooks.values() for ending in FILE_ENDINGS)


def test_sarif_has_a_result_for_each_problem_and_a_rule_for_each_code(cli: Cli, workspace: Path) -> None:
    (workspace / "a folder").mkdir()
    (workspace / "a folder" / "bad.yaml").write_text(BAD)
    ended = cli("check", "a folder", "--format", "sarif")
    assert ended.code == 1
    (run,) = ended.json["runs"]
    assert ended.json["version"] == "2.1.0"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    results = {result["ruleId"]: result for result in run["results"]}
    assert {"L201", "L302"} <= set(rules) == set(results)
    said = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert said["L302"] == "handoff target '…' is not a phase (handoffs)"
    error = results["L302"]
    assert (error["level"], rules[error["ruleIndex"]]) == ("error", "L302")
    place = error["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20folder/bad.yaml"
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (9, 25)
    assert place["region"]["endColumn"] - place["region"]["startColumn"] == len("anwser")


def test_junit_has_a_case_for_each_file_and_holds_no_forbidden_character(cli: Cli, workspace: Path) -> None:
    (workspace / "bad.yaml").write_text(BAD.replace("tackel", '"tack\\u0001el"'))
    (workspace / "two\nlines.yaml").write_text((workspace / "greet.yaml").read_text("utf-8"))
    ended = cli("check", "greet.yaml", "bad.yaml", "two\nlines.yaml", "--format", "junit")
    root = ElementTree.fromstring(ended.out)
    assert (root.get("tests"), root.get("failures")) == ("3", "1")
    failed = {case.get("name"): case.find("failure") is not None for case in root.iter("testcase")}
    assert failed == {"greet.yaml": False, "bad.yaml": True, "two\u240alines.yaml": False}
    assert "'anwser' is not a phase" in (root.findtext(".//failure") or "")
    assert "unknown key" in (root.findtext(".//system-out") or "")


def test_annotations_cannot_be_ended_by_what_a_file_says(cli: Cli, workspace: Path) -> None:
    (workspace / "a,b.yaml").write_text(BAD.replace("tackel", '"x%\\n::error::y"'))
    lines = cli("check", "a,b.yaml", "--format", "github").out.splitlines()
    assert all(line.startswith(("::error file=a%2Cb.yaml,line=", "::warning file=a%2Cb.yaml,line=")) for line in lines)
    assert len(lines) == len(cli("check", "a,b.yaml", "--json").json)
    assert any(",title=workbench L302::handoff target 'anwser' is not a phase" in line for line in lines)
    for nothing in (("check", "greet.yaml"), ("test", "run")):
        assert cli(*nothing, "--format", "github").out == ""


TOOL = """\
{
  "tool_id": "find",
  "type": "shell",
  "timout": 5,
  "timeout": "soon",
  "inputs_schema": {"path": "where"},
  "error_pattern": "(",
  "command": "ls {{ pth }} {{ path | default('.') }}"
}
"""


def test_a_tool_is_checked_as_a_tool(cli: Cli, workspace: Path) -> None:
    (workspace / "find.tool.json").write_text(TOOL)
    said = cli("check", "find.tool.json")
    assert said.code == 1
    lines = said.out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == [
        f"find.tool.json:{at}:" for at in ("4:3", "5:14", "7:20", "8:21")
    ]
    for line, words in zip(
        lines,
        ["unknown key 'timout'", "'timeout'", "'error_pattern' is not a valid expression", "'pth' is undefined"],
        strict=True,
    ):
        assert words in line
    (workspace / "find.tool.json").write_text('{"tool_id": "x", "type": "shel", "command": "ls"}')
    assert "1:26: error: 'type' must be one of shell" in cli("check", "find.tool.json").out
    for timeout, wanted in (
        ('"soon"', "'timeout' must be a number, got text \"soon\" [L202]"),
        ('"{{ x }}"', "'timeout' is a number; a template is not rendered here [L205]"),
        ("-3", "'timeout' must be more than 0 (got number -3) [L206]"),
    ):
        text = f'{{"tool_id": "x", "type": "shell", "command": "ls", "timeout": {timeout}}}'
        (workspace / "find.tool.json").write_text(text)
        assert wanted in cli("check", "find.tool.json").out
    chain = {"tool_id": "x", "type": "composite", "steps": [{"tool": "read_fil", "args": {"path": "{{ input.p }}"}}]}
    (workspace / "find.tool.json").write_text(json.dumps(chain))
    assert "tool 'read_fil' is not known; the chain fails there (did you mean 'read_file'?)" in cli("check", ".").out
    (workspace / "find.tool.json").write_text('{"tool_id": "x", "type": "http", "url": "https://a.b/{{ q }}"')
    assert cli("check", "find.tool.json").out.startswith("find.tool.json:1:")
    (workspace / "find.tool.json").write_text('{"tool_id": "x", "type": "shell", "command": "ls"}')
    assert cli("check", "find.tool.json").code == 0


def test_each_broken_expression_of_a_template_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("cascade_id: c\nphases:\n  - name: a\n    instructions: '{{ input. }} and {{ input.b | }}'\n")
    told = cli("check", str(file))
    assert told.out.count("[L601]") == 2, told.out
