"""What a run that failed for want of an offline reply says is written into the file as it stands, and the run goes
on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command import Cli

CHECKED = """\
cascade_id: job
phases:
  - name: answer
    instructions: Answer.
    rules: {max_attempts: 3, max_turns: 1}
    wards:
      post: [{validator: good, mode: retry, max_attempts: 3}]
validators:
  good: {instructions: "Judge: {{ input.content }}"}
"""
TURNS = CHECKED.replace("max_turns: 1", "max_turns: 3")
PLAIN = "cascade_id: job\nphases:\n  - {name: answer, instructions: Answer., rules: {max_turns: 2}}\n"
CANDIDATES = """\
cascade_id: job
phases:
  - name: answer
    instructions: Answer.
    rules: {max_turns: 1}
    soundings: {factor: 3, evaluator_instructions: Pick one.}
"""
GOOD = '\'{"valid": true, "reason": ""}\''
BAD = '\'{"valid": false, "reason": "no"}\''
JUDGE = f"  good:\n    - {{when: WRONG, text: {BAD}}}\n    - {GOOD}\n"


def said(ended: str) -> list[str]:
    """The messages of a failed run: one, or one of each candidate, where all failed."""
    (told,) = re.findall(r"^failed: .*", ended, re.MULTILINE)
    found: list[str] = re.findall(r"unscripted: (.*?)(?=; \d+: unscripted|$)", told)
    return list(dict.fromkeys(found))


def written(text: str, message: str) -> str:
    """The file after somebody did what the message says, and nothing else."""
    told, _, line = message.partition(". ")[2].partition(": ")
    key = next(iter(re.findall(r"'(.*?)'", told)), "")
    lines = text.splitlines()
    if told.startswith("Write this line into it"):
        return f"{text}{line}\n"
    if told.startswith("Add this before the }"):
        return f"{text.rstrip()[:-1]}{line}}}\n"
    if told.startswith("Add this line below 'replies:'"):
        return f"{text}  {line}\n"
    if told.startswith("Write") and "replies: {" in text:
        return re.sub(f"{key}: \\w+", line.replace("\\", r"\\"), text)
    at = next(i for i, one in enumerate(lines) if re.search(rf"(^ *|{{){key}:", one))
    if told.startswith("Write"):
        lines[at] = f"  {line}"
    elif told.startswith("Add this before the ]"):
        before, _, after = lines[at].rpartition("]")
        lines[at] = f"{before}{line}]{after}"
    else:
        assert told.startswith("Add this line at the end of the list below")
        items = [i for i in range(at + 1, len(lines)) if lines[i].startswith("    ")]
        inside = [i for i in items if not any(not lines[j].startswith("    ") for j in range(at + 1, i))]
        lines.insert(inside[-1] + 1, f"    {line}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("cascade", "replies"),
    [
        (PLAIN, None),
        (PLAIN, "defaults: {latency: 0}\n"),
        (CHECKED, JUDGE),
        (CHECKED, f"replies:\n  answer: WRONG\n{JUDGE}"),
        (CHECKED, f"replies:\n{JUDGE}  answer:\n    - WRONG\n"),
        (CHECKED, f"replies:\n  answer: [WRONG]\n{JUDGE}"),
        (CHECKED, f"replies:\n  answer:\n    - WRONG\n    - {{attempt: 2, text: WRONG}}\n{JUDGE}"),
        (CHECKED, f"replies:\n  answer:\n    - WRONG\n    - {{attempt: 3, text: WRONG}}\n{JUDGE}"),
        (CHECKED, f"replies:\n  answer#1:\n    - WRONG\n{JUDGE}"),
        (PLAIN, "replies: {answer: WRONG}\n"),
        (PLAIN, "replies: {}\n"),
        (CHECKED, "defaults: {latency: 0}\nreplies:\n" + JUDGE),
        (TURNS, f"replies:\n  answer:\n    - WRONG\n    - WRONG\n    - {{attempt: 2, text: WRONG}}\n{JUDGE}"),
        (CANDIDATES, "defaults: {latency: 0}\n"),
        (CANDIDATES, "replies:\n  answer:\n    - {branch: s1, attempt: 2, text: One.}\n"),
        (CANDIDATES, "replies:\n  answer:\n    - {branch: s*, text: One.}\n"),
        (CANDIDATES, "replies:\n  answer:\n    - {branch: s1, text: One.}\n    - {branch: '', text: All.}\n"),
        (CANDIDATES, "replies:\n  answer:\n    - {attempt: 2, text: Two.}\n"),
    ],
)
def test_a_failed_run_goes_on_with_the_line_that_its_message_shows(
    cli: Cli, workspace: Path, cascade: str, replies: str | None
) -> None:
    if replies == JUDGE:
        replies = f"replies:\n{JUDGE}"
    (workspace / "job.yaml").write_text(cascade)
    file, text = workspace / "job.replies.yaml", replies or ""
    if text:
        file.write_text(text)
    ended = cli("run", "job.yaml", "-m", "offline", "--session", "s")
    seen: list[str] = []
    while ended.code and len(seen) < 6:
        for message in said(ended.err):
            seen.append(message)
            text = written(text, message)
        file.write_text(text)
        assert not cli("check", "job.replies.yaml").code, (seen, text)
        ended = cli("resume", "s", "-m", "offline")
    assert ended.code == 0, (seen, text, ended.err)
    assert seen, "the run lacks no reply"
    assert len(seen) == len(set(seen)), seen
