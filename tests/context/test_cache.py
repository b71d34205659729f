"""The prompt cache: how much of a request a provider has seen, by its rules, what that costs, and why it ends there."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.context.support import Conversation, WordCounter, alone, cascade, scope
from workbench.context.assembler import Assembler
from workbench.context.assembly import Assembly, Grade
from workbench.context.cache import CacheRule, Expected, Forecast, PrefixCache, Price, break_even
from workbench.context.marks import NO_MARKS, PARAMETER
from workbench.context.strategy import parse

OPENAI = Price(1e-6, 8e-6, 1e-7, rule=CacheRule("openai", 1024, 128))
ANTHROPIC = Price(3e-6, 15e-6, 3e-7, 3.75e-6, rule=CacheRule("anthropic", 1024, writes=True))
EVERY = Price(1e-6, 1e-6, 1e-7, rule=CacheRule("deepseek", 1))
WORDS = "word " * 500


def calls(strategy: str, turns: int, *, tools: str = "") -> list[Assembly]:
    """The contexts of a run's calls; each turn brings a result of 500 words."""
    assembler = Assembler(replace(alone(), tool_text=tools), parse(strategy), WordCounter())
    talk, made = Conversation(native=True).task(WORDS), []
    assembler.add(talk.items[0])
    for number in range(1, turns + 1):
        made.append(assembler.assemble(talk.next_place(number)))
        before = len(talk.items)
        talk.turn(number).calls(("read_log", WORDS))
        for item in talk.items[before:]:
            assembler.add(item)
    return made


def forecasts(made: list[Assembly], price: Price, seconds: float = 1.0) -> list[Forecast]:
    cache, found = PrefixCache(), []
    for number, assembly in enumerate(made):
        found.append(cache.forecast(assembly, price, number * seconds))
        cache.sent(assembly, number * seconds)
    return found


def test_nothing_is_cached_at_first() -> None:
    (first,) = forecasts(calls("selective", 1), OPENAI)
    assert (first.cached, first.break_at, first.reason) == (0, 0, "nothing was sent before")


def test_two_messages_of_one_name_are_told_apart_by_their_calls() -> None:
    made = [*calls("selective", 1, tools=f"{WORDS} read"), *calls("selective", 1, tools=f"{WORDS} write")]
    assert forecasts(made, EVERY)[-1].reason == "the tool text is not that of the previous call"


def test_openai_caches_from_1024_tokens_in_steps_of_128() -> None:
    made = calls("selective", 4)
    found = forecasts(made, OPENAI)
    assert [assembly.prefix_tokens[-1] for assembly in made] == [504, 1015, 1526, 2037]
    assert [forecast.cached for forecast in found] == [0, 0, 0, 1408]
    assert found[2].reason == "the shared prefix of 1,015 tokens is below the provider's minimum of 1,024"
    assert (found[3].break_at, found[3].reason, found[3].written) == (5, "", 0)
    guess = Expected(2000, 1500, 2500, lambda messages: 700, Grade.ESTIMATE)
    cache = PrefixCache()
    cache.sent(made[0], 0.0)
    assert cache.forecast(made[1], OPENAI, 1.0, guess).reason.startswith("the shared prefix of ~700 tokens is below")


def test_an_answer_behind_reasoning_that_stays_away_is_not_cached() -> None:
    made = calls("selective", 2)
    price = replace(OPENAI, rule=CacheRule("deepseek", 64, 1, 3600.0, answers=True))
    found = []
    for reasoned in (False, True):
        cache = PrefixCache()
        cache.sent(made[0], 0.0)
        cache.answered(made[0], 0, None, reasoned=reasoned)
        found.append(cache.forecast(made[1], price, 1.0).cached)
    assert found[1] == made[0].prefix_tokens[-1] < found[0]


