"""Attacks by whoever ran the evaluation: every hash and signature is made anew."""

import json

import msgspec
import pytest

from owa_bench.canonical import canonical_json, seal, sha256
from owa_bench.records.events import DECODER, ENCODER, EpisodeEnd, EpisodeStart, ModelCall, Resource
from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.records.trace import Closing
from owa_bench.reports import statement, verify
from owa_bench.reports.composition import LIMITS
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import witness
from owa_bench.seeding import commitment
from tests.attacks.tampering import (
    change,
    failing,
    inside,
    recomputed,
    registry_of,
    resign_plan,
    sign,
    unmet,
    write_registry,
)
from tests.builders.run_directory import KEY, NONCE, OTHER_KEY, PRICES, make_plan, make_run

pytestmark = pytest.mark.part(3)

VICTIM = "000003.0"


def renamed(rows, index):
    """Return an episode's lines as if it were that of another plan entry."""
    start = DECODER.decode(rows[0])
    start = msgspec.structs.replace(start, index=index)
    return [ENCODER.encode(start), *rows[1:]]


# --- drop, swap, copy


def test_drop_an_episode(run):
    inside(run, lambda lines: lines.pop(VICTIM))
    assert failing(run.root) == {"count", "plan coverage"}


def test_drop_the_first_attempt_and_keep_the_second(run):
    def edit(lines):
        rows = lines.pop(VICTIM)
        start = msgspec.structs.replace(DECODER.decode(rows[0]), attempt=1)
        lines["000003.1"] = [ENCODER.encode(start), *rows[1:]]

    inside(run, edit)
    assert failing(run.root) == {"count"}


def test_play_an_episode_again_until_it_goes_well(run):
    def edit(lines):
        rows = lines[VICTIM]
        start = msgspec.structs.replace(DECODER.decode(rows[0]), attempt=1)
        lines["000003.1"] = [ENCODER.encode(start), *rows[1:]]

    inside(run, edit)
    assert failing(run.root) == {"count"}


def laid_to_the_provider(lines, calls):
    """Lay a complete attempt to the model's provider, and play its entry again."""
    rows = lines[VICTIM]
    start = msgspec.structs.replace(DECODER.decode(rows[0]), attempt=1)
    lines["000003.1"] = [ENCODER.encode(start), *rows[1:]]
    change(rows, EpisodeEnd, outcome="infrastructure", reason="ProviderFailure: 503")
    closing = msgspec.json.decode(rows[-1], type=Closing)
    rows[-1] = ENCODER.encode(msgspec.structs.replace(closing, status="provider"))
    rows[-2:-2] = map(ENCODER.encode, calls)


def test_lay_a_bad_attempt_to_the_models_provider(run):
    """The attack: it does not count then, and the entry is played again."""
    inside(run, lambda lines: laid_to_the_provider(lines, []))
    assert failing(run.root) == {"episode id"}


def test_lay_it_to_the_provider_with_a_forged_call_is_not_detected_but_counted(run):
    """The control, and what is left: page one counts the attempts that were lost."""
    call = ModelCall(
        step=1,
        source="harness",
        model="m",
        prompt="0" * 64,
        reply="0" * 64,
        status=503,
        failure="HTTP 503 (overload)",
        verdict="failure",
    )
    inside(run, lambda lines: laid_to_the_provider(lines, [call]))
    assert failing(run.root) <= {"blobs"}
    statement.write(run.root, None)
    assert "tried again after failures of harness or provider: 1" in run.page.read_text()


def test_swap_two_episodes(run):
    def edit(lines):
        lines[VICTIM], lines["000005.0"] = lines["000005.0"], lines[VICTIM]

    inside(run, edit)
    assert failing(run.root) == {"episode id"}


def test_copy_one_episode_over_another(run):
    def edit(lines):
        lines["000008.0"] = renamed(lines["000000.0"], 8)

    inside(run, edit)
    assert "episode id" in failing(run.root)


def test_copy_one_episode_over_another_under_its_terms(run):
    def edit(lines):
        theirs = DECODER.decode(lines["000008.0"][0])
        mine = DECODER.decode(lines["000000.0"][0])
        seed = mine.instance
        forged = msgspec.structs.replace(theirs, instance=seed)
        lines["000008.0"] = [ENCODER.encode(forged), *lines["000000.0"][1:]]

    inside(run, edit)
    assert "seed" in failing(run.root)


