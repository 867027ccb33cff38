"""Budget-aware classifier (BAC), section 4 of the budgeted-trees paper (JMLR 2017).

The problem, with the squared hinge or the logistic loss in the place of the learned margin of (4):

    min over rho in E, w, b    1/2 ||w||^2 + C sum_i loss(y_i (w'(x_i * sqrt(rho)) + b))
    E = {rho in [0, 1]^m, sum_j rho_j <= B}

solved by Algorithm 1 in its dual (6): planes are feature sets of size B, the worst case is the exact
top B of (sum_i alpha_i y_i x_ij)^2, the master problem (8) is solved in the primal (10). The derivations
are in docs/budgeted_trees.md; "[n]" in a comment is an equation there, "(n)" one of the paper.

Everything is written for several *folds* at once: they share the planes and have a classifier each,
which is problem (11). The plain BAC is the case of one fold that holds every example.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Vector = npt.NDArray[np.float64]
"""One entry an example, a feature or a plane."""
Matrix = npt.NDArray[np.float64]
"""Examples (or features) by folds."""
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Examples = Any
"""n x m, dense array or scipy CSR."""

ROUNDING = 1e-12
"""Relative error that sums of n terms are allowed before a descent test is said to have failed."""
LIPSCHITZ_GROWTH = 2.0
MAX_OFFSET_STEPS = 100


class Loss(Protocol):
    """A convex loss of the margin z = y f(x), and what duality needs of it."""

    def value(self, margin: Matrix) -> Matrix:
        """Return loss(z)."""
        ...

    def slope(self, margin: Matrix) -> Matrix:
        """Return -loss'(z) >= 0; alpha is C times this."""
        ...

    def curvature(self, margin: Matrix) -> Matrix:
        """Return loss''(z), one-sided where it jumps."""
        ...

    def dual(self, ratio: Matrix) -> Matrix:
        """Return -loss*(-ratio), the dual's gain of alpha = C ratio."""
        ...

    def best_scale(self, total: float, gain: float, top: float) -> float:
        """Return s such that s alpha is feasible and its dual value is no lower than alpha's.

        `total` is sum alpha_i, `gain` what alpha gains in the dual, `top` what it loses, doubled.
        """
        ...


class SquaredHinge:
    """loss(z) = max(0, 1 - z)^2, LIBLINEAR's scaling."""

    def value(self, margin: Matrix) -> Matrix:
        """Return max(0, 1 - z)^2."""
        return np.maximum(0.0, 1.0 - margin) ** 2

    def slope(self, margin: Matrix) -> Matrix:
        """Return 2 max(0, 1 - z)."""
        return 2.0 * np.maximum(0.0, 1.0 - margin)

    def curvature(self, margin: Matrix) -> Matrix:
        """Return 2 where the hinge is active."""
        return np.where(margin < 1.0, 2.0, 0.0)

    def dual(self, ratio: Matrix) -> Matrix:
        """Return a - a^2 / 4."""
        return ratio - 0.25 * ratio**2

    def best_scale(self, total: float, gain: float, top: float) -> float:
        """Return the maximiser of the parabola s -> D(s alpha), [7]."""
        quadratic = (total - gain) + 0.5 * top
        return total / (2.0 * quadratic) if quadratic > 0.0 else 1.0


