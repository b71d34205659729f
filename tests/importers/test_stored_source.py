"""What is found in texts of many forms, whole, cut and damaged: values with their places, or why they are refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stored import check_stored
from workbench.importers import values
from workbench.importers.conversation import Unreadable
from workbench.importers.reading import Archive, is_by_line, read_file, read_lines, read_parts
from workbench.importers.source import NotJson, Source, documents, first_lines, items_of, text_of

STORED = Path(__file__).parent / "stored"


def told(found: Iterator[Any]) -> list[Any]:
    """What comes, then what it ends with."""
    lines: list[Any] = []
    try:
        lines.extend(found)
    except (Unreadable, NotJson) as fault:
        cut = f" cut off: {fault.is_cut_off}" if isinstance(fault, NotJson) else ""
        lines.append(f"{type(fault).__name__}: {fault}{cut}")
    return lines


LISTS = {
    "empty": "[]",
    "blank": " [ \n ] \n",
    "numbers": "[1, 22,333 , 4.5e1,-6, 7E-2, 8.25]",
    "texts": '["a]", "b\\"", "\\u00e4", "日本"]',
    "values": '[{"a": [1, {"b": 2}]}, [[], {}], null, true, false]',
    "commas": "[1,,2,]",
    "a mark of the order of bytes": "\ufeff[1]",
    "no end": "[1, 2",
    "no end in a text": '[1, "two',
    "no end in a value": '[{"a": 1}, {"b": ',
    "a wrong item": "[1, two, 3]",
    "something behind": "[1] 2",
    "blanks behind": "[1] \n\t",
    "NaN": "[NaN, Infinity, 1e999]",
    "an item as long as may be": json.dumps(["x" * 28, 1]),
    "bytes that are no text": "[1, \udcff]",
}


def test_items_of_a_list_are_found_wherever_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same for each length of what is read first and of what is read then."""
    monkeypatch.setattr("workbench.importers.source._NEAR", 12)
    found: dict[str, set[str]] = {name: set() for name in LISTS}
    longer = json.dumps([1, "x" * 31]).encode()
    for piece in (5, 7, 4096):
        monkeypatch.setattr("workbench.importers.source._PIECE", piece)
        for name, text in LISTS.items():
            data = text.encode("utf-8", "surrogateescape")
            begins = data.index(b"[") + 1
            for at in (begins, begins + 1, begins + 9, len(data)):
                lines = told(items_of(data[:at], io.BytesIO(data[at:]), 32))
                found[name].add(json.dumps(lines, ensure_ascii=False))
        assert told(items_of(longer[:1], io.BytesIO(longer[1:]), 33)) == [(1, 1), ("x" * 31, 33)]
        refused = told(items_of(longer[:1], io.BytesIO(longer[1:]), 32))
        assert refused == [(1, 1), "Unreadable: looks like a list, but item [1] is larger than 0 MB"]
    lists = {name: sorted(each) for name, each in found.items()}
    check_stored(STORED / "source-items.json", json.dumps(lists, indent=1, ensure_ascii=False) + "\n")


TEXTS: dict[str, str | bytes] = {
    "nothing": "",
    "blank lines": " \n\t\r\n\ufeff\n",
    "one object": '{"a": 1}',
    "one object in lines": '{\n "a": 1,\n "b": [2]\n}\n',
    "one number": "12",
    "lines": '{"a": 1}\n\n{"b": 2}\n[3]\n',
    "lines with commas": '{"a": 1},\n{"b": 2},\n',
    "a last line that is cut": '{"a": 1}\n{"b": 2}\n{"c": \n',
    "a line that is cut": '{"a": 1}\n{"b": \n{"c": 3}\n',
    "a second line of a number": '{"a": 1}\n2\n',
    "a sequence": '\x1e{"a": 1}\n\x1e{"b": 2}\n',
    "behind one another": '{"a": 1}{"b": 2} , [3]\n4 "five"',
    "behind one another, cut": '{"a": 1}{"b": 2',
    "a comma too many": '{"a": [1, 2,],\n "b": ",]",}',
    "a list of lines": "[1]\n[2]\n",
    "a short list": '[{"a": 1}, {"b": 2}]',
    "a long list": json.dumps([{"a": number} for number in range(9)]),
    "a long list of lines": "".join(f"{json.dumps([number] * 9)}\n" for number in range(3)),
    "a long list that is cut": json.dumps([{"a": number} for number in range(9)])[:-5],
    "plain words": "Hello, there.",
    "words in a brace": "{Hello, there}",
    "an open text": '{"a": "b',
    "UTF-16": '{"a": "ä"}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a": "ä"}'.encode("utf-16-le"),
    "UTF-32": '{"a": "ä"}\n{"b": 1}'.encode("utf-32"),
    "half of a UTF-16": '{"a": "ä"}'.encode("utf-16")[:-1],
    "bytes": b'{"a": "\xff"}',
    "bytes in a second line": b'{"a": 1}\n{"b": "\xff"}\n',
}


