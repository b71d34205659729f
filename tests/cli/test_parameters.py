"""Parameters of the model and an enforced schema, from the file to the request and back to the screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Cli
from tests.support.loopback import Loopback, Reply

CASCADE = """\
cascade_id: tuned
temperature: 0.5
max_tokens: 90
parameters: {top_k: 4, repeat_last_n: 64}
phases:
  - name: first
    instructions: One.
  - name: second
    instructions: Two.
    temperature: 0
    seed: 7
    stop: [END]
    response_format: json_object
    parameters: {repeat_last_n: null, grammar: x}
  - name: third
    instructions: Three.
    soundings:
      factor: 2
      models: {gpt-a: {temperature: 1}, gpt-b: {max_tokens: 5}}
      mode: aggregate
"""
SCHEMA = (
    "cascade_id: s\nphases:\n  - name: p\n    instructions: Go.\n"
    "    output_schema: {type: object, properties: {n: {type: integer, minLength: 1}}, required: [n]}\n"
)


@pytest.fixture
def provider(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("WORKBENCH_TRIES", "1")
    (workspace / "tuned.yaml").write_text(CASCADE)
    with Loopback([Reply('{"n": 1}') for _ in range(9)]) as server:
        monkeypatch.setenv("WORKBENCH_BASE_URL", server.url)
        yield server


def run(cli: Cli, file: str = "tuned.yaml", session: str = "s") -> None:
    ended = cli("run", file, "-m", "gpt-x", "--session", session)
    assert ended.code == 0, ended.err


def test_the_phase_wins_over_the_cascade_and_a_candidates_model_over_both(cli: Cli, provider: Loopback) -> None:
    run(cli)
    sent: dict[str, list[dict[str, Any]]] = {}
    for request in provider.requests:
        own = request.body.keys() - {"model", "messages", "stream", "stream_options"}
        sent.setdefault(request.model, []).append({name: request.body[name] for name in own})
    first, second = sent["gpt-x"][:2]
    assert first == {"temperature": 0.5, "max_tokens": 90, "top_k": 4, "repeat_last_n": 64}
    assert second == {
        "temperature": 0,
        "max_tokens": 90,
        "seed": 7,
        "stop": ["END"],
        "response_format": {"type": "json_object"},
        "top_k": 4,
        "grammar": "x",
    }
    assert [sent[model][0]["temperature"] for model in ("gpt-a", "gpt-b")] == [1, 0.5]
    assert [sent[model][0]["max_tokens"] for model in ("gpt-a", "gpt-b")] == [90, 5]


def test_the_request_shows_them_as_they_were_sent_and_a_replay_finds_them(cli: Cli, provider: Loopback) -> None:
    run(cli)
    asked = len(provider.requests)
    shown = json.loads(cli("context", "s", "--at", "second:1", "--wire").out.splitlines()[0])
    assert shown == next(r.body for r in provider.requests if r.body.get("seed") == 7)

    assert cli("test", "freeze", "s", "--name", "tuned").code == 0
    assert cli("test", "run").code == 0
    assert len(provider.requests) == asked


def test_another_value_is_another_request_and_its_line_is_named(cli: Cli, provider: Loopback, workspace: Path) -> None:
    run(cli)
    assert cli("test", "freeze", "s", "--name", "tuned").code == 0
    (workspace / "tuned.yaml").write_text(CASCADE.replace("temperature: 0.5", "temperature: 0.6"))
    ended = cli("test", "run")
    assert ended.code != 0
    assert "temperature was 0.5, is now 0.6" in ended.out
    assert "tuned.yaml:2" in ended.out


@pytest.mark.parametrize(
    ("written", "where", "words"),
    [
        ("temperature: hot", "2:14", "'temperature' must be a number"),
        ("temperature: 3", "2:14", "'temperature' must be at most 2"),
        ("top_p: 1.5", "2:8", "'top_p' must be at most 1"),
        ("max_tokens: 0", "2:13", "'max_tokens' must be at least 1"),
        ("seed: 1.5", "2:7", "'seed' must be an integer"),
        ("stop: ['']", "2:7", "a stop sequence is empty"),
        ("stop: [3]", "2:8", "'stop[0]' must be text"),
        ("response_format: json", "2:18", "'response_format' must be one of text, json_object, json_schema"),
        ("response_format: {type: json_schema}", "2:18", "needs json_schema with name and schema"),
        ("parameters: [1]", "2:13", "'parameters' must be a mapping"),
        ("parameters: {api_key: x}", "2:14", "'api_key' cannot stand in 'parameters'"),
    ],
)
def test_a_wrong_value_is_named_where_it_stands(
    cli: Cli, workspace: Path, written: str, where: str, words: str
) -> None:
    (workspace / "wrong.yaml").write_text(f"cascade_id: c\n{written}\nphases: [{{name: a, instructions: x}}]\n")
    ended = cli("check", "wrong.yaml")
    assert ended.code == 1
    assert f"wrong.yaml:{where}: error:" in ended.out
    assert words in ended.out


@pytest.mark.parametrize(("enforce", "told", "sent"), [("prompt", 1, 0), ("provider", 0, 1), ("both", 1, 1)])
def test_a_schema_is_enforced_where_the_file_says(
    cli: Cli, provider: Loopback, workspace: Path, enforce: str, told: int, sent: int
) -> None:
    (workspace / "plain.yaml").write_text(SCHEMA)
    (workspace / "s.yaml").write_text(f"{SCHEMA}    enforce: {enforce}\n")
    run(cli, "plain.yaml", "plain")
    run(cli, "s.yaml")
    request = provider.requests[-1].body
    assert ("matches this schema" in request["messages"][-1]["content"]) is bool(told)
    assert ("response_format" in request) is bool(sent)
    if sent:
        schema = request["response_format"]["json_schema"]
        assert (schema["name"], schema["schema"]["required"]) == ("p", ["n"])
        assert "strict" not in schema, "minLength, and an object that is open"
    # Both ways the schema takes room in the request.
    before, after = (cli("show", s, "--json").json["phases"][0]["calls"][0]["tokens_sent"] for s in ("plain", "s"))
    assert after - before > 20 * (told + sent)


def test_a_provider_that_does_not_take_the_form_is_told_of_with_the_way_out(
    cli: Cli, provider: Loopback, workspace: Path
) -> None:
    (workspace / "s.yaml").write_text(f"{SCHEMA}    enforce: provider\n")
    ended = cli("run", "s.yaml", "-m", "400", "--session", "s")
    assert ended.code == 4
    assert "'enforce: prompt' tells the model instead" in ended.err
    assert "400" in ended.err


def test_a_parameter_is_checked_where_a_run_is_forked(cli: Cli, provider: Loopback) -> None:
    run(cli)
    ended = cli("fork", "s", "--at", "first:1", "--edit", "param.temperature=9")
    assert ended.code != 0
    assert "'temperature'" in ended.err
    ended = cli("fork", "s", "--at", "first:1", "--edit", 'param.grammar="y"', "--session", "t")
    assert ended.code == 0, ended.err
    assert json.loads(cli("context", "t", "--at", "first:1", "--wire").out.splitlines()[0])["grammar"] == "y"
