// Binary trees whose nodes are sparse linear classifiers: a row with f(x) > 0 takes the first child, any other the second.
// A leaf holds labels. FastXML's trees, the powerset tree and the annotation tree are of this form.
#pragma once

#include <cstdint>
#include <vector>

#include "rows.h"
#include "threads/parallel.h"

namespace sapwood {

// The read-only form: what prediction evaluates and what a model file holds, as is.
struct LinearTrees {
  const int32_t* roots;        // trees: a node, or ~leaf
  const int32_t* children;     // nodes x 2: a node, always of a larger number than its parent, or ~leaf
  const int64_t* node_begin;   // nodes + 1: where a node's weights begin
  const int32_t* features;     // of each weight
  const float* weights;
  const float* bias;           // nodes
  const int64_t* leaf_begin;   // leaves + 1: where a leaf's labels begin
  const int32_t* leaf_labels;
  const float* leaf_scores;    // of each label of a leaf, 0 to 1; null where all are 1
  int32_t n_trees;
  int32_t n_nodes;
  int32_t n_leaves;
  int32_t n_labels;
  int64_t n_features;
};

// The same, growing.
struct LinearTreeArrays {
  std::vector<int32_t> roots;
  std::vector<int32_t> children;
  std::vector<int64_t> node_begin{0};
  std::vector<int32_t> features;
  std::vector<float> weights;
  std::vector<float> bias;
  std::vector<int64_t> leaf_begin{0};
  std::vector<int32_t> leaf_labels;
  std::vector<float> leaf_scores;

  // Adds trees that were grown apart.
  void append(const LinearTreeArrays& other);
};

// Throws std::invalid_argument unless every index lies within its array and every node and leaf has one place.
// The arrays' lengths are known to fit together.
void check_trees(const LinearTrees& trees, int64_t n_weights, int64_t n_leaf_labels);

// The values of a row by column. A sparse row is laid out in an array of all columns or, where there are many, in a small
// table: a node names a few columns, and a search in the row for each of them would cost several times as much.
template <class Rows>
class RowValues {
 public:
  explicit RowValues(int64_t n_columns) {
    if (n_columns <= kFewColumns) values_.assign(static_cast<size_t>(n_columns), 0.0f);
    is_direct_ = n_columns <= kFewColumns;
  }
  void set(Row<typename Rows::Index> row);

  // Calls use(value of a column) for what a node asks, without a decision for each column.
  template <class Use>
  [[nodiscard]] double with(Use use) const {
    if (is_direct_) return use([this](int32_t column) { return values_[static_cast<size_t>(column)]; });
    return use([this](int32_t column) { return find(column); });
  }
  [[nodiscard]] float at(int32_t column) const { return is_direct_ ? values_[static_cast<size_t>(column)] : find(column); }

 private:
  static constexpr int64_t kFewColumns = 1 << 14;

  [[nodiscard]] float find(int32_t column) const {
    for (uint32_t slot = home(column);; slot = (slot + 1) & mask_) {
      if (keys_[slot] == column) return values_[slot];
      if (keys_[slot] < 0) return 0.0f;
    }
  }
  [[nodiscard]] uint32_t home(int32_t column) const { return (static_cast<uint32_t>(column) * 0x9E3779B1u) >> shift_; }

  std::vector<float> values_;  // by column, or by slot
  std::vector<int32_t> keys_;  // the row's columns; of the table: by slot, -1 where it is empty
  uint32_t mask_ = 0;
  int shift_ = 0;
  bool is_direct_ = false;
};

template <>
class RowValues<DenseRows> {
 public:
  explicit RowValues(int64_t) {}
  void set(Row<int32_t> row) { values_ = row.value; }
  template <class Use>
  [[nodiscard]] double with(Use use) const {
    return use([this](int32_t column) { return values_[column]; });
  }
  [[nodiscard]] float at(int32_t column) const { return values_[column]; }

 private:
  const float* values_ = nullptr;
};

inline void prefetch_node(const LinearTrees& trees, int32_t node) {
  if (node < 0) return;
  const int64_t begin = trees.node_begin[node];
  __builtin_prefetch(trees.features + begin);
  __builtin_prefetch(trees.features + begin + 16);
  __builtin_prefetch(trees.weights + begin);
  __builtin_prefetch(trees.weights + begin + 16);
}

// f(x) of a node; `scale` multiplies the row's values.
template <class Rows>
[[nodiscard]] inline double node_score(const LinearTrees& trees, int32_t node, const RowValues<Rows>& row, float scale) {
  const int32_t* const feature = trees.features + trees.node_begin[node];
  const float* const weight = trees.weights + trees.node_begin[node];
  const int64_t n = trees.node_begin[node + 1] - trees.node_begin[node];
  prefetch_node(trees, trees.children[2 * node]);
  prefetch_node(trees, trees.children[2 * node + 1]);
  const double sum = row.with([&](auto value) {
    double a = 0, b = 0, c = 0, d = 0;  // four sums, so that no addition waits for the one before it
    const auto term = [&](int64_t k) { return static_cast<double>(weight[k]) * static_cast<double>(value(feature[k])); };
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      a += term(k);
      b += term(k + 1);
      c += term(k + 2);
      d += term(k + 3);
    }
    for (; k < n; ++k) a += term(k);
    return (a + b) + (c + d);
  });
  return sum * static_cast<double>(scale) + static_cast<double>(trees.bias[node]);
}

// The leaf that a row comes to.
template <class Rows>
[[nodiscard]] inline int32_t leaf_of(const LinearTrees& trees, int32_t tree, const RowValues<Rows>& row, float scale) {
  int32_t at = trees.roots[tree];
  while (at >= 0) at = trees.children[2 * at + (node_score(trees, at, row, scale) > 0 ? 0 : 1)];
  return ~at;
}

// leaves: rows x trees.
template <class Rows>
void find_leaves(const LinearTrees& trees, const Rows& X, bool normalize, int n_threads, int32_t* leaves, Monitor& monitor);

// Labels and scores of one answer: rows x top.
struct TopAnswers {
  int32_t* labels;
  float* scores;
  int32_t top;
};

// The best labels by the mean of their scores in the leaves that a row comes to, one in each tree. Labels that none of
// these has follow with 0, in the order of `others` (every label that some leaf has).
template <class Rows>
void top_by_mean(const LinearTrees& trees, const Rows& X, bool normalize, const int32_t* others, int64_t n_others,
                 int n_threads, TopAnswers answers, Monitor& monitor);

}  // namespace sapwood
