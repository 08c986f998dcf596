"""Dead actors on Ray: nobody waits while the cluster finds out whether the machine is gone."""

from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.runs.play import ray_executor
from owa_bench.runs.play.node_worker import WorkerReport
from owa_bench.runs.play.ray_executor import RayHosts
from owa_bench.runs.play.worker import WorkerConfig, WorkerMessage

ANSWER = msgspec.msgpack.encode([WorkerReport(WorkerMessage())])


class RayError(Exception):
    """What a call to a dead actor raises."""


class Stream:
    """The messages of an actor: it answers for ever, or has died."""

    def __init__(self):
        self.dead = False

    def __next__(self):
        if self.dead:
            raise RayError("its process has died")
        return ANSWER


class Remote:
    """An actor's method or a task: answers every call with one thing."""

    def __init__(self, answer):
        self._answer = answer

    def options(self, **_):
        return self

    def remote(self, *_):
        return self._answer() if callable(self._answer) else self._answer


class Cluster:
    """The library as the executor uses it, with two nodes."""

    exceptions = SimpleNamespace(RayError=RayError)
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(
            NodeAffinitySchedulingStrategy=lambda node, soft: node
        )
    )

    def __init__(self):
        self.gone = set()

    def nodes(self):
        return [
            {"NodeID": name, "Alive": name not in self.gone, "Resources": {"CPU": 1.0}}
            for name in ("a", "b")
        ]

    def put(self, value):
        return value

    def get(self, value, timeout=None):
        return value

    def kill(self, actor):
        actor.messages.remote().dead = True

    def remote(self, term=None, **_):
        if term is not None:
            return Remote(list)  # no node has a fault
        return lambda _: Remote(self._actor)

    def _actor(self):
        return SimpleNamespace(messages=Remote(Stream()), give=Remote(None))

    def wait(self, streams, fetch_local, timeout=None):
        return list(streams), []


@pytest.fixture
def cluster():
    """Return the library."""
    return Cluster()


@pytest.fixture
def workers(cluster, tmp_path, monkeypatch):
    """Return the hosts and an actor on each of the two nodes."""
    monkeypatch.setattr(ray_executor, "_NODE_S", 0.5)
    layout = RunLayout(tmp_path)
    layout.plan.write_bytes(b"{}")
    hosts = RayHosts(cluster, layout, b"", ())
    made = [
        hosts.start(
            WorkerConfig(run=str(tmp_path), shard=n, lease="", redact_key=b"", folder=str(tmp_path))
        )
        for n in range(2)
    ]
    yield hosts, *made
    for worker in made:
        worker.stop()
        worker.wait()


def test_others_are_heard_while_a_death_is_judged(workers):
    hosts, one, other = workers
    one.stream.dead = True
    assert set(hosts.wait([one, other])) == {one, other}
    assert one.receive() == []
    heard = 0
    while one not in (found := hosts.wait([one, other])):
        assert found == [other]
        assert other.receive() == [WorkerMessage()]
        heard += 1
    assert heard > 0
    with pytest.raises(EOFError, match="its process has died"):
        one.receive()
    assert not one.lost


@pytest.mark.parametrize("alone", [True, False])
def test_a_worker_whose_machine_is_gone_is_lost(workers, cluster, alone):
    hosts, one, other = workers
    one.stream.dead = True
    assert one.receive() == []
    cluster.gone.add(one.node)
    assert hosts.wait([one] if alone else [one, other]) == [one]
    with pytest.raises(EOFError):
        one.receive()
    assert one.lost


def test_a_worker_that_dies_alone_is_judged_in_time(workers):
    hosts, one, _ = workers
    one.stream.dead = True
    assert one.receive() == []
    assert hosts.wait([one]) == [one]
