// One example on a node's banks: scores, and a step of AdaGrad. Included by kernels_*.cpp only.
#pragma once

#include "solvers/adagrad.h"

namespace sapwood::SAPWOOD_ISA {

// scores: banks x 16.
inline void group_scores(const GroupLines* found, int64_t n, const float* bias, int32_t n_banks,
                         float* scores) {
  for (int32_t b = 0; b < n_banks; ++b) store(scores + 16 * b, load(bias + kOnlineLine * b));
  for (int64_t k = 0; k < n; ++k) {
    const float* weights = found[k].lines;
    if (!found[k].room) {
      scores[found[k].banks] += found[k].value * *weights;
      continue;
    }
    const Lanes x = broadcast(found[k].value);
    for (unsigned banks = found[k].banks; banks; banks &= banks - 1, weights += 16) {
      float* const score = scores + 16 * __builtin_ctz(banks);
      store(score, fma(load(weights), x, load(score)));
    }
  }
}

inline void group_step(float* weights, float* squares, Lanes gradient, const GroupStep& s) {
  const Lanes first = broadcast(kFirstGroupSquare);
  const Lanes kept = s.keep == 1.0f ? load(squares) : max(load(squares) * broadcast(s.keep), first);
  const Lanes sum = fma(gradient, gradient, kept);
  store(squares, sum);
  store(weights, load(weights) - broadcast(s.step) * gradient * rsqrt(sum));
}

// The same for one lane: its weight and squared gradients.
inline void lone_step(float* weight, float gradient, const GroupStep& s) {
  float kept = weight[1];
  if (s.keep != 1.0f) kept = kept * s.keep > kFirstGroupSquare ? kept * s.keep : kFirstGroupSquare;
  weight[1] = kept + gradient * gradient;
  weight[0] -= s.step * gradient / __builtin_sqrtf(weight[1]);
}

// gradients: room for banks x 16. The loss is the squared hinge. Scores are those before the step.
inline void group_learn(const GroupLines* found, int64_t n, float* bias, const GroupStep& s, float* scores,
                        float* gradients) {
  const int32_t n_banks = (s.n_lanes + 15) / 16;
  group_scores(found, n, bias, n_banks, scores);
  const Lanes ones = broadcast(1.0f), negligible = broadcast(1e-3f);
  unsigned moved = 0;
  for (int32_t b = 0; b < n_banks; ++b) {
    const int32_t left = s.n_lanes - 16 * b;
    const Mask lanes = mask_from_bits(left >= 16 ? uint16_t{0xFFFF} : static_cast<uint16_t>((1u << left) - 1));
    const Lanes y = select(mask_from_bits(s.positive[b]), ones, zero() - ones);
    Lanes gradient = select(lanes, loss_gradient(Loss::squared_hinge, y, load(scores + 16 * b)), zero());
    gradient = gradient * broadcast(s.weight);
    store(gradients + 16 * b, gradient);
    if (any(abs(gradient) > negligible)) moved |= 1u << b;
  }
  for (unsigned banks = moved; banks; banks &= banks - 1) {
    const int b = __builtin_ctz(banks);
    group_step(bias + kOnlineLine * b, bias + kOnlineLine * b + 16, load(gradients + 16 * b), s);
  }
  for (int64_t k = 0; k < n; ++k) {
    if (!found[k].room) {
      const int lane = found[k].banks;
      if (moved >> (lane / 16) & 1) lone_step(found[k].lines, gradients[lane] * found[k].value, s);
      continue;
    }
    const Lanes x = broadcast(found[k].value);
    for (unsigned banks = found[k].banks & moved; banks; banks &= banks - 1) {
      const int b = __builtin_ctz(banks);
      float* const weights = found[k].lines + 16 * __builtin_popcount(found[k].banks & ((1u << b) - 1));
      group_step(weights, weights + 16 * found[k].room, load(gradients + 16 * b) * x, s);
    }
  }
}

}  // namespace sapwood::SAPWOOD_ISA
