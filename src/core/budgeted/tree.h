// The supervised budgeted tree (SBT): section 5 of the budgeted-trees paper, Algorithm 2 and the pruning of 5.2.
#pragma once

#include <cstdint>
#include <vector>

#include "budgeted/bac.h"
#include "budgeted/label_cut.h"
#include "threads/parallel.h"
#include "trees/label_shape.h"

namespace sapwood {

struct TreeOptions {
  BacOptions bac;
  bool prune = true;
  int32_t n_folds = 5;       // if prune
  int32_t max_depth = -1;    // nodes this deep are leaves; -1: no limit
  int64_t max_features = 0;  // bound of the columns that the whole tree looks at; 0: none
  int n_threads = 1;
};

struct TreeProblem {
  LabelSets labels;         // of each row; a row without labels, or of weight 0, is not learned from
  const float* row_scale;   // by row, or null
  const float* row_weight;  // by row, or null
  const uint8_t* fold;      // by row, if prune
  const LabelOrder& order;
};

struct LabelShare {
  int32_t label;
  double mass;  // weight of the node's rows that have it
};

struct TreeNode {
  int32_t parent = -1;
  int32_t depth = 0;
  int32_t left = -1, right = -1;    // rows that are voted positive go left; -1: a leaf
  BacSolution bac;                  // of a node with children
  double examples = 0.0;            // weight of its rows
  std::vector<LabelShare> labels;   // heaviest first: the first is what a leaf answers
  int32_t pruned_answer = -1;       // what it answers when it was made a leaf: of labels that tie, one of its side
  double own_error = 0.0;           // weight of the held-out rows that are wrong when its children are leaves

  [[nodiscard]] bool has_children() const { return left >= 0; }
};

struct BudgetedTree {
  std::vector<TreeNode> nodes;     // root first, parents before their children
  double cv_error = 0.0;           // weight of the held-out rows that the tree gets wrong
  double unpruned_cv_error = 0.0;  // the same before pruning
  int64_t unpruned_nodes = 0;
};

template <class Rows>
[[nodiscard]] BudgetedTree grow_budgeted_tree(const Rows& X, const TreeProblem& problem, const TreeOptions& options,
                                              Monitor& monitor);

// Makes leaves of a node's children where their summed error is larger than the node's own, from the deepest up; then
// makes one of two leaves that answer the same.
void prune_tree(BudgetedTree& tree);

}  // namespace sapwood
