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

// The values of a row by column. A sparse row is laid out in a small table: a node names a few columns, and a search in
// the row for each of them would cost several times as much.
template <class Rows>
class RowValues {
 public:
  void set(Row<typename Rows::Index> row);
  [[nodiscard]] float at(int32_t column) const {
    for (uint32_t slot = home(column);; slot = (slot + 1) & mask_) {
      if (keys_[slot] == column) return values_[slot];
      if (keys_[slot] < 0) return 0.0f;
    }
  }

 private:
  [[nodiscard]] uint32_t home(int32_t column) const { return (static_cast<uint32_t>(column) * 0x9E3779B1u) >> shift_; }

  std::vector<int32_t> keys_;  // -1: an empty slot
  std::vector<float> values_;
  uint32_t mask_ = 0;
  int shift_ = 0;
};

template <>
class RowValues<DenseRows> {
 public:
  void set(Row<int32_t> row) { values_ = row.value; }
  [[nodiscard]] float at(int32_t column) const { return values_[column]; }

 private:
  const float* values_ = nullptr;
};

// f(x) of a node; `scale` multiplies the row's values.
template <class Rows>
[[nodiscard]] inline double node_score(const LinearTrees& trees, int32_t node, const RowValues<Rows>& row, float scale) {
  double sum = 0;
  for (int64_t k = trees.node_begin[node]; k < trees.node_begin[node + 1]; ++k) {
    sum += static_cast<double>(trees.weights[k]) * static_cast<double>(row.at(trees.features[k]));
  }
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
