"""Tools declared in ``.tool.json`` files: what they run, how values stay values, and what is refused."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.language.problem import Problem
from workbench.tools.declared.definition import read_declared, spec_of_declared
from workbench.tools.declared.tools import CommandError, pick, render_command
from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Sandbox
from workbench.tools.toolbox import Toolbox


def box(workspace: Workspace, *bodies: dict[str, Any], trusted: bool = True) -> Toolbox:
    files = {f"{body.get('tool_id', 'x')}.tool.json": json.dumps(body, indent=2) for body in bodies}
    return Toolbox.of(workspace, Sandbox(workspace.root, level="bwrap"), trusted=trusted, tool_files=files)


def call(tools: Toolbox, name: str, /, **arguments: Any) -> ToolResult:
    return asyncio.run(tools.call(name, arguments, Place(), 1))


def shell(command: str, **rest: Any) -> dict[str, Any]:
    return {"tool_id": "run", "type": "shell", "command": command, "inputs_schema": {"value": "anything"}, **rest}


# Values in commands.

HOSTILE = "a b; touch hacked $(touch hacked) `touch hacked` ' \" \\ * \n# x"


@pytest.mark.parametrize(
    "command",
    [
        "printf %s {{ value }}",
        "printf %s '{{ value }}'",
        'printf %s "{{ value }}"',
        'printf %s "$(printf %s "{{ value }}")"',
        "printf %s {{ value | default('x') }}",
        "printf %s {% if value %}{{ value }}{% endif %}",
        "printf %s {{ '' if value else 'y' }}{{ value }}",
        "(printf %s '(' > /dev/null; printf '%s' \"$(printf %s {{ value }} | cat)\")",
    ],
)
def test_a_value_stays_one_value_whatever_quotes_stand_around_it(
    workspace: Workspace, bwrap: Sandbox, command: str
) -> None:
    result = call(box(workspace, shell(command)), "run", value=HOSTILE)
    assert not (workspace.root / "hacked").exists()
    assert not result.is_error, result.text
    assert result.text == HOSTILE


@given(st.text(alphabet="ab$`'\"\\;|&<>()*? \n{}#!~-=", max_size=20), st.sampled_from(["{}", "'{}'", '"{}"', 'a"b{}"']))
def test_no_value_is_ever_part_of_the_command_text(value: str, around: str) -> None:
    template = "echo " + around.replace("{}", "{{ value }}")
    first, second = render_command(template, {"value": value}), render_command(template, {"value": "plain"})
    assert first.text == second.text
    assert list(first.env.values()) == [value]


@pytest.mark.parametrize(
    ("template", "value", "words"),
    [
        ("echo \\{{ value }}", "x", "may not follow a backslash"),
        ("echo $(( {{ value }} + 1 ))", "x", "shell arithmetic"),
        ("echo {{ value }}", "a\0b", "NUL"),
        ("echo {{ value }}", "\ue0000\ue001", "reserved"),
        ("echo {{ value", "x", "template"),
        ("echo {{ 1 // 0 }}", "x", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_kept_apart_is_refused(template: str, value: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        render_command(template, {"value": value})


def test_what_is_not_given_is_empty_and_other_types_are_json() -> None:
    template = "f {{ missing.deep }} {{ flag }} {{ many }} {{ flag.__class__ }}"
    command = render_command(template, {"flag": True, "many": [1, "x"]})
    assert list(command.env.values()) == ["", "true", '[1, "x"]', ""]


# Commands.


def test_an_empty_value_is_no_argument(workspace: Workspace, bwrap: Sandbox) -> None:
    command = "grep -rn {{ '-i' if value else '' }} 'TWO' notes.txt; echo $#"
    assert call(box(workspace, shell(command)), "run", value="").text == "0"
    assert call(box(workspace, shell(command)), "run", value="yes").text == "2:two\n0"


def test_a_command_runs_in_the_sandbox_in_its_folder(workspace: Workspace, bwrap: Sandbox) -> None:
    result = call(box(workspace, shell("pwd; cat orders.csv /etc/passwd", working_dir="data")), "run", value="")
    assert result.is_error
    assert result.text.startswith("/workspace/data\nid,amount\n")
    assert result.sandbox == "bwrap"


def test_a_command_that_wants_no_sandbox_runs_so_and_says_so(workspace: Workspace) -> None:
    result = call(box(workspace, shell("pwd", sandbox=False)), "run", value="")
    assert (result.text, result.sandbox) == (str(workspace.root), "none")


def test_output_becomes_lines_or_json(workspace: Workspace, bwrap: Sandbox) -> None:
    assert call(box(workspace, shell("cat notes.txt", output_transform="lines")), "run", value="").value == [
        *("one", "two", "three")
    ]
    assert call(box(workspace, shell("echo '{\"a\": 1}'", output_transform="json")), "run", value="").value == {"a": 1}
    wrong = call(box(workspace, shell("echo no", output_transform="json")), "run", value="")
    assert wrong.is_error
    assert wrong.text.startswith("JSONDecodeError: ")


def test_an_error_pattern_makes_an_error_and_cannot_hang(workspace: Workspace, bwrap: Sandbox) -> None:
    found = call(box(workspace, shell("echo 'FATAL: disk'", error_pattern="^FATAL")), "run", value="")
    assert (found.text, found.is_error) == ("FATAL: disk", True)
    assert not call(box(workspace, shell("echo fine", error_pattern="^FATAL")), "run", value="").is_error
    assert "is not an expression" in call(box(workspace, shell("echo", error_pattern="(")), "run", value="").text


# HTTP.


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/secret")
            self.end_headers()
            return
        self._answer(404 if self.path == "/none" else 200)

    def do_POST(self) -> None:
        self._answer(200)

    def _answer(self, status: int) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        body = {"path": self.path, "key": self.headers.get("X-Key"), "sent": sent, "rows": [{"n": 1}, {"n": 2}]}
        data = b"x" * 3_000_000 if self.path == "/big" else json.dumps(body).encode()
        self.send_response(status)
        if self.path.startswith("/packed/"):
            layers = self.path.removeprefix("/packed/").split(",")
            self.send_header("Content-Encoding", ", ".join(layers))
            data = b"x" * 30_000_000 if len(layers) > 1 or layers == ["deflate"] else data
            for layer in layers:
                data = gzip.compress(data) if layer == "gzip" else zlib.compress(data)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as httpd:
        httpd.daemon_threads = True
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def http(url: str, **rest: Any) -> dict[str, Any]:
    return {"tool_id": "get", "type": "http", "url": url, "inputs_schema": {"q": "optional"}, **rest}


def test_a_request_is_made_with_its_inputs_and_a_part_is_picked(
    workspace: Workspace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "k1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    tool = http(f"{server}/find/{{{{ q | urlencode }}}}", headers={"X-Key": "{{ env.MY_KEY }}"})
    body = json.loads(call(box(workspace, tool), "get", q="a/b c").text)
    assert (body["path"], body["key"]) == ("/find/a/b%20c", "k1")
    picked = call(box(workspace, {**tool, "response_jq": ".rows[].n"}), "get", q="x")
    assert picked.value == [1, 2]
    post = http(server, method="post", body={"q": "{{ q }}", "n": 1})
    assert json.loads(json.loads(call(box(workspace, post), "get", q='"x"').text)["sent"]) == {"q": '"x"', "n": 1}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/none", "HTTP 404\n"),
        ("/moved", "HTTP 302\n"),
        ("@example.org/{{ q }}", "RequestRefused: "),
    ],
)
def test_an_answer_that_is_none_is_an_error(workspace: Workspace, server: str, path: str, words: str) -> None:
    inputs = {"q": path} if path.startswith("@") else {"q": ""}
    tool = http(server + ("{{ q }}" if path.startswith("@") else path))
    result = call(box(workspace, tool), "get", **inputs)
    assert result.is_error
    assert result.text.startswith(words)


def test_a_packed_answer_is_unpacked_no_further_than_it_is_kept(workspace: Workspace, server: str) -> None:
    assert json.loads(call(box(workspace, http(f"{server}/packed/gzip")), "get").text)["path"] == "/packed/gzip"
    cut = call(box(workspace, http(f"{server}/packed/deflate")), "get")
    twice = call(box(workspace, http(f"{server}/packed/gzip,gzip")), "get")
    unknown = call(box(workspace, http(f"{server}/packed/zstd")), "get")
    assert "was cut]" in cut.text
    assert twice.text == "RequestRefused: the answer is packed as 'gzip, gzip', which was not asked for"
    assert "packed as 'zstd'" in unknown.text


def test_a_long_answer_is_cut(workspace: Workspace, server: str) -> None:
    result = call(box(workspace, http(f"{server}/big")), "get")
    assert "was cut]" in result.text
    assert len(result.text) < 200_000


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".", 0),
        (".a", {"b": [1, {"c-d": 2}]}),
        (".a.b[0]", 1),
        (".a.b[-1].c-d", 2),
        ('.["a"].b[0]', 1),
        (".l[].x", [1, 2]),
    ],
)
def test_simple_paths_pick_parts(path: str, value: Any) -> None:
    body = {"a": {"b": [1, {"c-d": 2}]}, "l": [{"x": 1}, {"x": 2}]}
    assert pick(body, path) == (body if path == "." else value)


@pytest.mark.parametrize("path", [".none", ".a[0]", ".l.x", ".a | keys", ".l[9]"])
def test_a_path_that_does_not_fit_is_an_error(path: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        pick({"a": {}, "l": [{"x": 1}]}, path)


# Chains and functions.


def test_a_chain_gives_the_last_result_and_later_steps_see_earlier_ones(workspace: Workspace, bwrap: Sandbox) -> None:
    chain = {
        "tool_id": "chain",
        "type": "composite",
        "inputs_schema": {"word": "what to find"},
        "steps": [
            {"tool": "search_files", "args": {"pattern": "{{ word }}"}},
            {"tool": "run", "args": {"value": "no"}, "condition": "word == 'nothing'"},
            {"tool": "run", "args": {"value": "{{ steps[0].result }}"}, "condition": "{{ steps[1].skipped }}"},
        ],
    }
    tools = box(workspace, chain, shell("printf 'found %s' {{ value }}"))
    assert call(tools, "chain", word="two").text == "found notes.txt:2: two"
    assert call(tools, "chain", word="(").text.startswith("step 'search_files' failed: ")


def test_a_chain_that_calls_itself_ends(workspace: Workspace) -> None:
    chain = {"tool_id": "again", "type": "composite", "steps": [{"tool": "again"}]}
    result = call(box(workspace, chain), "again")
    assert result.is_error
    assert "RecursionError: tools call each other more than 5 deep" in result.text


def test_a_function_is_called_by_its_path(workspace: Workspace) -> None:
    tool = {
        "tool_id": "join",
        "type": "python",
        "import_path": "os.path.basename",
        "inputs_schema": {"p": "a path"},
    }
    assert call(box(workspace, tool), "join", p="/a/b.txt").text == "b.txt"


# Trust and definitions.


def test_without_trust_a_declared_tool_is_announced_and_refused(workspace: Workspace) -> None:
    tools = box(workspace, shell("touch made"), trusted=False)
    result = call(tools, "run", value="x")
    assert result.text.startswith("PermissionError: run may not run: this folder is not trusted")
    assert not (workspace.root / "made").exists()
    facts = tools.facts()["run"]
    assert facts.kind == "declarative"
    assert facts.needs.startswith("trust: ")
    assert facts.text is not None


def test_inputs_become_parameters(workspace: Workspace) -> None:
    inputs = {"path": "where", "deep": "optional", "n": {"type": "integer", "default": 3}, "all": "Set to 'true'"}
    body = shell("ls{{ 'a' if all == 'true' else '' }} {{ path }}", inputs_schema=inputs)
    declared = read_declared(json.dumps(body), "run.tool.json")
    assert not isinstance(declared, Problem | str)
    shown = [(p.name, p.type, p.required, p.default) for p in spec_of_declared(declared).parameters]
    assert shown == [
        ("path", "str", True, None),
        ("deep", "str", False, None),
        ("n", "int", False, 3),
        ("all", "str", False, None),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "tool_id": "x",\n', 3, "not valid JSON"),
        ("[1]", 1, "is a JSON object"),
        ('{"tool_id": "x", "type": "shell"}', 1, "'command' is missing"),
        ('{\n "tool_id": "x",\n "type": "fax"}', 3, "'type'"),
        ('{\n "tool_id": "a b",\n "type": "shell", "command": ""}', 2, "'tool_id'"),
        ('{"tool_id": "x", "type": "composite", "steps": []}', 1, "'steps'"),
    ],
)
def test_a_wrong_file_is_a_problem_at_its_line(text: str, line: int, words: str) -> None:
    problem = read_declared(text, "x.tool.json")
    assert isinstance(problem, Problem)
    assert (problem.file, problem.span.line) == ("x.tool.json", line)
    assert words in problem.message


def test_a_type_that_is_not_run_is_not_offered(workspace: Workspace, root: Path) -> None:
    tools = box(workspace, {"tool_id": "g", "type": "gradio", "space": "a/b"})
    assert tools.spec("g") is None
    assert tools.problems == ()
    assert "gradio" in tools.registry.not_offered["g"]
