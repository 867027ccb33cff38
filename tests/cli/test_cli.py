"""The command `sapwood`, from the keyboard's side."""

import gzip
import json
import os
import subprocess
import sys
import threading
from typing import Literal

import pytest
from typer.testing import CliRunner

import sapwood
from sapwood.cli import build_app
from sapwood.cli.methods import Method, method_name, methods, parameter_help

COLOURS = ["red", "green", "blue"]
N_ROWS = 30


def svmlight(shift=0):
    return "".join(f"{row % 3} {row % 3 + 1 + shift}:1 {row % 2 + 4 + shift}:0.1\n" for row in range(N_ROWS))


def xmc(n_features=5):
    rows = (f"{row % 3},{(row + 1) % 3} {row % 3}:1 {row % 2 + 3}:0.1\n" for row in range(N_ROWS))
    return f"{N_ROWS} {n_features} 3\n" + "".join(rows)


def jsonl(label="label", labels=COLOURS, text="text"):
    rows = ({text: f"{COLOURS[row % 3]} thing {row}", label: labels[row % 3]} for row in range(N_ROWS))
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def app():
    return build_app()


@pytest.fixture
def run(app, tmp_path, monkeypatch):
    """Run the command in a new directory."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def written(tmp_path):
    def write(name, content):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return name

    return write


def succeeded(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def failed(result, code, *words):
    """Check for one line on standard error that has all the words."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last.startswith("sapwood: ")
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in last


@pytest.fixture
def text_model(run, written):
    succeeded(run("train", "label-tree", written("train.jsonl", jsonl()), "-o", "text.model"))
    return "text.model"


@pytest.fixture
def vector_model(run, written):
    succeeded(run("train", "label-tree", written("train.svm", svmlight()), "-o", "vector.model"))
    return "vector.model"


# Train, predict, evaluate


@pytest.mark.parametrize("method", ["label-tree", "one-vs-all"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.svm", svmlight()),
        ("train.svm.gz", svmlight()),
        ("train.xmc", xmc()),
        ("train.xmc.gz", xmc()),
        ("train.jsonl", jsonl()),
        ("train.jsonl.gz", jsonl()),
        ("numbers.jsonl", jsonl(labels=[10, 20, 30])),
        ("lists.jsonl", jsonl("labels", [["red", "warm"], ["green"], []])),
        ("blank.jsonl", jsonl() + "\n  \n"),
    ],
)
def test_round_trip(run, written, tmp_path, method, name, content):
    data = written(name, content)
    assert succeeded(run("train", method, data, "-o", "a.model", "--verbose", 0)) == ""
    lines = succeeded(run("predict", "a.model", data, "-k", 2)).splitlines()
    assert len(lines) == N_ROWS
    assert all(len(line.split("\t")) in (2, 4) for line in lines)
    scores = json.loads(succeeded(run("evaluate", "a.model", data, "--json")))
    assert scores["examples"] == N_ROWS
    assert scores["P@1"] == pytest.approx(2 / 3 if name == "lists.jsonl" else 1)
    assert {"P@3", "nDCG@3", "recall@3", "psP@3"} <= set(scores)
    assert ("accuracy" in scores) == (name not in ("lists.jsonl", "train.xmc", "train.xmc.gz"))
    assert not list(tmp_path.glob(".*"))


def test_evaluate_prints_a_table(run, text_model):
    table = succeeded(run("evaluate", text_model, "train.jsonl"))
    assert all(word in table for word in ("@1", "@3", "nDCG", "recall", "psP", "accuracy", "100.00"))


def test_labels_never_trained_are_misses(run, written, text_model):
    unseen = written("test.jsonl", jsonl(labels=["red", "green", "violet"]))
    scores = json.loads(succeeded(run("evaluate", text_model, unseen, "--json")))
    assert scores["P@1"] == pytest.approx(2 / 3)
    assert scores["psP@1"] == pytest.approx(1)


def test_too_few_rows_for_propensities(run, written):
    data = written("train.jsonl", "".join(jsonl().splitlines(keepends=True)[:2]))
    succeeded(run("train", "label-tree", data, "-o", "a.model"))
    assert "psP@1" not in json.loads(succeeded(run("evaluate", "a.model", data, "--json")))


