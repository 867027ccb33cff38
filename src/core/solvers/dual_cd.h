// Dual coordinate descent on the L2-regularised squared hinge (Hsieh et al. 2008, the algorithm of LIBLINEAR), for the
// sixteen regressors of a bank jointly: one visit of a row's features serves all lanes. A row is set aside ("shrunk")
// when every lane's dual variable is zero and likely to stay so. Included by kernels_*.cpp only.
#pragma once

#include "regressors/kernels.h"
#include "regressors/lanes.h"
#include "solvers/random.h"

namespace sapwood::SAPWOOD_ISA {

template <class Index>
inline Lanes dot(const float* weights, Row<Index> row) {
  Lanes a = zero(), b = zero(), c = zero(), d = zero();
  int64_t k = 0;
  for (; k + 4 <= row.count; k += 4) {
    a = fma(load(weights + 16 * static_cast<int64_t>(row.index[k])), broadcast(row.value[k]), a);
    b = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 1])), broadcast(row.value[k + 1]), b);
    c = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 2])), broadcast(row.value[k + 2]), c);
    d = fma(load(weights + 16 * static_cast<int64_t>(row.index[k + 3])), broadcast(row.value[k + 3]), d);
  }
  for (; k < row.count; ++k) {
    a = fma(load(weights + 16 * static_cast<int64_t>(row.index[k])), broadcast(row.value[k]), a);
  }
  return (a + b) + (c + d);
}

template <class Index>
inline void add_scaled(float* weights, Row<Index> row, Lanes by) {
  for (int64_t k = 0; k < row.count; ++k) {
    float* line = weights + 16 * static_cast<int64_t>(row.index[k]);
    store(line, fma(by, broadcast(row.value[k]), load(line)));
  }
}

inline bool stopped(const BankProblem& p) { return p.stop && __atomic_load_n(p.stop, __ATOMIC_RELAXED); }
inline int64_t row_number(const BankProblem& p, int64_t i) { return p.rows ? p.rows[i] : i; }
inline float row_scale(const BankProblem& p, int64_t row) { return p.row_scale ? p.row_scale[row] : 1.0f; }

constexpr int64_t kRowsBetweenStopChecks = 4096;

// 1 / (2 C_i) for each lane: C_i is C times the row's importance, times the lane's for its positive rows.
inline Lanes dual_diagonal(const BankProblem& p, int64_t row, Mask positive) {
  const float c = 2.0f * p.C * (p.row_weight ? p.row_weight[row] : 1.0f);
  if (!p.lane_weight) return broadcast(1.0f / c);
  return broadcast(1.0f) / (select(positive, load(p.lane_weight), broadcast(1.0f)) * broadcast(c));
}

template <class Rows>
void solve_dual(const Rows& X, const BankProblem& p, const BankWork& work) {
  const Lanes zeros = zero(), ones = broadcast(1.0f), infinity = broadcast(__builtin_inff());
  float* const bias = work.weights + 16 * p.n_features;
  for (int64_t f = 0; f <= p.n_features; ++f) store(work.weights + 16 * f, zeros);

  int64_t n = 0;
  for (int64_t i = 0; i < p.n; ++i) {
    const int64_t number = row_number(p, i);
    const auto row = X.row(number);
    float square = 0;
    for (int64_t k = 0; k < row.count; ++k) square += row.value[k] * row.value[k];
    work.norm[i] = 1.0f + square * row_scale(p, number) * row_scale(p, number);
    store(work.per_row + 16 * i, zeros);
    if (!p.row_weight || p.row_weight[number] > 0) work.order[n++] = static_cast<int32_t>(i);
  }

  Random random(p.seed);
  const Mask lanes = mask_from_bits(p.lanes);
  Lanes shrink_above = infinity;  // per lane: the largest projected gradient of the last pass
  int64_t active = n;
  for (int pass = 0; pass < p.passes && !stopped(p); ++pass) {
    for (int64_t i = 0; i < active; ++i) {
      const int64_t j = i + static_cast<int64_t>(random.below(static_cast<uint32_t>(active - i)));
      const int32_t held = work.order[i];
      work.order[i] = work.order[j];
      work.order[j] = held;
    }
    Lanes largest = zeros - infinity, smallest = infinity;
    for (int64_t s = 0; s < active; ++s) {
      if (s % kRowsBetweenStopChecks == 0 && stopped(p)) return;
      if (s + 2 < active) {
        const int64_t ahead = work.order[s + 2];
        const auto next = X.row(row_number(p, ahead));
        __builtin_prefetch(work.per_row + 16 * ahead);
        for (int64_t k = 0; k < next.count; k += 16) {
          __builtin_prefetch(next.index + k);
          __builtin_prefetch(next.value + k);
        }
      }
      const int64_t i = work.order[s];
      const int64_t number = row_number(p, i);
      const auto row = X.row(number);
      const float scale = row_scale(p, number);
      const Mask positive = mask_from_bits(p.positive[i]);
      const Lanes y = select(positive, ones, zeros - ones);
      const Lanes alpha = load(work.per_row + 16 * i);
      const Lanes diagonal = dual_diagonal(p, number, positive);

      const Lanes score = fma(dot(work.weights, row), broadcast(scale), load(bias));
      const Lanes gradient = fma(alpha, diagonal, score * y - ones);
      const Mask at_zero = alpha == zeros;
      const uint16_t idle = bits(at_zero) & bits(gradient > shrink_above);
      if ((p.lanes & ~idle) == 0) {
        --active;
        const int32_t held = work.order[s];
        work.order[s] = work.order[active];
        work.order[active] = held;
        --s;
        continue;
      }
      const Lanes projected = select(at_zero, min(gradient, zeros), gradient);
      largest = max(largest, projected);
      smallest = min(smallest, projected);
      const Lanes updated = max(alpha - gradient / (broadcast(work.norm[i]) + diagonal), zeros);
      const Lanes change = select(lanes, (updated - alpha) * y, zeros);
      if (!any(abs(change) > zeros)) continue;
      store(work.per_row + 16 * i, select(lanes, updated, zeros));
      add_scaled(work.weights, row, change * broadcast(scale));
      store(bias, load(bias) + change);
    }
    const uint16_t unsettled = bits(largest - smallest > broadcast(p.tolerance)) & p.lanes;
    if (!unsettled) {
      if (active == n) break;
      active = n;  // settled on what is left: look at every row once more
      shrink_above = infinity;
      continue;
    }
    shrink_above = select(largest > zeros, largest, infinity);
  }
}

}  // namespace sapwood::SAPWOOD_ISA
