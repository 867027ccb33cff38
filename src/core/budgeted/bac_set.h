// Several budget-aware classifiers that tell labels apart: one-against-all, or a tree of groups of labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "budgeted/bac.h"
#include "trees/label_shape.h"

namespace sapwood {

struct BacSet {
  std::vector<BacSolution> bacs;  // one-against-all: by label
  std::vector<int32_t> children;  // groups: bacs x 2, where to go on the negative and on the positive side: bac or ~label
};

// A classifier for each label; a row without labels is negative for all.
template <class Rows>
[[nodiscard]] BacSet train_one_against_all(const Rows& X, const LabelSets& labels, const float* row_scale, const float* row_weight,
                                           const BacOptions& options, int n_threads, Monitor& monitor);

// A classifier for each inner node of a binary tree over two or more labels, which tells the labels below its children
// apart. Each row has one label at most.
template <class Rows>
[[nodiscard]] BacSet train_groups(const Rows& X, const LabelSets& labels, const TreeShape& shape, const float* row_scale,
                                  const float* row_weight, const BacOptions& options, int n_threads, Monitor& monitor);

// The classifiers turned over, as prediction reads them: for each column that any of them has, their weights.
struct BacSetView {
  std::span<const int32_t> columns;       // ascending
  std::span<const int64_t> column_begin;  // columns + 1
  const int32_t* bac;
  const double* weights;
  std::span<const double> offsets;     // bacs
  std::span<const int32_t> children;   // as in BacSet; empty: one-against-all
  int32_t n_labels;
  Loss loss;
};

// labels, scores: rows x k, best first. With `normalize` each row is scaled to length 1.
template <class Rows>
void predict_top(const BacSetView& set, const Rows& X, bool normalize, int32_t k, int n_threads, int32_t* labels,
                 float* scores, Monitor& monitor);

// f(x): rows x bacs.
template <class Rows>
void decide(const BacSetView& set, const Rows& X, bool normalize, int n_threads, double* decisions, Monitor& monitor);

}  // namespace sapwood