class Logistic:
    """loss(z) = log(1 + exp(-z))."""

    def value(self, margin: Matrix) -> Matrix:
        """Return log(1 + exp(-z))."""
        return np.logaddexp(0.0, -margin)

    def slope(self, margin: Matrix) -> Matrix:
        """Return 1 / (1 + exp(z))."""
        return np.exp(-np.logaddexp(0.0, margin))

    def curvature(self, margin: Matrix) -> Matrix:
        """Return p (1 - p)."""
        p = self.slope(margin)
        return p * (1.0 - p)

    def dual(self, ratio: Matrix) -> Matrix:
        """Return the entropy of a coin that shows heads with probability a."""
        a = np.clip(ratio, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(a > 0, a * np.log(a), 0.0) + np.where(a < 1, (1 - a) * np.log1p(-a), 0.0)
        return -terms

    def best_scale(self, total: float, gain: float, top: float) -> float:
        """Return 1: alpha <= C leaves no cone to move in."""
        return 1.0


LOSSES: dict[str, Loss] = {"squared_hinge": SquaredHinge(), "logistic": Logistic()}


def worst_case(scores: Vector, budget: int) -> Indices:
    """Return the rho of problem (9): the columns of the `budget` largest scores, ascending.

    Ties go to the smaller column; a column whose score is zero is never chosen.
    """
    budget = min(budget, int(np.count_nonzero(scores)))
    if budget == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(scores, len(scores) - budget)[len(scores) - budget]
    above = np.flatnonzero(scores > threshold)
    tied = np.flatnonzero(scores == threshold)[: budget - len(above)]
    return np.sort(np.concatenate([above, tied]))


def shrink_norms(norms: Vector, tau: float) -> Vector:
    """Return the minimiser r >= 0 of 1/2 ||r - norms||^2 + tau/2 (sum r)^2, [5]."""
    descending = np.sort(norms)[::-1]
    count = np.arange(1, len(norms) + 1)
    total = np.max(np.cumsum(descending) / (1.0 + tau * count), initial=0.0)
    return np.asarray(np.maximum(0.0, norms - tau * total))


def dense_columns(X: Examples, columns: Indices) -> Matrix:
    """Return the chosen columns of X as a dense array."""
    part = X[:, columns]
    return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)


@dataclass
class Problem:
    """Data and constants of problem (11)."""

    X: Examples
    y: Vector
    """n labels, -1 or +1."""
    weight: Matrix
    """n x folds: how much example i counts in fold v; 0 if fold v does not learn from it."""
    C: float
    loss: Loss
    fit_offset: bool

    def offset(self, scores: Matrix, start: Vector) -> Vector:
        """Return for each fold the b that minimises its loss, [8]: a Newton step, or else a bisection."""
        if not self.fit_offset:
            return np.zeros(self.weight.shape[1])
        y = self.y[:, None]
        reach = 1.0 + np.abs(scores).max(axis=0) + np.log(len(self.y))
        low, high = -reach, reach.copy()
        b: Vector = np.clip(start, low, high)
        for _ in range(MAX_OFFSET_STEPS):
            margin = y * (scores + b)
            gradient = -np.sum(self.weight * y * self.loss.slope(margin), axis=0)
            curvature = np.sum(self.weight * self.loss.curvature(margin), axis=0)
            low = np.where(gradient < 0, b, low)
            high = np.where(gradient > 0, b, high)
            step = np.divide(gradient, curvature, out=np.zeros_like(b), where=curvature > 0)
            newton = b - step
            # Strictly: an end of the bracket is no root, and a kink can send Newton from end to end for ever.
            inside = (newton > low) & (newton < high)
            moved = np.where(gradient == 0, b, np.where(inside, newton, 0.5 * (low + high)))
            done = np.abs(moved - b) <= 4 * np.finfo(float).eps * reach
            b = moved
            if done.all():
                break
        return np.asarray(b)

    def total_loss(self, scores: Matrix, b: Vector) -> float:
        """Return C sum of loss over the examples of all folds."""
        margin = self.y[:, None] * (scores + b)
        return self.C * float(np.sum(self.weight * self.loss.value(margin)))

    def dual_ratio(self, scores: Matrix, b: Vector) -> Matrix:
        """Return alpha_i / C_i of [6]: the loss's slope at the margins, made exactly feasible for b."""
        ratio = self.loss.slope(self.y[:, None] * (scores + b))
        if self.fit_offset:
            # sum_i alpha_i y_i = 0 holds up to rounding; scaling the heavier class down makes it exact.
            positive = self.y > 0
            up = np.sum((self.weight * ratio)[positive], axis=0)
            down = np.sum((self.weight * ratio)[~positive], axis=0)
            light = np.minimum(up, down)
            ratio[positive] *= np.divide(light, up, out=np.zeros_like(up), where=up > 0)
            ratio[~positive] *= np.divide(light, down, out=np.zeros_like(down), where=down > 0)
        return ratio

    def dual_value(self, ratio: Matrix, top: float) -> float:
        """Return the best D(s alpha), [7]; `top` is the largest sum of squares of a set's correlations."""
        gain = self.C * float(np.sum(self.weight * self.loss.dual(ratio)))
        s = self.loss.best_scale(self.C * float(np.sum(self.weight * ratio)), gain, top)
        if s != 1.0:
            gain = self.C * float(np.sum(self.weight * self.loss.dual(s * ratio)))
        return gain - 0.5 * s * s * top

    def signed_alpha(self, ratio: Matrix) -> Matrix:
        """Return alpha_i y_i, examples x folds."""
        return self.C * self.weight * ratio * self.y[:, None]

    def correlations(self, ratio: Matrix) -> Matrix:
        """Return sum_i alpha_i y_i x_ij for every column of X: one pass over the data."""
        return np.asarray(self.X.T @ self.signed_alpha(ratio))


