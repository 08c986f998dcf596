"""Effective announcement class of a change, and the procedure that meets changes.

It is told from what its vendor tells afterwards.

The world before a change is the counterfactual of the world after it. Each fact in
which the two differ is judged in the world that the agent meets, later changes of the
same moment included:

    D0  the old way is still served
    D1  the API description or the changelog that is served states the new fact
    D2  neither does; a refusal shows it, or a documented name that no reply has
    D3  neither does; replies look as before and their values mean something else

A change has the hardest class among its facts, D0 where it shows nowhere (a vendor without an API
description whose description goes out of date).

Source: docs/toolquest.md#operators.

The procedure is the oracle's actions, answers replaced by how to derive them: a replay
that hands in the recorded answer would be right whatever its requests return. So the
lines that hand in or post carry `derive` in place of what the oracle computed: where
each list stood, how it was wrapped, and the names and units of its columns.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from owa_bench.envs.toolquest.access import TOKEN_KINDS
from owa_bench.envs.toolquest.world import ApiWorld, Contract, Field, Provider
from owa_bench.records.instance import Announcement


def recorded_procedure(world: ApiWorld, actions: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a script that derives its answer from what it is served.

    Args:
        world: The undrifted world.
        actions: The oracle's actions in it.
    Returns: JSON lines. `derive` stands on those that hand in or post, `record` (from 0) on the
        latter: which row of the answer it posts.
    """
    lists, posted, lines = _lists(world), 0, []
    for line in map(json.loads, actions):
        arguments = line["arguments"]
        if line["tool"] == "write_artifact":
            del arguments["rows"]
            line["derive"] = lists
        elif arguments.get("method") == "POST" and not _asks_token(world, arguments):
            del arguments["body"]
            line |= {"derive": lists, "record": posted}
            posted += 1
        lines.append(json.dumps(line))
    return tuple(lines)


def _asks_token(world: ApiWorld, arguments: dict[str, Any]) -> bool:
    """Return whether a POST goes to a token endpoint."""
    return any(
        arguments["url"] == f"https://{provider.host}{provider.contract.auth.token_path}"
        for provider in world.providers
        if provider.contract.auth.kind in TOKEN_KINDS
    )


def _lists(world: ApiWorld) -> dict[str, dict[str, Any]]:
    """Return how each needed list is read, by source."""
    found: dict[str, dict[str, Any]] = {}
    for vendor, source in world.needed:
        provider = world.provider(vendor)
        resource = provider.contract.resource(source)
        found[source] = {
            "url": f"https://{provider.host}{resource.path}",
            "wrapper": resource.wrapper,
            "names": {field.key: field.name for field in resource.fields},
            "units": {f.key: f.unit for f in resource.fields if f.unit},
        }
    return found


_NOT_SERVED = "not served"


class _Fact(NamedTuple):
    """Which fact of a contract: of itself, of a collection or of one of its fields."""

    resource: str
    field: str
    aspect: str


_AUTH = _Fact("", "", "auth")
_OF_RESOURCE = ("path", "wrapper", "pager", "required")
_NAME, _VALUES = "name", "values"  # of a field; values change without a word


def effective_class(before: ApiWorld, after: ApiWorld, met: ApiWorld) -> Announcement:
    """Return the class that a change has in effect.

    Args:
        before: The world just before the change.
        after: The world just after it.
        met: The world that the agent meets, after all changes of the same moment.
    Returns: D0 to D3.
    """
    classes: set[Announcement] = {"D0"}
    for old in before.providers:
        new = after.provider(old.key)
        if new is not old:
            classes.update(_classes(old, new, met.provider(old.key)))
    return max(classes)


def _classes(old: Provider, new: Provider, met: Provider) -> Iterator[Announcement]:
    """Yield the class of every fact of one vendor in which a change shows."""
    if new.host != old.host:
        yield "D1"  # the registry, the old host and its home page name the successor
    elif new.secrets != old.secrets and new.contract.auth == old.contract.auth:
        yield "D2"
    if new.contract.outages != old.contract.outages:
        yield "D2"
    noted = _is_noted(old, new, met)
    for fact in _changed(_old_way(old, new), new.contract):
        yield _class_of(fact, met, noted=noted)
    if met.undocumented or new.documented is old.documented:
        return
    served = _changed(old.contract, new.contract)
    for fact in _changed(old.documented, new.documented) - served:
        if _value(met.documented, fact) != _value(met.contract, fact):
            yield _class_of(fact, met, noted=False)


def _class_of(fact: _Fact, met: Provider, *, noted: bool) -> Announcement:
    """Return the class of one fact that changed.

    Args:
        fact: The fact.
        met: The vendor as the agent meets it.
        noted: Whether its changelog has a line of the change.
    Returns: D1 to D3.
    """
    told = _value(met.documented, fact) == _value(met.contract, fact)
    if noted or (told and not met.undocumented):
        return "D1"
    return "D3" if fact.aspect == _VALUES else "D2"


def _is_noted(old: Provider, new: Provider, met: Provider) -> bool:
    """Return whether the served changelog has the lines of the change."""
    lines = new.documented.changelog[len(old.documented.changelog) :]
    return bool(lines) and set(lines) <= set(met.documented.changelog)


def _old_way(old: Provider, new: Provider) -> Contract:
    """Return the old contract less what of it is still served after a change.

    Args:
        old: The vendor before the change.
        new: The vendor after it.
    Returns: The old contract, with the new paths of collections whose old ones still work, and the
        new pager where no Link header was due and the `limit` is still known.
    """
    contract = old.contract
    for resource in new.contract.resources:
        former = contract.resource(resource.key)
        if former is resource:
            continue
        if any(f.path == former.path and f.status == 200 for f in resource.formers):
            former = replace(former, path=resource.path)
        turn = (former.pager.kind, resource.pager.kind)
        one_page = len(new.table(resource.key).rows) <= resource.pager.size
        if turn == ("link", "cursor") and one_page:
            former = replace(former, pager=resource.pager)
        contract = contract.with_resource(former)
    return contract


def _changed(old: Contract, new: Contract) -> set[_Fact]:
    """Return the facts in which two contracts differ; limits and sunsets are none."""
    facts = {_AUTH} if old.auth != new.auth else set()
    for after in new.resources:
        before = old.resource(after.key)
        if before is after:
            continue
        facts.update(
            _Fact(after.key, "", aspect)
            for aspect in _OF_RESOURCE
            if getattr(before, aspect) != getattr(after, aspect)
        )
        for field in after.fields:
            former = before.field(field.key)
            if former is field:
                continue
            if former.name != field.name:
                facts.add(_Fact(after.key, field.key, _NAME))
            if _values(former) != _values(field):
                facts.add(_Fact(after.key, field.key, _VALUES))
    return facts


def _value(contract: Contract, fact: _Fact) -> object:
    """Return what a contract says of a fact."""
    if fact == _AUTH:
        return contract.auth
    resource = contract.resource(fact.resource)
    if not fact.field:
        return getattr(resource, fact.aspect)
    field = resource.field(fact.field)
    return field.name if fact.aspect == _NAME else _values(field)


def _values(field: Field) -> tuple[object, ...]:
    """Return what a caller must know to read a field's values."""
    names = tuple(choice.name for choice in field.choices)
    return (field.unit, field.decimal, field.style, field.shift, names)
