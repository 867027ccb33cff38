// FastXML (Prabhu and Varma, KDD 2014): an ensemble of trees over the rows, whose nodes send rows with like labels to
// the same side.
//
// A node minimises, over the sides d_i of its rows, a ranking of the labels for each side, and a separator w,
//
//   ||w||_1 + C sum_i log(1 + exp(-d_i (w'x_i + b))) - C_r sum_i nDCG(ranking of side d_i, labels of i)
//
// in turn: rankings and sides until the nDCG no longer rises (from random sides, w = 0), then the separator. Rows go on
// by the separator. A leaf holds the mean label vector of its rows.
#pragma once

#include <cstdint>

#include "trees/label_shape.h"
#include "trees/linear_trees.h"

namespace sapwood {

struct FastXmlOptions {
  int32_t n_trees;
  int32_t max_leaf;       // nodes of at most so many rows are leaves
  int32_t leaf_labels;    // most labels a leaf keeps
  float C;                // weight of the separator's loss
  int32_t passes;         // most passes over a node's rows to learn a separator
  uint64_t seed;
  int n_threads;
};

// row_scale: factor that normalises each row; row_weight: its importance; either may be null. Rows of weight 0 are left out.
template <class Rows>
LinearTreeArrays train_fastxml(const Rows& X, const LabelSets& sets, const float* row_scale, const float* row_weight,
                               const FastXmlOptions& options, Monitor& monitor);

}  // namespace sapwood
