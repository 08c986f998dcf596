import json

import pytest

from owa_bench.envs.toolquest import documents
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.envs.toolquest.world import Auth, Pager
from tests.builders.api_worlds import HOST, drawn, small_world


def described(**options):
    provider = small_world(**options).providers[0]
    return json.loads(documents.openapi("Shop", HOST, provider.documented))


@pytest.mark.parametrize(
    ("auth", "scheme"),
    [
        (Auth(kind="none"), {}),
        (
            Auth(kind="key_header", name="X-Key"),
            {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        ),
        (
            Auth(kind="key_query", name="key"),
            {"key": {"type": "apiKey", "in": "query", "name": "key"}},
        ),
    ],
)
def test_security_schemes(auth, scheme):
    document = described(auth=auth)
    assert document["components"]["securitySchemes"] == scheme
    assert document["security"] == ([{"key": []}] if scheme else [])


def test_oauth_names_token_address_and_scope():
    auth = Auth(kind="oauth2", token_path="/t", scope="a.b", lifetime_ms=1)
    document = described(auth=auth)
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]
    assert flow["clientCredentials"]["tokenUrl"] == f"https://{HOST}/t"
    assert document["security"] == [{"oauth2": ["a.b"]}]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("none", []),
        ("offset", ["offset", "limit"]),
        ("page", ["page", "per_page"]),
        ("cursor", ["cursor", "limit"]),
    ],
)
def test_pagers_and_filters_are_parameters(kind, names):
    operation = described(pager=Pager(kind=kind, size=9))["paths"]["/v1/items"]["get"]
    found = [parameter["name"] for parameter in operation["parameters"]]
    assert found == [*names, "kind"]
    if names:
        assert operation["parameters"][1]["schema"]["maximum"] == 9


def test_wrapper_is_the_path_to_the_list():
    document = described(wrapper="payload.rows")
    response = document["paths"]["/v1/items"]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    rows = schema["properties"]["payload"]["properties"]["rows"]
    assert rows["items"] == {"$ref": "#/components/schemas/items"}


def test_units_stand_in_descriptions_and_types_do_not_tell():
    for unit in ("cents", "dollars"):
        fields = described(unit=unit)["components"]["schemas"]["items"]["properties"]
        price = fields["price"]
        assert price == {"type": "number", "description": f"Price. Unit: {unit}."}


def test_writing_and_deleting_are_described():
    paths = described()["paths"]
    body = paths["/v1/items"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["required"] == ["price", "kind"]
    assert "delete" in paths["/v1/items/{id}"]


def test_goal_texts_are_the_descriptions_in_the_documents():
    for family in SUITE.card.families:
        world = drawn(family, 3, seed=4, drift="nested").worlds[0]
        goal = json.loads(world.goal.spec)
        for source in goal["sources"]:
            (provider,) = [
                p
                for p in world.providers
                if source["provider"] in (p.title, *(f.title for f in p.former_hosts))
            ]
            document = documents.openapi(
                provider.title, provider.host, provider.documented
            ).decode()
            assert json.dumps(source["resource"])[1:-1] in document
            for text in source["fields"].values():
                assert json.dumps(text)[1:-1] in document
