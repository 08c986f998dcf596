"""Tool calls that a model wrote into its text, where the server did not read them."""

import re
from collections.abc import Collection, Mapping
from typing import Any

PARSER = (
    "the server does not read the model's tool calls: start it with the tool parser of "
    "this model (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; SGLang: "
    "--tool-call-parser NAME; llama.cpp: --jinja; Ollama: take a model marked `tools`)"
)
_MARKS = re.compile(
    r"<[|｜]?/?(\w+:)?tool[_▁]?calls?|\[TOOL_CALLS\]|<function[=_ ]|<\|python_tag\|>|"
    r"<invoke name=|<\|channel\|>commentary to=|functions\.\w+[:(]|functools\[|"
    r'```tool_code|"(?:tool_calls?|function_call)"\s*:',
    re.IGNORECASE,
)
_NAMED = re.compile(r'"(?:name|tool|function)"\s*:\s*"([^"]+)"')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters|args)"\s*:')
_AS_CODE = re.compile(r"\[?\s*(\w+)\(.*\)\s*\]?", re.DOTALL)
_THOUGHTS = ("reasoning_content", "reasoning")


def said_in(message: Mapping[str, Any]) -> str:
    """Return the text of a message; what it only thought, where it says nothing."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str) and content.strip():
        return content
    thoughts = [message.get(name) for name in _THOUGHTS]
    return "\n".join(text for text in thoughts if isinstance(text, str))


def is_call_as_text(text: str, tools: Collection[str]) -> bool:
    """Return whether a text holds a tool call in one of the forms that models write.

    Args:
        text: Of a reply without tool calls.
        tools: Names of the tools there are.
    Returns: True for a mark of a call, for JSON that names one of the tools, and for a text that is
        nothing but a call of one as code.
    """
    if _MARKS.search(text):
        return True
    if _ARGUMENTS.search(text) and any(n in tools for n in _NAMED.findall(text)):
        return True
    code = _AS_CODE.fullmatch(text.strip())
    return code is not None and code[1] in tools
