"""The digest of a job's environment is stable and moves with what the job sees."""

import dataclasses

import pytest

from owa_bench.sandbox import job as binds
from owa_bench.sandbox.environment import environment_digest
from owa_bench.sandbox.job import Bind, SandboxJob


@pytest.mark.slow
def test_it_is_stable_and_changes_with_a_bind(anywhere, work, tmp_path):
    folder = tmp_path / "bound"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("one")
    job = SandboxJob(
        argv=("sh",),
        work=work,
        binds=(*binds.programs("sh"), Bind(source=folder, target="/bound")),
    )
    first = environment_digest(anywhere, job)
    (work / "output").write_text("of a job")
    assert environment_digest(anywhere, job) == first
    other = dataclasses.replace(job, argv=("ls",), stdin=b"x")
    assert environment_digest(anywhere, other) == first
    digests = {first}
    (folder / "inner" / "file").write_text("two")  # of the same size
    digests.add(environment_digest(anywhere, job))
    (folder / "link").symlink_to("inner")
    digests.add(environment_digest(anywhere, job))
    for change in (
        {"binds": job.binds[:-1]},
        {"env": {"LANG": "C"}},
        {"hidden": ("/bound/inner",)},
    ):
        digests.add(environment_digest(anywhere, dataclasses.replace(job, **change)))
    assert len(digests) == 6


def test_it_names_the_backend(isolating, work):
    job = SandboxJob(argv=("sh",), work=work)
    plain = environment_digest(
        type("Plain", (), {"name": "subprocess", "version": lambda _: ""})(), job
    )
    assert environment_digest(isolating, job) != plain
