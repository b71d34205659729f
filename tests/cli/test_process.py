"""The command line as a process, with its signals and pipes; SQL over all runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cli.serving import children, is_alive
from tests.store.examples import plain_run, save
from tests.support.command import WORKBENCH, Cli, Ended
from tests.support.waiting import PATIENCE, until
from tests.support.workspaces import REPLIES
from workbench.engine.journal.event import Event
from workbench.store.store import Store
from workbench.views.numbers import OVERHEAD


def started(workspace: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*WORKBENCH, *arguments],
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Read stderr up to the line that holds a text."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"'{text}' never came")


@pytest.fixture
def slow(workspace: Path) -> Path:
    """The workspace, with a second call that takes ten minutes."""
    replies = REPLIES.replace("    - calls: [{tool: read_file", "    - latency: 600\n      calls: [{tool: read_file", 1)
    (workspace / "greet.replies.yaml").write_text(replies)
    return workspace


WHILE_LOADING = """
import errno, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # What a shell started behind another command ignores it.
WHAT = sys.argv.pop(1)
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["LOADING"]:
            if WHAT == "pipe":
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Impatient())
from workbench.__main__ import main
main()
"""
VERSION = "workbench.cli.commands.version"


@pytest.mark.parametrize(
    ("what", "module", "code", "words"),
    [
        *(("interrupt", module, 130, "") for module in ("click", "workbench.cli.errors", VERSION)),
        ("pipe", VERSION, 1, "error: Broken pipe (see workbench --debug)"),
    ],
)
def test_what_happens_while_a_command_loads_ends_it_in_few_words(
    workspace: Path, what: str, module: str, code: int, words: str
) -> None:
    """An interrupt, and a closed pipe that is not that of the output."""
    ended = subprocess.run(
        [sys.executable, "-c", WHILE_LOADING, what, "version"],
        cwd=workspace,
        env={**os.environ, "LOADING": module},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (code, "", words)


@pytest.mark.fault("F3")
def test_a_signal_stops_the_run_which_can_go_on(slow: Path, cli: Cli) -> None:
    """Ctrl+C does the same: ``tests/cli/test_terminal.py``."""
    process = started(slow, "run", "greet.yaml", "--session", "s")
    wait_for(process, "look:2         sends")
    process.terminate()
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (143, "")
    shown = cli("show", "s", "--json").json
    assert (shown["status"], shown["reason"]) == ("stopped", "stopped by the user")
    (slow / "greet.replies.yaml").write_text(REPLIES)
    resumed = cli("resume", "s")
    assert (resumed.code, resumed.out) == (0, "Hello, Ada.\n")


def test_a_run_whose_reader_went_away_is_stopped_and_can_go_on(workspace: Path, cli: Cli) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*WORKBENCH, "run", "greet.yaml", "--json", "-q", "--session", "s"]
    ended = subprocess.run(command, cwd=workspace, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert ended.returncode == 128 + signal.SIGPIPE
    assert ended.stderr == "stopped by you\n"
    assert cli("show", "s", "--json").json["status"] == "stopped"
    assert cli("resume", "s").out == "Hello, Ada.\n"


def test_closed_and_full_streams_are_no_accident(workspace: Path, cli: Cli) -> None:
    """A closed stream is as good as an empty one; what cannot be written is said in words."""
    closed = 'exec "$@" --session s -q <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", closed, "sh", *WORKBENCH, "run", "greet.yaml"], cwd=workspace)
    assert done.returncode == 0
    assert cli("show", "s", "--json").json["status"] == "success"
    with Path("/dev/full").open("w") as full:
        refused = subprocess.run([*WORKBENCH, "version"], cwd=workspace, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (refused.returncode, refused.stderr) == (1, "error: No space left on device (see workbench --debug)\n")


@pytest.mark.parametrize(
    ("command", "unbuffered"), [(["version"], ""), (["--help"], "1"), (["schema"], "")], ids=["end", "first", "middle"]
)
def test_a_reader_who_went_away_ends_a_command_as_a_pipe_does(
    workspace: Path, command: list[str], unbuffered: str
) -> None:
    """Whether the pipe is found closed at the end, at the first line, or when the buffer is full."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    unread = subprocess.run(
        [*WORKBENCH, *command], cwd=workspace, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment
    )
    os.close(writing)
    assert (unread.returncode, unread.stderr) == (128 + signal.SIGPIPE, "")


