// The powerset tree and the annotation tree: a shape, and a budget-aware classifier for each of its decisions.
#pragma once

#include "budgeted/bac.h"
#include "trees/coding_shape.h"
#include "trees/linear_trees.h"

namespace sapwood {

// Nodes learn side by side, each from its range of the shape's order; what one learns does not depend on who trains it.
template <class Rows>
LinearTreeArrays train_coding_tree(const Rows& X, const CodingShape& shape, const float* row_scale, const float* row_weight,
                                   const BacOptions& options, int n_threads, Monitor& monitor);

// The best labels by the probability of the leaves that have them. A node's probability of yes is 1 / (1 + exp(-2 f(x))).
// The first leaf is the one that the row comes to by the decisions alone; from there on the search goes back to the most
// probable branch left, until `beam` leaves are seen and `top` labels met.
template <class Rows>
void top_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, int n_threads, TopAnswers answers,
                   Monitor& monitor);

}  // namespace sapwood