class Master:
    """Problem (8) over the planes found so far, solved in the primal (10), [4].

    min over w_h, b    1/2 (sum_h ||w_h||)^2 + C sum loss,    f(x) = sum_h w_h' x_h + b

    by accelerated proximal gradient, from the last solution. A plane's w_h spans all folds.
    """

    def __init__(self, problem: Problem) -> None:
        n, folds = problem.weight.shape
        self.problem = problem
        self.planes: list[Indices] = []
        self.columns = np.empty(0, dtype=np.intp)
        """Columns of X that some plane has, in the order in which they came."""
        self.dense: Matrix = np.empty((n, 0))
        """n x len(columns): all that is ever made dense."""
        self.position = np.empty(0, dtype=np.intp)
        """For each row of w, its place in `columns`."""
        self.plane = np.empty(0, dtype=np.intp)
        """For each row of w, its plane."""
        self.w: Matrix = np.empty((0, folds))
        """w_h of all planes, one below the other."""
        self.scores: Matrix = np.zeros((n, folds))
        self.b = problem.offset(self.scores, np.zeros(folds))
        self.objective = problem.total_loss(self.scores, self.b)
        self.ratio = problem.dual_ratio(self.scores, self.b)
        """alpha_i / C_i of the best dual point of the last solve; before the first, that of w = 0."""
        self.lipschitz = 0.0
        self.iterations = 0

    def add(self, columns: Indices) -> None:
        """Add a plane with w_h = 0, which leaves the objective as it is."""
        known = {int(j): k for k, j in enumerate(self.columns)}
        new = np.array([j for j in columns if int(j) not in known], dtype=np.intp)
        known.update({int(j): len(self.columns) + k for k, j in enumerate(new)})
        if len(new):
            self.columns = np.concatenate([self.columns, new])
            self.dense = np.hstack([self.dense, dense_columns(self.problem.X, new)])
        self.position = np.concatenate(
            [self.position, np.array([known[int(j)] for j in columns], dtype=np.intp)]
        )
        self.plane = np.concatenate([self.plane, np.full(len(columns), len(self.planes), dtype=np.intp)])
        self.w = np.vstack([self.w, np.zeros((len(columns), self.w.shape[1]))])
        self.planes.append(columns)

    def coefficients(self, w: Matrix) -> Matrix:
        """Return sum_h w_h, len(columns) x folds."""
        flat = np.zeros((len(self.columns), w.shape[1]))
        np.add.at(flat, self.position, w)
        return flat

    def norms(self, w: Matrix) -> Vector:
        """Return ||w_h|| for each plane."""
        squares = np.bincount(self.plane, weights=np.sum(w * w, axis=1), minlength=len(self.planes))
        return np.asarray(np.sqrt(squares))

    def proximal(self, v: Matrix, tau: float) -> tuple[Matrix, float]:
        """Return argmin_w 1/2 ||w - v||^2 + tau/2 (sum_h ||w_h||)^2, [5], and its penalty without tau."""
        before = self.norms(v)
        after = shrink_norms(before, tau)
        factor = np.divide(after, before, out=np.zeros_like(before), where=before > 0)
        return v * factor[self.plane, None], 0.5 * float(after.sum()) ** 2

    def solve(self, tolerance: float, max_iter: int) -> None:
        """Minimise until the duality gap over the planes is at most `tolerance` times the objective."""
        problem = self.problem
        if not self.lipschitz:
            # A first guess from below; backtracking corrects it.
            self.lipschitz = problem.C * float(np.mean(self.dense**2)) * len(problem.y) + 1e-12
        self.lipschitz /= LIPSCHITZ_GROWTH
        w, scores, b, objective = self.w, self.scores, self.b, self.objective
        # The extrapolated point v, its scores (linear in v, so never recomputed) and its offset.
        v, v_scores, v_b = w, scores, b
        momentum = 1.0
        best_dual, gap = -np.inf, np.inf
        for _ in range(max_iter):
            self.iterations += 1
            v_loss = problem.total_loss(v_scores, v_b)
            ratio = problem.dual_ratio(v_scores, v_b)
            correlations = (self.dense.T @ problem.signed_alpha(ratio))[self.position]
            # The gradient is minus the correlations, so every gradient brings a dual point, [6].
            top = float(np.max(self.norms(correlations), initial=0.0)) ** 2
            dual = problem.dual_value(ratio, top)
            if dual > best_dual:
                best_dual, self.ratio = dual, ratio
            while True:
                new, penalty = self.proximal(v + correlations / self.lipschitz, 1.0 / self.lipschitz)
                new_scores = self.dense @ self.coefficients(new)
                new_b = problem.offset(new_scores, v_b)
                new_loss = problem.total_loss(new_scores, new_b)
                move = new - v
                model = v_loss - float(np.vdot(correlations, move))
                model += 0.5 * self.lipschitz * float(np.vdot(move, move))
                if new_loss <= model + ROUNDING * (abs(v_loss) + abs(new_loss)):
                    break
                self.lipschitz *= LIPSCHITZ_GROWTH
            extrapolated = v is not w
            if penalty + new_loss > objective:
                if not extrapolated:
                    break  # a plain proximal step that does not descend: the end of the arithmetic
                v, v_scores, v_b, momentum = w, scores, b, 1.0
                continue
            restart = float(np.vdot(v - new, new - w)) > 0.0
            old_w, old_scores = w, scores
            w, scores, b, objective = new, new_scores, new_b, penalty + new_loss
            gap = objective - best_dual
            if gap <= tolerance * objective:
                break
            if restart:
                v, v_scores, v_b, momentum = w, scores, b, 1.0
                continue
            next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            beta = (momentum - 1.0) / next_momentum
            momentum = float(next_momentum)
            v, v_scores = w + beta * (w - old_w), scores + beta * (scores - old_scores)
            v_b = problem.offset(v_scores, b)
        self.w, self.scores, self.b, self.objective = w, scores, b, objective


