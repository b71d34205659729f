"""What a person is told when a provider fails: what happened, what to do about it, and how to go on."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.command import Cli
from tests.support.loopback import Loopback, Reply
from workbench.analysis.advice import REMEDIES
from workbench.cli.progress import WaitingLine
from workbench.engine.contracts import ModelFault

ONE = "cascade_id: one\nphases: [{name: p, instructions: Say hello., handoffs: []}]\n"
GUIDE = Path(__file__).parents[2] / "docs/guide/when-a-provider-fails.md"


@pytest.fixture
def provider(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("WORKBENCH_TRIES", "2")
    monkeypatch.setenv("WORKBENCH_BACKOFF", "0")
    (workspace / "one.yaml").write_text(ONE)
    with Loopback([Reply("Hello.")]) as server:
        yield server


def failed(cli: Cli, provider: Loopback, model: str) -> str:
    """What a run with this fault says on stderr, at the end of which it tells how it ended."""
    ended = cli("run", "one.yaml", "--base-url", provider.url, "-m", model, "--session", "s")
    assert (ended.code, ended.out) == (4, "")
    assert "Traceback" not in ended.err
    return ended.err


WORDS = [
    pytest.param("401", ("set WORKBENCH_API_KEY", "--model offline", "resume s"), marks=pytest.mark.fault("F22")),
    pytest.param("402", ("Insufficient credits", "credit"), marks=pytest.mark.fault("F22")),
    pytest.param("404", ("The model does not exist", "base URL"), marks=pytest.mark.fault("F21")),
    pytest.param("500", ("answered 500: The server had an error", "after 2 tries"), marks=pytest.mark.fault("F21")),
    pytest.param("503html", ("answered 503: Service Unavailable", "resume s"), marks=pytest.mark.fault("F21")),
    pytest.param("html200", ("a web page instead", "'Sign in to the network'", "/v1"), marks=pytest.mark.fault("F23")),
    pytest.param("badjson", ("cannot be read; it begins with", "after 2 tries"), marks=pytest.mark.fault("F23")),
    pytest.param(
        "badutf8", ("cannot be read: it is not UTF-8; it begins with", "resume s"), marks=pytest.mark.fault("F23")
    ),
    pytest.param("empty", ("is blank", "after 2 tries"), marks=pytest.mark.fault("F24")),
    pytest.param("nullcontent", ("is blank (finish reason stop)", "output tokens"), marks=pytest.mark.fault("F24")),
    pytest.param("reset", ("no connection to http://127.0.0.1", "Check the network"), marks=pytest.mark.fault("F25")),
    pytest.param("short", ("broke off: the connection was closed",), marks=pytest.mark.fault("F25")),
    pytest.param("scut", ("after 20 characters, which are kept", "resume s"), marks=pytest.mark.fault("F26")),
    pytest.param("307", ("to http://127.0.0.1:9/v1/chat/completions, which is not followed",)),
]


@pytest.mark.parametrize(("model", "words"), WORDS)
def test_a_failed_call_says_what_happened_and_what_to_do(
    cli: Cli, provider: Loopback, model: str, words: tuple[str, ...]
) -> None:
    said = failed(cli, provider, model)
    for text in words:
        assert text in said
    assert "[Errno" not in said
    assert cli("show", "s", "--json").json["phases"][0]["calls"][0]["failures"]


@pytest.mark.fault("F31")
def test_a_context_that_is_too_long_names_its_largest_messages(cli: Cli, provider: Loopback) -> None:
    said = failed(cli, provider, "ctx")
    assert "maximum context length is 8192 tokens" in said
    assert "mask or clear old tool results" in said
    assert said.splitlines()[-1].startswith("  #1 user, task: ~")
    assert "workbench resume" not in said, "the same request would be refused again"


def test_of_a_model_that_is_not_there_it_is_told_who_named_it(cli: Cli, provider: Loopback) -> None:
    assert (
        failed(cli, provider, "404")
        .splitlines()[-1]
        .startswith("no line of the file names '404': it comes from --model")
    )


def offered(said: str, line: str) -> list[str]:
    """The words behind ``workbench`` of the command that a line of stderr offers."""
    (command,) = [text.removeprefix(line) for text in said.splitlines() if text.startswith(line)]
    return shlex.split(command)[1:]


def test_the_command_that_goes_on_can_be_run_as_it_stands(cli: Cli, provider: Loopback) -> None:
    command = offered(failed(cli, provider, "500@2"), "resume it: ")
    went_on = cli(*command)
    assert (went_on.code, went_on.out) == (0, "Hello.\n"), "it asks the server that the run was given, and not offline"


def test_a_call_that_fails_again_when_it_is_asked_again_is_told_and_kept(cli: Cli, provider: Loopback) -> None:
    failed(cli, provider, "500")
    again = cli("resume", "s", "--base-url", provider.url)
    assert again.code == 4
    assert again.err.count(" failed, server (HTTP 500)") == 2
    assert len(cli("show", "s", "--json").json["phases"][0]["calls"][0]["failures"]) == 4
    assert cli("resume", "s", "--base-url", provider.url).err.count(" failed, server (HTTP 500)") == 2, "once more"


def test_a_run_that_a_provider_answered_goes_on_offline_only_when_asked_to(cli: Cli, provider: Loopback) -> None:
    failed(cli, provider, "500@2")
    refused = cli("resume", "s")
    assert (refused.code, refused.out) == (4, "")
    assert "'500@2' names no provider that is known" in refused.err
    assert cli("resume", "s", "--model", "offline", "--unscripted", "ok").code == 0


def test_a_refusal_offers_a_run_that_keeps_what_was_answered(cli: Cli, provider: Loopback, workspace: Path) -> None:
    two = ONE.replace("handoffs: []}", "}, {name: q, model: openai/404, instructions: Say goodbye.}")
    (workspace / "one.yaml").write_text(two)
    command = offered(failed(cli, provider, "gpt-x"), "after a change, with the answers so far: ")
    (workspace / "one.yaml").write_text(two.replace("openai/404", "openai/gpt-y"))
    asked = len(provider.requests)
    assert cli(*command).code == 0
    assert [request.model for request in provider.requests[asked:]] == ["openai/gpt-y"]


def test_a_password_stands_in_no_command_that_goes_on(cli: Cli, provider: Loopback) -> None:
    url = provider.url.replace("//", "//ann:s3cret-pass@")
    said = cli("run", "one.yaml", "--base-url", url, "-m", "500", "--session", "s").err
    assert "s3cret" not in said
    assert offered(said, "resume it: ") == ["resume", "s", "--base-url", "URL"]


def test_a_run_that_was_asked_to_be_offline_goes_on_offline(cli: Cli, workspace: Path) -> None:
    (workspace / "one.yaml").write_text(ONE)
    said = cli("run", "one.yaml", "-m", "offline", "--session", "s", "--until", "p").err
    assert offered(said, "resume it: ") == ["resume", "s", "--model", "offline"]


@pytest.mark.fault("F20")
def test_a_wait_that_the_provider_asks_for_is_counted_down() -> None:
    now = [0.0]
    line = WaitingLine("p turn 1: tries again (try 2)", 7.0, lambda: now[0])
    seen = []
    for now[0] in (0.0, 3.0, 9.0):
        console = Console(file=io.StringIO(), width=80)
        with console.capture() as shown:
            console.print(line)
        seen.append(shown.get().strip())
    assert [text.rpartition(" in ")[2] for text in seen] == ["7 s", "4 s", "0 s"]


@pytest.mark.fault("F25")
def test_a_call_without_an_answer_says_how_long_it_has_waited() -> None:
    now = [0.0]
    line = WaitingLine("p turn 1: waiting for the provider, try 2", clock=lambda: now[0])
    now[0] = 34.2
    assert line.__rich__().plain == "p turn 1: waiting for the provider, try 2, 34 s"


@pytest.mark.fault("F26")
@pytest.mark.parametrize(("model", "words"), [("snodone", "may be cut off"), ("length", "limit of output tokens")])
def test_an_answer_that_may_lack_its_end_is_a_warning(cli: Cli, provider: Loopback, model: str, words: str) -> None:
    ended = cli("run", "one.yaml", "--base-url", provider.url, "-m", model, "--session", "s")
    assert ended.code == 0
    assert words in ended.err
    (warning,) = cli("show", "s", "--json").json["warnings"]
    assert warning["code"] == "cut_off"


def test_every_kind_of_fault_has_a_remedy_and_stands_in_the_guide() -> None:
    final = {
        "authentication",
        "permission",
        "not_found",
        "bad_request",
        "context_length",
        "too_large",
        "no_model",
        "node_timeout",
        "unscripted",
    }
    assert set(REMEDIES) == ModelFault.RETRYABLE | final
    page = GUIDE.read_text("utf-8")
    for remedy in REMEDIES.values():
        assert remedy.happened in page
