"""The one table of formats, and how a file is told to be one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from workbench.importers.conversation import Conversation
from workbench.importers.exchanges import is_log, read_log
from workbench.importers.formats.adk import is_adk, read_adk
from workbench.importers.formats.antigravity import is_antigravity, read_antigravity
from workbench.importers.formats.atif import is_atif, read_atif
from workbench.importers.formats.bfcl import is_bfcl, read_bfcl
from workbench.importers.formats.burr import is_burr, read_burr
from workbench.importers.formats.chat import is_anthropic, is_openai, is_tau_bench, read_chat, read_tau_bench
from workbench.importers.formats.inspect import is_inspect, read_inspect
from workbench.importers.formats.langfuse import is_expected, is_langfuse, read_expected, read_langfuse
from workbench.importers.formats.langsmith import is_langsmith, read_langsmith
from workbench.importers.formats.lm_eval import is_lm_eval, read_lm_eval
from workbench.importers.formats.managed import is_managed, read_managed
from workbench.importers.formats.openhands import is_openhands, read_openhands
from workbench.importers.formats.otel import is_openinference, is_otel, read_openinference, read_otel
from workbench.importers.formats.promptfoo import is_promptfoo, read_promptfoo
from workbench.importers.formats.pydantic_ai import is_pydantic_ai, read_pydantic_ai
from workbench.importers.formats.run_state import is_run_state, read_run_state
from workbench.importers.formats.sessions import is_session, read_session
from workbench.importers.formats.smolagents import is_smolagents, read_smolagents
from workbench.importers.formats.swe_agent import is_mini, is_swe_agent, read_mini, read_swe_agent
from workbench.importers.formats.temporal import is_temporal, read_temporal
from workbench.importers.formats.toolbench import is_toolbench, read_toolbench
from workbench.importers.formats.tracers import is_tracer, read_tracer
from workbench.importers.formats.vcr import is_vcr, read_vcr
from workbench.importers.formats.zed import is_zed, read_zed
from workbench.importers.values import mapping


class Format(Struct, frozen=True):
    """A kind of file that can be imported."""

    name: str
    title: str
    marks: str
    """The evidence that a file is of this kind, as it is shown."""
    detect: Callable[[Any], bool]
    """Whether JSON is of this kind; looks at its shape alone."""
    read: Callable[[Any], list[Conversation]]
    """The conversations in it. Raises Unreadable."""


FORMATS = (
    Format("inspect", "an Inspect log", "'eval' beside samples, or events of models", is_inspect, read_inspect),
    Format("langfuse", "a LangFuse trace", "observations with types and start times", is_langfuse, read_langfuse),
    Format("langfuse-case", "a LangFuse test case", "messages by observation", is_expected, read_expected),
    Format("langsmith", "LangSmith runs", "'run_type' beside 'inputs'", is_langsmith, read_langsmith),
    Format("swe-agent", "a SWE-agent trajectory", "'history' beside 'trajectory'", is_swe_agent, read_swe_agent),
    Format("openhands", "an OpenHands event history", "events with sources", is_openhands, read_openhands),
    Format("tau-bench", "a tau-bench result", "'traj' with messages", is_tau_bench, read_tau_bench),
    Format(
        "openinference", "OpenInference spans (Phoenix)", "spans with 'llm.*'", is_openinference, read_openinference
    ),
    Format("otel", "OpenTelemetry GenAI spans", "spans with 'gen_ai.*'", is_otel, read_otel),
    Format("temporal", "a Temporal workflow history", "events with 'eventType'", is_temporal, read_temporal),
    Format("adk", "a Google ADK session or evaluation set", "events or turns with parts", is_adk, read_adk),
    Format("atif", "an ATIF trajectory", "'steps' with sources beside 'agent'", is_atif, read_atif),
    Format("bfcl", "a result of BFCL", "'inference_log' with turns", is_bfcl, read_bfcl),
    Format("managed-agents", "events of a managed agent", "'agent.' events", is_managed, read_managed),
    Format("zed", "a thread of Zed", "messages of Zed's kinds or segments", is_zed, read_zed),
    Format("antigravity", "steps of Antigravity", "a planner's response", is_antigravity, read_antigravity),
    Format("burr", "a Burr log", "entries with 'sequence_id'", is_burr, read_burr),
    Format("toolbench", "a ToolBench answer", "'answer_generation'", is_toolbench, read_toolbench),
    Format("tracer", "spans of a tracer of model calls", "spans with a tracer's fields", is_tracer, read_tracer),
    Format("run-state", "a run state of the OpenAI Agents SDK", "'model_responses'", is_run_state, read_run_state),
    Format("lm-eval", "samples of lm-eval", "'arguments' beside 'resps'", is_lm_eval, read_lm_eval),
    Format("promptfoo", "a promptfoo result", "results with prompts", is_promptfoo, read_promptfoo),
    Format("vcr", "a recording of HTTP requests (VCR, HAR)", "interactions with requests", is_vcr, read_vcr),
    Format("llm-log", "a logged request with its response", "a request beside its response", is_log, read_log),
    Format("session", "a session of a coding agent", "lines that wrap messages or items", is_session, read_session),
    Format("pydantic-ai", "messages of Pydantic AI", "'part_kind' of parts", is_pydantic_ai, read_pydantic_ai),
    Format("smolagents", "the memory of an agent of smolagents", "steps with times", is_smolagents, read_smolagents),
    Format("mini-swe-agent", "a mini-swe-agent trajectory", "its format's name, or return codes", is_mini, read_mini),
    Format(
        "anthropic",
        "a list of Anthropic messages",
        "Anthropic's blocks, or 'system' beside",
        is_anthropic,
        read_chat,
    ),
    Format("openai", "a list of OpenAI messages", "messages with roles", is_openai, read_chat),
)
"""In the order in which they are tried: more specific formats come first."""

BY_NAME = {format.name: format for format in FORMATS}


def detect(body: Any) -> Format | None:
    """The first format whose shape the JSON has: none has that of an empty value."""
    if not body:
        return None
    return next((format for format in FORMATS if format.detect(body)), None)


def others_of(body: Any, chosen: Format) -> tuple[str, ...]:
    """Names of the further formats that the JSON could be read as."""
    return tuple(format.name for format in FORMATS if format is not chosen and format.detect(body))


def _has(*keys: str) -> Callable[[Any], bool]:
    return lambda body: all(key in mapping(body) for key in keys)


def _first_has(*keys: str) -> Callable[[Any], bool]:
    return lambda body: isinstance(body, list) and bool(body) and all(key in mapping(body[0]) for key in keys)


def _has_interactions(body: Any) -> bool:
    return bool(mapping(body).get("interactions"))


def _spans(body: Any) -> bool:
    first = mapping(body[0] if isinstance(body, list) and body else body)
    return "attributes" in first and any(key in first for key in ("spanContext", "traceId", "context", "span_id"))


_BATCH = "answers of a batch, whose requests are in the file that was sent to the provider"


def _is_shown(body: Any) -> bool:
    """What Cline and the programs made from it (Roo Code, Kilo Code) write as ``ui_messages.json``."""
    first = mapping(body[0] if isinstance(body, list) and body else None)
    return "ts" in first and ("say" in first or "ask" in first)


_OTHERS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("the graph of a Burr application, which records no run", _has("actions", "transitions")),
    ("the metadata of a Burr application, whose run is in its log", _has("partition_key", "parent_pointer")),
    ("a Burr test case, which states what a step should do and records no call", _has("action", "input_state")),
    ("a Burr test case, which states what a step should do and records no call", _first_has("action", "input_state")),
    ("spans, none of which says that it is a call of a model", _spans),
    ("spans, none of which says that it is a call of a model", _has("resourceSpans")),
    ("spans, none of which says that it is a call of a model", _has("resource_spans")),
    ("a recording of something else than requests with their responses", _has_interactions),
    (
        "a log of CrewAI's tasks, which states their outputs and no request to a model",
        _first_has("task_name", "agent", "status"),
    ),
    ("Aider's log of its use, which states numbers and no messages", _has("event", "properties", "user_id")),
    (_BATCH, _has("stage", "batch", "results")),
    (_BATCH, _has("custom_id", "response")),
    ("what Cline shows of a task, whose messages are in api_conversation_history.json beside it", _is_shown),
    ("a test run of DeepEval without traces, which states no request to a model", _has("testCases")),
    (
        "a result of BFCL without its log: its question is in the data of the leaderboard",
        _has("result", "latency", "input_token_count"),
    ),
    ("a promptfoo result without cases", _has("evalId", "results")),
    ("a recording of HTTP requests (VCR) without interactions", _has("interactions")),
    ("a spoken simulation of tau-bench, whose ticks are not messages", _has("task_id", "ticks")),
    ("a cascade, which `workbench run` runs", _has("cascade_id")),
    ("a run journal's line", _has("run_id", "seq", "kind")),
)


def looks_like(body: Any) -> str:
    """Guesses the kind of JSON that is no format of the table."""
    for words, is_it in _OTHERS:
        if is_it(body):
            return words
    if isinstance(body, dict):
        keys = ", ".join(repr(key[:24]) for key in list(body)[:6])
        return f"a JSON object with {keys}" if keys else "an empty JSON object"
    if isinstance(body, list):
        inner = looks_like(body[0]) if body and isinstance(body[0], dict) else type(body[0]).__name__ if body else ""
        return f"a JSON list of {len(body)}, the first {inner}" if inner else "an empty JSON list"
    return f"a JSON {type(body).__name__}"
