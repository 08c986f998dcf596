"""Sessions for trainers: the native episode as a chat, many at once, errors that help."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import owa_bench
from owa_bench.agents.language_model.conversation import SYSTEM
from owa_bench.errors import FieldError, UnknownNameError, UsageError
from owa_bench.runs.episode_session import calls_of_text
from tests.builders.episode_scripts import OPTIONS, SEED, event_lines, native_episode


@pytest.fixture(scope="module")
def native():
    return native_episode()


def open_one(**options):
    return owa_bench.open_episode("toolquest", SEED, **{**OPTIONS, **options})


def play(session, calls):
    return [session.call(call["tool"], call["arguments"]) for call in calls]


def test_a_session_is_the_native_episode_and_leaves_its_events(native, tmp_path):
    with open_one(record=tmp_path) as session:
        replies = play(session, native.calls)
    assert [reply.text for reply in replies] == native.texts
    assert session.reward == sum(reply.reward for reply in replies) == native.reward == 1.0
    assert [reply.done for reply in replies] == [False] * (len(replies) - 1) + [True]
    assert session.success
    assert session.steps == len(native.calls)
    assert replies[-1].info["q_state"] == 1.0
    assert event_lines(tmp_path / "000000.jsonl") == native.lines


def test_another_call_leaves_other_events(native, tmp_path):
    """The control of the comparison: one note more is seen."""
    with open_one(record=tmp_path) as session:
        session.call("note", {"text": "one more"})
        play(session, native.calls)
    assert event_lines(tmp_path / "000000.jsonl") != native.lines


def test_a_record_holds_the_texts_that_its_events_name(native, tmp_path):
    with open_one(record=tmp_path) as session:
        play(session, native.calls)
    lines = [json.loads(line) for line in (tmp_path / "000000.jsonl").read_text().splitlines()]
    texts = {line["blob"]: line["text"] for line in lines if line.keys() == {"blob", "text"}}
    actions = [line for line in lines if line.get("event") == "action"]
    assert [texts[action["observation"]] for action in actions] == native.texts
    assert lines[0]["instance"]["seed"] == SEED


def test_the_first_messages_are_those_of_the_chat_agent(tmp_path):
    """The agent `language-model` plays the same task in a run; its request is compared."""
    from owa_bench.agents.language_model.agent import LanguageModelAgent
    from owa_bench.interfaces import AgentConfig, Brief

    with open_one() as session:
        shell = session._shell
        task = shell.task
        brief = Brief(
            text=task.text,
            goal=task.goal,
            propositions=task.propositions,
            budgets={"steps": float(shell.step_limit)},
            interventions_left=0,
        )
        asked = {}

        class Chat:
            def ask(self, body, _deadline_s):
                asked.update(body)
                raise RuntimeError

        config = AgentConfig(options={"model": "m"}, environment={"OPENAI_BASE_URL": "http://x/v1"})
        agent = LanguageModelAgent(config, lambda *_: Chat())
        agent.reset(brief, shell.offered, tmp_path)
        observation, _ = session._env.reset(seed=SEED)
        with pytest.raises(RuntimeError):
            agent.act(observation, {})
        assert session.messages == [dict(message) for message in asked["messages"]]
        assert session.tools == asked["tools"]
        assert session.prompt == f"{SYSTEM}\n\n{session.messages[1]['content']}"


def test_the_conversation_holds_what_was_called_and_answered():
    """The attack on a trainer: a loop that passes `messages` on and shows the model nothing new."""
    with open_one() as session:
        first = session.messages
        answers = [
            session.call("note", {"text": "a"}).text,
            session.call("note", '{"text": "b"}').text,
        ]
        grown = session.messages
        assert grown[:2] == first
        assert [message["role"] for message in grown[2:]] == ["assistant", "tool"] * 2
        called = [message["tool_calls"][0] for message in grown[2::2]]
        assert [call["function"]["name"] for call in called] == ["note", "note"]
        assert [json.loads(call["function"]["arguments"])["text"] for call in called] == ["a", "b"]
        assert [message["tool_call_id"] for message in grown[3::2]] == [one["id"] for one in called]
        assert [message["content"] for message in grown[3::2]] == answers
        assert session.prompt == "\n\n".join(message["content"] for message in first)
        grown.clear()
        assert len(session.messages) == 6


def test_a_model_of_text_alone_reads_the_same_conversation():
    said = '<tool_call>{"name": "note", "arguments": {"text": "a"}}</tool_call>'
    with open_one() as session, open_one() as other:
        answer = session.say(said).text
        assert other.call("note", {"text": "a"}).text == answer
        assert session.messages[2:] == [
            {"role": "assistant", "content": said},
            {"role": "user", "content": answer},
        ]
        texts = session.text_messages
        assert "<tools>" in texts[0]["content"]
        assert texts[2:] == session.messages[2:]
        assert calls_of_text(other.text_messages[2]["content"]) == calls_of_text(said)
        assert other.text_messages[3]["content"] == answer


def test_a_new_sitting_begins_the_conversation_anew():
    with owa_bench.open_episode("recall", 3, tier=1, family="spaced") as session:
        first = session.messages
        for name, arguments in session.solution():
            reply = session.call(name, arguments)
            if reply.info.get("sitting"):
                break
        system, shown = session.messages
        assert system == first[0]
        assert shown == {"role": "user", "content": reply.text}
        assert session.prompt.endswith(reply.text)


def test_a_group_begins_again_on_one_instance():
    with owa_bench.open_group("toolquest", SEED, 3, **OPTIONS) as group:
        group[0].call("note", {"text": "a"})
        group.reset(SEED + 1)
        assert len({session.instance for session in group}) == 1
        assert all(session.steps == 0 for session in group)
        assert len({session.prompt for session in group}) == 1


def test_what_the_env_shows_beside_the_task_stands_below_it():
    with owa_bench.open_episode("multicrew", 3, seat_policy="one_reader") as session:
        text = session.messages[1]["content"]
        assert "You play every seat" in text
        assert {tool["type"] for tool in session.tools} == {"function"}


@pytest.mark.parametrize(
    ("suite", "options"),
    [("recall", {}), ("projforge_fast", {}), ("multicrew", {"seat_policy": "one_reader"})],
)
def test_suites_with_tools_have_sessions(suite, options):
    with owa_bench.open_episode(suite, 3, **options) as session:
        assert session.call("note", {"text": "a"}).reward == 0.0
        session.call("declare_infeasible", {"p": 0.0})
        assert session.steps == 2


def test_shaping_pays_as_solved_and_sums_to_the_same(native):
    with open_one(shaping=True) as session:
        rewards = [reply.reward for reply in play(session, native.calls)]
    assert sum(1 for reward in rewards[:-1] if reward > 0) > 1
    assert session.reward == pytest.approx(native.reward)


@pytest.mark.parametrize(
    ("tool", "arguments", "pay"),
    [
        ("finish", {}, 0.075),
        ("finish", {"p": 0.0}, 0.1),
        ("finish", {"p": 1.0}, 0.0),
        ("declare_infeasible", {"p": 0.0}, 0.1),
    ],
)
def test_giving_up_at_once_pays_the_forecast_alone(tool, arguments, pay):
    """Q = .9 q_state + .1 (1 - p^2) where nothing is reached."""
    with open_one() as session:
        reply = session.call(tool, arguments)
    assert (reply.reward, reply.done, reply.info["q_state"]) == (pay, True, 0.0)
    assert not session.success


@pytest.mark.parametrize(
    "suite_family", [("toolquest", "restock"), ("recall", "n_back"), ("recall", "literacy")]
)
@pytest.mark.parametrize("ending", ["finish", "declare_infeasible"])
def test_with_q_state_giving_up_pays_nothing(suite_family, ending):
    """The forecast of the failure is what it would be paid for: the control is Q."""
    suite, family = suite_family
    paid = {}
    for reward in ("quality", "q_state"):
        with owa_bench.open_episode(suite, SEED, family=family, reward=reward) as session:
            paid[reward] = session.call(ending, {"p": 0.0}).reward
    assert paid == {"quality": 0.1, "q_state": 0.0}


def test_with_q_state_a_forecast_moves_nothing(native):
    for p in (0.0, 1.0):
        with open_one(reward="q_state") as session:
            *work, _ = native.calls
            play(session, work)
            session.call("finish", {"p": p})
        assert session.reward == 1.0


def test_q_state_is_paid_as_it_is_earned_and_kept(native):
    """With shaping: the sum is q_state at the end, also where the steps run out."""
    with open_one(reward="q_state", shaping=True) as session:
        replies = play(session, native.calls)
    assert session.reward == pytest.approx(1.0)
    assert sum(reply.reward > 0 for reply in replies[:-1]) > 1
    options = {"family": "n_back", "shaping": True, "reward": "q_state", "step_limit": 9}
    with owa_bench.open_episode("recall", SEED, **options) as session:
        earned = [session.call(*call).reward for call in session.solution()[:8]]
        last = session.call("go_on")
    assert all(pay > 0 for pay in earned[1:])
    assert last.done
    assert session.reward == pytest.approx(last.info["q_state"])
    assert 0.0 < session.reward < 0.5


def test_the_solution_of_a_session_is_the_oracles(native):
    with open_one() as session:
        for call in session.solution():
            session.call(*call)
    assert session.success
    assert session.reward == native.reward


def test_the_supervisor_is_asked_only_where_it_is_allowed():
    with owa_bench.open_episode("toolquest", SEED) as session:
        refused = session.call("ask_supervisor", {"question": "?"})
    assert "at most 0 times" in refused.info["error"]
    with owa_bench.open_episode("toolquest", SEED, interventions=1) as session:
        assert "next right step" in session.call("ask_supervisor", {"question": "?"}).text


# --- what a model says ----------------------------------------------------------------


def marked(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "note", "arguments": {"text": "a"}}',
        '{"name": "note", "arguments": {"text": "a"}}',
        '{"name": "note", "parameters": {"text": "a"}}',
        '```json\n{"name": "note", "arguments": {"text": "a"}}\n```',
        "I keep it.\n" + marked("note", text="a"),
        "<think>or " + marked("finish") + "?</think>" + marked("note", text="a"),
        '<tool_call>{"name": "note", "arguments": "{\\"text\\": \\"a\\"}"}',
    ],
)
def test_a_call_is_read_in_the_forms_that_models_write(text):
    with open_one() as session:
        assert session.say(text).text == "noted (1)"
        assert session.steps == 1


def test_every_call_of_a_text_is_a_step_until_the_end():
    text = marked("note", text="a") + marked("finish", p=0) + marked("note", text="late")
    with open_one() as session:
        reply = session.say(text)
        assert (session.steps, reply.done, reply.reward) == (2, True, 0.1)
        assert reply.text == "noted (1)\n\nThe episode has ended."


@pytest.mark.parametrize("text", ["", "I am done.", "<think>" + marked("finish"), '{"tool": 3}'])
def test_a_text_without_a_call_costs_a_step_and_is_told_the_form(text):
    with open_one() as session:
        reply = session.say(text)
        assert (session.steps, reply.reward, reply.done) == (1, 0.0, False)
        assert "<tool_call>" in reply.text
        assert "error" in reply.info


def test_a_call_of_no_tool_says_which_there_are():
    with open_one() as session:
        for reply in (session.say(marked("finsh")), session.call("finsh"), session.call("", "{")):
            assert "must be one of http" in reply.text


def test_arguments_as_text_are_read_as_the_chat_agent_reads_them():
    with open_one() as session:
        assert session.call("finish", '{"p": "0", "answer": null}').reward == 0.1


def test_calls_of_text_are_bounded():
    assert len(calls_of_text(marked("note", text="a") * 100)) == 32


# --- many at once ---------------------------------------------------------------------


def test_sixty_four_sessions_at_once_have_a_state_each(native, tmp_path):
    notes = 3
    gate = threading.Barrier(64)

    def one(numbered):
        number, session = numbered
        gate.wait()
        for _ in range(number % notes):
            session.call("note", {"text": str(number)})
        play(session, native.calls)
        return session.reward, session.steps

    group = owa_bench.open_group("toolquest", SEED, 64, record=tmp_path, **OPTIONS)
    with group, ThreadPoolExecutor(64) as threads:
        found = list(threads.map(one, enumerate(group)))
    assert found == [(native.reward, len(native.calls) + n % notes) for n in range(64)]
    assert event_lines(tmp_path / "000000.jsonl") == native.lines
    assert event_lines(tmp_path / "000063.jsonl") == native.lines
    assert event_lines(tmp_path / "000001.jsonl") != native.lines


def test_a_group_makes_its_world_once(monkeypatch):
    from owa_bench.drift import timeline

    made = []
    whole = timeline.SuiteTimelines._make
    monkeypatch.setattr(
        timeline.SuiteTimelines, "_make", lambda self, one: (made.append(one), whole(self, one))[1]
    )
    owa_bench.open_group("toolquest", SEED, 5, **OPTIONS).close()
    assert len(made) == 1
    for _ in range(2):
        owa_bench.open_episode("toolquest", SEED, **OPTIONS).close()
    assert len(made) == 3


def test_a_session_begins_again(native, tmp_path):
    with open_one(record=tmp_path) as session:
        first = session.messages
        session.call("note", {"text": "a"})
        session.reset(SEED)
        assert (session.messages, session.reward, session.steps) == (first, 0.0, 0)
        play(session, native.calls)
        session.reset(SEED + 1)
        assert session.messages != first
    assert event_lines(tmp_path / "000001.jsonl") == native.lines


# --- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"suite": "toolqest"}, UnknownNameError, "Did you mean `toolquest`"),
        ({"suite": "cartpole3d"}, FieldError, "`suite` must be one with tools: armtools"),
        ({"seed": -1}, FieldError, "`seed` must be a whole number from 0"),
        ({"seed": "7"}, FieldError, "got '7'"),
        ({"seed": True}, FieldError, "got True"),
        ({"family": "restok"}, UsageError, "`family` must be one of currency_rollup"),
        ({"tier": 9}, UsageError, "`tier` must be one of"),
        ({"teir": 1}, UnknownNameError, "Did you mean `tier`"),
        ({"view": "vector"}, FieldError, "`view` is set by the session"),
        ({"delta": 2.0}, UsageError, "2.0"),
        ({"suite": "multicrew"}, UsageError, "`seat_policy` must say who plays"),
        ({"copies": 0}, FieldError, "`copies` must be a whole number from 1"),
        ({"interventions": "protocol"}, FieldError, "`interventions` must be a whole number"),
        ({"interventions": -1}, FieldError, "or None for no limit"),
        ({"record": "/proc/x"}, FieldError, "`record` must be a folder that can be written"),
        ({"reward": "success"}, FieldError, '`reward` must be "quality" or "q_state"'),
    ],
)
def test_an_error_names_field_value_and_fix(given, kind, words):
    terms = {"suite": "toolquest", "seed": SEED, "copies": 1, **given}
    with pytest.raises(kind, match=r".") as caught:
        owa_bench.open_group(**terms)
    assert words in str(caught.value)


def test_an_episode_that_ended_takes_no_more_calls():
    with open_one() as session:
        session.call("finish")
        with pytest.raises(UsageError, match="`reset` it with a seed"):
            session.call("finish")
