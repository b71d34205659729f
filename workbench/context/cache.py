"""Predicts what a call will cost: the prefix that the provider can reuse, and the money."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from copy import copy
from itertools import repeat
from math import inf
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.assembly import Assembly, Entry, Grade
from workbench.context.marks import FIVE_MINUTES, LIVE_MARKS, PARAMETER, Mark, Marks, marks_of
from workbench.context.message import reasoning_told
from workbench.context.reasons import name_of
from workbench.context.remembered import forget_oldest, remember
from workbench.dollars import GRADE_SIGN


class CacheRule(Struct, frozen=True):
    """How a provider caches prompts."""

    provider: str
    minimum: int
    """Tokens below which the provider caches nothing."""
    step: int = 1
    """A cached prefix is a multiple of this many tokens; 1 means message boundaries."""
    lifetime: float = 300.0
    """Seconds a prefix stays without being read."""
    writes: bool = False
    """Whether writing to the cache is billed (Anthropic)."""
    opt_in: bool = False
    """Whether only what the request marks is cached (``cache_control``); else the provider caches by itself."""
    given: bool = False
    """Whether a person gave the lifetime, which then holds for every mark."""
    answers: bool = False
    """Whether an answer is cached behind its request, for a request that goes on with it."""
    own: int = 0
    """Tokens of a prompt of the provider's own that stands before every request, and that its cache always holds."""
    seen: int | None = None
    """Tokens from which the provider was seen to cache, below what it states; None if it keeps to its minimum."""
    wide: bool = False
    """Whether a step also holds tokens that the provider does not count, such as those of roles: a step then has
    somewhat fewer of those that it states, which its statements tell."""


PRICES = ("input", "output", "cache_read", "cache_write", "cache_write_hour")
"""The prices of a model."""


class Price(Struct, frozen=True):
    """US dollars per token. None means unknown, never free."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    source: str = ""
    """Source of the numbers: ``litellm map, as gpt-4o``, ``settings``."""
    grade: str = "unknown"
    """``exact`` (the very model), ``estimate`` (mapped to the native model), ``unknown``."""
    rule: CacheRule = CacheRule("none", 0)
    cache_write_hour: float | None = None
    """Price of tokens written for one hour, if the provider prices them differently."""
    stated_rule: CacheRule = CacheRule("the record", 1)
    """The rule that holds if ``rule`` knows of no cache and an answer states cached tokens all the same: the rule of
    the model's maker, found by name, else one that caches every prefix whole.
    """
    supposed: bool = False
    """Whether the rule is another provider's than the model's own: then no count is the provider's."""


class Prices(Protocol):
    """Prices and cache rules by model name."""

    def price(self, model: str, input_tokens: int = 0) -> Price:
        """Prices for a request of ``input_tokens`` tokens, since some models cost more beyond a length. Never raises:
        an unknown model has a Price whose numbers are None.
        """
        ...

    def window(self, model: str) -> int | None:
        """The model's context window in tokens; None if unknown."""
        ...

    def counted_as(self, model: str) -> str:
        """The model whose provider counts and bills: ``model`` itself, unless another model is to be priced in its
        place.
        """
        ...


class Forecast(Struct, frozen=True):
    """The predicted input side of one call, in tokens as the provider is expected to count them, and US dollars."""

    cached: int
    """Tokens the provider can take from its cache."""
    fresh: int
    written: int
    """Tokens billed as cache writes."""
    cost: float | None
    """US dollars for the input; None when a price is unknown."""
    break_at: int
    """Index of the first sent message outside the reusable prefix; the number of messages if all is inside."""
    reason: str = ""
    """Why the prefix ends there, in words."""
    tokens: int | None = None
    """Expected input tokens, the sum of the three; None in journals of 0.1.0, whose numbers are not calibrated."""
    low: int | None = None
    high: int | None = None
    """Upper bound of the input tokens; None if part of the request is unknown."""
    cost_low: float | None = None
    cost_high: float | None = None
    """The upper bound of the cost, reached if the provider's cache is missed."""


_NO_BREAK = ("no cache rule", "nothing was sent", "the shared prefix of", "the provider has reported no")
"""Beginnings of the reasons that name no lost prefix of an earlier request."""


_EXPIRED = ("the cache has expired", "the longer prefix was last used more than")
"""Beginnings of the reasons that name a prefix which was sent before, too long ago."""


def expired(forecast: Forecast) -> bool:
    """Returns whether a request begins as an earlier one did, of which a provider holds nothing, or less, any more."""
    return forecast.reason.startswith(_EXPIRED)


