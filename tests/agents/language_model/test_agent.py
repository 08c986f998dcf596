"""The agent between a brief and a scripted model, no server."""

import json

import httpx
import pytest

from owa_bench.agents.language_model.agent import MOST_MALFORMED, ROUNDS, LanguageModelAgent
from owa_bench.agents.language_model.endpoint import ChatEndpoint
from owa_bench.errors import AgentRaised
from owa_bench.interfaces import AgentConfig, Brief, ToolSpec
from tests.builders.stub_server import completion

TOOLS = tuple(
    ToolSpec(name=name, about="A tool.", parameters={"type": "object"})
    for name in ("http", "wait", "finish")
)
BRIEF = Brief(text="Do it.", goal={"family": "x"}, budgets={"act_s": 60.0}, seed=5)


class Model:
    """Replies in order (the last for ever) and keeps the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[dict] = []

    def __call__(self, request):
        self.requests.append(json.loads(request.content))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = answer(self.requests[-1])
        if isinstance(answer, tuple):
            return httpx.Response(answer[0], json={"error": {"message": answer[1]}})
        return httpx.Response(200, json=answer)

    def agent(self, tmp_path, brief=BRIEF, **changes):
        given = {"model": "m", "retries": "0", **changes}

        def connect(options, url, key):
            return ChatEndpoint(options, url, key, transport=httpx.MockTransport(self))

        variables = {"OPENAI_BASE_URL": "http://x/v1"}
        config = AgentConfig(options=given, environment=variables)
        agent = LanguageModelAgent(config, connect)
        agent.reset(brief, TOOLS, tmp_path)
        return agent


def act(agent, text="ok"):
    return agent.act({"text": text}, {})


def test_calls_become_actions_and_results_go_back(tmp_path):
    model = Model(
        completion(("http", {"url": "a"}), ("wait", {"seconds": 1})),
        completion(("finish", {"p": 0.7})),
    )
    agent = model.agent(tmp_path)
    moves = [act(agent, text) for text in ("the brief", "result a", "waited")]
    assert [json.loads(move.action)["tool"] for move in moves] == ["http", "wait", "finish"]
    assert json.loads(moves[2].action)["arguments"] == {"p": 0.7}
    assert len(model.requests) == 2
    told = model.requests[1]["messages"]
    assert [m["role"] for m in told] == ["system", "user", "assistant", "tool", "tool"]
    assert [m["content"] for m in told[3:]] == ["result a", "waited"]


def test_nothing_is_declared_for_the_gateway_counts(tmp_path):
    move = act(Model(completion(("http", {}), ("wait", {}))).agent(tmp_path))
    assert (move.usage, move.model_calls) == ((), ())


def test_the_seed_is_the_instances_or_the_given_one(tmp_path):
    def seed(brief=BRIEF, **changes):
        model = Model(completion(("http", {})))
        act(model.agent(tmp_path, brief, **changes))
        return model.requests[0].get("seed")

    other = Brief(text="Do it.", goal={}, seed=6)
    assert seed() == seed() != seed(other)
    assert seed(seed="3") == seed(other, seed="3") == 3
    assert seed(seed="none") is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (completion(content="I think so."), "no tool call"),
        (completion(("http", "{not json")), "no JSON"),
        (completion(("http", "[1]")), "no JSON object"),
        (completion(("fly", {})), "there is no tool 'fly'"),
    ],
)
def test_a_malformed_reply_is_answered_once_and_mended(tmp_path, wrong, says):
    model = Model(wrong, completion(("wait", {"seconds": 2})))
    move = act(model.agent(tmp_path))
    assert json.loads(move.action)["tool"] == "wait"
    assert says in model.requests[1]["messages"][-1]["content"]


def test_malformed_twice_is_the_action_itself(tmp_path):
    model = Model(completion(("http", "{not json")))
    agent = model.agent(tmp_path)
    move = act(agent)
    assert json.loads(move.action) == {"tool": "http", "arguments": "{not json"}
    act(agent, "error: arguments must be an object")
    told = model.requests[2]["messages"][-1]
    assert told == {"role": "user", "content": "error: arguments must be an object"}


def test_a_reply_is_played_though_the_second_request_fails(tmp_path):
    agent = Model(completion(content="hm"), (401, "expired")).agent(tmp_path)
    move = act(agent)
    assert move.action == "hm"
    with pytest.raises(AgentRaised, match="expired; check the key"):
        act(agent)


def test_prose_for_ever_is_an_endless_loop(tmp_path):
    answers = [completion(content=f"thought {i}") for i in range(2 * MOST_MALFORMED)]
    agent = Model(*answers).agent(tmp_path)
    for _ in range(MOST_MALFORMED - 1):
        act(agent)
    with pytest.raises(AgentRaised, match=r"endless loop.*support tool calls"):
        act(agent)


@pytest.mark.parametrize("length", [1, 3])
def test_going_in_circles_is_an_endless_loop(tmp_path, length):
    circle = [completion(("http", {"url": str(i)})) for i in range(length)]
    agent = Model(*circle * (ROUNDS + 1)).agent(tmp_path)
    for _ in range(length * ROUNDS - 1):
        act(agent)
    with pytest.raises(AgentRaised, match=f"endless loop: the same {length} call"):
        act(agent)


def test_waiting_between_pages_is_no_endless_loop(tmp_path):
    pages = [completion(("http", {"page": i}), ("wait", {})) for i in range(4 * ROUNDS)]
    agent = Model(*pages).agent(tmp_path)
    for _ in range(6 * ROUNDS):
        act(agent)


def test_one_call_for_page_after_page_is_no_endless_loop(tmp_path):
    model = Model(*[completion(("wait", {}))] * (3 * ROUNDS))
    agent = model.agent(tmp_path)
    for i in range(2 * ROUNDS):
        act(agent, f"page {i}")


def strict(limit):
    """Return a model that refuses requests of more than `limit` characters."""

    def answer(request):
        if len(json.dumps(request["messages"])) > limit:
            return 400, "maximum context length exceeded"
        return completion(("http", {"n": len(request["messages"])}))

    return answer


def test_a_request_too_long_for_the_server_is_shortened(tmp_path):
    model = Model(strict(30_000))
    agent = model.agent(tmp_path)
    for i in range(30):
        act(agent, f"result {i} " + "x" * 3000)
    sizes = [len(json.dumps(request["messages"])) for request in model.requests]
    assert max(sizes) > 30_000  # one was refused, and a shorter one taken
    assert all("Do it." in r["messages"][1]["content"] for r in model.requests)


def test_a_context_that_cannot_be_met_fails_and_says_so(tmp_path):
    agent = Model((400, "maximum context length exceeded")).agent(tmp_path)
    with pytest.raises(AgentRaised, match="context="):
        act(agent)


def test_the_shortest_request_is_tried_before_an_overflow_ends_the_episode(tmp_path):
    """The room is estimated: a server with more than was said is not doubted."""
    model = Model(completion(("http", {})))
    agent = model.agent(tmp_path, context="4096")
    act(agent)
    act(agent, "x" * 50_000)
    assert "x" * 50_000 in model.requests[-1]["messages"][-1]["content"]


def test_notes_outlast_the_process_and_cost_no_step(tmp_path):
    keep = completion(("remember", {"text": "seven"}))
    model = Model(keep, completion(("wait", {"seconds": 1})))
    move = act(model.agent(tmp_path, memory="true"), "Do it.")
    assert json.loads(move.action)["tool"] == "wait"
    assert model.requests[1]["messages"][-1]["content"].startswith("kept, 5 of ")
    later = Model(completion(("finish", {})))
    act(later.agent(tmp_path, memory="true"), "Do it.")
    brief = later.requests[0]["messages"][1]["content"]
    assert brief.endswith("Your notes from before the break:\nseven")
    plain = Model(completion(("finish", {})))
    act(plain.agent(tmp_path), "Do it.")
    assert "seven" not in json.dumps(plain.requests)
    assert "remember" not in json.dumps(plain.requests)


def test_notes_over_the_quota_are_refused_and_the_old_ones_stay(tmp_path):
    brief = Brief(text="Do it.", goal={}, budgets={"memory_bytes": 14})
    notes = [completion(("remember", {"text": text})) for text in ("seven", "x" * 6)]
    model = Model(*notes, completion(("wait", {})))
    act(model.agent(tmp_path, brief, memory="true"))
    assert "may have 5 bytes, got 6" in model.requests[2]["messages"][-1]["content"]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["seven"]


def test_a_model_that_only_takes_notes_ends_the_episode(tmp_path):
    agent = Model(completion(("remember", {"text": "x"}))).agent(tmp_path, memory="true")
    with pytest.raises(AgentRaised, match="only rewrote the notes"):
        act(agent)


def test_what_the_episode_shows_at_first_stands_below_the_brief(tmp_path):
    model = Model(completion(("wait", {})))
    act(model.agent(tmp_path), "Do it.\n\nDay 0, page.\nNotice 1.")
    brief = model.requests[0]["messages"][1]["content"]
    assert brief.count("Do it.") == 1
    assert brief.endswith("\n\nDay 0, page.\nNotice 1.")