# --- costs


def test_edit_a_cost(run):
    inside(run, lambda lines: change(lines[VICTIM], Resource, amount=0.0))
    assert failing(run.root) == {"cost"}


def test_replace_the_price_card(run):
    run.price_card.write_bytes(PRICES.replace(b"100_000_000", b"100_000"))
    sign(run)
    assert failing(run.root) == {"price card", "cost"}


def test_edit_a_cost_in_the_report(run):
    forge(run, lambda verdict: verdict["cost_micro_usd"].update(agent=0))
    assert failing(run.root) == {"signed cost"}
    assert "recompute" in recomputed(run.root)


# --- seeds, keys, reports of elsewhere


def test_other_seeds(run):
    def edit(lines):
        for rows in lines.values():
            start = DECODER.decode(rows[0])
            other = msgspec.structs.replace(start.instance, seed=start.instance.seed ^ 1)
            start = msgspec.structs.replace(start, instance=other)
            rows[0] = ENCODER.encode(start)

    inside(run, edit)
    assert failing(run.root) == {"seed"}


def test_another_master_revealed(run):
    document = {"master": (b"x" * 32).hex(), "nonce": NONCE.hex()}
    run.reveal.write_bytes(canonical_json(document))
    assert failing(run.root) == {"seed"}


def test_easier_seeds_for_one_arm(run):
    run.reveal.unlink()

    def edit(lines):
        start = DECODER.decode(lines[VICTIM][0])
        easy = msgspec.structs.replace(start.instance, seed=7)
        lines[VICTIM][0] = ENCODER.encode(msgspec.structs.replace(start, instance=easy))

    inside(run, edit)
    assert failing(run.root) == {"seed"}


def test_report_of_another_run_is_of_another_plan(run, tmp_path):
    other = make_run(tmp_path / "other", make_plan(2, name="another run"))
    statement.write(other.root, KEY)
    for name in ("report.json", "report.dsse.json", "report.html"):
        (run.root / name).write_bytes((other.root / name).read_bytes())
    found = {c.name: c.detail for c in verify.verify(run.root) if not c.ok}
    assert "another plan" in found["signature"]


def test_a_key_that_the_plan_does_not_name(run):
    payload = canonical_json(statement.statement(run, bundle_report(run)))
    run.report_envelope.write_bytes(seal(STATEMENT_TYPE, payload, OTHER_KEY))
    assert failing(run.root) == {"signature"}


# --- the report


def bundle_report(run):
    """Return the report that the directory holds."""
    opened = verify.read_signed_report(bundle.read(run.root))
    assert opened is not None
    return opened.report


def forge(run, edit, html=None):
    """Edit the second verdict of the report and sign it again."""
    document = json.loads(run.report.read_bytes())
    edit(document["judgement"]["verdicts"][1])
    report = msgspec.convert(document, type(bundle_report(run)))
    page = run.page.read_bytes() if html is None else html
    report = msgspec.structs.replace(report, page=sha256(page))
    statement.publish(run, report, page, KEY)


def test_edit_an_axis_in_the_report(run):
    def edit(verdict):
        verdict["axes"][0]["value"] = 1.0

    forge(run, edit)
    assert failing(run.root) == set()
    found = {c.name: c.detail for c in verify.recompute(run.root) if not c.ok}
    assert found["recompute"].startswith("judgement.verdicts.fixed.axes.A.value: signed")


def test_edit_a_figure_in_the_page(run):
    html = run.page.read_bytes().replace(b"</main>", b"<p>AAI-4</p></main>")
    forge(run, lambda verdict: None, html)
    assert failing(run.root) == set()
    assert recomputed(run.root) == {"page"}


def test_claim_more_assurance_than_there_is(run):
    report = bundle_report(run)
    ladder = msgspec.structs.replace(report.assurance, level=4)
    forged = msgspec.structs.replace(report, assurance=ladder)
    statement.publish(run, forged, run.page.read_bytes(), KEY)
    assert failing(run.root) == {"assurance"}
    assert "assurance" in recomputed(run.root)


# --- the plan


def rewritten(run):
    """Rewrite the plan after the run: other tasks' weights, everything signed anew."""
    plan = bundle.read(run.root).plan
    heavier = tuple(msgspec.structs.replace(s, weight=2.0) for s in plan.suites)
    resign_plan(run, suites=heavier)
    inside(run, lambda lines: None)


