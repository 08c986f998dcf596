"""Options and flags that follow from what the model probe found."""

import math
import shlex
from collections.abc import Mapping, Sequence

from owa_bench.hosting.gateway.probe_requests import CAPS, ProbeState

_DEFAULT_CONTEXT = 32_768
_LEAST_CONTEXT = 1_024
_THINKING_CAP = 4_096
_PLAIN_CAP = 512  # tokens of an ordinary reply
_ACT_S = 60.0  # run's default for one act
_SHARE = 0.5  # of it that a reply may need before more is advised
_OUT = "runs/first"


def options_of(state: ProbeState, verdicts: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's options for a server.

    Args:
        state: What the checks found.
        verdicts: By finding.
    Returns: Options of the agent `language-model`, in their order.
    """
    options = {"model": state.model}
    if state.cap == CAPS[1]:
        options |= {"max_tokens": "none", CAPS[1]: f"{_THINKING_CAP}"}
    elif not state.cap and state.refused_caps:
        options["max_tokens"] = "none"
    elif state.thinks:
        options["max_tokens"] = f"{_THINKING_CAP}"
    if verdicts["temperature=0"] == "refused":
        options["temperature"] = "none"
    if verdicts["seed"] == "refused":
        options["seed"] = "none"
    if verdicts["tools"] != "yes" and verdicts["tool_choice=required"] == "yes":
        options["tool_choice"] = "required"
    lengths = (state.context_told, state.context_limit)
    shortest = min((length for length in lengths if length), default=_DEFAULT_CONTEXT)
    if shortest < _DEFAULT_CONTEXT:
        options["context"] = f"{max(shortest, _LEAST_CONTEXT)}"
    if (seconds := _act_seconds(state)) > _ACT_S:
        options["timeout"] = f"{0.8 * seconds:.0f}"
    return options


def flags_of(state: ProbeState) -> dict[str, str]:
    """Return the flags of `run` for a server, those of its key apart."""
    flags = {"--model-url": state.client.base}
    if (seconds := _act_seconds(state)) > _ACT_S:
        flags["--act-seconds"] = f"{seconds:.0f}"
    return flags


def _act_seconds(state: ProbeState) -> float:
    """Return the seconds that one act should have, by the speed measured."""
    speed = state.tokens_per_second
    if not speed:
        return _ACT_S
    need = (_THINKING_CAP if state.thinks else _PLAIN_CAP) / speed
    if need <= _SHARE * _ACT_S:
        return _ACT_S
    return _ACT_S * math.ceil(need / _SHARE / _ACT_S)


def command_of(
    options: Mapping[str, str], flags: Mapping[str, str], headers: Sequence[str] = ()
) -> str:
    """Return the command that plays a first run, to be pasted into a shell.

    Args:
        options: Of the agent.
        flags: Of `run`, that of the key too.
        headers: NAME=ENV_VARIABLE of other headers.
    """
    agent = ",".join(f"{name}={value}" for name, value in options.items())
    words = ["owa-bench", "run", "--suite", "toolquest", "--tier", "1", "--out", _OUT]
    for name, value in flags.items():
        words += [name, value]
    for header in headers:
        words += ["--model-header", header]
    return shlex.join([*words, "--agent", f"language-model:{agent}"])
