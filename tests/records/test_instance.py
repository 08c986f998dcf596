from owa_bench.records.instance import SimulatedClock


def test_the_clock_names_the_worlds_it_enters():
    clock = SimulatedClock((0, 100, 200, 500))
    assert list(clock.advance(99)) == []
    assert list(clock.advance(1)) == [1]
    assert list(clock.advance(0)) == []
    assert list(clock.advance(1000)) == [2, 3]
    assert (clock.now_ms, clock.world) == (1100, 3)
