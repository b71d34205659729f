"""Results of tau-bench: OpenAI messages with a task and a reward around them."""

from __future__ import annotations

from typing import Any

from workbench.importers.conversation import Conversation, Remarks, Unreadable
from workbench.importers.messages import read_messages
from workbench.importers.threads import linear
from workbench.importers.values import array, as_text, mapping, number


def is_tau_bench(body: Any) -> bool:
    """One result, or a list of them."""
    results = body if isinstance(body, list) else [body]
    return bool(results) and all(isinstance(mapping(one).get("traj"), list) for one in results)


def read_tau_bench(body: Any) -> list[Conversation]:
    """A conversation for each result."""
    return [_result(mapping(one)) for one in (body if isinstance(body, list) else [body])]


def _result(body: Any) -> Conversation:
    remarks = Remarks()
    if not array(body.get("traj")):
        raise Unreadable("its 'traj' is empty")
    said = read_messages(body["traj"], remarks, "traj")
    reward = number(body.get("reward"))
    kept = {key: value for key, value in body.items() if key != "traj"}
    title = f"task {as_text(body.get('task_id'))[:40]} trial {as_text(body.get('trial'))[:40]}"
    failed = reward is not None and reward < 1
    reason = f"reward {reward:g}" if failed else ""
    return Conversation((linear(said),), title, "failed" if failed else "success", reason, remarks.notes, kept)
