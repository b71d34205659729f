"""``annotate``: what is said of runs and calls is found again by filters, by SQL, and in every export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Cli


@pytest.fixture
def ran(cli: Cli) -> Cli:
    """The command line over a workspace with two runs, ``s`` and ``t``."""
    assert cli("run", "greet.yaml", "--session", "s", "-q").code == 0
    assert cli("run", "greet.yaml", "--session", "t", "-q", "--input", '{"name": "Grace"}').code == 0
    return cli


def test_runs_and_calls_are_annotated_and_found(ran: Cli) -> None:
    done = ran("annotate", "s", "--tag", "good", "-t", "short", "--score", "4", "--up", "--plain")
    assert done.out.split() == ["s", "#good", "#short", "score", "4", "thumb", "up"]
    done = ran("annotate", "s@look:2", "--down", "--note", "asked for a file\nthat is not there", "--plain")
    assert done.out.splitlines()[1:] == ["s@look:2   thumb down", "  asked for a file", "  that is not there"]

    def names(*filters: str) -> list[str]:
        return [run["session_id"] for run in ran("runs", "--json", "--", *filters).json]

    for found in ("tag:good", "tag=short", "score>=4", "note:absent or note:'not there'", "thumb:down", "is:annotated"):
        assert names(found) == ["s"], found
    assert names("-tag:good") == ["t"]
    assert names("score>4") == []
    assert names("tag:goo*", "thumb:up,down") == ["s"]
    shown = ran("show", "s", "--plain").out
    assert "s   #good #short  score 4  thumb up" in shown
    assert "thumb down" in next(line for line in shown.splitlines() if line.startswith("  turn 2"))
    calls = ran("show", "s", "--json").json["annotations"]["calls"]
    assert calls == {
        "look/1/1/2/1": {"tags": [], "notes": ["asked for a file\nthat is not there"], "score": None, "thumb": "down"}
    }


def test_several_runs_are_annotated_at_once_and_without_options_they_are_shown(ran: Cli) -> None:
    assert ran("annotate", "s", "t", "--tag", "batch", "--json").json[1]["tags"] == ["batch"]
    assert ran("annotate", "t", "--untag", "batch").err.strip() == "t: no annotations"
    assert ran("annotate", "s", "--plain").out.split() == ["s", "#batch"]
    assert ran("annotate", "--json").json["session"] == "t"
    assert ran("annotate", "s", "--score", "2", "--no-thumb", "--json").json["score"] == 2
    assert ran("annotate", "s", "--score", "none", "--drop-note", "never", "--json").json["score"] is None


def test_what_cannot_be_annotated_is_said(ran: Cli) -> None:
    assert "phase 'looc' made no call in this run; look, answer did" in ran("annotate", "s@looc:1", "--up").err
    assert "look:9 never ran; look came to turn 3" in ran("annotate", "s@look:9", "--up").err
    assert "no run is named 'nobody'" in ran("annotate", "nobody", "--tag", "x").err
    assert "'a b' is not a tag" in ran("annotate", "s", "--tag", "a b").err
    ended = ran("annotate", "s", "--score", "much")
    assert (ended.code, "'much' is not a score: a number, such as 4 or 0.75" in ended.err) == (2, True)


def test_plain_words_search_input_output_names_and_notes_at_once(ran: Cli) -> None:
    ran("annotate", "t", "--note", "the quick one")

    def names(words: str) -> list[str]:
        return [run["session_id"] for run in ran("runs", "--json", "--", words).json]

    assert names("grace") == ["t"]
    assert names("hello") == ["t", "s"]
    assert names("quick") == ["t"]
    assert names("hello -quick") == ["s"]
    assert names("greet") == ["t", "s"]
    assert ran("runs", "quick").out.splitlines()[-1] == "t note: the quick one"
    long = "x" * 5000 + " needle"
    ran("run", "greet.yaml", "--session", "long", "-q", "--input", json.dumps({"name": long}))
    assert names("needle") == ["long"]
    assert names("-needle") == ["t", "s"]


def test_the_list_names_the_calls_that_a_filter_finds_by_their_annotations(ran: Cli) -> None:
    ran("annotate", "s@look:2", "--note", "ask Ben", "--tag", "odd", "--score", "2")
    ran("annotate", "s@look:3", "--note", "ask Ann")
    for found in ("ask Ben", "tag:odd", "note:Ben", "score<3"):
        assert ran("runs", found, "--plain").out.splitlines()[-1] == "s@look:2 #odd 2 ✎ ask Ben", found
        assert ran("runs", found, "--json").json[0]["found_calls"] == ["look/1/1/2/1"], found
    lines = ran("runs", "Ben Ann", "--plain").out.splitlines()
    assert lines[-2:] == ["s@look:2 note: ask Ben", "s@look:3 note: ask Ann"]


def test_every_export_says_what_was_said(ran: Cli, tmp_path: Path) -> None:
    ran("annotate", "s", "--tag", "good", "--score", "4")
    ran("annotate", "s@look:3", "--tag", "turned", "--note", "<b>why</b> so")
    messages = ran("export", "s", "--details").lines
    assert messages[0]["annotations"]["run"]["tags"] == ["good"]
    assert messages[0]["annotations"]["call"]["notes"] == ["<b>why</b> so"]
    assert "annotations" not in ran("export", "s").lines[0]
    spans = ran("export", "s", "--as", "otel").json["resourceSpans"][0]["scopeSpans"][0]["spans"]
    said = [
        {one["key"]: one["value"] for one in span["attributes"] if one["key"].startswith("workbench.t")}
        for span in spans
    ]
    tags = [list(one["workbench.tags"]["arrayValue"]["values"][0].values()) for one in said if "workbench.tags" in one]
    assert tags == [["good"], ["turned"]]
    page = ran("export", "s", "--as", "html").out
    assert "#good · score 4" in page
    assert "&lt;b&gt;why&lt;/b&gt; so" in page
    ran("export", "s", "--as", "checkpoint", "-o", "out")
    assert json.loads(Path("out/manifest.json").read_text())["annotations"]["score"] == 4
    assert ran("tree", "s", "--json").json["annotations"]["tags"] == ["good"]
    assert "annotations" not in ran("tree", "t", "--json").json


def test_an_imported_run_is_annotated_as_any_other(ran: Cli) -> None:
    Path("chat.json").write_text(
        json.dumps(
            {"title": "chat", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
        )
    )
    assert ran("import", "chat.json").code == 0
    name = next(run["session_id"] for run in ran("runs", "--json", "is:imported").json)
    assert ran("annotate", "chat", "--tag", "theirs").code == 0
    assert [run["session_id"] for run in ran("runs", "--json", "tag:theirs is:imported").json] == [name]


def test_a_secret_in_a_note_is_not_kept(ran: Cli) -> None:
    ran("annotate", "s", "--note", "the key was sk-abcdefghijklmnopqrstuvwxyz0123")
    (file,) = Path(".workbench/journal").glob("*/annotations.jsonl")
    assert b"sk-abcdef" not in file.read_bytes()
