"""Operators on the terms of the pipeline: image, lock file, index, quota, protocol."""

from msgspec.structs import replace

from owa_bench.drift.operator import operator
from owa_bench.envs.projforge.world import ProjectWorld, announce


@operator(announcement="D0", weight=0.5, targets="warnings", group="pipeline")
def warnings_as_errors(world: ProjectWorld) -> ProjectWorld:
    """Make every warning of the product an error.

    Changes: the interpreter's flags; a bulletin tells.
    Leaves alone: code without warnings.
    Announcement: D0 (told, and compatible with clean code). Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    text = "Warnings are errors from today, in runs and in production."
    return replace(world, strict=True, bulletins=announce(world, text))


@operator(announcement="D0", weight=0.5, targets="quota", group="pipeline")
def quota_cut(world: ProjectWorld, intensity: float) -> ProjectWorld:
    """Cut the minutes of continuous integration of a day.

    Changes: the quota; a bulletin tells it.
    Leaves alone: what a run costs.
    Announcement: D0 (told). Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    minutes = max(int(world.ci_minutes * (1 - intensity)), 1)
    text = f"Continuous integration has {minutes} minutes a day from today."
    return replace(world, ci_minutes=minutes, bulletins=announce(world, text))


@operator(announcement="D1", weight=0.8, targets="protocol", group="pipeline")
def harness_evolution(world: ProjectWorld) -> ProjectWorld:
    """Ask for answers as an object that holds them.

    Changes: what `handle` must return; a bulletin and the harness' tests tell.
    Leaves alone: the values.
    Announcement: D1 (told, breaking). Weight: 0.8.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    text = 'From today handle() must return {"answer": VALUE} in place of VALUE.'
    return replace(world, protocol=2, bulletins=announce(world, text))


@operator(announcement="D1", weight=0.4, targets="lock", group="pipeline")
def lockfile_format(world: ProjectWorld) -> ProjectWorld:
    """Read the pinned versions from a file of another name.

    Changes: the lock file's name; a bulletin tells it.
    Leaves alone: the format of its lines.
    Announcement: D1 (told, breaking). Weight: 0.4.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    name = "pinned.lock"
    text = f"The pipeline installs {name} from today; say so in ci.toml."
    return replace(world, lock=name, bulletins=announce(world, text))


@operator(announcement="D2", weight=0.7, targets="image", group="pipeline")
def ci_image(world: ProjectWorld) -> ProjectWorld:
    """Withdraw the image that the pipeline runs on.

    Changes: the label; a job with the old one fails and names the new one.
    Leaves alone: the interpreter.
    Announcement: D2 (the job's error tells). Weight: 0.7.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    return replace(world, image="py3-b")


@operator(announcement="D2", weight=0.5, targets="index", group="pipeline")
def registry_outage(world: ProjectWorld) -> ProjectWorld:
    """Stop serving the main package index; the mirror has the same packages.

    Changes: the index that serves; an installation from the other fails.
    Leaves alone: packages and versions.
    Announcement: D2 (the job's error tells). Weight: 0.5.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    return replace(world, index="mirror")


@operator(announcement="D2", weight=0.4, targets="secret", group="pipeline")
def secret_rotation(world: ProjectWorld) -> ProjectWorld:
    """Revoke the secret that the pipeline installs with; another one takes its place.

    Changes: the secret's name; a job that names the old one fails and names the new.
    Leaves alone: packages and versions.
    Announcement: D2 (the job's error tells). Weight: 0.4.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    return replace(world, secret="registry-2")  # noqa: S106  a name, no secret


@operator(announcement="D0", weight=0.3, targets="noise", group="noise")
def runner_noise(world: ProjectWorld, intensity: float) -> ProjectWorld:
    """Lose some runs of continuous integration.

    Changes: the share of runs that report nothing; each says that it was lost, and
        the one after a lost run is not.
    Leaves alone: acceptance, and minutes: a lost run takes none.
    Announcement: D0 (noise: the run says so). Weight: 0.3.
    Raises: DriftError for another target.
    Source: docs/projforge.md#operators.
    """
    return replace(world, noise=max(int(intensity * 400), 1))
