"""The goal of a drawn task, in words and for machines, and its questions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.envs.toolquest.catalogue import FAMILIES
from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.propositions import (
    PropositionSpec,
    bound,
    docs,
    duplicate,
    unit,
)
from owa_bench.envs.toolquest.task_spec import SourcePlan, TaskSpec
from owa_bench.worlds.api import Goal, Provider

REGISTRY = "https://registry.example/"


def entry(provider: Provider, tier: int) -> str:
    """Return the address of a vendor that the brief names, "" at the highest tier."""
    if tier == 1:
        return f"https://{provider.host}/openapi.json"
    return f"https://{provider.host}/" if tier == 2 else ""


def questions(
    draws: IntegerDraws, story: TaskSpec, vendors: Mapping[str, Provider]
) -> tuple[PropositionSpec, ...]:
    """Return the episode's propositions; which way each claims is a coin."""
    places = {source.id: source for source in story.sources}

    def at(source: str) -> tuple[str, str, str]:
        return (source, places[source].vendor, places[source].resource)

    def title(source: str) -> str:
        return vendors[places[source].vendor].title

    units = tuple(
        unit(*at(source), field, title(source), dollars=draws.coin())
        for source, field in story.units
    )
    source, *pair = story.duplicate
    asked, checked = story.bound, draws.pick(story.docs)
    return (
        *units,
        duplicate(*at(source), title(source), (pair[0], pair[1]), story.same),
        bound(*at(asked.source), asked.field, tuple(asked.where.items()), asked.text),
        docs(*at(checked), title(checked), differ=draws.coin()),
    )


def goal(
    family: str,
    tier: int,
    story: TaskSpec,
    vendors: Mapping[str, Provider],
    asked: Sequence[PropositionSpec],
) -> Goal:
    """Return the goal; its spec is what the section Goal of README.md describes."""
    columns = list(FAMILIES[family].columns)
    writes = {"source": story.writes, "method": "POST", "columns": columns}
    spec = {
        "family": family,
        "registry": REGISTRY if tier >= 3 else None,
        "sources": [_source(tier, s, vendors[s.vendor], story) for s in story.sources],
        "rule": dict(story.rule),
        "answer": None if story.writes else {"columns": columns},
        "writes": writes if story.writes else None,
        "propositions": [question.spec for question in asked],
    }
    names = {key: provider.title for key, provider in vendors.items()}
    return Goal(
        family=family,
        text=f"{story.text.format(**names)} {_way_in(tier, vendors)}",
        spec=json.dumps(spec, separators=(",", ":")),
    )


def rows_of(story: TaskSpec) -> dict[str, Any]:
    """Return the canonical rows of every source that the answer rests on."""
    tables = {plan.key: rows for plan, rows in story.vendors}
    return {
        source.id: tables[source.vendor][source.resource]
        for source in story.sources
        if not source.optional
    }


def _way_in(tier: int, vendors: Mapping[str, Provider]) -> str:
    """Return the sentence of the brief that says where to begin."""
    if tier >= 3:
        return f"Vendors are listed in the service registry at {REGISTRY}."
    what = "OpenAPI documents" if tier == 1 else "Home pages"
    places = (f"{p.title} {entry(p, tier)}" for p in vendors.values())
    return f"{what}: {', '.join(places)}."


def _source(
    tier: int, source: SourcePlan, provider: Provider, story: TaskSpec
) -> dict[str, Any]:
    plan = next(p for p, _ in story.vendors if p.key == source.vendor)
    resource = next(r for r in plan.resources if r.key == source.resource)
    return {
        "id": source.id,
        "provider": provider.title,
        "entry": entry(provider, tier) or None,
        "resource": resource.about,
        "optional": source.optional,
        "fields": {field.key: field.about for field in resource.fields},
    }
