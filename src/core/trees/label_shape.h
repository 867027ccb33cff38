// The shape of a label tree: which labels lie below which node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rows.h"
#include "threads/parallel.h"

namespace sapwood {

// Which labels each row has, as CSR, and its transpose.
struct LabelSets {
  const int64_t* indptr;
  const int32_t* labels;
  int64_t n_rows;
  int32_t n_labels;
};

struct LabelRows {
  std::vector<int64_t> indptr;  // labels + 1
  std::vector<int32_t> rows;    // of each label, ascending

  explicit LabelRows(const LabelSets& sets);
  [[nodiscard]] int64_t count(int32_t label) const {
    return indptr[static_cast<size_t>(label) + 1] - indptr[static_cast<size_t>(label)];
  }
};

struct ShapeNode {
  int64_t begin, end;             // its labels in TreeShape::order
  std::vector<int32_t> children;  // node numbers, or ~label
};

struct TreeShape {
  std::vector<int32_t> order;    // labels, so that those below a node stand together
  std::vector<ShapeNode> nodes;  // parents before children; the root is the first
};

struct ShapeOptions {
  int32_t arity;
  int32_t max_leaf;  // most labels a leaf may hold
  bool balanced;
  uint64_t seed;
};

// Splits the labels that have rows by k-means on their centroids (the mean of a label's rows, normalised), into parts
// of equal size where `balanced`, until at most max_leaf are left together.
template <class Rows>
TreeShape cluster_labels(const Rows& X, const float* row_scale, const LabelRows& label_rows, const ShapeOptions& options,
                         int n_threads, Monitor& monitor);

// The shape that a user gives: node v's children (node numbers, or ~label) are children[indptr[v]] and on, parents come
// before their children, each node but the first and each label is the child of one node.
TreeShape given_shape(std::span<const int64_t> indptr, std::span<const int32_t> children);

}  // namespace sapwood
