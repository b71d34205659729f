from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pipes import unattended
from workbench.models.env import Dotenv, load, read


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("export A=exported", "exported"),
        ("  A =  blanks around  ", "blanks around"),
        ("A=before # a comment", "before"),
        ("A=no#comment", "no#comment"),
        ("A=# only a comment", ""),
        ("A=", ""),
        ("A='single $HOME \\n as is' # comment", "single $HOME \\n as is"),
        ('A="two\\nlines and a \\" quote"', 'two\nlines and a " quote'),
        ('A="over\ntwo lines"', "over\ntwo lines"),
        ("A=$HOME/${USER}", "$HOME/${USER}"),
        ("A=1\r\nB=2", "1"),
        ("\ufeffA=after a byte order mark", "after a byte order mark"),
        ("A=first\nA=last", "last"),
    ],
)
def test_a_line_means_what_shells_and_tools_agree_on(line: str, value: str) -> None:
    assert read(line).values["A"] == value


def test_a_variable_that_is_really_set_always_wins() -> None:
    dotenv = read("OPENAI_API_KEY=from-the-file\nOTHER=x")

    assert dotenv.over({"OPENAI_API_KEY": ""}) == {"OPENAI_API_KEY": "", "OTHER": "x"}


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "BASH_ENV",
        "HTTPS_PROXY",
        "https_proxy",
        "SSL_CERT_FILE",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "WORKBENCH_BASE_URL",
        "WINDLASS_PROVIDER_BASE_URL",
        "AZURE_OPENAI_ENDPOINT",
        "LITELLM_MODE",
        "GIT_SSH_COMMAND",
        "EDITOR",
        "WORKBENCH_SANDBOX",
    ],
)
def test_a_file_cannot_redirect_what_runs_or_where_requests_go(name: str) -> None:
    dotenv = read(f"{name}=http://elsewhere\nOPENAI_API_KEY=x")

    assert dotenv.values == {"OPENAI_API_KEY": "x"}
    assert dotenv.refused == (name,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nnot an assignment\n", ".env:2:1: warning: expected NAME=value [env]"),
        ("1A=2", ".env:1:1: warning: expected NAME=value [env]"),
        ("A='open\nB=2", ".env:1:1: warning: the quote of A is not closed [env]"),
        ('A="x" y', ".env:1:1: warning: text after the quote of A is ignored [env]"),
        (
            "PATH=/x\nHTTPS_PROXY=http://x",
            ".env:2:1: warning: HTTPS_PROXY has no effect: a file cannot say where requests go."
            " Set it as a variable [env]",
        ),
        (
            "WORKBENCH_API_KEY=k\nWORKBENCH_DEFAULT_MODEL=gpt-4o",
            ".env:2:1: warning: WORKBENCH_DEFAULT_MODEL has no effect: a setting stands in workbench.yaml,"
            " or is set as a variable [env]",
        ),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, message: str) -> None:
    assert [str(problem) for problem in read(text).problems] == [message]


def test_the_lines_around_an_unreadable_one_count() -> None:
    assert read("A=1\n???\nB=2").values == {"A": "1", "B": "2"}


def test_no_file_is_no_problem(tmp_path: Path) -> None:
    assert load(tmp_path / ".env") == Dotenv()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    with unattended(tmp_path / ".env"):
        assert "not a file" in str(load(tmp_path / ".env").problems[0])


def test_a_file_in_another_encoding_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff")

    assert "not UTF-8" in str(load(tmp_path / ".env").problems[0])


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=" + "x" * 1_000_001)

    loaded = load(tmp_path / ".env")
    assert not loaded.values
    assert "too large" in loaded.problems[0].message


@given(st.dictionaries(st.from_regex(r"V[0-9]{1,4}", fullmatch=True), st.text(max_size=40), max_size=5))
def test_what_is_written_in_double_quotes_comes_back(values: dict[str, str]) -> None:
    allowed = {name: value.replace("\r", "") for name, value in values.items()}
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in allowed.items()}
    text = "\n".join(f'{name}="{value}"' for name, value in escaped.items())

    assert read(text).values == allowed


@given(st.text(alphabet="AB=\"'\\ #\n", max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    dotenv = read(text)

    assert all(problem.span.line <= text.count("\n") + 1 for problem in dotenv.problems)
