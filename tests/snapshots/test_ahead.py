"""Many snapshots under pytest are replayed by processes beside it: the same verdicts, and nothing of them remains."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snapshots.test_plugin import run_pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="nothing is forked where there is one core"
)

SAID = """\
import json, sys
def pytest_sessionfinish(session):
    open("modules", "w").write(json.dumps(sorted(sys.modules)))
"""
"""A conftest that tells what pytest's own process has imported."""

WRITES = """\
from pathlib import Path
def test_that_writes():
    cascade = Path("greet.yaml")
    cascade.write_text(cascade.read_text().replace("mask_observations_after: 1", "mask_observations_after: 2"))
"""

ASKED = """\
import os, sys, threading, time
from pathlib import Path
from workbench.ahead import Ahead

def answer(file):
    if file.name == "breaks":
        raise RuntimeError(file)
    if file.name == "waits":
        Path('at').write_text(f"{os.getpid()}\\n")
        threading.Event().wait()
    return file.name * 5000 if file.name == "long" else f"{file.name} {os.environ.get('SAID')} {os.getcwd()}"

def row(*names):
    files = [Path(name) for name in names]
    ahead.ask(files)
    return [ahead.take(file) for file in files]

ahead = Ahead.start(lambda: None, answer)
"""
"""The beginning of a program that asks for answers about files of the folder in which it runs."""


@pytest.fixture
def many(frozen: Path) -> Path:
    """Ten snapshots of one cascade, one of which says that it is of another, which is gone."""
    text = frozen.read_text("utf-8")
    for number in range(8):
        frozen.with_name(f"greets_{number}.json").write_text(text)
    frozen.with_name("lost.json").write_text(
        text.replace('"cascade_file": "greet.yaml"', '"cascade_file": "gone.yaml"')
    )
    return frozen.parent


def pytest_over(many: Path, conftest: str) -> tuple[int, str, bool]:
    """Exit code and output without times, and whether pytest's own process has replayed anything."""
    many.with_name("conftest.py").write_text(conftest)
    code, out = run_pytest("test_first.py", "snapshots", "-q")
    imported = json.loads(many.with_name("modules").read_text())
    return code, re.sub(r"in \d+\.\d+s( \(.+\))?", "", out), "workbench.engine.run" in imported


def program(rest: str, folder: Path) -> list[str]:
    """What such a program prints."""
    command = [sys.executable, "-c", ASKED + rest]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return ended.stdout.splitlines()


def test_verdicts_and_words_are_those_of_a_replay_by_pytest_itself(many: Path) -> None:
    """Also of what a test has changed that came before; and it does it itself where somebody else uses the package."""
    many.with_name("test_first.py").write_text(WRITES)
    cascade = many.with_name("greet.yaml")
    text = cascade.read_text()
    code, beside, itself = pytest_over(many, SAID)
    assert (code, itself) == (1, False), beside
    assert "10 failed, 1 passed" in beside
    assert beside.count("message 4 (turn 1's result) was masked, is now sent in full") == 9
    assert "snapshots/lost.json: error: orphaned" in beside
    cascade.write_text(text)
    assert pytest_over(many, SAID + "import workbench.language.clean\n") == (1, beside, True)


def test_answers_come_for_all_but_what_breaks_or_is_too_long(tmp_path: Path) -> None:
    said = program("print(row('a', 'long', 'c'), row('c', 'breaks', 'd'))\nprint(row('e'))\n", tmp_path)
    assert said == [
        f"['a None {tmp_path}', None, 'c None {tmp_path}'] ['c None {tmp_path}', None, None]",
        "[None]",  # Nobody is there any more, since something broke.
    ]
    later = "os.environ['SAID'] = 'then'; os.mkdir('at'); os.chdir('at'); print(row('a'))\n"
    gone = "os.rmdir('../at'); print(row('b'))"
    assert program(later + gone, tmp_path) == [f"['a then {tmp_path / 'at'}']", "[None]"]


@pytest.mark.parametrize(
    "before", ["import workbench.language.clean", "sys.settrace(lambda *_: None)", "os.getpid = lambda: 1"]
)
def test_nobody_is_asked_where_the_answer_might_be_another(tmp_path: Path, before: str) -> None:
    assert program(f"{before}\nprint(row('a'))", tmp_path) == ["[None]"]


def test_a_process_with_two_threads_or_one_that_is_traced_is_not_forked(tmp_path: Path) -> None:
    said = program(
        "ahead.stop()\n"
        "sys.settrace(lambda *_: None); print(Ahead.start(print, answer)); sys.settrace(None)\n"
        "stop = threading.Event(); other = threading.Thread(target=stop.wait); other.start()\n"
        "print(Ahead.start(print, answer)); stop.set(); other.join()\n",
        tmp_path,
    )
    assert said == ["None", "None"]


@pytest.mark.parametrize("end", ["ahead.stop(); input()", "os.kill(os.getpid(), 9)"])
def test_nothing_remains_of_what_is_in_the_midst_of_an_answer(tmp_path: Path, end: str) -> None:
    """Whether it is stopped, or who asked is killed. Of so many files another process takes some, too."""
    os.mkfifo(tmp_path / "at")
    at = os.open(tmp_path / "at", os.O_RDWR | os.O_NONBLOCK)  # Its own writer, too: it never comes to an end.
    asking = f"ahead.ask([Path(name) for name in ['a', 'waits', 'b', 'waits', *'c' * 40]]); input(); {end}"
    with subprocess.Popen([sys.executable, "-c", ASKED + asking], cwd=tmp_path, stdin=subprocess.PIPE) as process:
        both = [os.pidfd_open(int(line)) for line in written(at, 2)]
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        ended = [bool(select.select([one], [], [], 20)[0]) for one in both]
        for one in both:
            os.close(one)
        process.kill()
    assert ended == [True, True]


def written(pipe: int, count: int) -> list[bytes]:
    """So many lines that come out of a pipe; fewer where nobody writes."""
    said = b""
    with open(pipe, "rb", buffering=0) as end:
        while said.count(b"\n") < count and select.select([pipe], [], [], 20)[0]:
            said += end.read(100)
    return said.split()


def test_one_process_takes_what_another_that_is_busy_has_not(tmp_path: Path) -> None:
    """All but two of these files, while the answer for one is being made."""
    os.mkfifo(tmp_path / "at")
    at = os.open(tmp_path / "at", os.O_RDWR | os.O_NONBLOCK)  # Its own writer, too: it never comes to an end.
    asking = (
        "import signal; signal.alarm(20)\n"
        "others = [Path(str(number)) for number in range(100)]\n"
        "ahead.ask([others[0], Path('waits'), *others[1:]])\n"
        "print(sum(ahead.take(other) is not None for other in others)); ahead.stop()"
    )
    assert program(asking, tmp_path) == ["100"]
    assert len(written(at, 1)) == 1