def test_predict_as_json(run, text_model):
    first = json.loads(succeeded(run("predict", text_model, "train.jsonl", "--json")).splitlines()[0])
    assert first["labels"][0] == "red"
    assert first["scores"] == sorted(first["scores"], reverse=True)


def test_predict_needs_no_labels(run, written, text_model):
    data = written("new.jsonl", '{"text": "a green thing"}\n')
    assert succeeded(run("predict", text_model, data, "-k", 1)).startswith("green\t")


def test_predict_to_a_file(run, tmp_path, text_model):
    printed = succeeded(run("predict", text_model, "train.jsonl"))
    assert succeeded(run("predict", text_model, "train.jsonl", "-o", "out.tsv")) == ""
    assert (tmp_path / "out.tsv").read_text() == printed


def test_tabs_in_labels_do_not_break_rows(run, written):
    data = written("train.jsonl", jsonl(labels=["a\tb", "c\nd", "e\\f"]))
    succeeded(run("train", "label-tree", data, "-o", "a.model"))
    lines = succeeded(run("predict", "a.model", data, "-k", 1)).splitlines()
    assert [line.split("\t")[0] for line in lines[:3]] == ["a\\tb", "c\\nd", "e\\\\f"]


def test_labels_that_are_no_text_are_escaped(run, written):
    data = written("train.jsonl", jsonl(labels=["\ud800", "green", "blue"]))
    succeeded(run("train", "label-tree", data, "-o", "a.model"))
    assert succeeded(run("predict", "a.model", data, "-k", 1)).startswith("\\ud800\t")
    first = json.loads(succeeded(run("predict", "a.model", data, "--json")).splitlines()[0])
    assert first["labels"][0] == "\ud800"


def test_field_names(run, written):
    data = written("train.jsonl", jsonl("colour", text="body"))
    fields = ["--text-field", "body", "--label-field", "colour"]
    succeeded(run("train", "label-tree", data, "-o", "a.model", *fields))
    assert succeeded(run("predict", "a.model", data, "--text-field", "body"))
    assert json.loads(succeeded(run("evaluate", "a.model", data, "--json", *fields)))["P@1"] == 1


def test_ngrams_are_kept_in_the_model(run, written):
    data = written("train.jsonl", jsonl())
    widths = []
    for ngrams in (1, 2):
        succeeded(run("train", "label-tree", data, "-o", "a.model", "--ngrams", ngrams))
        facts = json.loads(succeeded(run("info", "a.model", "--json")))
        assert facts["text"]["ngrams"] == ngrams
        widths.append(facts["features"])
        succeeded(run("evaluate", "a.model", data))
    assert widths[1] > widths[0]


def test_last_features_may_be_missing_from_svmlight(run, written, vector_model):
    assert succeeded(run("predict", vector_model, written("narrow.svm", "2 3:1\n"), "-k", 1)).startswith(
        "2\t"
    )


@pytest.mark.parametrize("label", ["7", "-1"])
def test_svmlight_labels_stay_as_they_are_written(run, written, label):
    data = written("train.svm", f"{label} 1:1\n3 2:1\n")
    succeeded(run("train", "label-tree", data, "-o", "a.model"))
    assert succeeded(run("predict", "a.model", data, "-k", 1)).startswith(f"{label}\t")


def test_svmlight_with_any_number_of_labels(run, written):
    data = written("train.svm", "1 1:1\n0,2 2:1\n 3:1\n1 1:1\n")
    succeeded(run("train", "label-tree", data, "-o", "a.model"))
    assert json.loads(succeeded(run("evaluate", "a.model", data, "--json")))["P@1"] == 0.75
    assert succeeded(run("predict", "a.model", written("bare.svm", "1:1\n"), "-k", 1)).startswith("1\t")
    failed(run("predict", "a.model", written("bad.svm", "0,2 2:1\n1 x:1\n")), 1, "bad.svm, line 2, column 3")
    failed(run("predict", "a.model", written("bad.svm", "-1 2:1\n1 x:1\n")), 1, "bad.svm, line 2, column 3")