@dataclass
class Solution:
    """What Algorithm 1 found."""

    features: Indices
    """Columns with a weight in some fold, ascending."""
    coef: Matrix
    """len(features) x folds."""
    offset: Vector
    planes: list[Indices]
    plane_norms: Vector
    """||w_h||; divided by their sum they are the mu of problem (10)."""
    objective: list[float]
    """The master's primal value after each plane; never rises. Entry 0 is w = 0."""
    bound: list[float]
    """A lower bound of problem (6) over all feature sets; never falls."""
    iterations: int

    def decision(self, X: Examples) -> Matrix:
        """Return f(x), examples x folds."""
        return dense_columns(X, self.features) @ self.coef + self.offset


def solve_bac(
    X: Examples,
    y: Vector,
    weight: Matrix,
    *,
    budget: int,
    C: float,
    loss: str,
    fit_offset: bool,
    tol: float,
    max_planes: int,
    max_iter: int,
) -> Solution:
    """Solve problem (11) by Algorithm 1: one feature selection vector, a classifier for each fold."""
    problem = Problem(X, y, weight, C, LOSSES[loss], fit_offset)
    master = Master(problem)
    objective, bound = [master.objective], [-np.inf]
    seen: set[bytes] = set()
    precision = 0.1
    while True:
        # Worst-case analysis, 4.1.1, for the sum of the folds' objectives (11).
        correlations = problem.correlations(master.ratio)
        scores = np.sum(correlations * correlations, axis=1)
        chosen = worst_case(scores, budget)
        # The dual value over *all* feature sets: the worst case is known exactly, [9].
        bound[-1] = max(bound[-1], problem.dual_value(master.ratio, float(scores[chosen].sum())))
        gap = objective[-1] - bound[-1]
        if gap <= tol * objective[-1] or not len(chosen):
            break
        key = chosen.tobytes()
        if key in seen:
            # Only an inexact master can ask for a plane that it has: go on with a tighter one.
            if precision <= 0.5 * tol:
                break
        elif len(master.planes) == max_planes:
            break
        else:
            seen.add(key)
            master.add(chosen)
            objective.append(objective[-1])
            bound.append(bound[-1])
        precision = max(0.5 * tol, min(0.1 * gap / objective[-1], 0.3 * precision))
        # Master-problem optimisation, 4.1.2.
        master.solve(precision, max_iter)
        objective[-1] = master.objective
    coef = master.coefficients(master.w)
    order = np.argsort(master.columns)
    order = order[np.any(coef[order] != 0.0, axis=1)]
    return Solution(
        features=master.columns[order],
        coef=coef[order],
        offset=master.b,
        planes=master.planes,
        plane_norms=master.norms(master.w),
        objective=objective,
        bound=bound,
        iterations=master.iterations,
    )