def test_the_values_of_texts_are_the_stored_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.importers.source.WHOLE", 60)
    found = {}
    for name, text in TEXTS.items():
        data = text if isinstance(text, bytes) else text.encode()
        lines = told(
            [one.body, one.where, *map(str, one.remarks), one.size, *["listed"] * one.listed]
            for one in documents(Source(io.BytesIO(data)))
        )
        found[name] = [json.dumps(line, ensure_ascii=False) for line in lines]
        later = told(one.where for one in documents(Source(io.BytesIO(data)), 7))
        found[name].append(f"from line 7: {' '.join(later)}")
        first = first_lines(Source(io.BytesIO(data))) if "bytes" not in name else []
        found[name].append(f"first lines: {[(one.body, one.where) for one in first]}")
    check_stored(STORED / "source-texts.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def test_values_of_too_many_parts_and_characters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.importers.source.MAX_PARTS", 10)
    assert text_of(b"[" + b"1," * 9 + b"]") == f"[{'1,' * 9}]"
    with pytest.raises(Unreadable, match=r"holds more than 10 values in one, which takes more memory"):
        text_of(b"[" + b"1," * 10 + b"]")
    assert text_of(b"[" + b"1" * 30 + b"]") == f"[{'1' * 30}]"
    monkeypatch.setattr("workbench.importers.source.MAX_VALUE", 20)
    assert text_of(b"x" * 20) == "x" * 20
    with pytest.raises(Unreadable, match=r"is one value of more than \d+ MB.*\(write one conversation a line\)"):
        text_of(b"x" * 21)
    monkeypatch.setattr("workbench.importers.source.MAX_STREAM", 30)
    lines = told(one.where for one in documents(Source(io.BytesIO(b"[1, 2, 3]\n" * 4))))
    assert lines == ["line 1", "Unreadable: is larger than 0 GB"]


SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
RUN = json.dumps({"messages": SAID})


