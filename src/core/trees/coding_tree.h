// The powerset tree and the annotation tree: a shape, and a budget-aware classifier for each of its decisions.
#pragma once

#include "budgeted/bac.h"
#include "trees/coding_shape.h"
#include "trees/linear_trees.h"
#include "trees/predict.h"

namespace sapwood {

// Nodes learn side by side, each from its range of the shape's order; what one learns does not depend on who trains it.
template <class Rows>
LinearTreeArrays train_coding_tree(const Rows& X, const CodingShape& shape, const float* row_scale, const float* row_weight,
                                   const BacOptions& options, int n_threads, Monitor& monitor);

// A node's probability of yes is 1 / (1 + exp(-slope f(x))), a leaf's the product on the way to it.
//
// The best labels by the probability of the leaves that have them: `beam` leaves, and more until `top` labels are met.
// First comes the leaf that the decisions lead to, then the one that they lead to from the most probable branch not taken
// yet, and so on. Labels that only leaves beyond the beam have do not come before the best of those within.
template <class Rows>
void top_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, float slope, int n_threads, TopAnswers answers,
                   Monitor& monitor);

// The label set of each row, as CSR: the one with the largest expected F1 where the truth is the set of one of the `beam`
// leaves, among the sets of the labels most probable in these. With a beam of 1 it is the set of the leaf that the
// decisions lead to.
template <class Rows>
[[nodiscard]] Reached sets_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, float slope, int n_threads,
                                     Monitor& monitor);

}  // namespace sapwood