def test_rewrite_the_plan_afterwards_without_a_witness_is_not_detected(run):
    rewritten(run)
    assert failing(run.root) == set()
    assert recomputed(run.root) == set()
    assert any(limit.startswith("A plan rewritten afterwards") for limit in LIMITS)
    assert "A plan rewritten afterwards" in run.page.read_text()


def test_rewrite_the_plan_afterwards_is_shown_by_a_witness(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(2), entries=slice(0, 0), shards=0)
    witness.by_nonce(layout, "a verifier's nonce", OTHER_KEY)
    make_run(layout.root, make_plan(2))
    write_registry(layout, OTHER_KEY)
    statement.write(layout.root, KEY)
    assert failing(layout.root) == set()
    assert bundle_report(layout).assurance.level == 3
    rewritten(layout)
    assert failing(layout.root) == {"witness", "assurance"}
    trusting = verify.verify(layout.root, registry=registry_of(OTHER_KEY))
    assert {c.name for c in trusting if not c.ok} == {"witness", "assurance"}


def test_a_registry_of_the_submitters_own_lifts_nothing_for_a_reader(tmp_path):
    """The attack: a second key of one's own, and a registry that names it."""
    layout = make_run(tmp_path / "run", make_plan(2), entries=slice(0, 0), shards=0)
    witness.by_nonce(layout, "my own nonce", OTHER_KEY)
    make_run(layout.root, make_plan(2))
    write_registry(layout, OTHER_KEY)
    statement.write(layout.root, KEY)
    assert bundle_report(layout).assurance.level == 3  # the page names the registry
    plain = verify.verify(layout.root)[-2]
    assert plain.ok
    assert plain.detail.startswith("V2 now; V3 when signed, by a registry that the run")
    mine = verify.verify(layout.root, registry=registry_of())[-2]
    assert not mine.ok
    assert "does not name" in mine.detail


def test_a_registry_put_in_after_signing_is_found(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    statement.write(layout.root, KEY)
    write_registry(layout, OTHER_KEY)
    assert "inputs" in failing(layout.root)


def test_a_witness_made_after_episode_0_does_not_count(run):
    witness.by_nonce(run, "a verifier's nonce", OTHER_KEY)
    assert "attempts had begun" in unmet(run.root, 3)


def test_a_witness_by_the_runs_own_key_does_not_count(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1), entries=slice(0, 0), shards=0)
    witness.by_nonce(layout, "a verifier's nonce", KEY)
    make_run(layout.root, make_plan(1))
    statement.write(layout.root, KEY)
    assert bundle_report(layout).assurance.level == 2


# --- what no check here can see


def test_usage_and_cost_faked_together_is_not_detected_but_printed(run):
    def edit(lines):
        for rows in lines.values():
            rows[:] = [row for row in rows if b'"tokens_in"' not in row]

    inside(run, edit)
    assert failing(run.root) == set()
    assert "Fabricated usage" in run.page.read_text()


def test_the_best_of_several_runs_is_not_detected_but_printed(tmp_path):
    for name in ("first", "second"):
        plan = make_plan(1, commitment=commitment(NONCE, b"m" * 32))
        layout = make_run(tmp_path / name, plan)
        statement.write(layout.root, KEY)
        assert failing(layout.root) == set()
        assert "The best of several whole runs" in layout.page.read_text()


@pytest.mark.parametrize(
    "limit", ["Fabricated usage", "The best of several whole runs", "A human or an oracle", "Seed"]
)
def test_limits_stand_on_every_report(run, limit):
    assert any(text.startswith(limit) for text in LIMITS)
    assert limit in run.page.read_text()


def test_edited_quality_needs_replay(run):
    def edit(lines):
        fields = {"quality": 1.0, "q_state": 1.0, "success": True}
        change(lines["000005.0"], EpisodeEnd, **fields)

    inside(run, edit)
    assert failing(run.root) == set(), "the events agree with themselves: see replay"


def test_start_of_another_agent(run):
    fields = {"fingerprint": "0" * 64}
    inside(run, lambda lines: change(lines[VICTIM], EpisodeStart, **fields))
    assert failing(run.root) == {"episode id"}
