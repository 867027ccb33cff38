// The exact kernels for one instruction set. Included by exact_kernels_*.cpp, which are compiled with -ffp-contract=off.
#include "regressors/exact_kernels.h"
#include "regressors/lanes.h"

namespace sapwood::SAPWOOD_ISA {

inline void add_scores(const float* weights, const LineEntries& x, float* scores) {
  Lanes sum = load(scores);
  for (int64_t k = 0; k < x.count; ++k) {
    sum = sum + load(weights + kLanes * static_cast<int64_t>(x.line[k])) * broadcast(x.value[k]);
  }
  store(scores, sum);
}

inline float add_score(const float* weights, const LineEntries& x, int lane, float start) {
  for (int64_t k = 0; k < x.count; ++k) {
    start = start + weights[kLanes * static_cast<int64_t>(x.line[k]) + lane] * x.value[k];
  }
  return start;
}

// Where the gradient d is 0 nothing changes: squares are never 0.
inline void step_lanes(float* weights, float* squares, Lanes d, Lanes step) {
  Lanes move = step * d;
  if (squares) {
    const Lanes sum = load(squares) + d * d;
    store(squares, sum);
    move = move / sqrt(sum);
  }
  store(weights, load(weights) - move);
}

inline void learn_lanes(float* weights, float* squares, const LineEntries& x, const float* push, float step) {
  const Lanes scale = load(push), steps = broadcast(step);
  for (int64_t k = 0; k < x.count; ++k) {
    const int64_t line = kLanes * static_cast<int64_t>(x.line[k]);
    step_lanes(weights + line, squares ? squares + line : nullptr, scale * broadcast(x.value[k]), steps);
  }
}

// Sixteen entries of one lane at a time: they are gathered, take their step together, and are put back.
inline float learn_lane(float* weights, float* squares, const LineEntries& x, int lane, float push, float step) {
  alignas(64) float w[kLanes] = {}, g[kLanes], value[kLanes] = {}, product[kLanes];
  store(g, broadcast(1.0f));
  float score = 0.0f;
  for (int64_t k = 0; k < x.count; k += kLanes) {
    const int64_t n = x.count - k < kLanes ? x.count - k : kLanes;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = kLanes * static_cast<int64_t>(x.line[k + i]) + lane;
      w[i] = weights[at];
      if (squares) g[i] = squares[at];
      value[i] = x.value[k + i];
    }
    step_lanes(w, squares ? g : nullptr, broadcast(push) * load(value), broadcast(step));
    store(product, load(w) * load(value));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = kLanes * static_cast<int64_t>(x.line[k + i]) + lane;
      weights[at] = w[i];
      if (squares) squares[at] = g[i];
      score = score + product[i];
    }
  }
  return score;
}

inline float fold(Lanes sums) {
  alignas(64) float s[kLanes];
  store(s, sums);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] = s[i] + s[i + half];
  }
  return s[0];
}

inline float dense_score(const float* weights, const float* x, int64_t n) {
  Lanes sum = zero();
  for (int64_t k = 0; k < n; k += kLanes) sum = sum + load(weights + k) * load(x + k);
  return fold(sum);
}

inline float dense_learn(float* weights, float* squares, const float* x, int64_t n, float push, float step) {
  const Lanes scale = broadcast(push), steps = broadcast(step);
  Lanes sum = zero();
  for (int64_t k = 0; k < n; k += kLanes) {
    const Lanes value = load(x + k);
    step_lanes(weights + k, squares ? squares + k : nullptr, scale * value, steps);
    sum = sum + load(weights + k) * value;
  }
  return fold(sum);
}

extern const ExactKernels kExactTable;
const ExactKernels kExactTable = {
    SAPWOOD_ISA_NAME, &add_scores, &add_score, &learn_lanes, &learn_lane, &dense_score, &dense_learn,
};

}  // namespace sapwood::SAPWOOD_ISA