def breaks(forecast: Forecast) -> bool:
    """Returns whether a request begins otherwise than those before, or too late after them, so that what a provider
    holds of them is of less use than it could be."""
    reason = forecast.reason
    return bool(reason) and not reason.startswith(_NO_BREAK) and " caches only what a request marks" not in reason


class Expected(Struct, frozen=True):
    """The expected count of a request: tokens of every prefix and of the whole."""

    tokens: int
    low: int
    high: int | None
    """None if there is no bound."""
    prefix: Callable[[int], int]
    """Function from a number of sent messages to the tokens of the tools and these messages."""
    grade: Grade

    @classmethod
    def own(cls, assembly: Assembly) -> Expected:
        """Our own count, taken for the provider's."""
        total = assembly.tokens_sent
        return cls(total, total, total, assembly.prefix_tokens.__getitem__, assembly.grade)


_EVER = -1e300
"""Seconds: any time at all, and later than never."""
_LOOKBACK = 20
"""Messages before a mark that Anthropic looks at for an earlier entry of its cache (content blocks, by its guide)."""
_SURE = 20
"""Hits in a row, each as long as forecast, after which a cache without marks is taken to be hit. Of runs of agents at
OpenAI and Google each fifth call after 5 to 12 such hits had a shorter one, or none. A cache with marks needs one hit:
until then a choice of tools, or a minimum of the provider's own, may keep a request from its prefix."""
_NEAR, _NEAR_SHARE = 16, 0.02
"""Tokens, and the share of those forecast, by which stated cached tokens may be off and be called as forecast."""
_INNER, _INNER_LEAST = 0.992, 0.9
"""Tokens that a provider states of a wide step, as a share of its tokens: at first, and at least. Measured on 470 calls
of Gemini 3: 0.95 to 1.01, much alike within a conversation."""
_MISSES = 2
"""After this many calls that the cache could have served and did not, no hits are expected any more."""
_MOST_PREFIXES, _MOST_MARKED = 10_000, 4_000
"""Prefixes of earlier requests, and marked ones, that are remembered: those used last."""


