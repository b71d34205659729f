"""A run as one self-contained HTML page: its tree, every call's context with reasons, tokens, cost, images."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from workbench.analysis.prediction import CallInput
from workbench.analysis.ways import ways_on
from workbench.context.assembly import Action, Entry, Grade
from workbench.context.message import Image, Message
from workbench.context.place import Place
from workbench.context.reasons import explain, origin, turns_before
from workbench.dollars import money, recorded_answers, recorded_words, without_output
from workbench.durations import took_with_pauses
from workbench.engine.contracts import Images
from workbench.engine.definition import Definition
from workbench.engine.journal.candidate_rounds import CandidateRounds, candidate_name
from workbench.engine.journal.costs import CostSum
from workbench.engine.journal.figures import Figures
from workbench.engine.journal.parts import CallState, ToolState, VisitState
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean
from workbench.language.graph import Graph

MAX_TEXT = 100_000
"""Characters of one message; the store has the rest."""
SAME = 12
"""More entries in a row than these that are as in the call before are one line: a long run stays readable."""

COLOURS = """
:root { color-scheme: light dark; --ground: #ffffff; --text: #1b1f24; --line: #88888844; --raised: #f2f3f5; }
:root { --dim: #5f6670; --warn: #8a4f00; --good: #116b32; --bad: #b01f1f; --link: #0b57c2; }
@media (prefers-color-scheme: dark) {
:root { --ground: #10141b; --text: #e3e7ee; --raised: #1b212b; }
:root { --dim: #9aa4b2; --warn: #e5a550; --good: #62c681; --bad: #f28b82; --link: #8ab4f8; }
}
body { background: var(--ground); color: var(--text); }
@media (max-width: 700px) { body { margin: 1rem auto; padding: 0 .6rem; } }
"""
"""The colours of every page, by the scheme of the browser, and its margins."""
STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1300px; padding: 0 1rem; }
h1 { font-size: 1.35rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; } a { color: inherit; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--dim); font-weight: 500; } td.n, th.n { text-align: right; white-space: nowrap; width: 1%; }
tr.masked, tr.truncated, tr.summarized { color: var(--warn); } tr.dropped, .dim { color: var(--dim); }
.success { color: var(--good); } .failed, .blocked, .bad { color: var(--bad); }
.stopped, .interrupted { color: var(--warn); } .said { font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; max-height: 28rem; overflow: auto;
      background: var(--raised); padding: .5rem .7rem; }
p, td:nth-child(n+3), .tree { overflow-wrap: anywhere; }
@media (max-width: 700px) { th, td { padding: .2rem .25rem; } }
summary { cursor: pointer; } img { max-width: 100%; max-height: 28rem; display: block; margin: .3rem 0; }
:target { outline: 2px solid var(--link); outline-offset: .25rem; scroll-margin-top: 1rem; }
ol.tree, ol.tree ol { list-style: none; padding-left: 1.2rem; } ol.tree { padding-left: 0; }
ol.tree li { display: flow-root; } .took { float: right; color: var(--dim); font-variant-numeric: tabular-nums; }
"""
UNFOLD_STYLE = """
.unfold { display: none; }
@supports selector(details::details-content) {
.unfold { display: block; color: var(--dim); cursor: pointer; }
body:has(#unfold:checked) details::details-content { content-visibility: visible; block-size: auto; }
}
"""
"""A page runs no script, so a tick opens its folded parts; browsers that cannot do that do not show it."""
UNFOLD = '<label class="unfold"><input type="checkbox" id="unfold"> unfold all</label>'
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def run_html(state: RunState, images: Images) -> str:
    """The whole page. Text of models, tools and files is escaped and stripped of control characters; the page may load
    nothing and run nothing.
    """
    return "\n".join(_Page(state, images).lines()) + "\n"


class _Page:
    def __init__(self, state: RunState, images: Images) -> None:
        self.state = state
        self.images = images
        self._edited = state.edited_places
        self.numbers = {id(call): number for number, call in enumerate(state.calls, 1)}
        self._before: dict[str, CallState] = {}
        """The last call that was shown, by branch."""
        self._graph: Graph | None = None
        """Of the text that the run began with, once it is needed."""
        self._pictures: set[str] = set()
        """Digests of the images that stand on the page: each does once."""

    def lines(self) -> Iterator[str]:
        state = self.state
        title = text(state.session_id or state.run_id)
        yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        yield f"<title>{title}</title><style>{STYLE}{UNFOLD_STYLE}{COLOURS}</style></head><body>"
        status = "waiting" if state.status == "running" and state.questions else state.status
        yield f'<h1>{title} <span class="{text(status)}">{text(status)}</span></h1>'
        yield f'<p class="dim">{text(" · ".join(self._facts()))}</p>'
        if state.reason:
            yield f'<p class="{text(state.status)}">{text(state.reason)}</p>'
        for asked in state.questions if status == "waiting" else ():
            words = f"{asked.place.phase} waits for the answer of a person: {asked.data.get('question', '')}"
            yield f'<p class="waiting">{text(words)}</p>'
        yield UNFOLD
        yield from self._said(Place())
        yield from self._tree()
        yield from self._decided(Place())
        if state.input:
            yield f"<h2>Input</h2>{pre(_json(dict(state.input)))}"
        if state.output:
            yield f"<h2>Output</h2>{pre(state.output)}"
        for visit in state.visits:
            yield from self._visit(visit)
        for call in (call for call in state.calls if state.visit_of(call.place) is None):
            yield from self._call(call)
        for event in state.warnings:
            yield f'<p class="stopped">{text(str(event.data.get("message", "")))}</p>'
        if state.cascade_text:
            yield f"<h2>{text(state.cascade_file or 'The cascade')}</h2>{pre(state.cascade_text)}"
        yield "</body></html>"

    def _facts(self) -> Iterator[str]:
        state = self.state
        yield state.cascade_id or "no cascade"
        yield f"{state.started[:19].replace('T', ' ')} UTC"
        if (took := state.seconds) is not None:
            yield took_with_pauses(took, state.paused)
        sums = state.figures()
        inside = f" with {_counted(sums.runs, 'run')} inside" if sums.runs else ""
        yield f"{_counted(sums.calls, 'call')}{inside}"
        yield _tokens_and_cost(sums)

    def _said(self, place: Place) -> Iterator[str]:
        """Yields the labels that people gave to the run, or to a call."""
        labels = self.state.annotations.at(place)
        facts = [f"#{tag}" for tag in labels.tags]
        facts += [f"score {labels.score:g}"] if labels.score is not None else []
        facts += [f"thumb {labels.thumb}"] if labels.thumb else []
        if facts:
            yield f'<p class="said">{text(" · ".join(facts))}</p>'
        yield from map(pre, labels.notes)

    def _tree(self) -> Iterator[str]:
        yield '<ol class="tree">'
        winners = {
            entrant.branch
            for contest in self.state.contests
            if contest.is_decided and contest.winner is not None and (entrant := contest.entrant(contest.winner))
        }
        for number, visit in enumerate(self.state.visits):
            where = f" {text(visit.branch)}" if visit.branch else ""
            again = f" · visit {visit.visit}" if visit.visit > 1 else ""
            won = f" ★ {visit.branch.rpartition('/')[2]} won" if visit.branch in winners else ""
            status = self._status(visit)
            mark = f'<span class="{text(status)}">{text(status + won)}</span>'
            took = _took(self.state.figures_of([visit]), visit.seconds)
            yield f'<li><a href="#v{number}">{text(visit.phase)}</a>{where}{again} {mark}{took}<ol>'
            judged = visit.judged if visit.failed_checks else {}
            yield from (f"<li>{_check(*check, brief=True)}" for check in judged.get(0, ()))
            for made, call in enumerate(visit.calls, 1):
                found = "".join(f" {_check(*check, brief=True)}" for check in judged.get(made, ()))
                yield self._line_of(call) + found
            yield "</ol></li>"
        beside = self.state.calls_beside
        if beside or self.state.embedded:
            yield f"<li>beside the phases{_took(self.state.beside_the_phases(beside), None)}<ol>"
            yield from map(self._line_of, beside)
            yield "</ol></li>"
        yield "</ol>"

    def _line_of(self, call: CallState) -> str:
        """A call in the tree: its name as a link, its tools, and what it took."""
        link = f'<a href="#c{self.numbers[id(call)]}">{text(call.name)}</a>'
        edited = ["edited by hand"] if call.place in self._edited else []
        words = " · ".join((*filter(None, [", ".join(tool.tool for tool in call.tools)]), *edited))
        took = _took(self.state.figures_of_calls([call]), None if call.recorded else call.duration_s)
        return f'<li>{link} <span class="dim">{text(words)}</span>{took}'

    def _decided(self, place: Place) -> Iterator[str]:
        """Which candidate won each round of a visit, or of the whole cascade, by whom and why."""
        for contest in self.state.contests:
            if contest.place.visit_key == place.visit_key:
                yield from (f'<p class="said">{text(words)}</p>' for words in _verdicts(contest))

    def _status(self, visit: VisitState) -> str:
        waits = visit.status == "running" and self.state.asked_in((visit.branch, visit.phase, visit.visit))
        return "waiting" if waits else visit.status

    def _visit(self, visit: VisitState) -> Iterator[str]:
        number = self.state.visits.index(visit)
        status = f'<span class="{text(self._status(visit))}">{text(self._status(visit))}</span>'
        again = f"visit {visit.visit}" if visit.visit > 1 else ""
        name = " · ".join(filter(None, (visit.phase, again, visit.branch)))
        yield f'<h2 id="v{number}">{text(name)} {status}</h2>'
        if visit.reason:
            yield f"<p>{text(visit.reason)}</p>"
        yield from self._ways(visit)
        yield from self._decided(Place(visit.branch, visit.phase, visit.visit))
        for tool in visit.tool_tries:
            yield from self._tool(tool)
        judged = visit.judged
        yield from (f"<p>{_check(*check)}</p>" for check in judged.get(0, ()))
        for made, call in enumerate(visit.calls, 1):
            yield from self._call(call)
            yield from (f"<p>{_check(*check)}</p>" for check in judged.get(made, ()))

    def _ways(self, visit: VisitState) -> Iterator[str]:
        """Yields the edge that was taken after a node of a pipeline, and each edge out of it with the reason."""
        if not visit.route_rule or not visit.outcome:
            return
        if self._graph is None:
            self._graph = Definition.of(self.state.cascade_text, self.state.cascade_file).graph
        found = ways_on(self._graph, visit)
        yield f"<p>{text(f'→ {found.to}: {found.why}' if found.to else found.why)}</p>"
        if found.ways:
            yield "<ul>"
            for way in found.ways:
                condition = f" if {way.condition}" if way.condition else ""
                values = ", ".join(f"{key} is '{value}'" for key, value in way.values.items())
                words = f"→ {way.to}{condition}{f' ({values})' if values else ''}: {way.why}, line {way.line}"
                yield f'<li class="{"" if way.taken else "dim"}">{text(words)}</li>'
            yield "</ul>"

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: CallState) -> Iterator[str]:
        again = f"visit {call.place.visit}" if call.place.visit > 1 else ""
        name = " · ".join(filter(None, (call.place.phase, again, call.name, call.place.branch)))
        took = CallInput.of(call)
        facts = ["edited by hand"] if call.place in self._edited else []
        facts += [call.model, call.strategy, f"{_about(took.grade)}{took.sent:,} of {took.full:,} tokens sent"]
        if took.cached is not None:
            facts.append(f"{_about(took.cached_grade) if took.cached else ''}{took.cached:,} cached")
        if call.usage.output is not None:
            facts.append(f"{call.usage.output:,} out")
        spent = self.state.figures_of_calls([call]).spent
        facts += [_cost(spent), recorded_words(spent.recorded, exact=spent.recorded_exact)]
        yield f'<h3 id="c{self.numbers[id(call)]}"><a id="{text(str(call.place))}">{text(name)}</a></h3>'
        yield f'<p class="dim">{text(" · ".join(fact for fact in facts if fact))}</p>'
        yield from self._said(call.place)
        yield from self._context(call)
        for failure in call.failures:
            error = failure.get("error") or {}
            yield f'<p class="bad">{text(str(error.get("kind", "failed")))}: {text(str(error.get("message", "")))}</p>'
        if call.answer is not None:
            yield f"<details open><summary>Answer</summary>{self._message(call.answer)}</details>"
        for tool in call.tools:
            yield from self._tool(tool)

    def _context(self, call: CallState) -> Iterator[str]:
        before = None if call.beside else self._before.get(call.place.branch)
        earlier, same = turns_before(call.entries, call.place), 0
        yield '<table><tr><th class="n">#<th>role<th>from<th>why<th class="n">full<th class="n">sent</tr>'
        for index, entry in enumerate(call.entries):
            if before is not None and self._unchanged(call, before, index):
                same += 1
                continue
            yield from self._folded(call, before, index - same, index, earlier)
            same = 0
            yield from self._entry(call, index, entry, earlier)
        yield from self._folded(call, before, len(call.entries) - same, len(call.entries), earlier)
        yield "</table>"
        if not call.beside:
            self._before[call.place.branch] = call

    def _unchanged(self, call: CallState, before: CallState, index: int) -> bool:
        if index >= len(before.entries):
            return False
        now, was = call.entries[index], before.entries[index]
        return now is was or (now.item == was.item and now.sent == was.sent and now.action is was.action)

    def _folded(self, call: CallState, before: CallState | None, first: int, last: int, earlier: int) -> Iterator[str]:
        """Entries that are as in the call before: each of a few, one line for many."""
        if before is None or last - first <= SAME:
            for index in range(first, last):
                yield from self._entry(call, index, call.entries[index], earlier)
            return
        sent = sum(entry.tokens_sent for entry in call.entries[first:last])
        link = f'<a href="#c{self.numbers[id(before)]}">the call before</a>'
        tokens = f'<td class="n">{_about(call.grade)}{sent:,}'
        yield f'<tr class="dim"><td class="n">{first + 1}–{last}<td colspan="4">as in {link}{tokens}</tr>'

    def _entry(self, call: CallState, index: int, entry: Entry, earlier: int) -> Iterator[str]:
        action = "" if entry.action is Action.KEPT else str(entry.action)
        why = explain(entry, call.place, earlier) + (f" (line {entry.rule.line})" if entry.rule.line else "")
        broken = [problem.message for problem in call.problems if problem.entry == index]
        sign = _about(call.grade)
        sent = "–" if entry.sent is None else f"{sign}{entry.tokens_sent:,}"
        yield (
            f'<tr class="{text(action)}"><td class="n">{index + 1}<td>{text(entry.item.message.role)}'
            f"<td>{self._body(origin(entry), entry)}<td>{text(why)}"
            + "".join(f'<br><span class="bad">{text(one)}</span>' for one in broken)
            + f'<td class="n">{sign}{entry.tokens_full:,}<td class="n">{sent}</tr>'
        )

    def _body(self, label: str, entry: Entry) -> str:
        """The message, folded; if less was sent, that text comes first."""
        parts = self._message(entry.item.message)
        if entry.sent is not None and entry.sent != entry.item.message:
            parts = f"as sent:{self._message(entry.sent)}in full:{parts}"
        return f"<details><summary>{text(label)}</summary>{parts}</details>"

    def _tool(self, tool: ToolState) -> Iterator[str]:
        kind = "bad" if tool.status == "failed" else "dim"
        yield f'<details><summary>{text(tool.tool)} <span class="{kind}">{text(tool.status)}</span></summary>'
        yield pre(tool.arguments) + pre(tool.text) + "".join(self._image(image) for image in tool.pictures)
        if tool.whole is not None:
            yield f'<p class="dim">Cut for the model; the store has all {tool.whole.chars:,} characters.</p>'
        yield "</details>"

    def _message(self, message: Message) -> str:
        calls = "".join(pre(f"{call.name} {call.arguments}") for call in message.tool_calls)
        return (pre(message.text) if message.text else "") + calls + "".join(map(self._image, message.images))

    def _image(self, image: Image) -> str:
        label = text(f"{image.media_type} {image.width}×{image.height} {image.digest[:8]}")
        name = f"i{text(image.digest)}"
        if image.digest in self._pictures:
            return f'<p><a href="#{name}">[{label}]</a></p>'
        try:
            data = base64.b64encode(self.images[image.digest]).decode()
        except (KeyError, OSError, ValueError, RuntimeError):
            return f'<p class="dim">[{label}: its bytes are gone]</p>'
        self._pictures.add(image.digest)
        return f'<img id="{name}" alt="{label}" title="{label}" src="data:{text(image.media_type)};base64,{data}">'


def _check(name: str, check: Mapping[str, Any], *, brief: bool = False) -> str:
    """A check in one line; ``brief``: without its reason."""
    passed = check.get("valid", True)
    words = f"{name} {'passed' if passed else 'failed'}"
    words += "" if brief else f": {check.get('reason') or ''}".rstrip(": ")
    return f'<span class="{"dim" if passed else "bad"}">{text(words)}</span>'


def _verdicts(contest: CandidateRounds) -> Iterator[str]:
    """``★ s1 wins: "concrete" (a person)``, for each round that has ended."""
    for of in contest.rounds:
        if of.winner is None:
            continue
        data = of.evaluation or {}
        branch = next((entrant.branch for entrant in of.entrants if entrant.index == of.winner), "")
        name = branch.rpartition("/")[2] or candidate_name(of.winner)
        reason, by = str(data.get("reason") or ""), str(data.get("decided_by") or "")
        step = f"reforge step {of.step}: " if of.step else ""
        outcome = "wins" if of.decided else "stands, undecided"
        yield f"★ {step}{name} {outcome}{f': “{reason}”' if reason else ''}{f' ({by})' if by else ''}"


def _cost(spent: CostSum) -> str:
    """Returns the cost of answered calls, ``~`` where a part is predicted; empty without one."""
    if spent.total is None:
        return "cost unpriced" if spent.calls + spent.embedded else ""
    more = f", {spent.unknown:,} unpriced" if spent.unknown else ""
    return money(spent.total, exact=spent.exact) + without_output(spent.halves, spent.calls) + more


def _tokens_and_cost(sums: Figures) -> str:
    """``~515 tokens in, 46 out · $0.0002``, and what a recording answered besides."""
    spent = sums.spent
    tokens = f"{_about(sums.grade_in)}{sums.tokens_in:,} tokens in, {_known(sums.told_out)} out"
    kept = f"in {_about(sums.recorded_grade_in)}{sums.recorded_tokens_in:,}, out {_known(sums.recorded_told_out)}"
    recorded = recorded_answers(sums.recorded, kept, spent.recorded, exact=spent.recorded_exact)
    return " · ".join(filter(None, (tokens, _cost(spent), recorded)))


def _known(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _took(sums: Figures, seconds: float | None) -> str:
    """What a phase or call took, at the right end of its line in the tree; empty without an answer."""
    facts = [_tokens_and_cost(sums)] if sums.answers else []
    facts += [took_with_pauses(seconds, 0.0)] if facts and seconds is not None else []
    return f' <span class="took">{text(" · ".join(facts))}</span>' if facts else ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _about(grade: Grade) -> str:
    return "" if grade is Grade.EXACT else "~"


def text(value: str) -> str:
    """Text for a page, in an attribute too."""
    return escape(clean(value), quote=True)


def pre(value: str) -> str:
    """A block of text; a very long one is cut and says so."""
    if len(value) <= MAX_TEXT:
        return f"<pre>{text(value)}</pre>"
    return f'<pre>{text(value[:MAX_TEXT])}</pre><p class="dim">… {len(value) - MAX_TEXT:,} more characters</p>'


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
