"""Options that commands share: declared once, with one help; lists reach a record as tuples."""

import inspect

import pytest

from owa_bench.cli import placing, playing, validating
from owa_bench.cli.options import Fields, Panel, expand
from owa_bench.hosting.gateway.options import GatewayOptions

# Options that commands have of their own, under one name.
OWN = {
    *("agent", "battery", "suite", "episodes", "price_card", "out"),
    *("resume", "dry_run", "plan_only", "json"),
}
REACH = Panel().fields(GatewayOptions, model_url="an address", model_header="a header")


def helps(command):
    """Return help and panel of each option of a command."""
    found = inspect.signature(expand(command)).parameters.items()
    options = {name: each.default for name, each in found if name != "context"}
    return {name: (made.help, made.rich_help_panel) for name, made in options.items()}


def test_what_commands_share_reads_the_same_in_each():
    run, place, validate = (
        helps(command) for command in (playing.run, placing.place, validating.validate)
    )
    shared = (run.keys() & place.keys()) - OWN
    assert {"model_url", "pass_env", "act_seconds", "challenger", "workers", "sandbox"} <= shared
    assert {name: run[name] for name in shared} == {name: place[name] for name in shared}
    both = (run.keys() & validate.keys()) - OWN
    assert both == {"workers", "in_process", "key"}
    assert {name: run[name] for name in both} == {name: validate[name] for name in both}


@pytest.mark.parametrize(("given", "kept"), [(None, ()), (["A=B", "C=D"], ("A=B", "C=D"))])
def test_an_option_that_may_be_repeated_is_a_tuple_of_its_record(given, kept):
    taken = []

    def command(reach: Fields = REACH):
        taken.append(GatewayOptions(**reach))

    call = expand(command)
    assert inspect.signature(call).parameters["model_header"].annotation == list[str] | None
    call(model_url="http://x", model_header=given)
    assert taken == [GatewayOptions(model_url="http://x", model_header=kept)]
