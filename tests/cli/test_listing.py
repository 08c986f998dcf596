"""`owa-bench list`."""

import json

from owa_bench import discovery


def test_everything_there_is_is_listed(owa):
    said = owa("list")
    assert said.code == 0
    found = json.loads(owa("list --json").out)
    assert set(found) == {*discovery.KINDS, "batteries"}
    for kind in discovery.KINDS:
        assert len(found[kind]) == len(discovery.find(kind))
        assert all(row["about"] for row in found[kind])
    assert {"demo", "toolquest"} <= {row["battery"] for row in found["batteries"]}
    families = {row["suite"]: row["families"] for row in found["suites"]}
    assert {"reconcile", "restock"} <= set(families["toolquest"])


def test_one_kind(owa):
    assert set(json.loads(owa("list operators --json").out)) == {"operators"}
    said = owa("list suits")
    assert said.code == 2
    assert "Did you mean `suites`?" in said.err