def test_output_with_any_character_leaves_any_locale(workspace: Path, cli: Cli) -> None:
    (workspace / "greet.replies.yaml").write_text(REPLIES.replace("Hello, Ada.", "Grüße, Ada ✓"))
    assert cli("run", "greet.yaml", "-q", "--session", "s").code == 0
    shown = subprocess.run(
        [*WORKBENCH, "show", "s"],
        cwd=workspace,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
    )
    assert shown.returncode == 0
    assert shown.stderr == b""
    assert b"Gr\\xfc\\xdfe, Ada \\u2713" in shown.stdout


QUERY = "SELECT phase_name, count() AS calls FROM All_Data WHERE node_type = 'agent' GROUP BY 1 ORDER BY 1"


def test_sql_answers_over_all_runs_in_every_form(workspace: Path, cli: Cli) -> None:
    cli("run", "greet.yaml", "-q", "--session", "s")
    many = "SELECT arrayJoin(range(1200)) AS n"
    as_json, as_csv, as_table, as_parquet, shown, in_file, all_rows, few = (
        cli("sql", *arguments)
        for arguments in (
            (QUERY, "--json"),
            (QUERY, "--format", "csv"),
            (QUERY,),
            (QUERY, "--format", "parquet", "-o", "calls.parquet"),
            (many, "--format", "csv"),
            (many, "--format", "csv", "-o", "n.csv"),
            (many, "--format", "parquet", "-o", "n.parquet"),
            (many, "--format", "parquet", "-o", "n.parquet", "-n", "7"),
        )
    )
    assert as_json.json == [{"phase_name": "answer", "calls": 1}, {"phase_name": "look", "calls": 3}]
    assert as_csv == Ended(0, "phase_name,calls\nanswer,1\nlook,3\n", "")
    assert as_table.out.splitlines()[0].split() == ["phase_name", "calls"]
    assert as_parquet == Ended(0, "", "2 rows in calls.parquet\n")
    assert (workspace / "calls.parquet").read_bytes()[:4] == b"PAR1"
    assert (shown.out.count("\n"), shown.err) == (1001, "cut at 1,000 rows (--limit)\n")
    assert (in_file.err, (workspace / "n.csv").read_text("utf-8").count("\n")) == ("", 1201), "a file gets every row"
    assert (all_rows.err, few.err) == ("1,200 rows in n.parquet\n", "7 rows in n.parquet\n")


KINDS = ("call_started", "call_finished", "tool_started", "tool_finished", "phase_started", "context_assembled")
NODES = ("agent", "turn", "tool_call", "tool_result", "context_selection", "phase_start", "phase_complete", "user")
TOTALS = (
    "SELECT node_type, count() AS n, sum(tokens_out) AS out FROM all_data"
    f" WHERE session_id = '{{0}}' AND node_type IN {NODES} GROUP BY 1 ORDER BY 1",
    f"SELECT e.kind, count() AS n FROM events AS e JOIN runs AS r ON r.run_id = e.run_id"
    f" WHERE r.session_id = '{{0}}' AND e.kind IN {KINDS} GROUP BY 1 ORDER BY 1",
    "SELECT calls, tools, visits, tokens_in, tokens_out, unknown_costs, status FROM runs WHERE session_id = '{0}'",
)


def totals(cli: Cli, workspace: Path, session: str) -> dict[str, Any]:
    """Everything that counts something of a run, as every command tells it."""
    asked = [cli("sql", query.format(session), "--json").json for query in TOTALS]
    return {"sql": asked, **told(cli, workspace, session)}


def told(cli: Cli, workspace: Path, session: str) -> dict[str, Any]:
    """The same of one run, without the index."""
    run = next(run for run in cli("runs", "--json").json if run["session_id"] == session)
    shown, tree = cli("show", session, "--json").json, cli("tree", session).out.splitlines()
    cli("export", session, "--as", "otel", "-o", f"{session}.otel.json")
    resource = json.loads((workspace / f"{session}.otel.json").read_text())["resourceSpans"][0]
    return {
        "runs": {k: run[k] for k in ("calls", "tools", "tokens_in", "tokens_out", "cost", "phases", "status")},
        "show": shown["totals"],
        "phases": [(p["name"], p["status"], [len(c["tools"]) for c in p["calls"]]) for p in shown["phases"]],
        # A slow machine may take enough time between phases for a row of its own.
        "tree": [re.split(r"  +", line.strip())[:2] for line in tree[1:] if line and not line.startswith(OVERHEAD)],
        "spans": [span["name"] for span in resource["scopeSpans"][0]["spans"]],
    }