def check_examples(X: Examples) -> Examples:
    """Return X as float64, dense C-ordered or CSR."""
    if sp.issparse(X):
        return sp.csr_matrix(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)


def check_signs(y: Iterable[float]) -> Vector:
    """Return y as floats; it must hold -1 and +1 only."""
    signs = np.asarray(y, dtype=np.float64)
    wrong = np.flatnonzero(np.abs(signs) != 1.0)
    if len(wrong):
        raise ValueError(f"y must hold -1 and +1 only; entry {wrong[0]} is {signs[wrong[0]]:g}")
    return signs


@dataclass
class BudgetedParameters:
    """What a budget-aware classifier can be told."""

    budget: int
    """B: features of a plane. The classifier may end with up to max_planes times as many."""
    C: float = 1.0
    loss: str = "squared_hinge"
    fit_offset: bool = True
    tol: float = 1e-3
    """Stop when the certified duality gap is at most tol times the objective."""
    max_planes: int = 20
    max_iter: int = 2000
    """Proximal steps for one master problem."""
    class_weight: str | None = None
    """"balanced": both classes of a problem weigh the same, as in scikit-learn."""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {sorted(LOSSES)}, not {self.loss!r}")
        if self.class_weight not in (None, "balanced"):
            raise ValueError(f'class_weight must be None or "balanced", not {self.class_weight!r}')
        if self.budget < 1 or self.max_planes < 1 or not self.C > 0:
            raise ValueError(
                f"budget and max_planes must be at least 1 and C positive, not {self.budget}, "
                f"{self.max_planes} and {self.C}"
            )

    def solve(self, X: Examples, y: Vector, train: Mask) -> Solution:
        """Solve problem (11); train[i, v] tells whether fold v learns from example i."""
        weight = train.astype(np.float64)
        if self.class_weight == "balanced":
            for sign in (-1.0, 1.0):
                share = np.sum(weight[y == sign], axis=0) / np.maximum(1, np.sum(train, axis=0))
                weight[y == sign] *= np.divide(0.5, share, out=np.zeros_like(share), where=share > 0)
        return solve_bac(
            X,
            y,
            weight,
            budget=self.budget,
            C=self.C,
            loss=self.loss,
            fit_offset=self.fit_offset,
            tol=self.tol,
            max_planes=self.max_planes,
            max_iter=self.max_iter,
        )


class Budgeted:
    """BAC, definition 6 and Algorithm 1, for labels -1 and +1.

    Parameters
    ----------
    parameters : BudgetedParameters or int
        An int is a budget with the other parameters at their defaults.

    Attributes
    ----------
    features_, coef_, offset_ : the classifier, f(x) = coef_ . x[features_] + offset_
    objective_, bound_ : the primal value and its certified lower bound after each plane
    gap_ : objective_[-1] - bound_[-1]
    """

    def __init__(self, parameters: BudgetedParameters | int) -> None:
        self.parameters = BudgetedParameters(parameters) if isinstance(parameters, int) else parameters

    def fit(self, X: Examples, y: Iterable[float]) -> Budgeted:
        """Learn from n examples and their signs."""
        X, signs = check_examples(X), check_signs(y)
        self.solution_ = self.parameters.solve(X, signs, np.ones((len(signs), 1), dtype=bool))
        self.features_ = self.solution_.features
        self.coef_ = self.solution_.coef[:, 0]
        self.offset_ = float(self.solution_.offset[0])
        self.objective_, self.bound_ = self.solution_.objective, self.solution_.bound
        self.gap_ = self.objective_[-1] - self.bound_[-1]
        return self

    def decision_function(self, X: Examples) -> Vector:
        """Return f(x) for each row."""
        return np.asarray(self.solution_.decision(check_examples(X))[:, 0])

    def predict(self, X: Examples) -> Vector:
        """Return +1 where f(x) > 0 and -1 elsewhere."""
        return np.where(self.decision_function(X) > 0.0, 1.0, -1.0)
