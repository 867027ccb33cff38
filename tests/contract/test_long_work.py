"""Long work: it shows progress, Ctrl-C ends it, and it takes no more memory than it says."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import SLOW, answers, every_estimator, every_variant, is_reproducible, make_rows, tensors
from sklearn.base import clone

from sapwood import LabelTreeClassifier

X, CODES = make_rows()


def n_threads():
    tasks = "/proc/self/task"
    return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()


def noise(n_rows=2000, n_features=500, n_labels=40):
    random = np.random.default_rng(0)
    matrix = sp.random(n_rows, n_features, 0.05, "csr", np.float32, random)
    return matrix, random.integers(0, n_labels, n_rows)


@every_estimator
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_long_fit_within_a_second(estimator, n_jobs, tmp_path):
    model = clone(estimator).fit(X, CODES)
    state, expected, attributes = tensors(model, tmp_path), answers(model, X), dict(vars(model))
    kwargs = {"n_jobs": n_jobs, **SLOW.get(type(estimator).__name__, {})}
    model.set_params(**kwargs)
    rows, labels = noise()
    threads = n_threads()
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.4, interrupt)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            start = time.monotonic()
            while time.monotonic() < start + 5:
                model.fit(rows, labels)
            pytest.fail("the signal never came")
        took = time.monotonic() - sent[0]
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    assert took < 1
    assert n_threads() == threads
    model.set_params(**{name: attributes[name] for name in kwargs})
    assert vars(model) == attributes
    assert tensors(model, tmp_path) == state
    assert answers(model, X) == expected


@every_variant
def test_verbose_prints_lines_to_standard_error(estimator, capfd):
    model = clone(estimator).set_params(verbose=1).fit(X, CODES)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.search(rf"{type(model).__name__}.*100 %", err.splitlines()[-1])
    model.set_params(verbose=0).fit(X, CODES)
    assert capfd.readouterr() == ("", "")
    quiet = clone(estimator).fit(X, CODES)
    assert not is_reproducible(estimator) or answers(quiet, X) == answers(model, X)


def test_progress_ends_at_a_hundred_percent(capfd):
    """Also where nodes are shared among threads, in parts that are not of one size."""
    rows, labels = noise(n_rows=1999, n_labels=397)
    LabelTreeClassifier(max_leaf=40, arity=4, passes=1, n_jobs=2, verbose=1).fit(rows, labels)
    assert "100 %" in capfd.readouterr().err.splitlines()[-1]


@every_variant
def test_float32_rows_are_not_copied_in_python(estimator):
    model = clone(estimator).fit(X, CODES)
    dense = np.tile(X.toarray(), (200, 1))
    sparse = sp.csr_matrix(dense)
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for matrix in (dense, sparse, wide):
        size = matrix.nbytes if isinstance(matrix, np.ndarray) else matrix.data.nbytes
        tracemalloc.start()  # numpy tells it of every array
        try:
            model.predict_topk(matrix, k=1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        answer = 16 * matrix.shape[0]  # an int64 label, an int32 code and a float32 score for each row
        assert peak < answer + size / 4


MEMORY = """
import json, resource, sys
import numpy as np, scipy.sparse as sp
import sapwood

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

name, form, path = sys.argv[1:]
n_labels, n_features = 64, 4096
n_rows = 8192 if form == "dense" else 60_000
codes = np.arange(n_rows) % n_labels
warm = sp.csr_matrix(np.eye(8, dtype=np.float32))
getattr(sapwood, name)(random_state=0).fit(warm, np.arange(8)).predict(warm)  # all modules loaded
base = peak()
random = np.random.default_rng(0)
if form == "dense":
    X = np.empty((n_rows, n_features // 8), dtype=np.float32)
    X[:] = 0.01
    X[np.arange(n_rows), codes] = 1
    size = X.nbytes
else:
    per_row = 64
    indptr = np.arange(0, (n_rows + 1) * per_row, per_row, dtype=np.int32)
    indices = np.empty((n_rows, per_row), dtype=np.int32)
    indices[:] = np.arange(per_row, dtype=np.int32) * (n_features // per_row)
    for column in range(per_row):
        indices[:, column] += random.integers(0, n_features // per_row, n_rows, dtype=np.int32)
    indices[:, 0] = codes % (n_features // per_row)
    values = np.full(n_rows * per_row, 0.3, dtype=np.float32)
    values[::per_row] = 2
    X = sp.csr_matrix((values, indices.reshape(-1), indptr), shape=(n_rows, n_features), copy=False)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
with_data = peak()
model = getattr(sapwood, name)(random_state=0).fit(X, codes)
fitted = peak()
model.predict_topk(X, k=1)
predicted = peak()
model.save(path)
import os
print(json.dumps({"base": base, "data": size, "with_data": with_data, "fitted": fitted, "predicted": predicted,
                  "model": os.path.getsize(path)}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize("form", ["dense", "sparse"])
@every_estimator
def test_training_takes_less_than_twice_the_data_and_the_model(estimator, form, tmp_path):
    command = [sys.executable, "-c", MEMORY, type(estimator).__name__, form, tmp_path / "m"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    bytes_of = json.loads(done.stdout)
    slack = 4 << 20  # the allocator's, and the pages of code met for the first time
    assert bytes_of["fitted"] - bytes_of["base"] < 2 * bytes_of["data"] + bytes_of["model"] + slack, bytes_of
    assert bytes_of["predicted"] - bytes_of["fitted"] < slack, bytes_of
