"""The one comparison of an answer with a key, for every kind of card.

Letter case, quote marks around a text and a final full stop do not count. Where the task asks for
capitals, the letter case of a free answer does count.

Source: docs/recall.md#marks
"""

from owa_bench.envs.recall.wording import UNITS
from owa_bench.envs.recall.world import AnswerForm

SMALL_UNIT = UNITS[1]  # the unit that amounts are asked in
_QUOTES = "\"'`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a"


def given_as(value: str, form: AnswerForm) -> str:
    """Return a value as an answer of this form writes it; amounts stay.

    >>> given_as("brusk", "reversed"), given_as("24 pell", "reversed")
    ('ksurb', '24 pell')

    Args:
        value: A value of a key.
        form: How answers are written in this world.
    """
    if form == "plain" or value.endswith(SMALL_UNIT):
        return value
    return value.upper() if form == "capitals" else value[::-1]


def comparable(text: str, form: AnswerForm = "plain") -> str:
    """Return the part of a text that counts when an answer is compared.

    Spaces are joined. Quote marks and spaces at both ends and full stops at the end are left out.
    Letter case is folded, but for free answers in capitals. Amounts have no form: their letter case
    never counts.

    >>> comparable(' "Brusk". '), comparable("3.5"), comparable("24  PELL", "capitals")
    ('brusk', '3.5', '24 pell')

    Args:
        text: An answer or a key.
        form: How answers are written in this world.
    Returns: The text; equal for texts that are judged alike.
    """
    words = " ".join(text.split())
    bare = words.lstrip(f"{_QUOTES} ").rstrip(f"{_QUOTES}. ")
    folded = bare.casefold()
    if form == "capitals" and not _is_amount(folded):
        return bare
    return folded


def is_key(answer: str, key: str, form: AnswerForm) -> bool:
    """Return whether an answer is the key; an amount may leave out its unit.

    >>> is_key("'Brusk'.", "brusk", "plain"), is_key("35", "3.5", "plain")
    (True, False)

    Args:
        answer: One value of an answer.
        key: The right value, in the form of the world.
        form: How answers are written in this world.
    Returns: True if they differ in nothing that counts.
    """
    text, wanted = comparable(answer, form), comparable(key, form)
    if _is_amount(wanted) and text.isdecimal():
        text = f"{text} {SMALL_UNIT}"
    return text == wanted


def _is_amount(text: str) -> bool:
    number, _, unit = text.partition(" ")
    return unit == SMALL_UNIT and number.isdecimal()
