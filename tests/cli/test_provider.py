"""A provider behind the command line: the exact request, faults as exit codes, keys that never show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Cli
from tests.support.loopback import Loopback, Reply
from tests.support.workspaces import CASCADE

pytestmark = pytest.mark.usefixtures("no_backoff")


@pytest.fixture
def no_backoff(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One try per call, so that no test waits for a second one."""
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    (workspace / "one.yaml").write_text(
        "cascade_id: one\nphases: [{name: p, instructions: 'Say hello to {{ input.name }}.', handoffs: []}]\n"
    )


@pytest.fixture
def provider() -> Iterator[Loopback]:
    with Loopback([Reply("Hello, Ada.")]) as server:
        yield server


def test_the_wire_shown_is_the_body_that_was_sent(cli: Cli, provider: Loopback) -> None:
    ended = cli("run", "one.yaml", "--base-url", provider.url, "-m", "gpt-x", "--input", '{"name": "Ada"}')
    assert (ended.code, ended.out) == (0, "Hello, Ada.\n")
    assert "offline" not in ended.err
    (line,) = cli("context", "--wire").out.splitlines()
    (received,) = provider.requests
    assert json.loads(line) == received.body
    assert list(json.loads(line)) == list(received.body), "keys in wire order"
    assert received.body["messages"][-1]["content"] == "Say hello to Ada."


def test_what_a_provider_counts_is_shown_as_it_says(cli: Cli, provider: Loopback) -> None:
    cli("run", "one.yaml", "--base-url", provider.url, "-m", "gpt-x")
    usage = cli("show", "--json").json["phases"][0]["calls"][0]["usage"]
    assert usage["input"] is not None
    assert usage["output"] is not None


def test_progress_tells_the_tokens_that_are_expected_of_a_call(cli: Cli, provider: Loopback, workspace: Path) -> None:
    (workspace / "two.yaml").write_text(
        "cascade_id: two\nphases: [{name: p, instructions: Hello., rules: {max_turns: 2, turn_prompt: Again.}}]\n"
    )
    ended = cli("run", "two.yaml", "--base-url", provider.url, "-m", "gpt-x")
    told = [line.partition("≈")[2].split()[0] for line in ended.err.splitlines() if "≈" in line]
    second = cli("show", "--json").json["phases"][0]["calls"][1]
    assert second["predicted"]["tokens"] != second["tokens_sent"]
    assert told == [str(second["predicted"]["tokens"])]


@pytest.mark.parametrize("model", ["401", "429", "500", "empty", "badjson"])
def test_a_provider_that_fails_is_exit_code_4(cli: Cli, provider: Loopback, model: str) -> None:
    ended = cli("run", "one.yaml", "--base-url", provider.url, "-m", model, "--session", "s")
    assert (ended.code, ended.out) == (4, "")
    assert "Traceback" not in ended.err
    run = cli("show", "s", "--json").json
    assert run["status"] == "failed"
    assert run["phases"][0]["calls"][0]["failures"]


def test_a_failed_call_can_be_resumed_when_the_provider_is_back(cli: Cli, provider: Loopback) -> None:
    assert cli("run", "one.yaml", "--base-url", provider.url, "-m", "500@1", "--session", "s").code == 4
    resumed = cli("resume", "s", "--base-url", provider.url)
    assert (resumed.code, resumed.out) == (0, "Hello, Ada.\n")
    first, second = provider.requests
    assert first.raw == second.raw
    assert cli("context", "s", "--wire").out == f"{first.raw.decode()}\n", "the request as it was sent, once"


@pytest.mark.fault("F22")
def test_a_model_without_a_key_names_the_variables(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "k" * 40)
    ended = cli("run", "one.yaml", "-m", "openai/gpt-4.1-mini")
    assert ended.code == 4
    assert "OPENAI_API_KEY" in ended.err
    assert "OPENROUTER_API_KEY" in ended.err


def test_a_key_is_never_shown(cli: Cli, provider: Loopback, monkeypatch: pytest.MonkeyPatch, workspace: Path) -> None:
    key = "sk-" + "secret0123456789" * 3
    monkeypatch.setenv("OPENAI_API_KEY", key)
    ended = cli("run", "one.yaml", "--base-url", provider.url, "-m", "401", "--session", "s")
    everything = ended.err + cli("show", "s", "--json").out + cli("context", "s", "--wire").out
    everything += "".join(p.read_text("utf-8") for p in workspace.glob(".workbench/journal/*/*.jsonl"))
    assert key not in everything


def test_native_tools_go_over_the_wire(cli: Cli, workspace: Path) -> None:
    (workspace / "native.yaml").write_text(CASCADE.replace("tackle:", "use_native_tools: true\n    tackle:"))
    with Loopback([Reply("All is read.")]) as provider:
        ended = cli("run", "native.yaml", "--base-url", provider.url, "-m", "gpt-x", "--input", '{"name": "Ada"}')
        assert ended.code == 0
        names = [tool["function"]["name"] for tool in provider.requests[0].body["tools"]]
    assert names == ["read_file", "route_to"]


def test_a_request_that_failed_is_shown_byte_for_byte(cli: Cli, provider: Loopback) -> None:
    assert cli("run", "one.yaml", "--base-url", provider.url, "-m", "500", "--session", "s").code == 4
    assert cli("context", "s", "--wire").out.encode() == provider.requests[0].raw + b"\n"


def test_a_pipeline_asks_a_provider_and_takes_the_edge_that_its_tool_call_states(cli: Cli, workspace: Path) -> None:
    (workspace / "two.dot").write_text(
        """digraph two {
          start [shape=Mdiamond]
          a [prompt="First"]
          b [prompt="Second"]
          done [shape=Msquare]
          start -> a
          a -> b [condition="outcome=fail"]
          a -> done [condition="outcome=success"]
          b -> done
        }"""
    )
    stated = Reply("", calls=[("report_outcome", '{"outcome": "fail", "failure_reason": "not yet"}')])
    with Loopback([stated, Reply("Made.")]) as server:
        ended = cli("run", "two.dot", "--base-url", server.url, "-m", "gpt-x", "--session", "live")
        assert (ended.code, ended.out) == (0, "Made.\n")
        assert [tool["function"]["name"] for tool in server.requests[0].body["tools"]] == ["report_outcome"]
        assert len(server.requests) == 2
        assert cli("run", "two.dot", "--reuse", "live").code == 0
        assert len(server.requests) == 2, "a replay makes no call"
