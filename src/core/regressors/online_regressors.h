// The routers of an online tree, each numbered as its node; a node may have several, one for each of its children.
//
// Sparse rows: 16 lanes to a bank, and a bank holds a connected piece of the tree, so that one look at the row's features
// serves several routers on the way down. A full bank is halved as a page of a B-tree is: each half is connected again.
// Dense rows: one row of weights for each router.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "regressors/online_bank.h"
#include "regressors/online_row.h"
#include "solvers/rule.h"
#include "threads/gate.h"

namespace sapwood {

// What one thread needs to read a row. start() before the first score of each row.
struct OnlineWork {
  OnlineRow row;
  std::vector<int32_t> lines;                // of the bank below
  std::vector<int32_t> next_lines;           // of the bank that is likely to come next
  int32_t next_bank = -1;
  int32_t bank = -1;                         // the bank whose lines and scores are here
  bool scored = false;                       // its scores are here, not its lines only
  bool writable = false;                     // all its lines are there
  uint64_t version = 0;                      // of the pages, when it was read
  Gate::Pass* pass = nullptr;                // of a thread that learns while others do
  alignas(64) std::array<float, 16> scores;  // of its lanes

  [[nodiscard]] LineEntries entries() const { return {lines.data(), row.values.data(), static_cast<int64_t>(row.values.size())}; }
};

class OnlineRegressors {
 public:
  // width: routers of a node, 1 to 16. Rows are kept as sparse or dense ones, however they come.
  OnlineRegressors(const Rule& rule, bool dense, int64_t n_columns, int width = 1)
      : rule_(rule), dense_(dense), n_columns_(n_columns), width_(width) {}

  // Gives the work a row, multiplied by scale.
  template <class Index>
  void start(Row<Index> row, float scale, OnlineWork& work) const {
    work.bank = work.next_bank = -1;
    if (dense_) return work.row.take_dense(row, n_columns_, scale);
    work.row.take_sparse(row, scale);
    work.lines.resize(std::max(work.lines.size(), work.row.values.size()));
    work.next_lines.resize(work.lines.size());
  }

  // A node gets routers that have learned nothing. parent_of(node): the node above, -1 for the root.
  template <class ParentOf>
  void add(int32_t node, ParentOf parent_of) {
    if (dense_) return add_row(node);
    const int32_t parent = parent_of(node);
    if (parent < 0) return add_to(-1, node);
    if (is_full(place(parent).bank)) {
      std::array<int32_t, 16> parents;
      const auto& nodes = pages_[static_cast<size_t>(place(parent).bank)].nodes;
      for (size_t i = 0; i < nodes.size(); ++i) parents[i] = nodes[i] < 0 ? -1 : parent_of(nodes[i]);
      split(place(parent).bank, parents);
    }
    add_to(is_full(place(parent).bank) ? -1 : place(parent).bank, node);
  }

  // Whether add() would leave memory and other routers where they are: then others may be read and learn meanwhile.
  [[nodiscard]] bool has_room(int32_t node, int32_t parent) const {
    return !dense_ && parent >= 0 && !is_full(place(parent).bank) && static_cast<size_t>(node) < places_.capacity();
  }

  // The node's routers are gone; it may be added again.
  void remove(int32_t node);

  // Lays the routers out anew, so that rows meet few banks: the ways that most rows go lie together. No score changes.
  // children_of(node): two nodes, or -1; weight_of(node): how many rows come to it.
  template <class ChildrenOf, class WeightOf>
  void repack(int32_t root, ChildrenOf children_of, WeightOf weight_of) {
    if (!dense_ && has(root)) rebuild(plan_pages(root, children_of, weight_of));
  }

  // What the node's routers say of the row: `width` scores, there until the next call.
  [[nodiscard]] const float* scores(int32_t node, OnlineWork& work) const;
  [[nodiscard]] float score(int32_t node, OnlineWork& work) const { return *scores(node, work); }
  // The same for who will learn: asks for the step state too.
  const float* scores_to_learn(int32_t node, OnlineWork& work);

  // One step of one of the node's routers towards -1 or +1; its score after it.
  float learn(int32_t node, int which, double target, double weight, OnlineWork& work);
  // One step of all of them, each pushed by its own (rule.h), 0 not to learn; their scores after it.
  const float* learn_all(int32_t node, const float* pushes, OnlineWork& work);

  // Whether the node's bank has still to be read for this row.
  [[nodiscard]] bool enters(int32_t node, const OnlineWork& work) const { return !dense_ && !is_here(place(node).bank, work); }

  // While a row is in one bank, looks it up in another: scores() of that one then finds its memory at hand.
  void look_ahead(int32_t node, OnlineWork& work) const;
  // For many rows at a time: asks for what look_up reads, then look_up asks for what scores() will read.
  void prefetch(int32_t node, const OnlineWork& work) const;
  void look_up(int32_t node, OnlineWork& work) const;
  // The same as prefetch for a row that no work has taken yet.
  template <class Index>
  void prefetch_columns(int32_t node, Row<Index> row) const {
    if (!dense_) pages_[static_cast<size_t>(place(node).bank)].bank.prefetch_columns(row);
  }

  struct Place {
    int32_t bank = -1;  // dense: the number of the rows of weights; -1: none
    int32_t lane = 0;   // the first of `width`
  };
  [[nodiscard]] Place place(int32_t node) const { return places_[static_cast<size_t>(node)]; }
  [[nodiscard]] bool has(int32_t node) const { return static_cast<size_t>(node) < places_.size() && place(node).bank >= 0; }