def test_a_prompt_of_the_providers_own_is_cached_from_the_first_call_on() -> None:
    made = calls("selective", 2)
    found = forecasts(made, replace(OPENAI, rule=CacheRule("xai", 64, 64, own=150)))
    assert [one.cached for one in found] == [128, (made[0].prefix_tokens[-1] + 150) // 64 * 64]


def test_deepseek_caches_an_answer_behind_its_request() -> None:
    made = calls("selective", 2)
    requests, answers = (
        forecasts(made, replace(OPENAI, rule=CacheRule("deepseek", 64, 1, 3600.0, answers=each)))[1].cached
        for each in (False, True)
    )
    assert requests == made[0].prefix_tokens[-1]
    assert answers == made[1].prefix_tokens[len(made[0].request.messages) + 1] > requests


def test_the_parts_add_up_and_are_priced() -> None:
    made = calls("selective", 4)
    last = forecasts(made, OPENAI)[-1]
    assert last.fresh + last.cached + last.written == made[-1].tokens_sent
    assert last.cost == pytest.approx(1408e-7 + (2040 - 1408) * 1e-6)


def test_anthropic_bills_what_is_written() -> None:
    made = calls("selective", 4)
    found = forecasts(made, ANTHROPIC)
    assert [(f.cached, f.written) for f in found] == [(0, 0), (0, 0), (0, 1526), (1526, 511)]
    assert found[3].cost == pytest.approx(1526 * 3e-7 + 511 * 3.75e-6 + 3 * 3e-6)


def test_masking_moves_the_break_and_says_why() -> None:
    made = calls("selective+mask(after=1)", 5)
    last = forecasts(made, EVERY)[-1]
    assert last.break_at == 6
    assert last.reason == "turn 3's result was full in the previous call"
    assert made[-1].request.messages[6].text.startswith("[read_log result")


def test_what_is_no_longer_sent_is_named() -> None:
    last = forecasts(calls("selective+slide(turns=1)", 4), EVERY)[-1]
    assert last.break_at == 1
    assert last.reason == "turn 2's answer is no longer sent"


def test_a_longer_match_with_an_older_call_counts() -> None:
    """Another strategy in between does not lose what the first one cached."""
    whole, masked = calls("selective", 4), calls("selective+mask(after=0)", 3)
    cache = PrefixCache()
    cache.sent(whole[2], 0.0)
    cache.sent(masked[2], 1.0)
    assert cache.forecast(whole[3], EVERY, 2.0).break_at == 5


def test_a_cache_that_was_not_read_expires() -> None:
    made = calls("selective", 4)
    found = forecasts(made, replace(EVERY, rule=CacheRule("openai", 1, lifetime=300)), seconds=301)
    assert [forecast.cached for forecast in found] == [0, 0, 0, 0]
    assert found[3].reason == "the cache has expired: 301 s since the last call, it lives 300 s"


def test_reading_keeps_a_prefix_alive() -> None:
    made = calls("selective", 4)
    price = replace(EVERY, rule=CacheRule("openai", 1, lifetime=300))
    found = forecasts(made, price, seconds=200)
    assert [forecast.break_at for forecast in found] == [0, 1, 3, 5]


def test_another_model_or_other_tools_share_nothing() -> None:
    cache = PrefixCache()
    cache.sent(calls("selective", 1)[0], 0.0)
    where = scope(cascade({"name": "work"}), model="other")
    other = Assembler(where, parse("selective"), WordCounter())
    other.add(Conversation().task(WORDS).items[0])
    found = cache.forecast(other.assemble(Conversation().place), EVERY, 1.0)
    assert (found.cached, found.reason) == (0, "model or tools differ from the calls before")


def test_a_closing_call_shares_the_prefix_though_its_parameters_differ() -> None:
    where = alone()
    assembler = Assembler(where, parse("selective"), WordCounter())
    assembler.add(Conversation().task(WORDS).items[0])
    first = assembler.assemble(Conversation().place)
    second = assembler.assemble(Conversation().place._replace(call=2), tool_choice="none")
    assert first.request.digest != second.request.digest
    cache = PrefixCache()
    cache.sent(first, 0.0)
    assert cache.forecast(second, EVERY, 1.0).break_at == 1


def test_cached_tokens_without_a_price_of_their_own_cost_what_fresh_ones_do() -> None:
    last = forecasts(calls("selective", 4), replace(OPENAI, cache_read=None))[-1]
    assert last.cost == pytest.approx(2040e-6)


@pytest.mark.parametrize("price", [Price(), Price(rule=OPENAI.rule)])
def test_an_unknown_price_is_no_price(price: Price) -> None:
    last = forecasts(calls("selective", 4), price)[-1]
    assert last.cost is None


def test_a_provider_without_a_rule_caches_nothing() -> None:
    last = forecasts(calls("selective", 4), Price(1e-6, 1e-6))[-1]
    assert (last.cached, last.reason) == (0, "no cache rule is known for this model")
    assert last.cost is not None


def test_when_masking_pays() -> None:
    """o * r * R > S * (w - r): 1,000 tokens gone, 500 behind them, reads at a tenth: 4.5 turns."""
    assert break_even(1000, 500, OPENAI) == pytest.approx(4.5)
    assert break_even(1000, 500, ANTHROPIC) == pytest.approx(500 * (1.25 - 0.1) / 100)
    assert break_even(0, 500, OPENAI) == math.inf
    assert break_even(1000, 0, OPENAI) == 0
    assert break_even(1000, 500, Price()) is None


MADE = [*calls("selective", 5), *calls("mask(after=1)", 5), *calls("slide(turns=2)", 5, tools="Tools.")]
LIFETIME = 10.0


@given(st.lists(st.tuples(st.integers(0, len(MADE) - 1), st.integers(0, 6), st.booleans()), max_size=12))
def test_each_prefix_lives_from_the_last_request_that_held_it(sent: list[tuple[int, int, bool]]) -> None:
    """Whatever order requests come in, and however long the pauses are: as if each prefix were noted each time."""
    cache, used, now = PrefixCache(), dict[str, float](), 0.0
    price = replace(EVERY, rule=CacheRule("any", 1, lifetime=LIFETIME))
    for number, pause, goes_out in sent:
        assembly, now = MADE[number], now + pause
        ages = [now - used.get(digest, -math.inf) for digest in assembly.prefix_digests]
        shared = sum(1 for age in ages if age <= LIFETIME) - 1
        found = cache.forecast(assembly, price, now)
        assert found.cached == (assembly.prefix_tokens[shared] if shared >= 0 else 0)
        if goes_out:
            cache.sent(assembly, now)
            used |= dict.fromkeys(assembly.prefix_digests, now)


def marked(turns: int, at: list[Any], ttl: str = "5m") -> list[Assembly]:
    """The contexts of a run's calls whose requests are marked at these places."""
    where = replace(alone(), tool_text=f"{WORDS} read", parameters={PARAMETER: {"at": at, "ttl": ttl}})
    assembler = Assembler(where, parse("selective"), WordCounter())
    talk, made = Conversation(native=True).task(WORDS), []
    assembler.add(talk.items[0])
    for number in range(1, turns + 1):
        made.append(assembler.assemble(talk.next_place(number)))
        before = len(talk.items)
        talk.turn(number).calls(("read_log", WORDS))
        for item in talk.items[before:]:
            assembler.add(item)
    return made


OPT_IN = replace(ANTHROPIC, rule=replace(ANTHROPIC.rule, minimum=512, opt_in=True), cache_write_hour=6e-6)


def test_without_marks_anthropic_caches_nothing_and_says_so() -> None:
    last = forecasts(marked(4, []), OPT_IN)[-1]
    assert (last.cached, last.written) == (0, 0)
    assert last.reason == "anthropic caches only what a request marks, and this one marks nothing"


def test_a_mark_on_the_last_message_lets_the_next_call_read_all_that_was_sent() -> None:
    made = marked(4, ["last"])
    found = forecasts(made, OPT_IN)
    assert [one.cached for one in found[1:]] == [assembly.prefix_tokens[-1] for assembly in made[:-1]]
    assert found[-1].written == made[-1].prefix_tokens[-1] - made[-2].prefix_tokens[-1]


def test_a_mark_on_the_task_keeps_the_task_alone() -> None:
    made = marked(4, ["task"])
    last = forecasts(made, OPT_IN)[-1]
    assert (last.cached, last.written, last.break_at) == (made[0].prefix_tokens[2], 0, 2)


def test_what_is_kept_for_an_hour_survives_a_pause_and_costs_more_to_write() -> None:
    short, long = (forecasts(marked(3, ["last"], ttl), OPT_IN, seconds=1_800) for ttl in ("5m", "1h"))
    assert (short[-1].cached, long[-1].cached > 0) == (0, True)
    assert short[-1].reason == "the cache has expired: 1,800 s since the last call, it lives 300 s"
    given = replace(OPT_IN, rule=replace(OPT_IN.rule, lifetime=3_600.0, given=True))
    for first in (long[0], forecasts(marked(3, ["last"]), given)[0]):
        assert first.cost == pytest.approx(first.written * 6e-6 + first.fresh * 3e-6)


def test_a_mark_finds_what_an_earlier_one_wrote_only_within_twenty_messages() -> None:
    made = marked(14, ["last"])
    cache = PrefixCache()
    cache.sent(made[0], 0.0)
    assert cache.forecast(made[9], OPT_IN, 1.0).cached == made[0].prefix_tokens[-1]
    assert cache.forecast(made[13], OPT_IN, 1.0).cached == 0


def test_what_the_provider_states_of_its_cache_is_held() -> None:
    """Read and written tokens of a call are what the next one reads, to the token."""
    first, second = marked(4, ["last"])[2:]
    cache = PrefixCache()
    cache.sent(first, 0.0)
    cache.answered(first, 100, 1_900)
    assert cache.forecast(second, OPT_IN, 1.0).cached == 2_000


def test_marks_that_a_record_lost_are_known_by_what_was_cached() -> None:
    made = calls("selective", 4)
    cache = PrefixCache(NO_MARKS)
    assert cache.forecast(made[2], OPT_IN, 0.0).written == 0
    cache.sent(made[2], 0.0)
    cache.answered(made[2], 0, 1_500)
    assert cache.forecast(made[3], OPT_IN, 1.0).cached == 1_500


def test_a_request_whose_marks_are_not_stated_may_be_read_from_the_cache() -> None:
    """A record of messages alone: what it would cost unmarked is the estimate, and a read its lower end."""
    made, cache, costs = calls("selective", 7), PrefixCache(NO_MARKS), []
    for number, assembly in enumerate(made):
        expected = replace(Expected.own(assembly), high=None)
        found = cache.forecast(assembly, OPT_IN, number, expected)
        assert (found.cached, found.cost_high) == (0, None)
        costs.append((found.cost_low or 0.0) / (found.cost or 1.0))
        cache.sent(assembly, number)
        cache.answered(assembly, 0, None)
        if number == 1:
            said = "anthropic caches only what a request marks, and the marks of this one are not stated"
            assert found.reason == said
    assert costs[1:3] == pytest.approx([0.1, 0.1])
    assert costs[-1] == 1.0, "it was never served"
    whole = PrefixCache(NO_MARKS).forecast(made[-1], OPT_IN, 0.0)
    assert whole.cost_low == whole.cost, "all is known: it marks nothing"


def test_a_provider_that_served_nothing_twice_is_expected_to_serve_nothing() -> None:
    made, cache = calls("selective", 7), PrefixCache()
    for number, assembly in enumerate(made[:-1]):
        cache.forecast(assembly, OPENAI, number)
        cache.sent(assembly, number)
        cache.answered(assembly, 0, None)
    last = cache.forecast(made[-1], OPENAI, 7.0)
    assert last.cached == 0
    assert last.reason.startswith("the provider has reported no cached tokens for")
    assert last.cost_low is not None
    assert last.cost is not None
    assert last.cost_low < last.cost, "it may be hit all the same"


@pytest.mark.parametrize("writes", [False, True])
def test_what_a_provider_states_of_its_cache_wins_over_that_no_rule_is_known(writes: bool) -> None:
    unknown, made, cache = Price(), calls("selective", 4), PrefixCache(NO_MARKS)
    size = made[2].prefix_tokens[-1]
    before = cache.forecast(made[2], unknown, 0.0)
    assert (before.cached, before.written, before.reason) == (0, 0, "no cache rule is known for this model")
    cache.sent(made[2], 0.0)
    cache.answered(made[2], *((0, size) if writes else (size, None)))
    assert (cache.rule(unknown).provider, cache.rule(unknown).writes) == ("the record", writes)
    after = cache.forecast(made[3], unknown, 1.0)
    assert after.cached == size
    assert after.written == (made[3].prefix_tokens[-1] - size if writes else 0)
    assert cache.rule(OPENAI) is OPENAI.rule, "a rule that is known stays"


def test_another_conversation_of_a_run_may_be_held_from_an_earlier_run_until_its_first_answer() -> None:
    cache, (first, *_), (other, *_, later) = (
        PrefixCache(),
        calls("selective", 4),
        calls("selective", 4, tools="t"),
    )
    cache.sent(first, 0.0)
    cache.answered(first, 0, None)
    warm = cache.forecast(later, OPENAI, 1.0)
    assert warm.cached == 0
    assert warm.cost_low == pytest.approx(1920e-7 + (warm.tokens or 0) * 1e-6 - 1920e-6)
    cache.sent(other, 1.0)
    cache.answered(other, 0, None)
    cold = cache.forecast(later, OPENAI, 2.0)
    assert cold.cost_low == cold.cost, "the provider has stated that it held not even the beginning"


def test_hits_that_are_shorter_than_forecast_leave_the_interval_open() -> None:
    """A cache that serves a part now and then is none to rely on, however often it serves something."""

    def last(part: float) -> Forecast:
        made, cache = calls("selective", 26), PrefixCache()
        for number, assembly in enumerate(made[:-1]):
            found = cache.forecast(assembly, OPENAI, number)
            cache.sent(assembly, number)
            cache.answered(assembly, int(found.cached * part), None)
        return cache.forecast(made[-1], OPENAI, 25.0)

    whole, half = last(1.0), last(0.5)
    assert (whole.cost_low, whole.cost_high) == (whole.cost, whole.cost)
    assert half.cost_low is not None
    assert half.cost is not None
    assert half.cost_high is not None
    assert half.cost_high == pytest.approx((half.tokens or 0) * 1e-6), "all of it may be read anew"
    assert half.cost_low <= half.cost < half.cost_high


def test_more_cached_than_was_sent_tells_that_others_send_the_same() -> None:
    made, cache = calls("selective", 6), PrefixCache()
    for number, assembly in enumerate(made[:-1]):
        found = cache.forecast(assembly, OPENAI, number)
        cache.sent(assembly, number)
        cache.answered(assembly, assembly.tokens_sent // 128 * 128 if number == 3 else found.cached, None)
    last = cache.forecast(made[-1], OPENAI, 5.0)
    most = made[-1].tokens_sent // 128 * 128
    assert last.cost_low == pytest.approx(most * 1e-7 + (made[-1].tokens_sent - most) * 1e-6)


GOOGLE = Price(2e-6, 12e-6, 2e-7, rule=CacheRule("gemini", 1_000, 1_000, wide=True))


def test_a_step_that_holds_tokens_which_are_not_counted_is_learned_from_what_is_stated() -> None:
    """Google's steps of Gemini 3 hold the tokens of roles, too: 2,048 are some 2,030 by its own statements."""
    made, cache = calls("selective", 8), PrefixCache()
    first = cache.forecast(made[3], GOOGLE, 0.0)
    cache.sent(made[3], 0.0)
    cache.answered(made[3], 0, None)
    second = cache.forecast(made[5], GOOGLE, 1.0)
    assert (first.cached, second.cached) == (0, 1_984), "two steps of what was sent, each somewhat short"
    cache.sent(made[5], 1.0)
    cache.answered(made[5], 1_940, None)
    third = cache.forecast(made[7], GOOGLE, 2.0)
    assert third.cached == made[5].tokens_sent // 970 * 970, "a step is as long as was stated"
    assert third.cost is not None
    assert third.cost_high is not None
    assert third.cost_high > third.cost, "no hit is promised"


def test_marks_are_sure_of_a_hit_once_the_provider_has_stated_one() -> None:
    made, cache = marked(4, ["last"]), PrefixCache()
    cache.sent(made[2], 0.0)
    unsure = cache.forecast(made[3], OPT_IN, 1.0)
    assert unsure.cost is not None
    assert unsure.cost_high is not None
    assert unsure.cost_high > 2 * unsure.cost, "all of it may be written anew"
    cache.answered(made[2], 500, None)
    sure = cache.forecast(made[3], OPT_IN, 1.0)
    assert sure.cost_high == sure.cost


def test_a_marked_prefix_may_be_cached_by_another_run() -> None:
    """So the first call may cost as little as a read, and at most what is written."""
    (first,) = forecasts(marked(4, ["last"])[-1:], OPT_IN)
    assert first.cached == 0
    assert first.cost_low is not None
    assert first.cost is not None
    assert first.cost_low < 0.2 * first.cost
    assert first.cost_high == pytest.approx(first.cost)


def test_writes_that_no_answer_ever_states_are_on_no_bill() -> None:
    """Gateways that name only what was read: tokens of later reads were written, and no answer says so."""
    made, cache = marked(7, ["last"]), PrefixCache()
    written = []
    for number, cached in enumerate((0, 1_500, 2_000, 2_500)):
        written.append(cache.forecast(made[number + 2], OPT_IN, number).written > 0)
        cache.sent(made[number + 2], number)
        cache.answered(made[number + 2], cached, 0)
    assert written == [True, True, False, False]
    cache.answered(made[5], 2_500, 400)
    assert cache.forecast(made[6], OPT_IN, 9.0).written > 0, "one that is stated counts"
