// The shapes of sparse coding trees, section 6 of the budgeted-trees paper: which label sets lie below which node. They
// depend on the label sets alone; what a node learns comes after.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/label_shape.h"

namespace sapwood {

// The distinct label sets of a training set, in lexicographic order, so that nothing depends on the order of the rows.
// Rows of weight 0 are left out.
struct DistinctSets {
  std::vector<int32_t> set_of_row;  // -1: left out
  std::vector<int64_t> begin;       // sets + 1: where a set's labels begin
  std::vector<int32_t> labels;      // ascending in each set
  std::vector<int64_t> row_begin;   // sets + 1: where a set's rows begin
  std::vector<int32_t> rows;        // of each set, ascending
  std::vector<double> mass;         // of each set: the weight of its rows, or their number
  int32_t n_labels = 0;

  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(mass.size()); }
  [[nodiscard]] int64_t n_rows(int32_t set) const {
    return row_begin[static_cast<size_t>(set) + 1] - row_begin[static_cast<size_t>(set)];
  }
};

[[nodiscard]] DistinctSets distinct_sets(const LabelSets& sets, const float* row_weight);

// A decision: of the rows below it, those at [begin, middle) of the order answer yes, those at [middle, end) no.
struct CodingNode {
  int64_t begin, middle, end;
};

struct CodingShape {
  std::vector<int32_t> order;           // rows, so that those below a node stand together
  std::vector<CodingNode> nodes;        // parents before their children
  std::vector<int32_t> children;        // nodes x 2: a node, or ~leaf; yes comes first
  int32_t root = -1;                    // 0, or ~0 where all rows have one label set
  std::vector<int64_t> leaf_begin{0};   // leaves + 1
  std::vector<int32_t> leaf_labels;     // what a leaf answers
  std::vector<double> leaf_mass;
  std::vector<int64_t> question_begin{0};  // nodes + 1 (annotation tree only)
  std::vector<int32_t> question;           // literals, any of which means yes: label "carries it", ~label "lacks it"
};

// Algorithm 3: Huffman's tree over the label sets. Of equally frequent nodes the one made first is merged first.
[[nodiscard]] CodingShape powerset_shape(const DistinctSets& sets);

// Algorithm 4 or, `balanced`, the rule that halves: see docs/budgeted_trees.md. Nodes of fewer than min_examples rows are
// leaves that answer their most frequent label set.
[[nodiscard]] CodingShape annotation_shape(const DistinctSets& sets, bool balanced, int64_t min_examples);

}  // namespace sapwood
