"""Agents that look at nothing and state how often propositions of a class are true."""

from importlib.resources import files

from owa_bench.records import protocol

TABLE = (files("owa_bench.protocols") / "default.toml").read_bytes()
REFERENCES = protocol.load(TABLE).world_model.references


class StatesRates:
    """States the protocol's reference of each proposition, which its wording tells."""

    def reset(self, brief, tools, memory_dir):
        self.beliefs = {
            name: self.rate(self.class_of(name, text)) for name, text in brief.propositions.items()
        }

    def class_of(self, name, text):
        if name.startswith("claim-"):
            return f"multicrew/{kind_of_crew_claim(text)}"
        if "/" in name:
            return f"projforge_fast/{name.partition('/')[0]}"
        kind, is_claim = name.partition("-")[::2]
        if kind == "docs":
            kind += "_differ" if "differ from" in text else "_agree"
        return f"{'toolquest' if is_claim else 'changesurf'}/{kind}"

    def rate(self, name):
        return REFERENCES[name]

    def act(self, observation, info):
        beliefs = self.beliefs
        return {"tool": "finish", "arguments": {"p": 0.0, "beliefs": beliefs}}

    def close(self):
        pass


def kind_of_crew_claim(text):
    if "last digit" in text:
        return "in_force"
    return "owner" if "keeps" in text else "contested"


class StatesSureRates(StatesRates):
    """Rounds each rate to what it would be where drift is strongest: 0 or 1."""

    def rate(self, name):
        return {"toolquest/docs_agree": 0.0, "toolquest/docs_differ": 1.0}.get(
            name, super().rate(name)
        )