def as_written_by_0_1_0(store: Store, run_id: str) -> int:
    """Make a journal what it was when each resume, from the second on, wrote all since the first stop again; how many
    calls it then says."""
    journal: list[Event] = []
    lived: list[Event] = []
    for event in list(store.events(run_id)):
        if event.kind == "run_resumed":
            journal += [replace(event, data={"ports": event.data["ports"]}), *lived]
            continue
        journal.append(event)
        if any(e.kind == "run_resumed" for e in journal) and event.data.get("status") != "stopped":
            lived.append(replace(event, data={**event.data, "recorded": True}))
    shutil.rmtree(store.folder(run_id))
    with store.create(run_id) as sink:
        for seq, event in enumerate(journal, 1):
            sink.append(replace(event, seq=seq))
    return sum(event.kind == "call_finished" for event in journal)


def test_a_run_that_was_resumed_four_times_has_the_totals_of_one_that_ran_through(workspace: Path, cli: Cli) -> None:
    cli("run", "greet.yaml", "-q", "--session", "through")
    for session in ("often", "old"):
        cli("run", "greet.yaml", "-q", "--session", session, "--until", "look:1")
        for how in ("--until=look:2", "--until=look:3", "--until=answer:1", "-q"):
            assert cli("resume", session, how).code == 0
    store = Store(workspace / ".workbench")
    assert as_written_by_0_1_0(store, store.find("old")) == 10
    through, often, old = (totals(cli, workspace, name) for name in ("through", "often", "old"))
    assert often == through
    assert old == through, "a journal in which resumes wrote again what was there"


@pytest.mark.parametrize("sql", ["DROP TABLE messages", "SELECT file('/etc/hostname')", "SELECT nothing FROM all_data"])
def test_sql_that_is_refused_is_one_error(cli: Cli, sql: str) -> None:
    refused = cli("sql", sql)
    assert (refused.code, refused.out) == (2, "")
    assert re.match(r"(query:\d+:\d+: )?error: ", refused.err)
    assert refused.err.count("\n") == 1


def test_parquet_needs_a_file(cli: Cli) -> None:
    refused = cli("sql", "SELECT 1", "--format", "parquet")
    assert (refused.code, refused.err) == (2, "error: Parquet goes to a file (--output FILE)\n")


@pytest.mark.fault("F7")
def test_the_app_needs_a_terminal(workspace: Path) -> None:
    refused = subprocess.run(
        [*WORKBENCH, "open", "greet.yaml"], cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert refused.stderr == "error: the app needs a terminal; without one use `workbench run greet.yaml`\n"


def backlog(workspace: Path, runs: int = 26) -> None:
    """Runs that no process has indexed, in more bytes than one process reads."""
    store = Store(workspace / ".workbench")
    for number in range(runs):
        run = plain_run(f"run-{number}")
        said = [replace(run[-1], seq=len(run) + at, kind="warning", data={"message": "x" * 50_000}) for at in range(10)]
        end = replace(run[-1], seq=len(run) + 10)
        save(store, [*run[:-1], *said, end])
        os.utime(store.folder(f"run-{number}"), ns=(10**18, 10**18))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)], ids=["INT", "KILL"]
)
def test_a_signal_ends_those_who_share_a_backlog_and_the_next_process_finishes_it(
    workspace: Path, cli: Cli, number: signal.Signals, code: int
) -> None:
    backlog(workspace)
    question = [*WORKBENCH, "sql", "SELECT count() AS runs, sum(journal_rows) AS records FROM runs", "--format", "json"]
    with subprocess.Popen(
        question, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        # The two that read, and the one that Python starts to watch over what they share.
        readers = until(lambda: found if len(found := children(process.pid)) >= 3 else [], "the processes that read")
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # As a terminal does.
        else:
            process.send_signal(number)
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == code
    if number is signal.SIGINT:
        assert "Traceback" not in said
    until(lambda: not any(map(is_alive, readers)), "the end of those who read")
    again = cli(*question[len(WORKBENCH) :])
    assert again.code == 0
    records = 26 * (len(plain_run()) + 10)
    assert json.loads(again.out) == [{"runs": 26, "records": records}]