@pytest.mark.parametrize("name", ["train.svm", "train.xmc", "train.jsonl", "train.svm.gz", "train.jsonl.gz"])
def test_standard_input(app, run, written, tmp_path, name):
    content = {"svm": svmlight(), "xmc": xmc(), "jsonl": jsonl()}[name.split(".")[1]]
    data = (tmp_path / written(name, content)).read_bytes()
    succeeded(CliRunner().invoke(app, ["train", "label-tree", "-", "-o", "a.model"], input=data))
    from_file = succeeded(run("predict", "a.model", name))
    result = CliRunner().invoke(app, ["predict", "a.model", "-", "-o", "-"], input=data)
    assert succeeded(result) == from_file
    failed(
        CliRunner().invoke(app, ["predict", "a.model", "-"], input=data[:-9] + b"\xff:"), 1, "standard input"
    )


def test_pipes(run, written, tmp_path):
    """A pipe can be read once: nothing may be lost to a first look at it."""
    os.mkfifo(tmp_path / "pipe")
    data = svmlight() * 10_000
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text(data))
    writer.start()
    result = run("train", "label-tree", "pipe", "-o", "a.model")
    writer.join()
    succeeded(result)
    assert f"{N_ROWS * 10_000:,} examples" in result.stderr
    succeeded(run("predict", "a.model", written("train.svm", svmlight()), "-o", "/dev/null"))


def test_version(run):
    assert succeeded(run("--version")) == f"sapwood {sapwood.__version__}\n"


def test_info(run, text_model):
    facts = json.loads(succeeded(run("info", text_model, "--json")))
    assert facts["estimator"] == "LabelTreeClassifier"
    assert facts["labels"] == 3
    assert facts["options"]["arity"] == 16
    assert "LabelTreeClassifier" in succeeded(run("info", text_model))


def test_options_reach_the_estimator(run, written):
    data = written("train.svm", svmlight())
    options = ["--arity", 4, "--C", 2.5, "--solver", "adagrad", "--no-normalize", "--random-state", 7]
    succeeded(run("train", "label-tree", data, "-o", "a.model", *options))
    facts = json.loads(succeeded(run("info", "a.model", "--json")))["options"]
    expected = {"arity": 4, "C": 2.5, "solver": "adagrad", "normalize": False, "random_state": 7}
    assert {name: facts[name] for name in expected} == expected


# What goes wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "nonsense"),
        (["train", "nonsense"], "nonsense"),
        (["train", "label-tree"], "DATA"),
        (["train", "label-tree", "train.svm"], "--output"),
        (["train", "label-tree", "train.svm", "-o", "a.model", "--nonsense", "1"], "--nonsense"),
        (["train", "label-tree", "train.svm", "-o", "a.model", "--arity", "many"], "--arity"),
        (["train", "label-tree", "train.svm", "-o", "a.model", "--solver", "magic"], "--solver"),
        (["train", "label-tree", "train.svm", "-o", "a.model", "--ngrams", "0"], "--ngrams"),
        (["predict", "a.model"], "DATA"),
        (["predict", "a.model", "train.svm", "-k", "0"], "-k"),
    ],
)
def test_usage_errors(run, words, said):
    failed(run(*words), 2, said, "--help")


