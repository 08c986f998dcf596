"""A document becomes what a client needs."""

from owa_bench.agents.solvers import openapi
from owa_bench.agents.solvers.openapi import PagingScheme, Property, Security

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Halden Ledger"},
    "servers": [{"url": "https://api.halden.example/v2"}],
    "security": [{"main": ["read"]}],
    "paths": {
        "/bookings": {
            "get": {
                "summary": "Bookings of the general ledger.",
                "parameters": [
                    {"$ref": "#/components/parameters/page"},
                    {"name": "per_page", "in": "query", "schema": {"maximum": 25}},
                ],
                "responses": {
                    "200": {
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {
                                        "meta": {"type": "object"},
                                        "data": {
                                            "type": "object",
                                            "properties": {
                                                "rows": {
                                                    "type": "array",
                                                    "items": {"$ref": "#/components/schemas/b"},
                                                }
                                            },
                                        },
                                    },
                                }
                            }
                        }
                    }
                },
            },
            "post": {
                "description": "Book an amount.",
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/b"}}}
                },
            },
        }
    },
    "components": {
        "parameters": {"page": {"name": "page", "in": "query"}},
        "schemas": {
            "b": {
                "type": "object",
                "properties": {
                    "amt": {"type": "integer", "description": "Amount. Unit: cents."},
                    "day": {"type": "string", "format": "date", "description": "Booking day."},
                },
            }
        },
        "securitySchemes": {
            "main": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "/oauth/token"}}}
        },
    },
}


def test_reads_server_security_and_title() -> None:
    model = openapi.parse(DOCUMENT, "https://halden.example/openapi.json")
    assert model.title == "Halden Ledger"
    assert model.server == "https://api.halden.example/v2"
    assert model.security == Security(
        "oauth2", "Authorization", "https://api.halden.example/oauth/token", "read"
    )


def test_reads_a_collection() -> None:
    model = openapi.parse(DOCUMENT, "https://halden.example/openapi.json")
    (bookings,) = model.method("GET")
    assert bookings.address == "https://api.halden.example/v2/bookings"
    assert bookings.wrapper == ("data", "rows")
    assert bookings.pager == PagingScheme("page", "page", "per_page", 25)
    assert bookings.fields == (
        Property("amt", "integer", "Amount.", "cents"),
        Property("day", "string", "Booking day.", "", "date"),
    )


def test_reads_what_a_write_takes() -> None:
    model = openapi.parse(DOCUMENT, "https://halden.example/openapi.json")
    (write,) = model.method("POST")
    assert write.about == "Book an amount."
    assert [prop.name for prop in write.fields] == ["amt", "day"]


def test_a_bare_list_has_no_wrapper() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {}}}}
    document = {
        "openapi": "3.1.0",
        "paths": {
            "/x": {
                "get": {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}
            }
        },
    }
    model = openapi.parse(document, "https://h.example/openapi.json")
    assert model.operations[0].wrapper == ()
    assert model.operations[0].address == "https://h.example/x"
    assert model.security.scheme == "none"
