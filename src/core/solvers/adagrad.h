// AdaGrad (Duchi, Hazan, Singer 2011) on a bank, in stream order: every row moves its features' lines by the gradient
// over the root of the squared gradients so far. Included by kernels_*.cpp only.
#pragma once

#include "solvers/dual_cd.h"

namespace sapwood::SAPWOOD_ISA {

// d loss / d score for labels y = +1, -1.
inline Lanes loss_gradient(Loss loss, Lanes y, Lanes score) {
  const Lanes margin = y * score, one = broadcast(1.0f);
  if (loss == Loss::logistic) return zero() - y / (one + exp(margin));
  return broadcast(-2.0f) * y * max(one - margin, zero());
}

// One step on a line of weights, with its line of squared gradients. Rows may be of any length where they are not scaled:
// neither a gradient nor its square may become infinite, as an infinite sum has no root to divide by.
inline void adagrad_step(float* weights, float* squares, Lanes gradient, Lanes step) {
  constexpr float kMostGradient = 1e18f, kMostSquares = 1e37f;
  gradient = max(min(gradient, broadcast(kMostGradient)), broadcast(-kMostGradient));
  const Lanes sum = min(fma(gradient, gradient, load(squares)), broadcast(kMostSquares));
  store(squares, sum);
  store(weights, load(weights) - step * gradient * rsqrt(sum));
}

template <class Rows>
void solve_adagrad(const Rows& X, const BankProblem& p, const BankWork& work) {
  for (int64_t f = 0; f <= p.n_features; ++f) {
    store(work.weights + 16 * f, zero());
    store(work.per_feature + 16 * f, broadcast(kFirstSquare));
  }
  float* const bias = work.weights + 16 * p.n_features;
  float* const bias_square = work.per_feature + 16 * p.n_features;
  const Mask lanes = mask_from_bits(p.lanes);
  const Lanes ones = broadcast(1.0f), step = broadcast(p.step), negligible = broadcast(1e-3f);
  for (int pass = 0; pass < p.passes; ++pass) {
    for (int64_t i = 0; i < p.n; ++i) {
      if (i % kRowsBetweenStopChecks == 0 && stopped(p)) return;
      const int64_t number = row_number(p, i);
      const auto row = X.row(number);
      const float scale = row_scale(p, number);
      const Mask positive = mask_from_bits(p.positive[i]);
      const Lanes y = select(positive, ones, zero() - ones);
      const Lanes score = dot(work.weights, row, scale) + load(bias);
      Lanes gradient = select(lanes, loss_gradient(p.loss, y, score), zero());
      if (p.row_weight) gradient = gradient * broadcast(p.row_weight[number]);
      if (p.lane_weight) gradient = gradient * select(positive, load(p.lane_weight), ones);
      if (!any(abs(gradient) > negligible)) continue;
      for (int64_t k = 0; k < row.count; ++k) {
        const int64_t line = 16 * static_cast<int64_t>(row.index[k]);
        adagrad_step(work.weights + line, work.per_feature + line, gradient * broadcast(row.value[k] * scale), step);
      }
      adagrad_step(bias, bias_square, gradient, step);
    }
  }
}

}  // namespace sapwood::SAPWOOD_ISA
