from owa_bench.canonical import sha256
from owa_bench.records.events import Observation
from owa_bench.shells.episode_events import ListSink, NullSink

EVENT = Observation(step=0, blob="x")


def test_the_null_sink_still_names_blobs():
    sink = NullSink()
    sink.emit(EVENT)
    sink.secret("a", "b")
    assert sink.blob(b"abc") == sha256(b"abc")
    assert not sink.active


def test_the_list_sink_keeps_everything():
    sink = ListSink()
    sink.emit(EVENT)
    sink.secret("a", "b")
    digest = sink.blob(b"abc")
    assert sink.events == [EVENT]
    assert sink.secrets == {"a": "b"}
    assert sink.blobs[digest] == b"abc"
    assert sink.active
