"""How values are written on pages and read from forms: dates, money, numbers."""

import datetime

from owa_bench.worlds.site import DateForm, Kind, SiteValue

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
PATTERNS: dict[DateForm, str] = {
    "iso": "YYYY-MM-DD",
    "dmy": "DD/MM/YYYY",
    "mdy": "MM/DD/YYYY",
    "dots": "DD.MM.YYYY",
}
_ORDERS: dict[DateForm, tuple[str, str]] = {
    "iso": ("ymd", "-"),
    "dmy": ("dmy", "/"),
    "mdy": ("mdy", "/"),
    "dots": ("dmy", "."),
}
_CENTS = 100


def show_date(day: str, form: DateForm) -> str:
    """Return an ISO day in `form`."""
    parts = dict(zip("ymd", day.split("-"), strict=True))
    order, sign = _ORDERS[form]
    return sign.join(parts[letter] for letter in order)


def long_date(day: str) -> str:
    """Return an ISO day in words, which no order of numbers can mistake."""
    year, month, date = day.split("-")
    return f"{int(date)} {MONTHS[int(month) - 1]} {year}"


def read_date(text: str, form: DateForm) -> str | None:
    """Return the ISO day that `text` says in `form`, None if it says none."""
    order, sign = _ORDERS[form]
    pieces = text.strip().split(sign)
    if len(pieces) != len(order) or not all(
        p.isascii() and p.isdigit() for p in pieces
    ):
        return None
    parts = dict(zip(order, map(int, pieces), strict=True))
    return join_date(parts["y"], parts["m"], parts["d"])


def join_date(year: int, month: int, date: int) -> str | None:
    """Return the ISO day of three numbers, None if there is no such day."""
    try:
        return datetime.date(year, month, date).isoformat()
    except ValueError:
        return None


def shift(day: str, days: int) -> str:
    """Return the ISO day that lies `days` after another."""
    start = datetime.date.fromisoformat(day)
    return (start + datetime.timedelta(days=days)).isoformat()


def show_money(cents: int, *, in_cents: bool = False) -> str:
    """Return an amount with two decimals, or as the whole number of its cents."""
    if in_cents:
        return str(cents)
    sign = "-" if cents < 0 else ""
    units, rest = divmod(abs(cents), _CENTS)
    return f"{sign}{units:,}.{rest:02d}"


def read_money(text: str) -> int | None:
    """Return the cents of an amount such as `1,234.50`, None if it is none."""
    body = text.strip().replace(",", "")
    sign = -1 if body.startswith("-") else 1
    units, _, rest = body.removeprefix("-").partition(".")
    rest = rest.ljust(2, "0") if rest else "00"
    if len(rest) != len("00") or not (units + rest).isdigit() or not units.isascii():
        return None
    return sign * (int(units) * _CENTS + int(rest))


def show(
    value: SiteValue, kind: Kind, form: DateForm, *, in_cents: bool = False
) -> str:
    """Return a canonical value as a list shows it."""
    if kind == "date" and value:
        return show_date(str(value), form)
    if kind == "money":
        return show_money(int(value), in_cents=in_cents)
    return str(value)


def show_fully(value: SiteValue, kind: Kind) -> str:
    """Return a canonical value as a row's own page shows it: nothing to mistake."""
    if kind == "date" and value:
        return long_date(str(value))
    if kind == "money":
        return f"EUR {show_money(int(value))}"
    return str(value)
