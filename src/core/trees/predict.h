// Prediction of many rows, on several threads.
#pragma once

#include <cstdint>
#include <vector>

#include "regressors/kernels.h"
#include "regressors/packed_forest.h"
#include "threads/parallel.h"

namespace sapwood {

struct PredictOptions {
  int32_t beam;
  int32_t top;
  float min_beam_share;
  bool normalize;
  int n_threads;
};

// labels, scores: rows x top, best first; where a row meets fewer labels, the rest is -1 and 0.
// A score is the label's probability (several trees: its mean over them).
template <class Rows>
void predict_top(const PackedForest& forest, const Rows& X, const PredictOptions& options, int32_t* labels,
                 float* scores, Monitor& monitor);

// The labels that each row comes to when it enters every child whose regressor says yes (a score above 0), in the first
// tree: HOMER's way. As CSR, ascending in each row.
struct Reached {
  std::vector<int64_t> indptr;
  std::vector<int32_t> labels;
};
template <class Rows>
[[nodiscard]] Reached descend_by_threshold(const PackedForest& forest, const Rows& X, bool normalize, int n_threads,
                                           Monitor& monitor);

// The raw scores of a node's children for one row: banks of the node x 16.
template <class Rows>
void score_node(const PackedForest& forest, const Rows& X, int64_t row, int32_t node, bool normalize, float* scores);

// 1 / length of a row, or 1 for a row of zeros.
template <class Index>
[[nodiscard]] float unit_scale(Row<Index> row);

}  // namespace sapwood
