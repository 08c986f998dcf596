"""Output of `owa-bench view`: what went wrong, episodes that a search found, two side by side."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from owa_bench.bounded_json import decode
from owa_bench.cli.console import OUT, as_json, note, table
from owa_bench.records.packs import Transcripts
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.difference import EpisodeDifference, difference
from owa_bench.reports.read.failures import (
    KINDS,
    EpisodeReading,
    FailureGroup,
    FailureSummary,
    agent_record,
    summarise,
)
from owa_bench.reports.read.search import EpisodeFilter, check_filter, matching_episodes

_MOST_ROWS = 50  # episodes of a list on a screen
_MOST_GROUPS = 12
_MOST_RECORDS = 3  # tracebacks, one a group
_WIDE = 46  # characters of an action beside another


def show_failures(run_dir: Path, query: EpisodeFilter, *, json: bool) -> None:
    """Print the kinds of failure of a run, the groups of like failures, and tracebacks.

    Args:
        run_dir: The run directory.
        query: Which episodes are read.
        json: Whether as JSON, with all groups.
    """
    bundle = read(run_dir)
    arms = _checked(bundle, query)
    rows = [match.episode for match in matching_episodes(bundle, query)]
    summary = summarise(arms, rows)
    records = _records(bundle, summary.groups)
    if json:
        as_json(
            {"summary": summary, "tracebacks": records, "episodes": [r for r in rows if r.kind]}
        )
        return
    _print_summary(run_dir, summary)
    for name, text in [*records.items()][:_MOST_RECORDS]:
        OUT.print(f"\nWhat the agent of {name} left:\n{text.rstrip()}")
    if summary.groups:
        first = summary.groups[0]
        step = f"/{first.left}" if first.left else ""
        page = run_dir / "view" / "index.html"
        OUT.print(f"\nnext: owa-bench view {run_dir}, then open {page}#{first.example}{step}")


def show_episodes(run_dir: Path, query: EpisodeFilter, *, json: bool) -> None:
    """Print the episodes of a run that a search finds.

    Args:
        run_dir: The run directory.
        query: What is looked for.
        json: Whether as JSON.
    """
    bundle = read(run_dir)
    _checked(bundle, query)
    matches = [*matching_episodes(bundle, query)]
    if json:
        as_json(matches)
        return
    OUT.print(f"{len(matches)} episodes of {run_dir}")
    for each in matches[:_MOST_ROWS]:
        OUT.print(_episode_line(each.episode))
        if query.words:
            OUT.print(f"          step {each.step}: {each.text}")
    if len(matches) > _MOST_ROWS:
        note(f"{len(matches) - _MOST_ROWS} more are not shown; --json prints all.")
    if query.words and not bundle.plan.transcripts:
        note("This run keeps no transcripts: actions and the reasons of ends were searched alone.")


def show_difference(run_dir: Path, one: str, other: str, *, json: bool) -> None:
    """Print two episodes on one instance side by side.

    Args:
        run_dir: The run directory.
        one: An attempt or an arm.
        other: Another.
        json: Whether as JSON.
    """
    pair = difference(run_dir, one, other)
    if json:
        as_json(pair)
        return
    _print_difference(pair)


def _checked(bundle: Bundle, query: EpisodeFilter) -> tuple[str, ...]:
    """Return the arms of a run; a filter that names none of it is refused."""
    arms = tuple(arm.name for arm in bundle.plan.arms)
    check_filter(query, arms)
    return arms


def _records(bundle: Bundle, groups: Sequence[FailureGroup]) -> dict[str, str]:
    """Return what failed agents left, by the example of each group that left something."""
    names = [group.example for group in groups if group.kind in ("raised", "timeout")]
    transcripts = Transcripts(bundle.layout)
    records = {
        attempt.attempt_id: agent_record(attempt.events, transcripts)
        for attempt in (bundle.attempts() if names else ())
        if attempt.attempt_id in names
    }
    return {name: records[name] for name in names if records.get(name)}


def _print_summary(run_dir: Path, summary: FailureSummary) -> None:
    OUT.print(f"{summary.failed} of {summary.counted} counted episodes of {run_dir} failed.")
    if summary.lost:
        OUT.print(f"{summary.lost} more were lost to harness or provider and do not count.")
    if not summary.kinds:
        return
    rows = [
        (each.kind, KINDS[each.kind].words, *_counts(summary.arms, each.arms), each.example)
        for each in summary.kinds
    ]
    OUT.print("")
    table("Kinds of failure", ("kind", "what happened", *summary.arms, "example"), rows)
    if not summary.graphs:
        note("An earlier version recorded this run: its missing subgoals are not known.")
    shown = summary.groups[:_MOST_GROUPS]
    OUT.print(f"\nGroups of like failures, the largest {len(shown)} of {len(summary.groups)}")
    for group in shown:
        OUT.print("\n".join(_group_lines(group)))
    OUT.print("\nWhat to look at next")
    for each in summary.kinds:
        OUT.print(f"  {each.kind}: {KINDS[each.kind].next}")


def _group_lines(group: FailureGroup) -> tuple[str, str]:
    """Return the two lines of a group: what its episodes share, and where they are."""
    kind = f"{group.kind}: {group.detail}" if group.detail else group.kind
    shared = [kind, group.missed and f"missed {group.missed}"]
    shared.append(group.refused and f"last refused call {group.refused}")
    many = len(group.families)
    where = group.families[0] if many == 1 else f"{many} families"
    arms = ", ".join(f"{arm} {count}" for arm, count in group.arms)
    drift = ", ".join(f"{name} {count}" for name, count in group.drift)
    example = f"{group.example}/{group.left}" if group.left else group.example
    return (
        f"{group.episodes:>5}  {'; '.join(filter(None, shared))}",
        f"       {where}; {arms}; drift {drift}; example {example}",
    )


def _counts(arms: Iterable[str], counts: Iterable[tuple[str, int]]) -> list[int]:
    known = dict(counts)
    return [known.get(arm, 0) for arm in arms]


def _episode_line(row: EpisodeReading) -> str:
    """Return an episode in one line: what it was, and how it ended."""
    where = f"{row.family} T{row.tier}" if row.tier else row.family
    drift = "" if row.delta is None else f"drift {row.delta:g}"
    drift += f" ({row.drift})" if row.drift else ""
    ends = ["solved" if row.success else "failed" if row.success is False else "not counted"]
    if row.kind:
        ends.append(f"{row.kind}: {row.detail}" if row.detail else row.kind)
        ends.append(row.missed and f"missed {row.missed}")
        ends.append(f"off the path at step {row.left}" if row.left else _off_path(row))
    parts = [row.attempt, row.arm, where, drift, ", ".join(filter(None, ends))]
    return "  ".join(filter(None, parts))


def _off_path(row: EpisodeReading) -> str:
    """Return where an episode left the oracle's path, in words."""
    if row.success or not row.kind:
        return ""
    if not row.path:
        return "no path"
    return str(row.left) if row.left else "not left"


