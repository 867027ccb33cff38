#include "budgeted/label_cut.h"

#include <algorithm>

namespace sapwood {

namespace {

constexpr double kLeastShare = 0.25;

}  // namespace

LabelOrder order_of(const TreeShape& shape, int32_t n_labels) {
  LabelOrder order{std::vector<int32_t>(static_cast<size_t>(n_labels), -1), std::vector<int32_t>(shape.order.size())};
  for (size_t place = 0; place < shape.order.size(); ++place) {
    order.rank[static_cast<size_t>(shape.order[place])] = static_cast<int32_t>(place);
  }
  std::vector<int32_t> depth(shape.nodes.size());
  for (size_t v = 0; v < shape.nodes.size(); ++v) {  // parents before children
    const std::vector<int32_t>& children = shape.nodes[v].children;
    for (const int32_t child : children) {
      if (child >= 0) depth[static_cast<size_t>(child)] = depth[v] + 1;
    }
    if (children.size() == 2 && children[1] >= 0) {
      order.depth[static_cast<size_t>(shape.nodes[static_cast<size_t>(children[1])].begin)] = depth[v];
    }
  }
  return order;
}

LabelCut find_cut(const LabelOrder& order, const std::vector<RankedMass>& labels) {
  struct Cut {
    int32_t place, depth;
    double share;  // of the lighter side
    bool second_is_lighter;
  };
  double total = 0.0;
  for (const RankedMass& label : labels) total += label.mass;
  const auto better = [](const Cut& a, const Cut& b) {
    const bool a_even = a.share >= kLeastShare, b_even = b.share >= kLeastShare;
    if (a_even != b_even) return a_even;
    if (a_even && a.depth != b.depth) return a.depth < b.depth;
    return a.share > b.share;
  };
  Cut best{0, 0, -1.0, false};
  double before = 0.0;
  for (size_t i = 1; i < labels.size(); ++i) {
    before += labels[i - 1].mass;
    const auto from = order.depth.begin() + labels[i - 1].rank + 1, to = order.depth.begin() + labels[i].rank + 1;
    const Cut cut{labels[i].rank, *std::min_element(from, to), std::min(before, total - before) / total, total - before < before};
    if (better(cut, best)) best = cut;
  }
  return {best.place, best.second_is_lighter};
}

}  // namespace sapwood
