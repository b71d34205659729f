"""A small agent without any library: it asks a model of OpenAI's API, runs the tool that it asks for, and goes on.

    workbench attach --offline -- python examples/agent.py

It reads the address and the key that OpenAI's own clients read, so that it talks to whatever they say.
"""

import json
import os
import urllib.request
from pathlib import Path

ADDRESS = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
KEY = os.environ.get("OPENAI_API_KEY", "")
MODEL = "gpt-4.1-mini"
TOOL = {
    "type": "function",
    "function": {
        "name": "count_words",
        "description": "Count the words of a file.",
        "parameters": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]},
    },
}


def ask(messages: list[dict]) -> dict:
    """The model's next message."""
    body = json.dumps({"model": MODEL, "messages": messages, "tools": [TOOL]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{ADDRESS}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def count_words(file: str) -> str:
    """The tool: words of a text file of this folder."""
    try:
        return str(len(Path(Path(file).name).read_text("utf-8").split()))
    except OSError as fault:
        return f"error: {fault.strerror}"


def main() -> None:
    messages = [
        {"role": "system", "content": "You answer in one sentence. Use the tool to count, never guess."},
        {"role": "user", "content": "Which is longer, README.md or LICENSE?"},
    ]
    for _ in range(8):
        answer = ask(messages)
        messages.append(answer)
        for call in answer.get("tool_calls") or []:
            result = count_words(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if not answer.get("tool_calls"):
            print(answer["content"])
            return


if __name__ == "__main__":
    main()
