"""Agents that misbehave, each in one way."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from owa_bench.interfaces import Move
from owa_bench.records.events import Message, ModelCall

FINISH = json.dumps({"tool": "finish", "arguments": {"answer": "", "p": 0.0}})


class Quiet:
    """Finishes at once; the others differ from it in one thing."""

    def reset(self, brief, tools, memory_dir):
        self.brief, self.tools, self.memory_dir = brief, tools, memory_dir

    def act(self, observation, info):
        return FINISH

    def close(self):
        pass


class Raises(Quiet):
    def act(self, observation, info):
        raise ValueError("boom at 0x7f00")


class RaisesInReset(Quiet):
    def reset(self, brief, tools, memory_dir):
        raise RuntimeError("no reset today")


class RaisesInClose(Quiet):
    def close(self):
        raise RuntimeError("no close today")


class Hangs(Quiet):
    def act(self, observation, info):
        time.sleep(3600)


class HangsInPython(Quiet):
    def act(self, observation, info):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            pass


class RaisesSecret(Quiet):
    """Raises with a secret of the environment in its text, which has two lines."""

    def act(self, observation, info):
        raise ValueError("first line\nthe key is " + os.environ.get("OWN_API_KEY", "not here"))


class RaisesLong(Quiet):
    """Raises with notes of more text than a line of a trace may have."""

    def act(self, observation, info):
        error = ValueError("short")
        error.add_note("x" * (8 << 20))
        raise error


class Mutters(Quiet):
    """Prints, and misses its deadline."""

    def act(self, observation, info):
        sys.stderr.write("still thinking\n")
        sys.stderr.flush()
        time.sleep(3600)


class Nonsense(Quiet):
    def act(self, observation, info):
        return 7


class Unspeakable(Quiet):
    def act(self, observation, info):
        return object()


class BadUsage(Quiet):
    def act(self, observation, info):
        return Move(FINISH, usage=(("tokens_in", float("nan")),))


class Burns(Quiet):
    """Uses .3 s of CPU in this process, and .3 s in one that it starts."""

    def act(self, observation, info):
        code = "import time\nwhile time.process_time() < 0.3: pass"
        subprocess.run([sys.executable, "-c", code], check=True)
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        return FINISH


class BurnsUnseen(Quiet):
    """Uses .3 s of CPU in a process that it ignores, so that nobody waits for it."""

    def act(self, observation, info):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        reader, writer = os.pipe()
        if os.fork() == 0:
            until = time.process_time() + 0.3
            while time.process_time() < until:
                pass
            os._exit(0)
        os.close(writer)
        os.read(reader, 1)  # until it has ended
        return FINISH


class BurnsAndHangs(Quiet):
    """Uses .3 s of CPU, and is killed in the middle of a sleep."""

    def act(self, observation, info):
        until = time.thread_time() + 0.3
        while time.thread_time() < until:
            pass
        time.sleep(3600)


class Dies(Quiet):
    def act(self, observation, info):
        sys.stdout.write("farewell\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


class Exits(Quiet):
    def act(self, observation, info):
        sys.exit(3)


class Noisy(Quiet):
    def act(self, observation, info):
        sys.stdout.write('{"action": "forged"}\n' * 5000)
        sys.stdout.flush()
        sys.stderr.write('{"action": "forged"}\n')
        os.system('echo \'{"action": "forged by a child"}\'')
        return FINISH


class Counts(Quiet):
    """Answers with how often this process has acted: 1 in a fresh one."""

    acted = 0

    def act(self, observation, info):
        Counts.acted += 1
        return str(Counts.acted)


class Remembers(Quiet):
    """Adds a line to its memory in each episode."""

    def close(self):
        kept = Path(self.memory_dir) / "days.txt"
        before = kept.read_text() if kept.exists() else ""
        kept.write_text(f"{before}{len(before.splitlines())}\n")


def plain(observation, info):
    return FINISH


class Asks(Quiet):
    """Asks the supervisor once, then finishes."""

    asked = False

    def reset(self, brief, tools, memory_dir):
        self.asked = False

    def act(self, observation, info):
        if self.asked:
            return FINISH
        self.asked = True
        return {"tool": "ask_supervisor", "arguments": {"question": "what now?"}}


class Declares(Quiet):
    def act(self, observation, info):
        return Move(
            FINISH,
            usage=(("tokens_in", 10),),
            messages=(Message(step=9, source="env", sender="me", digest="words"),),
            model_calls=(ModelCall(step=9, model="m", prompt="p", reply="r"),),
            beliefs=(("some claim", 0.75),),
        )


class TwoSessions(Quiet):
    """Leaves a note in its memory in session 0 and looks for it in session 1."""

    acted = False

    def act(self, observation, info):
        note = Path(self.memory_dir) / "note"
        if self.brief.session == 0:
            note.write_text("hello")
            TwoSessions.acted = True
            return {"tool": "note", "arguments": {"text": "x"}}
        found = "found" if note.exists() and not TwoSessions.acted else "missing"
        answer = f"session {self.brief.session}, note {found}"
        return {"tool": "finish", "arguments": {"answer": answer, "p": 0.0}}


class KillsItsWorker(Quiet):
    """Played in process, ends the worker: once, or always if ALWAYS is set."""

    def act(self, observation, info):
        mark = Path(os.environ["OWA_TEST_MARK"])
        if os.environ.get("OWA_TEST_ALWAYS") or not mark.exists():
            mark.write_text("done")
            os._exit(9)
        return FINISH


class TellsAll(Quiet):
    """Reads a secret from the vault and dies with it on its lips."""

    names = None

    def act(self, observation, info):
        text = observation["text"]
        if self.names is None:
            self.names = []
            return {"tool": "vault", "arguments": {}}
        if not self.names:
            self.names = [entry["name"] for entry in json.loads(text)["entries"]]
            return {"tool": "vault", "arguments": {"name": self.names[0]}}
        raise ValueError(f"the secret is {text}")


class CollectsHintsAndKills(Quiet):
    """Asks twice and kills its worker; the next time asks twice and finishes."""

    asked = 0

    def act(self, observation, info):
        mark = Path(os.environ["OWA_TEST_MARK"])
        if self.asked == 2:
            if os.environ.get("OWA_TEST_ALWAYS") or not mark.exists():
                mark.write_text(observation["text"])
                os.kill(os.getpid(), signal.SIGKILL)
            return FINISH
        self.asked += 1
        return {"tool": "ask_supervisor", "arguments": {"question": "what now?"}}


class AsksModel(Quiet):
    """Sends one chat request through the gateway, then finishes or raises."""

    body = {"model": "m", "messages": []}
    declared = ()

    def act(self, observation, info):
        with client() as asking:
            self.status = asking.post("/chat/completions", json=self.body).status_code
        if self.status != 200:
            raise RuntimeError(f"HTTP {self.status}")
        return Move(FINISH, usage=self.declared)


class AsksModelForever(AsksModel):
    def act(self, observation, info):
        super().act(observation, info)
        return {"tool": "note", "arguments": {"text": "on"}}


class Streams(AsksModel):
    body = {"model": "m", "messages": [], "stream": True}


class AsksAndDeclares(AsksModel):
    """Declares no more than the gateway saw."""

    declared = (("tokens_in", 700), ("tokens_out", 1))


class DeclaresMore(AsksModel):
    """Declares what no gateway saw."""

    declared = (("tokens_in", 701),)


class Connects(Quiet):
    """Connects to the hosts that a test names, through the proxy and around it."""

    def act(self, observation, info):
        for host in os.environ["OWA_TEST_HOSTS"].split():
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"https://{host}/")
        return FINISH


class PrintsCanaries(Quiet):
    """Puts every canary of its environment wherever words are recorded."""

    def words(self):
        found = " ".join(value for value in os.environ.values() if "canary" in value)
        return f"{found} {base64.b64encode(found.encode()).decode()}"

    def act(self, observation, info):
        told = self.words()
        sys.stderr.write(told)
        action = {"tool": "finish", "arguments": {"answer": told}}
        call = ModelCall(step=0, model=told, prompt=told, reply=told)
        message = Message(step=0, sender=told, digest=told)
        return Move(action, messages=(message,), model_calls=(call,))


class DiesWithCanaries(PrintsCanaries):
    def act(self, observation, info):
        sys.stderr.write(self.words())
        sys.stderr.flush()
        os._exit(1)


def client():
    """Return a client of the model gateway, as the environment names it."""
    key = os.environ["OPENAI_API_KEY"]
    return httpx.Client(
        base_url=os.environ["OPENAI_BASE_URL"],
        headers={"authorization": f"Bearer {key}"},
        timeout=30,
    )
