"""Cells: exact widths whatever the text, numbers as people read them, wrapped text that loses nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from workbench.dollars import money, told_apart
from workbench.views import syntax
from workbench.views.cells import Align, Row, crop, dropping, fit, fit_ends, flat, justify, uncut_parts, width_of
from workbench.views.numbers import clock, count, plural, seconds
from workbench.views.text import CHUNK, HEAD_AND_TAIL, TextLine, TextRows, text_lines

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
WIDTH = st.integers(1, 60)


@given(ANY, WIDTH, st.sampled_from(["left", "right"]))
def test_a_cell_has_exactly_its_width(text: str, width: int, align: Align) -> None:
    assert cell_len(fit(text, width, align)) == width


@given(ANY, WIDTH)
def test_a_name_with_both_ends_has_exactly_its_width(text: str, width: int) -> None:
    assert cell_len(fit_ends(text, width)) == width


def test_names_that_differ_at_their_ends_still_differ_when_they_are_cut() -> None:
    assert fit_ends("call-1dadb8.r318", 15) == "call-1d…b8.r318"
    assert fit_ends("call-1dadb8.r318", 16) == "call-1dadb8.r318"


@given(ANY)
def test_a_flat_text_is_one_line_without_controls(text: str) -> None:
    made = flat(text)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in made)
    assert len(made.splitlines()) <= 1


@given(st.lists(ANY.map(flat), max_size=5), WIDTH)
def test_cropped_spans_never_exceed_their_width(texts: list[str], width: int) -> None:
    assert width_of(crop([(text, "plain") for text in texts], width)) <= width


@given(ANY.map(flat), ANY.map(flat), st.integers(2, 80))
def test_justified_spans_fill_their_width(left: str, right: str, width: int) -> None:
    assert width_of(justify([(left, "plain")], [(right, "plain")], width)) == width


def test_what_does_not_fit_is_cut_with_a_mark() -> None:
    assert fit("search_files", 8) == "search_…"
    assert Row(crop([("search_files", "plain")], 8)).text == "search_…"


def test_the_right_gives_way_before_the_left_is_cut() -> None:
    assert Row(justify([("left part", "plain")], [("right", "plain")], 12)).text == "left part   "
    assert Row(justify([("left part", "plain")], [("right", "plain")], 16)).text == "left part  right"


def test_a_sentence_without_room_beside_a_title_is_left_out_and_a_name_is_cut() -> None:
    for said, room, shown in (
        ("m shows it as written", 20, ""),
        ("m shows it as written", 21, "m shows it as written"),
        ("4 in full · 3 masked", 12, "4 in full"),
        ("selected+mask(after=3)", 12, "selected+ma…"),
    ):
        assert "".join(text for text, _ in uncut_parts([(said, "dim")], room)) == shown


def test_groups_that_do_not_fit_are_left_out_whole() -> None:
    groups = [[("sends 602", "plain")], [("cached 512", "plain")], [("fresh 90", "plain")]]
    assert Row(dropping(groups, 24)).text == "sends 602   cached 512"


def test_numbers_read_as_the_visual_language_says() -> None:
    assert [count(1812), count(1812, "calibrated"), count(1812, "estimate"), count(None)] == [
        "1,812",
        "≈1,812",
        "~1,812",
        "–",
    ]
    assert [money(0.00411), money(0.00411, exact=True), money(0.00001), money(None)] == [
        "~$0.0041",
        "$0.0041",
        "~$0.000010",
        "unpriced",
    ]
    assert [money(value) for value in (0.000029, 0.00003, 0.00099999, 0.001)] == [
        "~$0.000029",
        "~$0.000030",
        "~$0.0010",
        "~$0.0010",
    ]
    assert [told_apart(*costs) for costs in ((0.000119, 0.000121), (0.0052, 0.0061), (0.2, 0.2))] == [
        ("~$0.000119", "~$0.000121"),
        ("~$0.0052", "~$0.0061"),
        ("~$0.2000", "~$0.2000"),
    ]
    assert [seconds(x) for x in (1.94, 0.038, 0.0, 59.9, 119.0, None)] == [
        "1.9s",
        "38 ms",
        "<1 ms",
        "59.9s",
        "1m 59s",
        "–",
    ]
    assert [plural(1, "call"), plural(2, "call"), plural(2, "entry")] == ["1 call", "2 calls", "2 entries"]


def test_a_time_is_shown_as_time_of_day_and_no_time_as_nothing() -> None:
    assert clock("2026-11-02T14:02:31.204567Z") == "14:02:31.204"
    assert clock("yesterday") == ""


@given(st.text(alphabet="ab cdé漢\u0301 ", max_size=300), st.integers(12, 60))
def test_wrapping_loses_only_the_spaces_at_its_breaks(text: str, width: int) -> None:
    rows = TextRows([TextLine(text)])
    rows.lay_out(width)
    parts = [rows.row(i, width).text for i in range(len(rows))]
    assert all(cell_len(part) <= width for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.text(alphabet="abc 漢", max_size=80), max_size=20), st.integers(12, 60), st.integers(12, 60))
def test_a_document_laid_out_again_is_the_same_as_a_new_one(lines: list[str], first: int, second: int) -> None:
    again = TextRows([TextLine(line) for line in lines])
    again.lay_out(first)
    again.lay_out(second)
    fresh = TextRows([TextLine(line) for line in lines])
    fresh.lay_out(second)
    assert [again.row(i, second) for i in range(len(again))] == [fresh.row(i, second) for i in range(len(fresh))]


def test_a_huge_text_shows_its_head_and_tail_and_says_what_is_left_out() -> None:
    text = "\n".join(f"line {number}" for number in range(40_000))
    lines = text_lines(text)
    shown = "\n".join(line.text for line in lines)
    assert len(shown) < 2 * HEAD_AND_TAIL + 200
    assert lines[0].text == "line 0"
    assert lines[-1].text == "line 39999"
    assert f"{len(text) - 2 * HEAD_AND_TAIL:,} characters left out here" in shown
    assert len(text_lines(text, whole=True)) == 40_000


def test_a_megabyte_in_one_line_is_broken_before_it_is_measured() -> None:
    rows = TextRows(text_lines("x" * 1_000_000, whole=True))
    rows.lay_out(80)
    assert all(len(line.text) <= CHUNK for line in rows.lines)
    assert "".join(rows.row(i, 80).text.strip() for i in range(len(rows))) == "x" * 1_000_000


def test_finding_goes_on_after_the_match_and_round_the_end() -> None:
    rows = TextRows(text_lines("alpha\nbeta\nalpha again\ngamma"))
    rows.lay_out(40)
    assert rows.find("ALPHA", 0) == 0
    assert rows.find("alpha", 1) == 2
    assert rows.find("alpha", 3) == 0
    assert rows.find("delta", 0) is None


@given(st.text(alphabet="ab: -#'\"{}[]%|0123 ", max_size=80))
def test_colouring_changes_no_character(line: str) -> None:
    assert "".join(text for text, _ in syntax.yaml(line)) == line
    assert "".join(text for text, _ in syntax.json(line)) == line


def test_yaml_keys_templates_and_comments_are_told_apart() -> None:
    tokens = dict(syntax.yaml('  - name: "{{ input.x }}"  # why'))
    assert tokens["  - name:"] == "code-key"
    assert tokens["# why"] == "code-comment"
    assert ("{{ input.x }}", "code-template") in syntax.yaml("      say {{ input.x }} now")


def test_numbers_inside_a_text_that_was_cut_have_its_colour() -> None:
    """They had that of numbers: a cut text has no quotation mark at its end."""
    spans = syntax.json('  ▸ { "role": "user", "content": "killed at 09:19, after 24… }, 3')
    assert ('"killed at 09:19, after 24…', "code-string") in spans
    assert ("3", "code-number") in spans
    whole = syntax.json('"a … b": "c … 5", 6')
    assert [token for text, token in whole if text.strip(", ")] == ["code-key", "code-string", "code-number"]
