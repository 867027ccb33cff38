// Dual coordinate descent on the L2-regularised squared hinge (Hsieh et al. 2008), for the sixteen regressors of a bank
// jointly: one visit of a row's features serves all lanes. Included by kernels_*.cpp only.
//
// Where LIBLINEAR updates every row it visits and sets aside only rows at a bound, we leave a row alone when no lane's
// projected gradient exceeds the tolerance, and set aside every row we left alone until the next pass over all rows.
// Most visits of a converging solver change next to nothing: this halves the visits and thirds the updates.
#pragma once

#include "regressors/kernels.h"
#include "regressors/lanes.h"
#include "solvers/random.h"

namespace sapwood::SAPWOOD_ISA {

template <class Index>
inline Lanes dot(const float* weights, Row<Index> row, float scale) {
  Lanes a = zero(), b = zero(), c = zero(), d = zero();
  int64_t k = 0;
  for (; k + 4 <= row.count; k += 4) {
    a = fma(load(weights + 16 * static_cast<int64_t>(row.index[k])), broadcast(scale * row.value[k]), a);
    b = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 1])), broadcast(scale * row.value[k + 1]), b);
    c = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 2])), broadcast(scale * row.value[k + 2]), c);
    d = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 3])), broadcast(scale * row.value[k + 3]), d);
  }
  for (; k < row.count; ++k) {
    a = fma(load(weights + 16 * static_cast<int64_t>(row.index[k])), broadcast(scale * row.value[k]), a);
  }
  return (a + b) + (c + d);
}

template <class Index>
inline void add_scaled(float* weights, Row<Index> row, float scale, Lanes by) {
  for (int64_t k = 0; k < row.count; ++k) {
    float* line = weights + 16 * static_cast<int64_t>(row.index[k]);
    store(line, fma(by, broadcast(scale * row.value[k]), load(line)));
  }
}

inline bool stopped(const BankProblem& p) { return p.stop && __atomic_load_n(p.stop, __ATOMIC_RELAXED); }
inline int64_t row_number(const BankProblem& p, int64_t i) { return p.rows ? p.rows[i] : i; }
inline float row_scale(const BankProblem& p, int64_t row) { return p.row_scale ? p.row_scale[row] : 1.0f; }

constexpr int64_t kRowsBetweenStopChecks = 4096;

constexpr int kPassesOverMoving = 2;       // between two passes over all rows, on the rows that still move
constexpr float kWorthAPass = 0.1f;        // share of rows below which these are skipped
constexpr float kMostSettledShare = 0.05f; // share of rows that may still move when we stop, at usual tolerances

// 1 / (2 C_i) for each lane: C_i is C times the row's importance, times the lane's for its positive rows.
inline Lanes dual_diagonal(const BankProblem& p, int64_t row, Mask positive) {
  const float c = 2.0f * p.C * (p.row_weight ? p.row_weight[row] : 1.0f);
  if (!p.lane_weight) return broadcast(1.0f / c);
  return broadcast(1.0f) / (select(positive, load(p.lane_weight), broadcast(1.0f)) * broadcast(c));
}

inline void shuffle(int32_t* order, int64_t n, Random& random) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = i + static_cast<int64_t>(random.below(static_cast<uint32_t>(n - i)));
    const int32_t held = order[i];
    order[i] = order[j];
    order[j] = held;
  }
}

template <class Rows>
inline void prefetch_row(const Rows& X, const BankProblem& p, const BankWork& work, int64_t i) {
  const auto row = X.row(row_number(p, i));
  __builtin_prefetch(work.per_row + 16 * i);
  for (int64_t k = 0; k < row.count; k += 16) {
    __builtin_prefetch(row.index + k);
    __builtin_prefetch(row.value + k);
  }
}

// Visits the rows order[0, n) once; those that moved come to stand at the front. Returns how many these are.
template <class Rows>
int64_t dual_pass(const Rows& X, const BankProblem& p, const BankWork& work, int64_t n) {
  const Lanes zeros = zero(), ones = broadcast(1.0f), tolerance = broadcast(p.tolerance);
  const Mask lanes = mask_from_bits(p.lanes);
  float* const bias = work.weights + 16 * p.n_features;
  int64_t moved = 0;
  for (int64_t s = 0; s < n; ++s) {
    if (s % kRowsBetweenStopChecks == 0 && stopped(p)) break;
    if (s + 2 < n) prefetch_row(X, p, work, work.order[s + 2]);
    const int32_t i = work.order[s];
    const int64_t number = row_number(p, i);
    const auto row = X.row(number);
    const float scale = row_scale(p, number);
    const Mask positive = mask_from_bits(p.positive[i]);
    const Lanes y = select(positive, ones, zeros - ones);
    const Lanes alpha = load(work.per_row + 16 * static_cast<int64_t>(i));
    const Lanes diagonal = dual_diagonal(p, number, positive);

    const Lanes score = dot(work.weights, row, scale) + load(bias);
    const Lanes gradient = fma(alpha, diagonal, score * y - ones);
    const Lanes projected = select(alpha == zeros, min(gradient, zeros), gradient);
    if ((bits(abs(projected) > tolerance) & p.lanes) == 0) continue;
    work.order[s] = work.order[moved];
    work.order[moved++] = i;
    const Lanes updated = select(lanes, max(alpha - gradient / (broadcast(work.norm[i]) + diagonal), zeros), zeros);
    const Lanes change = (updated - alpha) * y;
    store(work.per_row + 16 * static_cast<int64_t>(i), updated);
    add_scaled(work.weights, row, scale, change);
    store(bias, load(bias) + change);
  }
  return moved;
}

template <class Rows>
void solve_dual(const Rows& X, const BankProblem& p, const BankWork& work) {
  for (int64_t f = 0; f <= p.n_features; ++f) store(work.weights + 16 * f, zero());
  int64_t n = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    const int64_t number = row_number(p, i);
    const auto row = X.row(number);
    const float scale = row_scale(p, number);
    float square = 1.0f;  // the bias is a feature of value 1
    for (int64_t k = 0; k < row.count; ++k) square += (scale * row.value[k]) * (scale * row.value[k]);
    work.norm[i] = square;
    store(work.per_row + 16 * i, zero());
    if (!p.row_weight || p.row_weight[number] > 0) work.order[n++] = static_cast<int32_t>(i);
  }

  Random random(p.seed);
  const float settled_share = p.tolerance / 2 < kMostSettledShare ? p.tolerance / 2 : kMostSettledShare;
  int64_t active = n;
  int since_full = 0;
  for (int pass = 0; pass < p.passes && !stopped(p); ++pass) {
    shuffle(work.order, active, random);
    const int64_t moved = dual_pass(X, p, work, active);
    if (since_full == 0 && static_cast<float>(moved) <= settled_share * static_cast<float>(n)) break;
    const bool go_on = since_full < kPassesOverMoving && static_cast<float>(moved) > kWorthAPass * static_cast<float>(n);
    active = go_on ? moved : n;
    since_full = go_on ? since_full + 1 : 0;
  }
}

}  // namespace sapwood::SAPWOOD_ISA
