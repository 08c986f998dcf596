"""Messages of a worker on a node: what the driver must have before the worker goes on."""

import threading

import msgspec

from owa_bench.runs.play.node_worker import Messages, NodeMessage, ShardBytes

DECODER = msgspec.msgpack.Decoder(list[NodeMessage])


def frames(batch):
    return [message.frame for message in DECODER.decode(batch)]


def test_a_worker_that_settles_waits_until_the_driver_has_taken_what_it_wrote():
    messages, settled = Messages(), threading.Event()

    def work():
        messages.put(ShardBytes(b"one", b""))
        messages.settle()
        settled.set()
        messages.put(ShardBytes(b"two", b""))
        messages.end()

    worker = threading.Thread(target=work)
    worker.start()
    batches = messages.batches()
    assert frames(next(batches)) == [b"one"]
    assert not settled.wait(0.2)
    assert frames(next(batches)) == [b"two"]  # resumed: the batch before was taken
    assert settled.wait(10)
    assert list(batches) == []
    worker.join(10)


def test_what_was_taken_before_settles_at_once():
    messages = Messages()
    messages.put(ShardBytes(b"one", b""))
    batches = messages.batches()
    assert frames(next(batches)) == [b"one"]
    worker = threading.Thread(target=lambda: (messages.settle(), messages.end()))
    worker.start()
    assert list(batches) == []
    worker.join(10)
    assert not worker.is_alive()
