"""Facts outlive the memory that learned them, and nothing else does."""

from pathlib import Path

from owa_bench.agents.solvers.memory import FILE, FactMemory, WriteOnlyMemory


def test_facts_come_back(tmp_path: Path) -> None:
    memory = FactMemory(tmp_path)
    memory.learn("Halden", "credential", "halden_key_2")
    memory.save()
    assert FactMemory(tmp_path).recall("Halden", "credential") == "halden_key_2"
    assert FactMemory(tmp_path).recall("Halden", "unit") is None


def test_equal_facts_are_equal_bytes(tmp_path: Path) -> None:
    for folder, order in (("a", (1, 2)), ("b", (2, 1))):
        memory = FactMemory(tmp_path / folder)
        for number in order:
            memory.learn(f"vendor {number}", "place", number)
        memory.save()
    first, second = (tmp_path / name / FILE for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_nothing_learned_nothing_written(tmp_path: Path) -> None:
    FactMemory(tmp_path).save()
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{not json")
    assert FactMemory(tmp_path).recall("Halden", "credential") is None


def test_a_memory_apart_takes_nothing_back(tmp_path: Path) -> None:
    memory = FactMemory(tmp_path)
    memory.learn("Halden", "place", "/a")
    apart = memory.apart()
    apart.learn("Halden", "place", "/b")
    assert apart.recall("Halden", "place") == "/b"
    assert memory.recall("Halden", "place") == "/a"
    assert memory.knows("Halden")
    assert not memory.knows("Other")


def test_an_unheeded_memory_is_written_and_not_asked(tmp_path: Path) -> None:
    memory = FactMemory(tmp_path)
    unheeded = WriteOnlyMemory(memory)
    unheeded.learn("Halden", "place", "/a")
    unheeded.save()
    assert unheeded.recall("Halden", "place") is None
    assert FactMemory(tmp_path).recall("Halden", "place") == "/a"
