"""`owa-bench measure` on users' own files: results, figures, and named faults."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from owa_bench.cli.app import app
from owa_bench.errors import MissingPartError, UsageError

GENERALITY = """agent,item,response,difficulty
a,i,1,1
a,j,1,2
a,k,1,3
a,l,0,4
a,m,0,5
b,i,1,1
b,j,0,2
b,k,1,3
b,l,0,4
b,m,1,5
"""


def call(*arguments):
    result = CliRunner().invoke(app, ["measure", *map(str, arguments)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def answers(tmp_path):
    return write(tmp_path, "answers.csv", GENERALITY)


def test_generality_of_a_table(answers, tmp_path):
    out = tmp_path / "plane.svg"
    found = json.loads(call("generality", answers, "--json", "--figure", out, "--resamples", 20))
    assert found["agents"]["a"]["capability"] == pytest.approx(3.5)
    assert found["agents"]["a"]["normalised"] > found["agents"]["b"]["normalised"]
    assert found["slodr"]["reason"] == "2 agents have a gamma; three are needed"
    assert found["slodr"]["correlation"] is None
    first = out.read_bytes()
    assert b"<svg" in first
    call("generality", answers, "--json", "--figure", out, "--resamples", 20)
    assert out.read_bytes() == first


def test_small_tables_are_noted(answers):
    result = CliRunner().invoke(app, ["measure", "generality", str(answers), "--difficulty", "Rnk"])
    assert result.exit_code == 0
    assert "asks for at least 20 agents" in " ".join(result.output.split())


def test_formats_agree(answers, tmp_path):
    plain = call("generality", answers, "--json", "--resamples", 0)
    tabs = write(tmp_path, "answers.tsv", GENERALITY.replace(",", "\t"))
    assert call("generality", tabs, "--json", "--resamples", 0) == plain
    rows = [line.split(",") for line in GENERALITY.splitlines()]
    columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    for name in ("response", "difficulty"):
        columns[name] = [float(cell) for cell in columns[name]]
    np.savez(tmp_path / "answers.npz", **columns)
    found = call("generality", tmp_path / "answers.npz", "--json", "--resamples", 0)
    assert found == plain
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), tmp_path / "answers.parquet")
    found = call("generality", tmp_path / "answers.parquet", "--json", "--resamples", 0)
    assert found == plain


def test_parquet_without_its_extra_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "answers.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingPartError, match=r"owa_bench\[export\]"):
        call("generality", path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("response", "answer"), "no column `response`; it holds `agent`, `item`"),
        (("a,i,1,1", "a,i,one,1"), "column `response`, row 1 must be a number"),
        (("a,i,1,1", "a,i,1"), "row 1 must have 4 cells as the header, got 3"),
        (("a,j,1,2", "a,i,1,1"), "row 2 must be named once"),
        (("b,i,1,1", "b,i,1,7"), "must be one number an item, got 1 and 7 for item `i`"),
        (("a,i,1,1", "a,i,1,"), "column `difficulty`, row 1 is empty or NaN"),
        (("a,i,1,1", "a,i,3,1"), "`responses` must lie in [0, 1], got 3.0"),
        ((GENERALITY, ""), "the file holds no rows"),
    ],
)
def test_faults_name_file_column_value_and_fix(change, said, tmp_path):
    path = write(tmp_path, "bad.csv", GENERALITY.replace(*change))
    with pytest.raises(UsageError) as raised:
        call("generality", path, "--resamples", 0)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("generality", "none.csv"), "there is no such file"),
        (("generality", "{answers}", "--difficulty", "X"), "must be one of intrinsic"),
        (("generality", "{answers}", "--difficulty", "ARef"), "must name agents of"),
        (("generality", "{answers}", "--figure", "x.bmp"), "must end in .svg"),
        (("entropy", "{answers}"), "no column `length`"),
        (("intelligence-test", "{answers}"), "no column `failures`"),
        (("aiq", "--pool", "{answers}"), "no column `size`"),
        (("generality", "."), ".: this is a folder"),
        (("generality", "{answers}", "--figure", "no/x.svg"), "(mkdir -p no)"),
        (("entropy", "{answers}", "--train", "x.txt"), "goes with a .txt text alone"),
        (
            ("aiq", "--pool", "{answers}", "--performances", "{answers}"),
            "needs `--mixtures` or `--distances`",
        ),
    ],
)
def test_wrong_use_is_named(arguments, said, answers):
    filled = [part.format(answers=answers) for part in arguments]
    with pytest.raises(UsageError) as raised:
        call(*filled)
    assert said in str(raised.value)


def test_levels_and_projection_of_subjects(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["subject,failures,solved,size"]
    for subject, alpha, size in (("s", 1.5, 1e9), ("m", 2.4, 1e10), ("l", 3.6, 1e11)):
        for count in rng.zipf(alpha, 3000).tolist():
            solved = int(count < 500)
            lines.append(f"{subject},{min(count, 500)},{solved},{size:g}")
    path = write(tmp_path, "counts.csv", "\n".join(lines))
    figure = tmp_path / "regions.png"
    found = json.loads(
        call(
            "intelligence-test",
            path,
            "--by",
            "subject",
            "--resamples",
            30,
            "--json",
            "--figure",
            figure,
        )
    )
    levels = {name: one["level"]["name"] for name, one in found["subjects"].items()}
    assert levels == {"s": "Limited", "m": "Capable", "l": "Autonomous"}
    assert 1e10 < found["projection"]["size"] < 1e11
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "Autonomous" in call("intelligence-test", path, "--by", "subject", "--resamples", 10)


def test_a_score_matrix_in_numpy(tmp_path):
    rng = np.random.default_rng(0)
    scores, reference = rng.random((400, 30)), rng.integers(0, 30, 400)
    np.savez(tmp_path / "scores.npz", scores=scores, reference=reference)
    found = json.loads(
        call("intelligence-test", tmp_path / "scores.npz", "--json", "--resamples", 10)
    )
    one = found["subjects"]["scores"]
    assert one["level"]["name"] == "Limited"  # guessing: every rank is as likely
    assert one["likelihood"]["top"] == 29


def test_entropies_and_texts(tmp_path):
    table = "length,conditional,marginal\n3,8,10\n9,6,10\n300,2,10\n600,1,10\n"
    path = write(tmp_path, "curve.csv", table)
    figure = tmp_path / "curve.svg"
    found = json.loads(call("entropy", path, "--json", "--figure", figure))
    assert found["curve"]["gain"] == pytest.approx(0.7 * 0.85)
    assert figure.exists()
    text = write(tmp_path, "text.txt", "the cat sat on the mat. " * 60)
    shown = call("entropy", text, "--windows", 100)
    assert "information gain span" in shown


def test_aiq_from_pool_mixtures_and_agents(tmp_path):
    rng = np.random.default_rng(1)
    pool = ["domain,size,performance"]
    for domain in "xyz":
        for size in rng.integers(10, 900, 60).tolist():
            pool.append(f"{domain},{size},{size / 1000:.3f}")
    mixtures = ["first,second,p,performance"]
    for first, second, depth in (
        ("x", "y", 0.8),
        ("x", "z", 0.6),
        ("y", "z", 0.7),
        ("x", "x", 0.0),
    ):
        for p in np.linspace(0, 1, 11).tolist():
            for _ in range(5):
                value = 0.8 - depth * p * (1 - p) + rng.normal(0, 0.01)
                mixtures.append(f"{first},{second},{p:.1f},{value:.4f}")
    agents = ["agent,domain,performance"]
    agents += [f"{a},{d},{v}" for a, v in (("good", 0.9), ("poor", 0.3)) for d in "xyz"]
    paths = {
        name: write(tmp_path, f"{name}.csv", "\n".join(rows))
        for name, rows in (("pool", pool), ("mixtures", mixtures), ("performances", agents))
    }
    options = [part for name, at in paths.items() for part in (f"--{name}", at)]
    figure = tmp_path / "space.svg"
    found = json.loads(call("aiq", *options, "--json", "--figure", figure))
    assert found["agents"]["good"]["volume"] > found["agents"]["poor"]["volume"] > 0
    assert found["points"]["dimension"] == 3
    assert found["distances"]["matrix"][0][1] == pytest.approx(0.8 / 6, abs=0.01)
    assert 0 < found["distances"]["floor"] < 0.01
    assert "effective dimension 3" in call("aiq", *options)
    assert figure.exists()
    part = json.loads(call("aiq", *options, "--json", "--domains", "z,x"))
    assert part["domains"] == ["z", "x"]
    assert part["points"]["dimension"] == 2
    assert part["distances"]["matrix"][0][1] == pytest.approx(0.6 / 6, abs=0.01)


def test_help_teaches():
    for command in ("aiq", "intelligence-test", "generality", "entropy"):
        shown = " ".join(call(command, "--help").split())
        assert "column" in shown


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("latin.csv", b"failures\n\xff\n", "not a table in UTF-8"),
        ("long.csv", b"failures\n" + b"1" * 200_000, "larger than field limit"),
        ("twice.csv", b"failures,failures\n1,2\n", "names column `failures` twice"),
        ("empty.npy", b"", "not a NumPy file of plain arrays"),
        ("text.npz", b"no", "not a NumPy file of plain arrays"),
        ("bad.parquet", b"no", "not a Parquet file"),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path, name, data, said):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError) as raised:
        call("intelligence-test", path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"failures": np.ones((2, 2))}, "an array of shape (2, 2)"),
        ({"failures": np.ones(3), "solved": np.ones(2)}, "`failures` 3, `solved` 2"),
    ],
)
def test_arrays_that_are_no_columns_are_named(tmp_path, columns, said):
    np.savez(tmp_path / "x.npz", **columns)
    with pytest.raises(UsageError) as raised:
        call("intelligence-test", tmp_path / "x.npz")
    assert said in str(raised.value)


def test_names_in_brackets_are_shown(tmp_path):
    pool = write(tmp_path, "[b]pool.csv", "domain,size,performance\n[red]a,1,0\n[red]a,2,1\n")
    figure = tmp_path / "[i].svg"
    done = call("aiq", "--pool", pool, "--figure", figure)
    assert "[red]a" in done
    assert figure.exists()


@pytest.mark.parametrize(
    ("command", "bad"),
    [
        ("entropy", ("--order", 0)),
        ("entropy", ("--order", 33)),
        ("generality", ("--count", 0)),
        ("generality", ("--count", 1001)),
        ("intelligence-test", ("--candidates", 1)),
        ("novelty", ("--last", 0)),
    ],
)
def test_a_count_out_of_bounds_is_refused_by_name(command, bad, answers):
    arguments = ["measure", command, str(answers), *map(str, bad)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert bad[0] in result.output
    assert "than or equal to" in " ".join(result.output.split())


def test_an_infinite_difficulty_is_no_traceback(tmp_path):
    rows = GENERALITY.replace(",1,5\n", ",1,inf\n").replace(",0,5\n", ",0,inf\n")
    with pytest.raises(UsageError, match="difficult"):
        call("generality", write(tmp_path, "far.csv", rows))