def _print_difference(pair: EpisodeDifference) -> None:
    sides = (pair.one, pair.other)
    facts = [
        ("success", *("yes" if side.episode.success else "no" for side in sides)),
        ("quality", *(side.episode.q_state for side in sides)),
        ("kind of failure", *(side.episode.kind or "none" for side in sides)),
        ("ended", *(side.episode.reason for side in sides)),
        ("first step off the path", *(_off_path(side.episode) for side in sides)),
        ("steps", *(side.episode.steps for side in sides)),
        ("own cost, USD", *(_money(side.cost_micro_usd) for side in sides)),
        ("supervisor, USD, simulated", *(_money(side.supervisor_micro_usd) for side in sides)),
    ]
    row = pair.one.episode
    table(
        f"{row.family} tier {row.tier}, {row.pair}, drift {row.delta}",
        ("", pair.one.label, pair.other.label),
        facts,
    )
    if pair.subgoals:
        OUT.print("")
        cells = [(n, *("not reached" if s is None else s for s in at)) for n, *at in pair.subgoals]
        table("Subgoals, and the step that reached each", ("subgoal", "first", "second"), cells)
    OUT.print("")
    if pair.first is None:
        OUT.print("Every step is the same.")
        return
    OUT.print(f"They differ first at step {pair.first}: another {pair.what}.")
    cells = [
        ("" if pair.same else "≠", pair.step, _action(pair.one), _action(pair.other))
        for pair in pair.steps
    ]
    table("", ("", "step", "first", "second"), cells)
    if pair.others:
        which = "one of them alone solved" if pair.apart else "both played"
        OUT.print(f"\nMore instances that {which}: {_some(pair.others)}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more


def _money(cost: int | None) -> str:
    return "unknown" if cost is None else f"{cost / 1e6:.4f}"


def _action(text: str | None) -> str:
    """Return an action for a column: its tool and its arguments, cut."""
    if text is None:
        return "(had ended)"
    try:
        call = decode(text)
    except ValueError:
        call = None
    if isinstance(call, dict) and isinstance(call.get("arguments"), dict):
        given = ", ".join(f"{name}={value}" for name, value in call["arguments"].items())
        text = f"{call.get('tool')} {given}"
    words = " ".join(text.split())
    return words if len(words) <= 2 * _WIDE else f"{words[: 2 * _WIDE - 1]}…"
