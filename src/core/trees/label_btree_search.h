// Beam search in a label B-tree, for one row after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trees/label_btree.h"

namespace sapwood {

class LabelSearch {
 public:
  // The tree may learn between two runs.
  LabelSearch(const LabelBTree& tree, const LabelBTree::Search& search, int32_t top);

  // The best labels of the row, best first; their scores are logarithms. Holds until the next run.
  template <class Index>
  std::span<const TopLabel> run(Row<Index> row);

 private:
  template <class Index>
  void visit(TopLabel at, Row<Index> row, float scale);
  [[nodiscard]] const GrowingGroup& group_of(TopLabel at) const { return tree_.nodes()[static_cast<size_t>(at.label)]->group; }
  void keep_best_nodes();
  void offer(TopLabel x);
  void cut(size_t n);

  const LabelBTree& tree_;
  LabelBTree::Search search_;
  size_t top_;
  std::vector<TopLabel> beam_, next_, best_;
  float inner_share_ = 0;  // weight of what inner nodes say
  float worst_ = 0;        // a label below this is not among the best
  std::vector<GroupLines> found_;
  CacheLineVector<float> scores_;
};

}  // namespace sapwood
