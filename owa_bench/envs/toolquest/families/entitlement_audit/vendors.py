"""The vendors of the family entitlement_audit: staff, licences, a directory."""

from owa_bench.envs.toolquest.provider_templates import (
    CONTROL,
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
)
from owa_bench.envs.toolquest.task_spec import link_vendor, shed

_LOGIN = FieldTemplate(
    "login",
    ("login", "username", "handle"),
    "string",
    "Name under which the person logs in.",
    filterable=True,
)
_SEAT = FieldTemplate(
    "seat",
    ("seat", "licence_no", "seat_number"),
    "string",
    "Number of the licence seat that the person has.",
    filterable=True,
)

IDENTITY = ProviderTemplate(
    "identity",
    "identity",
    ("Identity", "Staffing", "Personnel"),
    "Knows who works where.",
    (
        ResourceTemplate(
            "rights",
            "Entitlements to which each department has a right.",
            ("rights", "permissions", "role-rights", "allowances", "privileges"),
            (
                FieldTemplate(
                    "department",
                    ("department", "unit", "division"),
                    "string",
                    "Name of the department.",
                    filterable=True,
                ),
                FieldTemplate(
                    "entitlement",
                    ("entitlement", "product", "feature"),
                    "string",
                    "Entitlement that people of the department may hold.",
                    filterable=True,
                ),
            ),
        ),
        ResourceTemplate(
            "people",
            "People and the departments they work in.",
            ("people", "persons", "employees", "users", "staff"),
            (
                FieldTemplate(
                    "id",
                    ("id", "person_id", "key"),
                    "string",
                    "Identifier of the person.",
                    identifier=True,
                    filterable=True,
                ),
                _LOGIN,
                FieldTemplate(
                    "department",
                    ("department", "unit", "team"),
                    "string",
                    "Department in which the person works.",
                    filterable=True,
                ),
                FieldTemplate(
                    "status",
                    ("status", "state", "employment"),
                    "enum",
                    "Status of the person: active, suspended or left.",
                    choices=(
                        ("active", "employed", "enabled", "current"),
                        ("suspended", "on_hold"),
                        ("left", "departed"),
                    ),
                    filterable=True,
                ),
                _SEAT,
            ),
        ),
    ),
)
LICENSING = ProviderTemplate(
    "licensing",
    "licensing",
    ("Licensing", "Seats", "Licences"),
    "Sells licence seats and keeps track of who has them.",
    (
        ResourceTemplate(
            "terms",
            "Terms of the entitlements and their prices.",
            ("terms", "price-terms", "tariffs", "rate-cards", "price-list"),
            (
                FieldTemplate(
                    "entitlement",
                    ("entitlement", "product", "item"),
                    "string",
                    "Entitlement that the term prices.",
                    filterable=True,
                ),
                FieldTemplate(
                    "first_day",
                    ("first_day", "starts", "from_date"),
                    "date",
                    "First day of the term.",
                ),
                FieldTemplate(
                    "last_day",
                    ("last_day", "ends", "to_date"),
                    "date",
                    "Day on which the term ends.",
                    bound=True,
                ),
                FieldTemplate(
                    "last_day_included",
                    ("last_day_included", "end_inclusive", "closes_after"),
                    "boolean",
                    "Whether the last day belongs to the term.",
                ),
                FieldTemplate(
                    "seat_price",
                    ("seat_price", "price", "charge"),
                    "money",
                    "Price of a seat made in the term.",
                ),
            ),
        ),
        ResourceTemplate(
            "grants",
            "Grants of entitlements to licence seats.",
            ("grants", "assignments", "allocations", "entitlements", "bookings"),
            (
                FieldTemplate(
                    "id",
                    ("id", "grant_id", "assignment"),
                    "string",
                    "Identifier of the grant.",
                    identifier=True,
                    filterable=True,
                ),
                FieldTemplate(
                    "seat",
                    ("seat", "licence_no", "holder"),
                    "string",
                    "Number of the licence seat that holds the grant.",
                    filterable=True,
                ),
                FieldTemplate(
                    "entitlement",
                    ("entitlement", "product", "feature"),
                    "string",
                    "Entitlement that is granted.",
                    filterable=True,
                ),
                FieldTemplate(
                    "granted",
                    ("granted", "assigned_on", "valid_from"),
                    "date",
                    "Day on which the grant was made.",
                    filterable=True,
                ),
            ),
            methods=("GET", "DELETE"),
        ),
        CONTROL,
    ),
)
DIRECTORY = link_vendor(_LOGIN, _SEAT, "Which licence seat belongs to which login.")
IDENTITY_WITHOUT_LINK = shed(IDENTITY, "people", "seat")
