// A grown budgeted tree as arrays, and the way of rows through it.
#pragma once

#include <cstdint>
#include <span>

#include "budgeted/bac.h"
#include "threads/parallel.h"

namespace sapwood {

struct BudgetedTreeView {
  int32_t n_folds;
  std::span<const int32_t> children;     // nodes x 2: where positive rows go, where the others; -1 at leaves
  std::span<const int64_t> bac_begin;    // nodes + 1: the entries of a node's classifier
  std::span<const int32_t> columns;      // entries; those of a node ascend
  std::span<const double> weights;       // entries x folds
  std::span<const double> offsets;       // nodes x folds
  std::span<const int64_t> label_begin;  // nodes + 1
  std::span<const int32_t> labels;       // of a node, the likeliest first
  std::span<const float> shares;         // of the node's rows
  std::span<const double> examples;      // nodes: weight of the rows there

  [[nodiscard]] int32_t n_nodes() const { return static_cast<int32_t>(children.size() / 2); }
  [[nodiscard]] BacView bac(int32_t node) const;
};

// Throws std::invalid_argument unless every link, column and label lies where it must.
void check_tree(const BudgetedTreeView& tree, int32_t n_labels, int64_t n_columns);

// labels, scores: rows x k, best first: the labels of the row's leaf, then those that only the root knows. A score is the
// label's share of the leaf's rows and one row more, which has a little of every label.
// With `normalize` each row is scaled to length 1.
template <class Rows>
void predict_top(const BudgetedTreeView& tree, const Rows& X, bool normalize, int32_t k, int n_threads, int32_t* labels,
                 float* scores, Monitor& monitor);

// The leaf of each row.
template <class Rows>
void find_leaves(const BudgetedTreeView& tree, const Rows& X, bool normalize, int n_threads, int32_t* leaves, Monitor& monitor);

}  // namespace sapwood