def packed(**members: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name.replace("_DOT_", ".").replace("_IN_", "/"))  # Without the time of now.
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def test_archives_and_files_are_read_or_refused_in_the_stored_words(monkeypatch: pytest.MonkeyPatch) -> None:
    one, none = packed(a_DOT_json=RUN), packed(a_DOT_txt="words")
    sample = json.dumps({"id": 1, "messages": SAID})
    files: dict[str, bytes] = {
        "a run": one,
        "two runs and words": packed(b_DOT_json=RUN, a_DOT_json=RUN, c_DOT_txt="words", d_DOT_txt="more words"),
        "words": none,
        "nothing": packed(),
        "hidden files": packed(__MACOSX_IN_a_DOT_json=RUN, _DOT_b=RUN),
        "an archive in an archive": packed(a_DOT_zip=one),
        "archives in one another": packed(a_DOT_zip=packed(b_DOT_zip=packed(c_DOT_zip=packed(d_DOT_zip=one)))),
        "cut": one[:-30],
        "a wrong byte": one[:45] + bytes([one[45] ^ 255]) + one[46:],
        "a log of no samples": packed(header_DOT_json='{"eval": {"task": "t"}, "version": 2}'),
        "a log of a list": packed(header_DOT_json="[]"),
        "a log of a text": packed(header_DOT_json="{", samples_IN_1_epoch_1_DOT_json=sample),
        "lines of a run": f"{RUN}\n{RUN}\n".encode(),
        "lines of a run and words": f'{RUN}\n{{"a": 1}}\n{{"b": 2}}\n{RUN}\n'.encode(),
        "lines of words": b'{"a": 1}\n{"b": 2}\n',
        "a run without an answer": json.dumps({"messages": SAID[:1]}).encode(),
        "Python": f"run = {SAID}".encode(),
        "a run of too many calls": json.dumps({"messages": SAID * 4}).encode(),
        "nested too deep": b"[" * 5000,
        "SQLite": b"SQLite format 3\0 checkpoint_ns",
        "another SQLite": b"SQLite format 3\0",
        "a sequence of runs": f"\x1e{RUN}\n\x1e{RUN}\n\x1e{RUN}\n".encode(),
        "no table": b"PAR1",
    }
    monkeypatch.setattr("workbench.importers.reading.MOST_CALLS", 3)
    found: dict[str, Any] = {}
    for name, data in files.items():
        found[name] = told(
            f"{one.format.name}: {one.evidence}; {' '.join(map(str, one.conversation.remarks))}"
            for one in read_file(data)
        )
        if data.startswith((b"PK", b"[[", b"SQL", b"PAR")):
            continue
        found[name].append(f"by line {is_by_line(io.BytesIO(data))}")
        found[name].append(told(one.evidence for one in read_lines(io.BytesIO(data), "", 5)))
    check_stored(STORED / "source-files.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    with Archive(packed(b_IN_c="1", a="2")) as archive:
        assert archive.names() == ["a", "b/c"]
    monkeypatch.setattr("workbench.importers.reading.MAX_VALUE", len(sample))
    log = {"header_DOT_json": "{}", "samples_IN_1_epoch_1_DOT_json": sample}
    with Archive(packed(**log)) as archive:
        assert [one.body["samples"][0]["id"] for one in archive.inspect_logs()] == [1]
    monkeypatch.setattr("workbench.importers.reading.MAX_VALUE", len(sample) - 1)
    with pytest.raises(Unreadable, match=r"samples/1_epoch_1.json unpacks to more than 0 MB"):
        list(Archive(packed(**log)).inspect_logs())
    monkeypatch.setattr("workbench.importers.reading.MAX_STREAM", len(sample) - 1)
    with pytest.raises(Unreadable, match=r"unpacks to more than 0 MB"):
        list(Archive(packed(**log)).inspect_logs())


def test_messages_that_are_a_file_each_are_one_conversation() -> None:
    files = [io.BytesIO(json.dumps(one).encode()) for one in SAID]
    whole = read_parts(files)
    assert whole is not None
    assert whole.conversation.threads[0].calls == 1
    for other in (b"words", b"[]", RUN.encode(), b'{"a": 1}\n{"b": 2}'):
        assert read_parts([io.BytesIO(json.dumps(SAID[0]).encode()), io.BytesIO(other)]) is None
    assert read_parts([io.BytesIO(b'{"a": 1}')]) is None


MOMENTS: tuple[Any, ...] = (
    *(
        0,
        -1,
        1,
        1.5,
        "1",
        "12.5",
        1e11,
        1e11 + 1e3,
        1762000000,
        1762000000.25,
        1762000000123,
        1e16,
        1762000000123456789,
    ),
    *("2026-11-02T09:14:00Z", "2026-11-02T09:14:00+02:00", "2026-11-02", "2026-11-02 09:14:00.5", "soon", "", None),
    *(True, [], float("nan"), float("inf"), 1e300, "1762000000123"),
)
COUNTS: tuple[Any, ...] = (
    0,
    1,
    -1,
    1.0,
    1.5,
    True,
    "1",
    None,
    2**53 - 1,
    2**53,
    float("nan"),
    1e15,
    1e14,
    float(2**53),
    [],
    {},
)
ENCODED = ('{"a": 1}', '"{\\"a\\": 1}"', '"\\"{}\\""', " [1]", "[1", "1", "a", '"a"', None, [1], "NaN", "[NaN, 1e999]")


def test_values_of_any_type_are_read_as_the_stored_ones() -> None:
    lines = [f"moment {one!r}: {values.moment(one)!r}" for one in MOMENTS]
    lines += [f"count {one!r}: {values.count(one)!r}, number {values.number(one)!r}" for one in COUNTS]
    lines += [f"decoded {one!r}: {values.decoded(one)!r}" for one in ENCODED]
    for one in (None, "a", 1, True, ["ä"], {"a": None}):
        each = (values.mapping(one), values.array(one), values.string(one), values.as_text(one))
        lines.append(f"{one!r}: {' '.join(map(repr, each))}")
    a, b = "2026-11-02T09:14:00.000000Z", "2026-11-02T09:14:01.500000Z"
    lines += [f"{x} to {y}: {values.duration_between(x, y)}" for x in (a, b, "") for y in (a, b, "")]
    check_stored(STORED / "source-values.txt", "\n".join(lines) + "\n")
