// One example on one growing bank: scores, and a step of AdaGrad. Included by kernels_*.cpp only.
#pragma once

#include "solvers/adagrad.h"

namespace sapwood::SAPWOOD_ISA {

// lines: 32 floats each, weights and squared gradients; found[k]: the line of the k-th feature of the row, or -1.
inline Lanes online_dot(const float* lines, const int32_t* found, const float* values, int64_t n, float scale) {
  Lanes a = zero(), b = zero();
  for (int64_t k = 0; k < n; ++k) {
    if (found[k] < 0) continue;
    Lanes& sum = k & 1 ? b : a;
    sum = fma(load(lines + kOnlineLine * static_cast<int64_t>(found[k])), broadcast(scale * values[k]), sum);
  }
  return a + b;
}

inline void online_scores(const float* lines, const int32_t* found, const float* values, int64_t n, float scale,
                          float* scores) {
  store(scores, online_dot(lines, found, values, n, scale) + load(lines));
}

// The bias is line 0. Scores are those before the step.
inline void online_learn(float* lines, const int32_t* found, const float* values, int64_t n, const OnlineStep& s,
                         float* scores) {
  online_scores(lines, found, values, n, s.row_scale, scores);
  const Lanes ones = broadcast(1.0f), step = broadcast(s.step), negligible = broadcast(1e-3f);
  const Mask positive = mask_from_bits(s.positive);
  const Lanes y = select(positive, ones, zero() - ones);
  Lanes gradient = select(mask_from_bits(s.lanes), loss_gradient(s.loss, y, load(scores)), zero());
  gradient = gradient * broadcast(s.weight);
  if (s.lane_weight) gradient = gradient * load(s.lane_weight);
  if (!any(abs(gradient) > negligible)) return;
  for (int64_t k = 0; k < n; ++k) {
    if (found[k] < 0) continue;
    float* const line = lines + kOnlineLine * static_cast<int64_t>(found[k]);
    adagrad_step(line, line + kBankLanes, gradient * broadcast(values[k] * s.row_scale), step);
  }
  adagrad_step(lines, lines + kBankLanes, gradient, step);
}

}  // namespace sapwood::SAPWOOD_ISA
