// How a node with several labels becomes a binary problem: the labels stand in an order in which similar ones are
// neighbours, and a cut parts them in two groups.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/label_shape.h"

namespace sapwood {

struct LabelOrder {
  std::vector<int32_t> rank;   // by label: its place in the order; -1 for labels without rows
  std::vector<int32_t> depth;  // by place: how deep in the hierarchy of labels this one is parted from the one before
};

// Of a binary tree over the labels.
[[nodiscard]] LabelOrder order_of(const TreeShape& shape, int32_t n_labels);

struct RankedMass {
  int32_t rank;
  double mass;
};

struct LabelCut {
  int32_t place;           // where the second group begins
  bool second_is_lighter;  // a row with as many labels here as there goes where there is less
};

// Of two or more labels, ascending by rank: the cut highest in the hierarchy that leaves each side a quarter of the mass
// or, where there is none, the most even one.
[[nodiscard]] LabelCut find_cut(const LabelOrder& order, const std::vector<RankedMass>& labels);

}  // namespace sapwood
