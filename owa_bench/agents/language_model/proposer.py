"""Proposer of SelfRev: a chat model says what to test, a scripted rule adopts.

The model is asked once, before anything is played, which components are worth a test. What it says
chooses the tests and their order; it adopts nothing, so the error rates of the rule hold whatever
it says.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from owa_bench.agents.language_model.conversation import task_prompt
from owa_bench.agents.language_model.endpoint import (
    KNOWN,
    REQUIRED,
    ChatEndpoint,
    ModelOptions,
    parse_options,
    server_of,
)
from owa_bench.agents.language_model.replies import actions
from owa_bench.agents.solvers.revision.acceptors import ACCEPTORS, RevisionAgent, names_of
from owa_bench.errors import AgentRaised, FieldError, one_of
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec

_ACCEPTOR = "acceptor"
_DEFAULT = "bonferroni"
_UNUSED = ("memory", "screenshots", "context")
_OPTIONS = {name: about for name, about in KNOWN.items() if name not in _UNUSED}
_SYSTEM = (
    "You improve a program by changing its settings. Each component below is one "
    "change. Tests are few, and most changes do nothing. Call the tool once with the "
    "names of the components that are worth a test, the most promising first."
)


def _model_options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name != _ACCEPTOR}


class ModelProposer:
    """Asks a chat model which components of a campaign are worth a test.

    Args:
        config: Options of the model, and its server in the environment.
        connect: Opens the endpoint.
    """

    def __init__(
        self,
        config: AgentConfig,
        connect: Callable[[ModelOptions, str, str], ChatEndpoint] = ChatEndpoint,
    ) -> None:
        self._config = config
        self._connect = connect

    def __call__(self, brief: Brief) -> Sequence[str]:
        """Return the names, each once; what is no component is left out.

        Args:
            brief: Of the campaign.
        Raises: AgentRaised: The server fails, or the model calls no tool.
        """
        given = parse_options(_model_options(self._config.options))
        names = names_of(brief.goal)
        tool = ToolSpec(
            name="test_components",
            about="Name the components to test, the most promising first.",
            parameters={
                "type": "object",
                "properties": {
                    "components": {"type": "array", "items": {"type": "string", "enum": names}}
                },
                "required": ["components"],
            },
        )
        body: dict[str, Any] = {
            "model": given.model,
            "messages": [
                {"role": "system", "content": _SYSTEM},
                {"role": "user", "content": task_prompt(brief)},
            ],
            "tools": [tool.function],
        }
        if given.temperature is not None:
            body["temperature"] = given.temperature
        server = server_of(self._config.environment)
        endpoint = self._connect(given, *server)
        try:
            reply = endpoint.ask(body, given.timeout)
            said = json.loads(actions(reply, [tool.name])[0])["arguments"]
        except ValueError as error:
            raise AgentRaised(f"the model proposed nothing: {error}") from error
        finally:
            endpoint.close()
        chosen = said.get("components") if isinstance(said, dict) else None
        if not isinstance(chosen, list):
            raise AgentRaised(
                f"the model must name a list of `components`, got {str(said)[:120]!r}"
            )
        return [name for name in dict.fromkeys(map(str, chosen)) if name in names]


def _make(config: AgentConfig) -> RevisionAgent:
    rule = config.options.get(_ACCEPTOR, _DEFAULT)
    if rule not in ACCEPTORS:
        raise FieldError(_ACCEPTOR, rule, one_of(rule, ACCEPTORS))
    return RevisionAgent(ACCEPTORS[rule], ModelProposer(config))


PROPOSER = AgentCard(
    name="model_proposer",
    about="A chat model says what to test; a rule (acceptor=) adopts.",
    make=_make,
    suites=("selfrev",),
    options={**_OPTIONS, _ACCEPTOR: f"{', '.join(ACCEPTORS)}; {_DEFAULT} if left out"},
    required=REQUIRED,
    asks_model=True,
)