@pytest.mark.parametrize("words", [[], ["train"]])
def test_help_without_a_command(run, words):
    result = run(*words)
    assert result.exit_code == 2
    assert "Usage" in result.output


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.svm", "1 nonsense\n", "bad.svm"),
        ("empty.svm", "", "empty.svm"),
        ("empty.jsonl", "\n", "empty.jsonl: the file has no rows"),
        ("bad.jsonl", '{"text": "a", "label": "b"}\n{"text"\n', "bad.jsonl:2: not valid JSON"),
        ("bytes.jsonl", b'{"text": "\xff"}\n', "bytes.jsonl:1: not valid JSON"),
        ("deep.jsonl", "[" * 100_000 + "\n", "deep.jsonl:1: not valid JSON"),
        ("list.jsonl", "[1, 2]\n", "list.jsonl:1: expected a JSON object"),
        (
            "text.jsonl",
            '{"body": "a", "label": "b"}\n',
            "text.jsonl:1: no field 'text', only 'body', 'label'",
        ),
        ("text.jsonl", '{"text": 1, "label": "b"}\n', "text.jsonl:1: field 'text' must be a string"),
        ("label.jsonl", '{"text": "a"}\n', "label.jsonl:1: no field 'label'"),
        ("label.jsonl", '{"text": "a", "label": 1.5}\n', "label.jsonl:1: field 'label' must hold"),
        ("label.jsonl", '{"text": "a", "label": true}\n', "label.jsonl:1: field 'label' must hold"),
        ("label.jsonl", f'{{"text": "a", "label": {2**63}}}\n', "label.jsonl:1: field 'label' must hold"),
        ("mixed.jsonl", '{"text": "a", "label": 1}\n{"text": "a", "label": [1]}\n', "mixed.jsonl:2: "),
        (
            "mixed.jsonl",
            '{"text": "a", "label": 1}\n{"text": "a", "label": "1"}\n',
            "mixed.jsonl: some labels",
        ),
        ("words.jsonl", '{"text": "", "label": "b"}\n', "no words to learn from"),
    ],
)
def test_bad_data(run, written, tmp_path, name, content, said):
    failed(run("train", "label-tree", written(name, content), "-o", "a.model"), 1, said)
    assert not (tmp_path / "a.model").exists()


def test_damaged_gzip(run, tmp_path):
    whole = gzip.compress(jsonl().encode())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    (tmp_path / "flipped.jsonl.gz").write_bytes(whole[:40] + b"nonsense" + whole[48:])
    for name in ("cut.jsonl.gz", "flipped.jsonl.gz"):
        failed(run("train", "label-tree", name, "-o", "a.model"), 1, name)


def test_missing_files(run, written, text_model):
    failed(run("train", "label-tree", "none.svm", "-o", "a.model"), 1, "none.svm: No such file")
    failed(run("predict", text_model, "none.jsonl"), 1, "none.jsonl: No such file")
    failed(run("predict", "none.model", "train.jsonl"), 1, "none.model", "No such file")


def test_outputs_that_cannot_be_written(run, tmp_path, text_model):
    (tmp_path / "folder").mkdir()
    for output, said in [("none/a", "no directory"), ("folder", "not a regular file")]:
        failed(run("train", "label-tree", "train.jsonl", "-o", output), 1, said)
        failed(run("predict", text_model, "train.jsonl", "-o", output), 1, said)


def test_wrong_width(run, written):
    succeeded(run("train", "label-tree", written("train.xmc", xmc()), "-o", "a.model"))
    for width in (6, 7):
        other = written("other.xmc", xmc(width))
        failed(run("predict", "a.model", other), 1, f"{width} features", "trained on 5")
    narrow = written("other.xmc", "1 4 3\n0 0:1\n")
    failed(run("predict", "a.model", narrow), 1, "4 features", "trained on 5")


def test_wider_svmlight(run, written, vector_model):
    failed(run("predict", vector_model, written("wide.svm", svmlight(shift=3))), 1, "8 features")


def test_text_for_vectors_and_vectors_for_text(run, written, text_model, vector_model):
    failed(run("predict", vector_model, "train.jsonl"), 1, "not on text")
    failed(run("predict", text_model, "train.svm"), 1, "trained on text")


def test_labels_of_another_kind(run, written, text_model):
    failed(run("evaluate", text_model, written("numbers.jsonl", jsonl(labels=[1, 2, 3]))), 1)


def test_corrupt_model(run, tmp_path, text_model):
    whole = (tmp_path / text_model).read_bytes()
    for damaged in (b"", b"nonsense", whole[:100], whole[:-9]):
        (tmp_path / "bad.model").write_bytes(damaged)
        for command in (["info", "bad.model"], ["predict", "bad.model", "train.jsonl"]):
            failed(run(*command), 1)


