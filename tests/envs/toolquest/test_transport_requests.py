import pytest

from owa_bench.envs.toolquest.transport import prepare


def request(**arguments):
    return prepare({"method": "GET", "url": "https://a.example/x", **arguments})


def test_query_of_address_and_argument_join():
    made = request(url="https://A.example/x?a=1", query={"b": "2 3", "c": True, "d": 4})
    assert made.host == "a.example"
    assert made.target == "/x?a=1&b=2+3&c=true&d=4"


def test_paths_are_encoded_once():
    assert request(url="https://a.example/p q/%20?x=ü").target == "/p%20q/%20?x=%C3%BC"
    assert request(url="https://a.example").target == "/"


@pytest.mark.parametrize(
    ("headers", "body", "sent"),
    [
        ({}, {"a": 1}, b'{"a": 1}'),
        ({"Content-Type": "application/x-www-form-urlencoded"}, {"a": 1, "b": "x y"}, b"a=1&b=x+y"),
        ({}, "raw", b"raw"),
        ({}, None, b""),
    ],
)
def test_bodies(headers, body, sent):
    assert request(method="POST", headers=headers, body=body).body == sent


def test_an_object_is_json_by_default():
    assert request(body={"a": 1}).headers == (("content-type", "application/json"),)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "ftp://a.example/"}, "begin with https://"),
        ({"url": "nonsense"}, "begin with https://"),
        ({"url": "https://a.example:8080/"}, "no port"),
        ({"url": "https://a.example:x/"}, "address such as"),
        ({"url": "https://me@a.example/"}, "no user"),
        ({"headers": {"bad name": "x"}}, "plain name"),
        ({"headers": {"x": "a\nb"}}, "printable"),
        ({"headers": {"Host": "b.example"}}, "leave it out"),
        ({"headers": {"x": "y" * 17_000}}, "16000 characters"),
        ({"body": "\ud800"}, "no text can hold"),
        ({"query": {"a": "\ud800"}}, "no text can hold"),
    ],
)
def test_faults_are_words(arguments, words):
    assert words in request(**arguments)
