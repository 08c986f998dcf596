"""Site of a run: a list of its attempts and a page of each, without a server.

    write_site(Path("runs/first"), Path("runs/first/view"))

The site shows what the shards hold; it is no evidence, nothing of it is signed, and
nothing is checked that `owa-bench verify` checks. Source: docs/read-a-run.md#view
"""

import base64
import hashlib
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from jinja2 import Template
from markupsafe import Markup, escape

from owa_bench.errors import UsageError
from owa_bench.records import events
from owa_bench.records.packs import Transcripts
from owa_bench.records.price_card import PriceCard, episode_cost
from owa_bench.report.attempts import RecordedAttempt
from owa_bench.report.bundle import Bundle, document_of, read
from owa_bench.report.site_parts import SiteParts, deflated
from owa_bench.report.templates import own_file, page_template

INDEX = "index.html"
FOLDER = "view"  # of the site, in the run directory
_MARK = '<meta name="generator" content="owa-bench view">'
_ATTEMPT = re.compile(r"\b\d{6,}\.\d+\b")


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One attempt in the list; what is not known of an unfinished one is None.

    Success and q_state are as scored: 0 where the episode is disqualified. `cost` is
    micro-USD of the agent and human streams.
    """

    attempt: str
    part: int
    state: str
    agent: str
    family: str
    tier: int | None
    delta: float | None
    day: int | None
    drift: str
    outcome: str
    success: bool | None
    q_state: float | None
    steps: int
    cost: int | None
    broken: int


class SiteFacts(NamedTuple):
    """A site that was written: its page, attempts, bytes, and those of the run."""

    page: Path
    attempts: int
    size: int
    run_size: int


def write_site(run_dir: Path, folder: Path, *, live: bool = False) -> SiteFacts:
    """Write the site of a run, in place of an earlier one.

    Args:
        run_dir: the run directory.
        folder: of the site.
        live: whether the list is to look for a newer one every few seconds.

    Returns:
        What was written.

    Raises:
        RunDirectoryError: there is no run.
        UsageError: the folder holds something else than a site.
    """
    bundle = read(run_dir)
    _refuse_other_content(folder)
    made = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(made, ignore_errors=True)
    parts = SiteParts(made, Transcripts(bundle.layout))
    rows = list(_rows(bundle, parts))
    parts.flush()
    (made / INDEX).write_text(_page(bundle, rows, parts.firsts, live=live))
    shutil.rmtree(folder, ignore_errors=True)
    made.replace(folder)
    apart = bundle.layout.root / FOLDER
    sizes = [_size(folder), _size(bundle.layout.root, apart)]
    return SiteFacts(folder / INDEX, len(rows), *sizes)


def evidence_links(text: str) -> Markup:
    """Return a text, escaped, in which every attempt's name leads to its page."""
    parts: list[Markup] = []
    end = 0
    for found in _ATTEMPT.finditer(text):
        name = found.group()
        parts += (escape(text[end : found.start()]), _link(name))
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _link(name: str) -> Markup:
    return Markup('<a href="{}/{}#{}">{}</a>').format(FOLDER, INDEX, name, name)


def _refuse_other_content(folder: Path) -> None:
    """Refuse to replace a folder that is no site."""
    page = folder / INDEX
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not page.is_file() or _MARK not in page.read_text("utf-8", "replace"):
        raise UsageError(
            f"{folder} must be a new folder or an earlier site, got something else: "
            "name another with --out."
        )


def _rows(bundle: Bundle, parts: SiteParts) -> Iterator[AttemptRow]:
    """Yield every attempt that has begun, in plan order; its events become a part."""
    counted = {leaf.attempt_id for leaf in bundle.counted if leaf is not None}
    for attempt in bundle.attempts():
        start = attempt.events[0] if attempt.events else None
        if not isinstance(start, events.EpisodeStart):
            continue
        state: str = attempt.leaf.status
        if state == "complete":
            state = "counts" if attempt.attempt_id in counted else "replaced"
        row = _row(attempt, start, bundle.prices)
        part = parts.add_events(attempt.events)
        yield msgspec.structs.replace(row, part=part, state=state)


def _row(
    attempt: RecordedAttempt, start: events.EpisodeStart, prices: PriceCard
) -> AttemptRow:
    """Return an attempt's row, its part and state left open."""
    last = attempt.events[-1]
    end = last if isinstance(last, events.EpisodeEnd) else None
    breaches = [e for e in attempt.events if isinstance(e, events.Violation)]
    void = any(breach.severity == "disqualify" for breach in breaches)
    drift = {e.effective for e in attempt.events if isinstance(e, events.Drift)}
    costs = episode_cost(prices, attempt.events)
    agent, human = costs["agent"], costs["human"]
    return AttemptRow(
        attempt=attempt.attempt_id,
        part=0,
        state="",
        agent=start.arm,
        family=f"{start.instance.suite}/{start.instance.family}",
        tier=start.instance.tier,
        delta=start.delta,
        day=start.day,
        drift="+".join(sorted(drift)),
        outcome=end.outcome if end else "",
        success=end.q_state >= start.theta and not void if end else None,
        q_state=(0.0 if void else end.q_state) if end else None,
        steps=sum(isinstance(e, events.Action) for e in attempt.events),
        cost=None if agent is None or human is None else agent + human,
        broken=len(breaches),
    )


def _page(
    bundle: Bundle, rows: list[AttemptRow], firsts: list[int], *, live: bool
) -> str:
    """Return the page, which holds the list; its script reads the parts."""
    data = {
        "columns": AttemptRow.__struct_fields__,
        "rows": rows,
        "firsts": firsts,
        "live": live,
    }
    script = own_file("site.js")
    digest = hashlib.sha256(script.encode()).digest()
    return _template().render(
        mark=Markup(_MARK),  # noqa: S704 - our own
        plan=bundle.plan,
        counted=sum(row.state == "counts" for row in rows),
        attempts=len(rows),
        verdicts=_verdicts(bundle),
        script=script,
        script_hash=base64.b64encode(digest).decode(),
        site_css=own_file("site.css"),
        data=deflated(msgspec.json.encode(data)),
    )


def _verdicts(bundle: Bundle) -> list[dict[str, Any]]:
    """Return the verdicts of the run's report with their gates, none without one."""
    if not bundle.layout.report.exists():
        return []
    judgement = document_of(bundle.layout.report).get("judgement", {})
    found: list[dict[str, Any]] = judgement.get("verdicts", [])
    return found


@cache
def _template() -> Template:
    return page_template("site.html.j2", {"own_links": own_links})


def own_links(text: str) -> Markup:
    """Return a text, escaped, whose attempts' names lead to places of this page."""
    return Markup(str(evidence_links(text)).replace(f"{FOLDER}/{INDEX}#", "#"))  # noqa: S704


def _size(folder: Path, apart: Path | None = None) -> int:
    """Return the bytes of all files below a folder but those below another."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not (apart and path.is_relative_to(apart))
    )
