"""Prose of notices and questions: a table of sentences, chosen by their `style`.

Values stand in quotes and names in capitals; everything else varies. The rules that decide between
notices stand in the task's text (`task_text`).
"""

from owa_bench.envs.recall.world import Notice, Question, RecallWorld

# {r} relation, {s} subject, {v} value, {o} the value before, {t} a notice's number
STATEMENTS = (
    "the {r} of {s} is {v}",
    "{s} has {v} as {r}",
    "for {s} the {r} was entered as {v}",
    "{v} was named {r} of {s}",
    "whoever looks for the {r} of {s} will find {v}",
    "the clerk wrote {v} under {r} for {s}",
    "asked for a {r}, {s} gave {v}",
    "{s} keeps the {r} {v}, as witnesses confirm",
    "it was seen that {v} serves {s} as {r}",
    "under the heading {r} stands {v} beside {s}",
)
REPLACEMENTS = (
    "the {r} of {s} is no longer {o} but {v}",
    "in place of {o}, {s} now has the {r} {v}",
    "from now on {v} is the {r} of {s}, and no more {o}",
    "{s}, having given up {o}, takes {v} as {r}",
)
VERBS = (
    "{s} {r} {v}",
    "it is {v} that {s} {r}",
    "as agreed, {s} {r} {v}",
    "year in, year out {s} {r} {v}",
)
INVERSE_VERBS = ("{v} {r} {s}", "it is {s} that {v} {r}", "as agreed, {v} {r} {s}")
PAIRS = ("{s} goes with {v}", "{v} belongs to {s}", "keep {v} for {s}")
RUMOURS = (
    "Heard on the quay: {s} {r}, {s} {r}, yes {s} {r} {v}!",
    "They say {s} {r} and {r} and {r} {v}, {s} {r}.",
)
SAYINGS = (
    "They say the {r} of {s} is {v}, and again {v}, the {r}.",
    "Heard on the quay: {s}, {r}, {v}, {s}!",
)
WITHDRAWALS = (
    "notice {t} is withdrawn",
    "notice {t} was issued in error and never held",
    "disregard notice {t}",
    "the register strikes notice {t}",
)
ASIDES = ("{s} (not {b})", "{s}, no kin of {b},", "{s} - {b} is another -")
QUESTIONS = (
    "What is the {r} of {s}?",
    "Which {r} does {s} have?",
    "Name the {r} of {s} as the register has it today.",
    "Someone asks for {s}. Give the {r}.",
)
CLAIMS = {
    "supersession": "The value that the register first gave as {r} of {s} is not in "
    "force on the last day.",
    "contradiction": "Two notices, withdrawn ones included, give different values as {r} of {s}.",
}
UNITS = {1: "pell", 12: "dor"}
SLOTS = 5  # entries asked for by a retrieval question


def notice_line(world: RecallWorld, notice: Notice) -> str:
    """Return a notice as it is published.

    Args:
        world: For the words that its relations have on that day, and for moved numbers.
        notice: One of its notices.
    """
    if notice.rumour:
        verbs = world.family == "retrieval"
        line = _pick(RUMOURS if verbs else SAYINGS, notice.style)
        return _filled(world, notice, line) + f" (slip {notice.number})"
    if notice.withdraws:
        text = _pick(WITHDRAWALS, notice.style).format(t=notice.withdraws)
    else:
        text = _filled(world, notice, _pick(_sentences(world, notice), notice.style))
    return f"Notice {notice.number}: {text}."


def _sentences(world: RecallWorld, notice: Notice) -> tuple[str, ...]:
    if world.family == "spaced":
        return PAIRS
    if world.family == "retrieval":
        return INVERSE_VERBS if notice.inverse else VERBS
    return REPLACEMENTS if notice.old else STATEMENTS


def _filled(world: RecallWorld, notice: Notice, line: str) -> str:
    subject = notice.subject
    if notice.beside:
        aside = _pick(ASIDES, notice.style)
        subject = aside.format(s=subject, b=notice.beside)
    return line.format(
        s=subject,
        r=word_of(world, notice.relation, notice.day),
        v=f"'{_amount(notice.value, notice.per)}'",
        o=f"'{_amount(notice.old, notice.per)}'" if notice.old else "",
    )


def _amount(value: str, per: int) -> str:
    """Return an amount in the unit of `per` small ones; words stay as they are."""
    if per == 1:
        return value
    number, _, unit = value.partition(" ")
    if unit != UNITS[1] or int(number) % per:
        return value
    return f"{int(number) // per} {UNITS[per]}"


def word_of(world: RecallWorld, relation: str, day: int) -> str:
    """Return the word for a relation on a day.

    Args:
        world: Knows which relations are renamed.
        relation: Its first word.
        day: The day of the text.
    """
    for first, later, since in world.renamed:
        if first == relation and day >= since:
            return later
    return relation


def question_text(world: RecallWorld, question: Question) -> str:
    """Return a question.

    Args:
        world: For the words of its day.
        question: One of its questions.
    """
    relation = word_of(world, question.relation, question.day)
    match question.kind:
        case "retrieve" | "assisted":
            return (
                f"List {SLOTS} entries that say whom or what {question.subject} "
                f"{relation}: `values`, and in `sources` the notice of each."
            )
        case "without":
            return (
                f"Had notice {question.without} never been issued, what would be the "
                f"{relation} of {question.subject} today?"
            )
        case "spaced":
            return f"What belongs to {question.subject}?"
    text = _pick(QUESTIONS, question.style)
    return text.format(r=relation, s=question.subject)


def claim_texts(world: RecallWorld) -> dict[str, str]:
    """Return the claims of a world by name."""
    return {
        claim.name: CLAIMS[claim.kind].format(r=claim.relation, s=claim.subject)
        for claim in world.claims
    }


_REGISTER = """\
You keep track of a public register over some weeks. Sittings are days apart; between
them your process ends and only your memory folder stays. It may hold {quota} bytes,
names of files included, at the start of each sitting; with more the episode ends.
A page is read once: call go_on for the next. Rules of the register: of several notices
on one matter the one with the highest number holds; a withdrawn notice counts as never
issued; slips have no authority; 12 pell are 1 dor, and amounts are asked in pell."""
_WATCHED = "\nYou will be asked only about: {watched}."
_SPACED = """
Every study day you may name up to {reviews} of the words to see their pairs again. All
pairs are asked on the last day."""
_EXERCISES = (
    "Solve the tasks one after the other. If a page asks nothing, call go_on: it does "
    "not come back. Items with a fixed list of answers are scored as one group, less "
    "what a constant answer would earn: guessing earns nothing."
)
_ANSWERS = {
    "plain": "",
    "capitals": "\nWrite every value in CAPITALS.",
    "reversed": "\nWrite every value backwards, its last letter first.",
}
_CLOSE = """
Answer a question with answer(values=[..]); go_on passes it, which earns nothing.
When nothing is left call finish with p, the probability that your score over all
tasks is at least {share}."""


def task_text(world: RecallWorld, theta: float) -> str:
    """Return the task of an episode, which every sitting begins with.

    Args:
        world: Its rules, quota and subjects.
        theta: The share of right answers that counts as success.
    """
    text = _REGISTER.format(quota=world.quota) if world.notices else _EXERCISES
    if world.reviews:
        text += _SPACED.format(reviews=world.reviews)
    elif world.watched:
        text += _WATCHED.format(watched=", ".join(world.watched))
    close = _CLOSE.format(share=f"{theta:.0%}")
    return text + _ANSWERS[world.answer_form] + close


def _pick(sentences: tuple[str, ...], style: int) -> str:
    return sentences[style % len(sentences)]
