"""LightGBM's cost-efficient boosting and an oblique tree for budgeted_asu.py, in the peers' environment.

    .venv-peers/bin/python budgeted_peers.py lightgbm|oblique FOLDER LIMIT INNER_FOLDS

FOLDER holds X.npz (CSR) and y.npz (y, fold). Prints a JSON list: error, features, nodes and parameters chosen for each
outer fold. Parameters are chosen by INNER_FOLDS folds inside the training part among those that, in the mean of these
folds, look at LIMIT features at most (LightGBM); the oblique tree knows no limit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

PENALTIES = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0)
"""What a feature costs when it is used for the first time, in units of the loss's gain."""


class Boosting:
    """LightGBM with a cost for each feature that is new to the model."""

    def __init__(self, penalty, rounds):
        self.penalty, self.rounds = penalty, rounds
        self.chosen = f"penalty={penalty:g} rounds={rounds}"

    def fit(self, X, y):
        """Train; note how many features and nodes there are."""
        import lightgbm

        parameters = {
            "objective": "binary",
            "num_leaves": 15,
            "min_data_in_leaf": 5,
            "num_threads": 1,
            "verbose": -1,
            "seed": 0,
            "feature_pre_filter": False,
        }
        if self.penalty:
            parameters["cegb_penalty_feature_coupled"] = [self.penalty] * X.shape[1]
        self.model = lightgbm.train(parameters, lightgbm.Dataset(X, (y > 0).astype(int)), self.rounds)
        self.features = int(np.sum(self.model.feature_importance() > 0))
        self.nodes = sum(2 * tree["num_leaves"] - 1 for tree in self.model.dump_model()["tree_info"])
        return self

    def predict(self, X):
        """Give -1 or +1 for each row."""
        return np.where(self.model.predict(X) > 0.5, 1, -1)


class Oblique:
    """A tree whose splits are sparse random combinations of a few features (treeple)."""

    def __init__(self, combinations, min_leaf):
        self.combinations, self.min_leaf = combinations, min_leaf
        self.chosen = f"combinations={combinations:g} min_leaf={min_leaf}"

    def fit(self, X, y):
        """Train; note how many features and nodes there are."""
        from treeple.tree import ObliqueDecisionTreeClassifier

        self.model = ObliqueDecisionTreeClassifier(
            feature_combinations=self.combinations, min_samples_leaf=self.min_leaf, random_state=0
        ).fit(X.toarray(), y)
        inner = self.model.tree_.children_left >= 0
        self.features = int(np.any(self.model.tree_.get_projection_matrix()[inner] != 0, axis=0).sum())
        self.nodes = int(self.model.tree_.node_count)
        return self

    def predict(self, X):
        """Give -1 or +1 for each row."""
        return self.model.predict(X.toarray())


def candidates(method):
    if method == "lightgbm":
        return [lambda p=p, r=r: Boosting(p, r) for p in PENALTIES for r in (50, 200)]
    return [lambda c=c, m=m: Oblique(c, m) for c in (1.5,) for m in (1, 5)]


def choose(X, y, makers, limit, inner_folds):
    """The maker with the least inner error among those that keep the limit, or of the fewest features if none does."""
    wrong, features = np.zeros(len(makers)), np.zeros(len(makers))
    for part, check in StratifiedKFold(inner_folds, shuffle=True, random_state=1).split(X, y):
        for k, make in enumerate(makers):
            model = make().fit(X[part], y[part])
            wrong[k] += np.sum(model.predict(X[check]) != y[check])
            features[k] += model.features / inner_folds
    keeps = features <= limit
    if limit and not keeps.any():
        return makers[int(np.argmin(features))]
    return makers[int(np.argmin(np.where(keeps | (limit == 0), wrong, np.inf)))]


def main():
    method, folder, limit, inner_folds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    X = sp.load_npz(folder / "X.npz")
    with np.load(folder / "y.npz") as arrays:
        y, fold = arrays["y"], arrays["fold"]
    makers, results = candidates(method), []
    for number in range(fold.max() + 1):
        learn, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        best = choose(X[learn], y[learn], makers, limit if method == "lightgbm" else 0, inner_folds)
        model = best().fit(X[learn], y[learn])
        error = float(np.mean(model.predict(X[test]) != y[test]))
        results.append(
            {"error": error, "features": model.features, "nodes": model.nodes, "chosen": model.chosen}
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
