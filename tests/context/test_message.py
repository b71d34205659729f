"""The two hashes of a message: whatever it holds, they are those of its canonical JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.context.message import Message, TextPart, ToolCall, canonical, sha256

ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
PARTS = st.text(max_size=40).map(lambda text: text + "\ud800\x00\x7f\u2028") | st.text(max_size=40)


FLAGS = st.tuples(*[st.booleans()] * 4)
CALLS = st.lists(st.builds(ToolCall, PARTS, PARTS, PARTS, st.sampled_from([{}, {}, {"sign": [1]}])), max_size=2)


@given(PARTS, ROLES, CALLS, FLAGS)
def test_a_hash_is_that_of_the_canonical_json(text: str, role: Any, calls: list[ToolCall], flags: Any) -> None:
    parted, answers, named, told = flags
    content: Any = (TextPart(text),) if parted else text
    answered, name, extra = text if answers else "", text[::-1] if named else "", {"a": [1]} if told else {}
    message = Message(role, content, tuple(calls), answered, name, extra)
    body = message.to_json()
    assert message.body_hash == sha256(canonical(body))
    assert message.content_hash == sha256(canonical({k: body.get(k) for k in ("role", "content", "tool_calls")}))[:16]
