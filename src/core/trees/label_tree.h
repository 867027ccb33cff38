// Training of label trees: a shape, and for each of its nodes the banks that tell its children apart.
#pragma once

#include <cstdint>
#include <vector>

#include "regressors/kernels.h"
#include "regressors/packer.h"
#include "threads/parallel.h"
#include "trees/label_shape.h"

namespace sapwood {

enum class Solver : int32_t { dual, adagrad };

struct TrainOptions {
  Solver solver;
  Loss loss;
  float C;
  float tolerance;
  float step;
  int32_t passes;
  float prune;   // weights smaller than this are dropped
  bool half;     // keep weights in 16 bits
  uint64_t seed;
  int n_threads;
};

// What the rows of a training set weigh: all may be null.
struct Importance {
  const float* row_scale;     // by row: factor that normalises it
  const float* row_weight;    // by row
  const float* label_weight;  // by label: of the rows that have it
};

template <class Rows>
ForestArrays train_forest(const Rows& X, const LabelRows& label_rows, const std::vector<TreeShape>& shapes,
                          const Importance& importance, const TrainOptions& options, Monitor& monitor);

}  // namespace sapwood