class PrefixCache:
    """The possible content of a provider's cache: every prefix of the requests sent so far, or only marked prefixes if
    the provider caches those alone; each until its lifetime is over.

    A prefix is identified by its link in the digest chain, which covers model, tools and messages, so a look-up takes
    time logarithmic in the length of the request.
    """

    def __init__(
        self, marks: Marks = LIVE_MARKS, *, never: bool = False, stated: bool = False, writes: bool = False
    ) -> None:
        """``marks``: the marks of a request that sets none. ``never``: the provider is known to serve nothing from a
        cache. ``stated``, ``writes``: the provider has stated cached and written tokens.
        """
        self._marks = marks
        self._stated = stated
        self._writes = writes
        self._latest: tuple[str, ...] = ()
        """The prefixes of the last request: all were used when it was sent."""
        self._used: dict[str, float] = {}
        """When each other prefix was last part of a request, by its digest."""
        self._entries: dict[str, tuple[float, float]] = {}
        """Marked prefixes: when each was last used, and for how many seconds it lives since then."""
        self._held: dict[str, int] = {}
        """Tokens of marked prefixes that the provider stated."""
        self._last: dict[str, Assembly] = {}
        """The last assembly sent, by branch."""
        self._last_sent: float | None = None
        self._offered: int | None = None
        """Cached tokens that were forecast for the last request, whatever was learned of hits."""
        self._hits = 0
        self._misses = _MISSES if never else 0
        """In a row, the latest."""
        self._read: int | None = None
        """Cached tokens that the last answer stated, if it stated no written ones."""
        self._unwritten = False
        """Whether the answers state that more and more is read from the cache, and never that anything was written:
        then no bill of this provider has writes."""
        self._reasoned = False
        """Whether the last answer began with reasoning."""
        self._cold = False
        """Whether no other run had sent more of the last request: then none has sent what goes on from it."""
        self._others = False
        """Whether the provider once stated more cached tokens than this conversation had sent: others send the same, or
        requests are sent twice."""
        self._opt_in = False
        """Whether the rule in force caches only what is marked."""
        self._step = 0
        """A wide step of the rule in force, in the provider's own tokens; else 0."""
        self._inner = _INNER
        """Tokens that the provider states of a wide step, as a share of its tokens."""

    def copy(self) -> PrefixCache:
        """One that knows the same, and learns by itself from now on."""
        made = copy(self)
        made._used, made._entries, made._held = dict(self._used), dict(self._entries), dict(self._held)
        made._last = dict(self._last)
        return made

    def sent(self, assembly: Assembly, now: float) -> None:
        """The request went out at ``now`` (seconds): its prefixes are cached, or live on."""
        digests, before = assembly.prefix_digests, self._latest
        both = min(len(before), len(digests))
        shared = both
        if both and before[both - 1] != digests[both - 1]:
            shared = bisect_left(range(both), True, key=lambda i: before[i] != digests[i])
        if self._last_sent is not None and shared < len(before):
            for digest in before[shared:]:
                self._used.pop(digest, None)
            self._used.update(zip(before[shared:], repeat(self._last_sent), strict=False))
            forget_oldest(self._used, _MOST_PREFIXES)
        marks = marks_of(assembly, self._marks)
        read = self._marked(assembly, marks, now, None)
        if read >= 0:
            remember(self._entries, digests[read], (now, self._entries[digests[read]][1]), _MOST_MARKED)
        for mark in marks:
            remember(self._entries, digests[mark.position], (now, mark.seconds), _MOST_MARKED)
        self._latest = digests
        self._last[_branch(assembly)] = assembly
        self._last_sent = now
        self._cold = True  # until an answer tells otherwise

    def answered(self, assembly: Assembly, cached: int | None, written: int | None, *, reasoned: bool = False) -> None:
        """Learn the cached and written tokens that the provider stated; None if it stated none. ``reasoned``: the
        answer began with reasoning."""
        self._reasoned = reasoned
        self._stated, self._writes = self._stated or bool(cached or written), self._writes or bool(written)
        if cached is None:
            return
        self._unwritten = not written and (self._unwritten or (self._read is not None and cached > self._read))
        self._read = None if written else cached
        offered = self._offered or 0
        near = abs(cached - offered) <= max(_NEAR, _NEAR_SHARE * offered)
        self._others = self._others or (self._offered is not None and cached > offered and not near)
        self._cold = cached <= offered and not self._others
        if self._offered and not cached:
            self._misses, self._hits = self._misses + 1, 0
        elif cached:
            self._hits, self._misses = (self._hits + 1 if near or self._opt_in else 0), 0
        self._learn_step(cached)
        marks = marks_of(assembly, self._marks)
        if not marks and (cached or written):
            # What the record does not say, its numbers do: the requests were marked.
            self._marks = LIVE_MARKS
            marks = marks_of(assembly, self._marks)
            for mark in marks:
                self._entries[assembly.prefix_digests[mark.position]] = (self._last_sent or 0.0, mark.seconds)
        if marks and written:
            remember(self._held, assembly.prefix_digests[marks[-1].position], cached + written, _MOST_MARKED)

    def _learn_step(self, cached: int) -> None:
        steps = round(cached / (_INNER * self._step)) if self._step else 0
        found = cached / (steps * self._step) if steps else 0.0
        if _INNER_LEAST <= found <= 2 - _INNER_LEAST:
            self._inner = found

    def keeps(self, rule: CacheRule, forecast: Forecast) -> bool:
        """Returns whether the provider is expected to keep a request, of which this is the forecast, for later ones."""
        marked = not rule.opt_in or self._unwritten or forecast.cached + forecast.written > 0
        return rule.provider != "none" and self._misses < _MISSES and marked

    def rule(self, price: Price) -> CacheRule:
        """The rule in force. A statement of the provider wins over a rule that knows of no cache."""
        if price.rule.provider != "none" or not self._stated:
            return price.rule
        return replace(price.stated_rule, writes=price.stated_rule.writes or self._writes)

    def forecast(self, assembly: Assembly, price: Price, now: float, expected: Expected | None = None) -> Forecast:
        """Tokens that the request would read from the cache at ``now``, and its cost, by the provider's rules.

        ``expected``: tokens that the provider will count; our own count by default.
        """
        rule, expected = self.rule(price), expected or Expected.own(assembly)
        marks = marks_of(assembly, self._marks) if rule.opt_in else ()
        given = rule.lifetime if rule.given else None
        if rule.opt_in:
            shared = self._marked(assembly, marks, now, given)
        else:
            shared = self._shared(assembly, now - rule.lifetime)
        behind = shared + 1 if rule.answers and self._answered(assembly, shared) else shared
        reusable = (self._tokens(assembly, behind, expected) if shared >= 0 else 0) + rule.own
        cached = 0
        inner = self._inner if rule.wide else 1.0
        step, self._step, self._opt_in = rule.step * inner, rule.step if rule.wide else 0, rule.opt_in
        if rule.provider != "none" and reusable >= max(rule.minimum * inner, 1):
            cached = min(int(reusable // step * step), expected.tokens)
        self._offered = possible = cached
        missed = self._misses >= _MISSES
        if missed:
            cached = 0
        kept = written = 0
        if rule.writes and not missed:
            until = expected.prefix(marks[-1].position) if marks else 0
            if not rule.opt_in:
                until = expected.prefix(len(assembly.request.messages))
            kept = min(until, expected.tokens) if until >= rule.minimum else 0
            written = 0 if self._unwritten else max(kept - cached, 0)
        hour = bool(marks) and (marks[-1].seconds if given is None else given) > FIVE_MINUTES
        cold, least = self._cold and shared > 0, max(rule.minimum if rule.seen is None else rule.seen, 1)
        if not rule.opt_in and rule.provider != "none":
            if not cold and expected.tokens >= least:
                possible = int(expected.tokens // step * step)  # Another run may have sent it before.
            elif not possible and reusable >= least:
                possible = reusable
        first_marked = expected.prefix(marks[-1].position) if marks and not cold else 0
        warm = first_marked >= max(rule.minimum, 1)
        if warm:
            possible = min(first_marked, expected.tokens)  # Another run may have marked it before.
        reason = self._reason(assembly, rule, shared, cached, self._offered, now, expected, bool(marks))
        lost = rule.opt_in and not marks and expected.high is None and PARAMETER not in assembly.request.parameters
        if lost and not missed:
            # A record that lacks parts of the request may lack its marks, too: all of it may be a read.
            reason = f"{rule.provider} caches only what a request marks, and the marks of this one are not stated"
            possible = expected.tokens if expected.tokens >= rule.minimum else 0
            before = self._shared(assembly, now - rule.lifetime)
            self._offered = self._tokens(assembly, before, expected) if possible and before > 0 else 0
        sure = _SURE if missed or not rule.opt_in or warm else 1
        unsure = possible > 0 and (rule.wide or self._hits < sure)
        low, high = expected.low, expected.high
        return Forecast(
            cached=cached,
            fresh=expected.tokens - cached - written,
            written=written,
            cost=_cost(price, expected.tokens, cached, written, hour),
            break_at=shared if cached else 0,
            reason=reason,
            tokens=expected.tokens,
            low=low,
            high=high,
            cost_low=_cost(price, low, possible if unsure else cached, written, hour),
            cost_high=None if high is None else _cost(price, high, *((0, kept) if unsure else (cached, written)), hour),
        )

    def _answered(self, assembly: Assembly, shared: int) -> bool:
        """Returns whether the shared messages are the last request, and its answer follows them."""
        messages = assembly.request.messages
        if not 0 < shared == len(self._latest) - 1 or shared >= len(messages) or messages[shared].role != "assistant":
            return False
        # What the answer began with is gone, unless it goes back with its calls.
        answer = messages[shared]
        return not self._reasoned or bool(answer.tool_calls and reasoning_told(answer))

    def _tokens(self, assembly: Assembly, shared: int, expected: Expected) -> int:
        """Tokens of a prefix: as the provider stated them, else as expected."""
        return self._held.get(assembly.prefix_digests[shared]) or expected.prefix(shared)

    def _marked(self, assembly: Assembly, marks: Sequence[Mark], now: float, given: float | None) -> int:
        """Messages in the longest marked prefix that is still cached and that a mark of this request finds; -1 for
        none.

        From each mark the provider looks back over a number of messages. ``given``: the lifetime in seconds, instead of
        the one that the marks state.
        """
        digests, best = assembly.prefix_digests, -1
        for mark in reversed(marks):
            for position in range(mark.position, max(mark.position - _LOOKBACK, best + 1) - 1, -1):
                used, seconds = self._entries.get(digests[position], (_EVER, 0.0))
                if used >= now - (seconds if given is None else given):
                    best = max(best, position)
                    break
        return best

    def _shared(self, assembly: Assembly, since: float) -> int:
        """Returns how many messages were part of an earlier request since then; -1 when not even the tools were."""
        digests, latest, at = assembly.prefix_digests, self._latest, self._last_sent
        # A request mostly goes on where the last one ended: then all of that one is known to be fresh.
        goes_on = 0 < len(latest) <= len(digests) and latest[-1] == digests[len(latest) - 1]
        known = len(latest) if goes_on and at is not None and at >= since else 0

        def used(index: int) -> float:
            is_latest = at is not None and index < len(latest) and latest[index] == digests[index]
            return at if is_latest and at is not None else self._used.get(digests[index], -inf)

        # A prefix of a prefix is used at least as recently, so freshness falls off once: bisect for where.
        return bisect_left(range(len(digests)), True, lo=known, key=lambda i: used(i) < since) - 1

    def _reason(
        self,
        assembly: Assembly,
        rule: CacheRule,
        shared: int,
        cached: int,
        possible: int,
        now: float,
        expected: Expected,
        marked: bool,
    ) -> str:
        """Returns why no more is cached, in words; empty when all that could be is."""
        if rule.provider == "none":
            return "no cache rule is known for this model"
        if rule.opt_in and not marked:
            return f"{rule.provider} caches only what a request marks, and this one marks nothing"
        if self._last_sent is None:
            return "nothing was sent before"
        if possible and not cached:
            return f"the provider has reported no cached tokens for {self._misses} calls that could have had some"
        longest = self._shared(assembly, _EVER)
        lives = rule.lifetime
        if now - self._last_sent > lives and longest > shared:
            waited = f"{now - self._last_sent:,.0f} s since the last call"
            return f"{_EXPIRED[0]}: {waited}, it lives {lives:,.0f} s"
        if longest > shared and not rule.opt_in:
            return f"{_EXPIRED[1]} {lives:,.0f} s ago"
        if longest < 0:
            return "model or tools differ from the calls before"
        if not cached and longest:
            at = shared if shared > 0 else longest
            tokens = self._tokens(assembly, at, expected)
            if tokens < rule.minimum:
                said = f"{GRADE_SIGN[expected.grade]}{tokens:,}"
                return f"the shared prefix of {said} tokens is below the provider's minimum of {rule.minimum:,}"
            if rule.opt_in:
                return "no mark of this request lies on a prefix that an earlier one marked"
        previous = self._last.get(_branch(assembly))
        return "" if previous is None else _difference(assembly, previous, longest)


def _branch(assembly: Assembly) -> str:
    return assembly.entries[-1].item.place.branch if assembly.entries else ""


def _difference(assembly: Assembly, previous: Assembly, shared: int) -> str:
    """Describes the message at which the prefix ends, compared with the call before; empty if that call's whole request
    is shared.
    """
    if shared >= len(previous.request.messages) or shared >= len(assembly.request.messages):
        return ""
    now, then = _entry(assembly, shared), _entry(previous, shared)
    if now.item.message == then.item.message and now.item.place == then.item.place:
        return f"{name_of(now.item)} was {_as_sent(then)} in the previous call"
    index = previous.sent_entries[shared]
    same = assembly.entries[index] if index < len(assembly.entries) else None
    if same is not None and same.sent is None and same.item == then.item:
        return f"{name_of(then.item)} is no longer sent"
    here, there = name_of(now.item), name_of(then.item)
    if here != there:
        return f"{here} stands where {there} stood in the previous call"
    phase, before = now.item.place.phase, then.item.place.phase
    return (
        f"{here} of {phase} is not that of {before}" if phase != before else f"{here} is not that of the previous call"
    )


def _entry(assembly: Assembly, position: int) -> Entry:
    return assembly.entries[assembly.sent_entries[position]]


def _as_sent(entry: Entry) -> str:
    return "full" if entry.sent == entry.item.message else str(entry.action)


def _cost(price: Price, tokens: int, cached: int, written: int, hour: bool) -> float | None:
    """US dollars of an input of ``tokens`` tokens, given how many of them are cached and written."""
    cached = min(cached, tokens)
    written = min(written, tokens - cached)
    return input_cost(price, cached, tokens - cached - written, written, hour=written if hour else 0)


def input_cost(price: Price, cached: int, fresh: int, written: int, *, hour: int = 0) -> float | None:
    """US dollars for the input of a call; None if the input has no known price.

    Cached or written tokens without a price of their own cost as much as fresh ones. ``hour``: how many of the written
    tokens are kept for an hour.
    """
    if price.input is None:
        return None
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    longer, kept = write if price.cache_write_hour is None else price.cache_write_hour, min(hour, written)
    return fresh * price.input + cached * read + (written - kept) * write + kept * longer


def break_even(masked: int, suffix: int, price: Price) -> float | None:
    """Number of further turns after which masking has paid for the prefix that it breaks.

    ``masked``: tokens of the masked observation, o. ``suffix``: tokens after it that are read anew, S. Masking pays
    once ``o·r·R > S·(w − r)``, with r the price of a cache read and w that of rewritten tokens, both relative to the
    input price; R is the result. None when a price is unknown; infinite when masking saves nothing.
    """
    if not price.input or price.cache_read is None:
        return None
    read = price.cache_read / price.input
    rewritten = price.cache_write / price.input if price.rule.writes and price.cache_write is not None else 1.0
    lost = suffix * max(rewritten - read, 0.0)
    if lost == 0:
        return 0.0
    return lost / (masked * read) if masked > 0 and read > 0 else inf
