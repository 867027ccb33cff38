// The routers of an online tree, each numbered as its node; a node may have several, one for each of its children.
//
// Sparse rows: 16 lanes to a bank, and a bank holds a connected piece of the tree, so that one look at the row's features
// serves several routers on the way down. A full bank is halved as a page of a B-tree is: each half is connected again.
// Dense rows: one row of weights for each router.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "regressors/online_bank.h"
#include "regressors/online_row.h"
#include "solvers/rule.h"

namespace sapwood {

// What one thread needs to read a row. start() before the first score of each row.
struct OnlineWork {
  OnlineRow row;
  std::vector<int32_t> lines;                // of the bank below
  int32_t bank = -1;                         // whose scores are here
  alignas(64) std::array<float, 16> scores;  // of its lanes

  [[nodiscard]] LineEntries entries() const { return {lines.data(), row.values.data(), static_cast<int64_t>(row.values.size())}; }
};

class OnlineRegressors {
 public:
  // width: routers of a node, 1 to 16. Rows are all sparse or all dense; each is read as what `dense` says.
  OnlineRegressors(const Rule& rule, bool dense, int64_t n_columns, int width = 1);

  // Gives the work a row, multiplied by scale.
  template <class Index>
  void start(Row<Index> row, float scale, OnlineWork& work) const {
    work.bank = -1;
    if (dense_) return work.row.take_dense(row, n_columns_, scale);
    work.row.take_sparse(row, scale);
    work.lines.resize(std::max(work.lines.size(), work.row.values.size()));
  }

  // A node gets routers that have learned nothing. parent_of(node): the node above, -1 for the root.
  template <class ParentOf>
  void add(int32_t node, ParentOf parent_of) {
    if (dense_) return add_row(node);
    int32_t bank = parent_of(node) < 0 ? -1 : place(parent_of(node)).bank;
    if (bank >= 0 && is_full(bank)) {
      std::array<int32_t, 16> parents;
      const auto& nodes = pages_[static_cast<size_t>(bank)].nodes;
      for (size_t i = 0; i < nodes.size(); ++i) parents[i] = parent_of(nodes[i]);
      split(bank, parents);
      bank = place(parent_of(node)).bank;
    }
    add_to(bank, node);
  }

  // The node's routers are gone; it may be added again.
  void remove(int32_t node);

  // What the node's routers say of the row: `width` scores.
  [[nodiscard]] const float* scores(int32_t node, OnlineWork& work) const;
  [[nodiscard]] float score(int32_t node, OnlineWork& work) const { return *scores(node, work); }

  // One step of one of the node's routers towards -1 or +1; its score after it.
  float learn(int32_t node, int which, double target, double weight, OnlineWork& work);
  // The same, with scores() for learning: makes lines that are missing.
  [[nodiscard]] const float* scores_to_learn(int32_t node, OnlineWork& work);

  // Asks for the memory of the node's bank.
  void prefetch(int32_t node, const OnlineWork& work) const;

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] bool dense() const { return dense_; }

  struct Place {
    int32_t bank = -1;  // dense: the number of the row of weights
    int32_t lane = 0;   // the first of `width`
  };
  [[nodiscard]] Place place(int32_t node) const { return places_[static_cast<size_t>(node)]; }

 private:
  struct Page {
    OnlineBank bank;
    std::vector<int32_t> nodes;  // at most 16 / width
    uint16_t used = 0;           // bit i: lanes i * width and on are a node's
  };

  [[nodiscard]] bool is_full(int32_t bank) const;
  void add_row(int32_t node);
  void add_to(int32_t bank, int32_t node);
  // parents[i]: the node above the page's i-th node.
  void split(int32_t bank, const std::array<int32_t, 16>& parents);

  Rule rule_;
  bool dense_;
  int64_t n_columns_;
  int width_;
  std::vector<Place> places_;  // by node
  std::vector<Page> pages_;
  std::vector<int32_t> free_;  // banks, or rows of weights
};

}  // namespace sapwood
