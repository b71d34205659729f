"""The two hashes of a message: whatever it holds, they are those of its canonical JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.context.message import Message, Text, ToolCall, canonical, sha256

ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
PARTS = st.text(max_size=40).map(lambda text: text + "\ud800\x00\x7f\u2028") | st.text(max_size=40)


@given(PARTS, ROLES, st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_hash_is_that_of_the_canonical_json(text: str, role: Any, calls: bool, named: bool, parted: bool) -> None:
    content: Any = (Text(text),) if parted else text
    made = (ToolCall("id", "look", "{}"),) if calls else ()
    message = Message(role, content, made, tool_call_id="id" if named else "", extra={"a": [1]} if named else {})
    body = message.to_json()
    assert message.body_hash == sha256(canonical(body))
    assert message.content_hash == sha256(canonical({k: body.get(k) for k in ("role", "content", "tool_calls")}))[:16]
