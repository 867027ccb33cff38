// The hot loops of the online trees. Every operation rounds to float32, nothing is fused, sums have a stated order:
// the answers are the same to the bit on every machine (docs/online_trees.md, "Numbers"). Plain data only, see kernels.h.
#pragma once

#include <cstdint>

namespace sapwood {

constexpr int64_t kExactLanes = 16;  // regressors in a bank; partial sums of a dense dot product

// A row as a bank reads it: the line and the value of each entry, in order, the constant and path features included.
struct LineEntries {
  const int32_t* line;
  const float* value;
  int64_t count;
};

struct ExactKernels {
  const char* name;

  // Banks: `weights` and `squares` are lines of 16 floats; squares is null for sgd, then nothing is kept but weights.

  // scores[l] += w_l . x for all 16 lanes, entry after entry: from what `scores` held on.
  void (*add_scores)(const float* weights, const LineEntries&, float* scores);
  // The same for one lane.
  float (*add_score)(const float* weights, const LineEntries&, int lane, float start);
  // One step of all lanes, lane l pushed by push[l] (see rule.h); 0 does not learn.
  void (*learn_lanes)(float* weights, float* squares, const LineEntries&, const float* push, float step);
  // One step of one lane; its score after it.
  float (*learn_lane)(float* weights, float* squares, const LineEntries&, int lane, float push, float step);

  // Dense regressors: n is a multiple of 16, missing columns are 0 in x.

  // Position i goes to partial sum i mod 16; the sums are folded in halves.
  float (*dense_score)(const float* weights, const float* x, int64_t n);
  // One step; the score after it.
  float (*dense_learn)(float* weights, float* squares, const float* x, int64_t n, float push, float step);
};

// The kernels of this machine, chosen as `kernels()` chooses.
const ExactKernels& exact_kernels();

}  // namespace sapwood