  // All that has been learned. Banks are numbered by the first of their nodes.
  template <template <class> class List>
  struct Arrays {
    List<int32_t> banks, lanes;    // by node, as in Place; dense: banks alone, 0 for a node that has routers, else -1
    List<int64_t> bank_lines;      // sparse: where the lines of each bank begin, and the end of the last
    List<uint64_t> keys;           // of each line; 0 for the constant, which is the first of its bank
    List<float> weights, squares;  // of each line 16 or, dense, of each node that has routers `width` rows; sgd: no squares
  };
  template <class T>
  using Owned = std::vector<T>;
  template <class T>
  using View = std::span<const T>;
  [[nodiscard]] Arrays<Owned> arrays() const;
  // Takes them back for n_nodes nodes; false if they do not fit together. Must be as new.
  [[nodiscard]] bool restore(const Arrays<View>& arrays, int64_t n_nodes);

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] bool dense() const { return dense_; }
  [[nodiscard]] size_t bytes() const;

 private:
  struct Page {
    Page(const Rule& rule, LinePool& pool) : bank(rule, pool) { nodes.fill(-1); }
    OnlineBank bank;
    Spinlock adding;                // of lines
    std::array<int32_t, 16> nodes;  // node i has lanes i * width and on; -1: free
    int n_nodes = 0;
  };
  struct DenseRow {
    AlignedArray<float> weights, squares;  // width x stride
  };

  [[nodiscard]] int capacity() const { return 16 / width_; }
  [[nodiscard]] bool is_full(int32_t bank) const { return pages_[static_cast<size_t>(bank)].n_nodes == capacity(); }
  [[nodiscard]] int64_t stride() const { return (n_columns_ + 16) / 16 * 16; }
  void add_row(int32_t node);
  void add_to(int32_t bank, int32_t node);
  void set_place(int32_t node, Place place);
  using Pages = std::vector<std::vector<int32_t>>;  // nodes of each
  template <class ChildrenOf, class WeightOf>
  Pages plan_pages(int32_t root, ChildrenOf children_of, WeightOf weight_of) const;
  void rebuild(const Pages& plan);
  std::array<OnlineBank::Lane, 16> lanes_now(const std::array<int32_t, 16>& nodes);
  [[nodiscard]] std::vector<int32_t> banks_in_order() const;
  // parents[i]: the node above the page's i-th node.
  void split(int32_t bank, const std::array<int32_t, 16>& parents);
  const float* dense_scores(Place place, OnlineWork& work) const;
  [[nodiscard]] bool is_here(int32_t bank, const OnlineWork& work) const { return work.bank == bank && work.version == version_; }
  void found(int32_t bank, bool writable, OnlineWork& work) const;
  void read(OnlineWork& work) const;
  [[nodiscard]] bool make_lines(int32_t node, OnlineWork& work);
  static void put_bank(const OnlineBank& bank, Arrays<Owned>& out);
  bool restore_page(const Arrays<View>& arrays, size_t bank);

  Rule rule_;
  bool dense_;
  int64_t n_columns_;
  int width_;
  std::vector<Place> places_;  // by node
  std::unique_ptr<LinePool> pool_ = std::make_unique<LinePool>();  // of the pages
  std::vector<Page> pages_;
  std::vector<DenseRow> rows_;
  std::vector<int32_t> free_;  // pages, or rows
  uint64_t version_ = 0;       // counts what may move lines or empty lanes
};

// A page takes its root and then, again and again, the heaviest node below what it has. What is left begins new pages;
// several small subtrees share one.
template <class ChildrenOf, class WeightOf>
OnlineRegressors::Pages OnlineRegressors::plan_pages(int32_t root, ChildrenOf children_of, WeightOf weight_of) const {
  const auto room = static_cast<size_t>(capacity());
  const auto for_each_below = [&](int32_t node, auto visit) {
    for (const int32_t child : children_of(node)) {
      if (child >= 0 && has(child)) visit(child);
    }
  };
  const auto subtree = [&](int32_t top) {  // its nodes, or the first of them if they are more than a page
    std::vector<int32_t> nodes{top};
    for (size_t i = 0; i < nodes.size() && nodes.size() <= room; ++i) {
      for_each_below(nodes[i], [&](int32_t child) { nodes.push_back(child); });
    }
    return nodes;
  };
  const auto lighter = [&](int32_t a, int32_t b) { return weight_of(a) != weight_of(b) ? weight_of(a) < weight_of(b) : a > b; };
  Pages plan;
  std::vector<int32_t> roots{root}, below, shared;
  while (!roots.empty()) {
    below.assign(1, roots.back());
    roots.pop_back();
    std::vector<int32_t> page;
    while (!below.empty() && page.size() < room) {
      std::pop_heap(below.begin(), below.end(), lighter);
      page.push_back(below.back());
      below.pop_back();
      for_each_below(page.back(), [&](int32_t child) {
        below.push_back(child);
        std::push_heap(below.begin(), below.end(), lighter);
      });
    }
    plan.push_back(page);
    shared.clear();
    std::sort(below.begin(), below.end(), lighter);
    for (const int32_t top : below) {
      const std::vector<int32_t> nodes = subtree(top);
      if (nodes.size() >= room) {
        roots.push_back(top);
        continue;
      }
      if (shared.size() + nodes.size() > room) {
        plan.push_back(shared);
        shared.clear();
      }
      shared.insert(shared.end(), nodes.begin(), nodes.end());
    }
    if (!shared.empty()) plan.push_back(shared);
  }
  return plan;
}

}  // namespace sapwood
