"""MCP servers, with the official SDK at both ends: what is listed, called and kept, and every way it can go wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.extras import needs
from workbench.context.place import Place
from workbench.engine.contracts import Listing, ServerTool, ToolResult
from workbench.language.model.mcp import McpServer
from workbench.tools.mcp_servers import McpServers
from workbench.tools.paths import Workspace

needs("mcp", extra="mcp")

ROOT = Path(__file__).parents[2]
TESTS = [sys.executable, "-m", "tests.support.mcp_server"]
PLAIN = [sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "plain_mcp.py")]
"""One without the SDK, for what does not depend on the other end."""
WRONG = '{"jsonrpc": "2.0", "id": 1, "result": {"tools": 7}}'
PLACE = Place("", "p", 1, 1, 1, 1)


class Pool:
    """The servers of a run, and what is asked of them."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers

    async def tools(self, server: str = "t", definition: McpServer | None = None) -> Mapping[str, ServerTool]:
        listing = await self.listing(server, definition)
        assert listing.fault == ""
        return {tool.spec.name: tool for tool in listing.tools}

    async def listing(self, server: str = "t", definition: McpServer | None = None) -> Listing:
        return await self.servers.listing(server, definition, PLACE)

    async def call(self, tool: ServerTool, definition: McpServer | None = None, **arguments: Any) -> ToolResult:
        return await self.servers.call(tool, definition, arguments, PLACE, 1)


Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run work with a pool whose server ``t`` is that of the tests, unless other keys say otherwise."""

    def run(work: Callable[[Pool], Coroutine[Any, Any, Any]], *, allowed: bool = True, **keys: Any) -> Any:
        # A busy machine takes its time to start a Python that imports the SDK.
        usual: dict[str, Any] = {"command": TESTS, "start_timeout": 100}
        definition = McpServer(**(usual | keys))
        workspace = Workspace.of(ROOT, ROOT, store=tmp_path / "store")
        servers = McpServers(workspace, {"t": definition}, lambda name, server: allowed, {"TOKEN": "secret"})

        async def all_of_it() -> Any:
            try:
                return await work(Pool(servers))
            finally:
                await servers.aclose()

        return asyncio.run(all_of_it())

    return run


def test_a_server_lists_its_tools_and_what_they_give_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never")

    async def work(pool: Pool) -> None:
        listing = await pool.listing()
        tools = {tool.spec.name.removeprefix("t__"): tool for tool in listing.tools}
        assert [*tools] == ["dies", "echo", "odd_name_of", "picture", "refuses", "variable", "waits"]
        assert [tools["echo"].spec.side_effects, tools["dies"].spec.side_effects] == [False, True]
        assert tools["waits"].spec.parameters[0].type == "float"
        assert tools["odd_name_of"].spec.description == "Is called ␛[31moddly␛[0m."
        hostile = "the tool 'wipe␛[2J' is not offered: its name has other characters than letters, digits and _-./"
        assert listing.refused == (hostile,)

        said = await pool.call(tools["echo"], text="hello")
        assert (said.text, said.is_error, said.value) == ("you said hello", False, {"result": "you said hello"})
        assert (await pool.call(tools["odd_name_of"])).text == "odd"
        drawn = await pool.call(tools["picture"])
        assert drawn.text == "drawn\n[image left out: it is not a PNG, JPEG, GIF or WebP image]"
        assert [(image.media_type, image.width) for image in drawn.images] == [("image/png", 1)]
        assert (await pool.call(tools["refuses"], why="no")).is_error
        assert (await pool.call(tools["echo"])).is_error, "an argument is missing"
        # A server gets the variables that its definition names, and no others.
        texts = [(await pool.call(tools["variable"], name=name)).text for name in ("MINE", "OPENAI_API_KEY")]
        assert texts == ["a secret", "(not set)"]

    run(work, env={"MINE": "a ${TOKEN}"})


def test_a_server_that_dies_in_a_call_is_an_error_result_and_the_next_call_starts_it_again(run: Run) -> None:
    async def work(pool: Pool) -> tuple[ToolResult, ToolResult]:
        tools = await pool.tools()
        return await pool.call(tools["t__dies"]), await pool.call(tools["t__echo"], text="hello")

    dead, again = run(work, command=PLAIN)
    assert dead.is_error
    assert "MCP server 't': the connection ended before dies gave a result; its stderr ends:" in dead.text
    assert "out of memory" in dead.text
    assert again.text == "you said hello"


def test_a_call_that_takes_too_long_is_an_error_and_a_cancelled_one_leaves_no_program_behind(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "pid"

    async def work(pool: Pool) -> None:
        tools = await pool.tools()
        slow = await pool.call(tools["t__waits"])
        assert slow.is_error
        assert "no result of waits within 0.3 s" in slow.text
        task = asyncio.ensure_future(pool.call(tools["t__waits"]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work, command=["sh", "-c", f'echo $$ > {file}; exec "$@"', "sh", *PLAIN], timeout=0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


def test_one_connection_serves_all_that_ask_at_once_with_the_tools_that_the_definition_names(
    run: Run, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"

    async def work(pool: Pool) -> None:
        listings = await asyncio.gather(*(pool.listing() for _ in range(5)))
        assert {listing.refused[-1] for listing in listings} == {"it has no tool 'ecco'"}
        (echo,) = listings[0].tools
        results = await asyncio.gather(*(pool.call(echo, text=str(i)) for i in range(5)))
        assert [result.text for result in results] == [f"you said {i}" for i in range(5)]

    run(work, command=["sh", "-c", f'echo x >> {starts}; exec "$@"', "sh", *PLAIN], tools=["echo", "ecco"])
    assert starts.read_text() == "x\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["/no/such/program"], "there is no program '/no/such/program'"),
        ([sys.executable, "-c", "import sys; sys.exit('no licence')"], "its stderr ends: no licence"),
        (["sh", "-c", "echo hello; sleep 1"], "it said 'hello'"),
        (["sh", "-c", "exec 0<&-; echo hello"], "it said 'hello'"),
        (["sh", "-c", "tr '\\0' x < /dev/zero"], "it said a line of more than 33,554,432 bytes"),
        (["sh", "-c", 'yes \'{"jsonrpc": "2.0"}\' | head -n 2000'], "it said"),
        (["sh", "-c", f"read x; echo '{WRONG}'"], "it ended before"),
        (["sh", "-c", "cat > /dev/null"], "it did not answer as an MCP server within 0.5 s"),
    ],
    ids=[
        "no program",
        "dies at once",
        "says something else",
        "says it and ends",
        "says a line without end",
        "floods",
        "wrong answer",
        "silent",
    ],
)
def test_a_server_that_is_none_is_a_fault_that_says_why(run: Run, command: list[str], words: str) -> None:
    async def work(pool: Pool) -> Listing:
        return await pool.listing()

    listing = run(work, command=command, start_timeout=0.5 if "within 0.5 s" in words else 60)
    assert listing.tools == ()
    assert words in listing.fault


@pytest.mark.parametrize(
    ("keys", "allowed", "words"),
    [
        ({}, False, "it is not allowed to start here yet"),
        ({"env": {"A": "${ABSENT}"}}, True, "the variable ABSENT is not set"),
        ({"cwd": "../.."}, True, "its folder: "),
        (
            {"command": None, "url": "http://169.254.169.254/mcp"},
            True,
            "where a cloud hands out the keys of the machine",
        ),
        ({"command": None, "url": "http://127.0.0.1:9/mcp"}, True, "ConnectError"),
    ],
)
def test_a_server_that_may_not_or_cannot_be_reached_says_so(
    run: Run, keys: dict[str, Any], allowed: bool, words: str
) -> None:
    async def work(pool: Pool) -> Listing:
        return await pool.listing()

    listing = run(work, allowed=allowed, **keys)
    assert words in listing.fault
    assert listing.needs_trust is not allowed


def test_without_the_sdk_the_fault_is_the_line_that_installs_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    async def work(pool: Pool) -> Listing:
        return await pool.listing()

    assert run(work).fault == "the mcp extra is not installed: pip install 'cascade-workbench[mcp]'"


HOSTILE = """
import json, sys
schema, value = map(json.loads, sys.argv[1:])
tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **schema}}
answers = {
    "initialize": {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}
    },
    "tools/list": {"tools": [tool]},
    "tools/call": {"content": [{"type": "text", "text": "ok"}], "structuredContent": value},
}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("id") is not None:
        said = answers.get(asked["method"])
        answer = {"result": said} if said is not None else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"properties": {"x": {"pattern": "^(a+)+$"}}}, {"x": "a" * 60 + "!"}, "schema listed for it"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 2}}, "$ref": "#/$defs/a"}, {}, "cannot be held against"),
        ({"$ref": "http://127.0.0.1:9/x"}, {}, "nothing is fetched"),
        ({"required": ["y"]}, {"x": 1}, "does not fit the schema"),
        ({"required": ["x"]}, {"x": 1}, ""),
    ],
)
def test_a_schema_of_results_can_neither_freeze_nor_fetch(
    run: Run, schema: dict[str, Any], value: dict[str, Any], words: str
) -> None:
    async def work(pool: Pool) -> ToolResult:
        return await pool.call((await pool.tools())["t__t"])

    command = [sys.executable, "-c", HOSTILE, json.dumps(schema), json.dumps(value)]
    result = run(work, command=command, timeout=30)
    assert result.is_error is bool(words)
    assert words in result.text


@pytest.fixture
def address() -> Iterator[str]:
    """A server over streamable HTTP on loopback."""
    with subprocess.Popen([*TESTS, "http"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        server.kill()


def test_a_server_is_reached_by_its_address_unless_it_refuses(run: Run, address: str) -> None:
    async def refused(pool: Pool) -> Listing:
        return await pool.listing()

    assert "401" in run(refused, command=None, url=address).fault

    async def work(pool: Pool) -> list[str]:
        tools = await pool.tools()
        said = await pool.call(tools["t__echo"], text="hello")
        drawn = await pool.call(tools["t__picture"])
        dead = await pool.call(tools["t__dies"])
        gone = await pool.call(tools["t__echo"], text="hello")
        assert dead.is_error
        assert gone.is_error
        return [said.text, drawn.images[0].media_type]

    # The server of the tests wants this header.
    headers = {"x-token": "a ${TOKEN}"}
    assert run(work, command=None, url=address, headers=headers) == ["you said hello", "image/png"]