def test_an_estimator_that_refuses_its_options(run, written):
    train = ("train", "label-tree", written("train.svm", svmlight()), "-o", "a")
    failed(run(*train, "--arity", "0"), 1, "arity")
    failed(run("train", "label-tree", written("bad.svm", "nonsense"), "-o", "a", "--arity", "0"), 1, "arity")


def test_interrupted(run, written, monkeypatch, tmp_path):
    def interrupted(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(sapwood.LabelTreeClassifier, "fit", interrupted)
    result = run("train", "label-tree", written("train.svm", svmlight()), "-o", "a.model")
    failed(result, 130, "interrupted")
    assert not (tmp_path / "a.model").exists()


def test_a_failed_prediction_leaves_the_old_file(run, tmp_path, text_model, monkeypatch):
    import sapwood.cli.predict as predict

    def interrupted(row):
        raise KeyboardInterrupt

    (tmp_path / "out.tsv").write_text("before")
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(predict, "_tab_line", interrupted)
    failed(run("predict", text_model, "train.jsonl", "-o", "out.tsv"), 130, "interrupted")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "out.tsv").read_text() == "before"


def test_as_a_process(written, tmp_path):
    start = [sys.executable, "-c", "from sapwood.cli import main; main()"]
    result = subprocess.run(
        [*start, "info", "none"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "sapwood: none: No such file or directory\n"


# Methods and their options


class MadeUpClassifier:
    """Learn by magic. It
    works.

    Longer words.

    Parameters
    ----------
    depth : int, default=3
        How deep,
        in [levels].
    low, high : float
        Bounds.
    spells : dict
        Spells.

    Attributes
    ----------
    depth_ : int
        Not an option.
    """

    def __init__(
        self,
        *,
        depth: int = 3,
        low: float | None = None,
        high: float = 1.0,
        loud: bool = False,
        kind: Literal["white", "black"] | None = None,
        bits: Literal[16, 32] = 16,
        spells=None,
        either: int | str = 1,
        rule: Literal["old"] | dict | None = "old",
    ):
        self.given = {"depth": depth, "low": low, "high": high, "loud": loud}
        self.given |= {"kind": kind, "bits": bits, "spells": spells, "rule": rule}


def test_every_public_classifier_is_a_method():
    classes = {name for name in sapwood.__all__ if name.endswith("Classifier")}
    assert {method.estimator.__name__ for method in methods()} == classes
    assert {"label-tree", "one-vs-all"} <= {method.name for method in methods()}


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("LabelTreeClassifier", "label-tree"),
        ("OneVsAllClassifier", "one-vs-all"),
        ("LOMTreeClassifier", "lom-tree"),
        ("FastXMLClassifier", "fast-xml"),
    ],
)
def test_method_names(class_name, name):
    assert method_name(class_name) == name


def test_help_comes_from_the_docstring():
    assert parameter_help("No parameters.") == {}
    method = Method("made-up", MadeUpClassifier)
    assert method.summary == "Learn by magic. It works."
    helps = {name: option.parameter.default.help for name, option in method.options().items()}
    assert helps["depth"] == "How deep, in \\[levels]."
    assert helps["low"] == helps["high"] == "Bounds."
    assert helps["loud"] == ""
    assert helps["spells"] == "Spells. A JSON file."


def test_options_from_a_signature(monkeypatch, run, tmp_path):
    method = Method("made-up", MadeUpClassifier)
    options = method.options()
    assert list(options) == ["depth", "low", "high", "loud", "kind", "bits", "spells", "either", "rule"]
    (tmp_path / "spells.json").write_text('[["a"], ["b"]]')
    typed = {"depth": 5, "low": None, "kind": "black", "bits": "32", "spells": tmp_path / "spells.json"}
    typed["rule"] = "none"
    given = method.create(options, typed).given
    assert given == {
        "depth": 5,
        "low": None,
        "high": 1.0,
        "loud": False,
        "kind": "black",
        "bits": 32,
        "spells": [["a"], ["b"]],
        "rule": None,
    }


def test_a_json_option_that_is_not_json(run, written):
    data, tree = written("train.svm", svmlight()), written("tree.json", "[[")
    failed(run("train", "label-tree", data, "-o", "a.model", "--tree", tree), 1, "tree.json: not valid JSON")
