// LOMtree (Choromanska and Langford, NIPS 2015, Algorithm 1); restates src/sapwood/reference/lom_tree.py, in its names.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "regressors/online_regressors.h"
#include "threads/gate.h"
#include "threads/parallel.h"
#include "trees/lom_counts.h"
#include "trees/online_stream.h"
#include "trees/progressive.h"
#include "trees/trace.h"

namespace sapwood {

class LomTree {
 public:
  struct Options {
    Rule rule;
    int64_t max_internal;        // T, or -1: it follows the labels seen
    int64_t internal_per_label;  // then T = this times the labels, minus 1
    double swap_resistance;      // R_S, at least 1
    bool normalize;
  };

  struct alignas(64) Node {
    int32_t parent = -1, left = -1, right = -1;
    int32_t recycles = 0;
    int32_t heaviest_label = -1;
    Spinlock lock;                 // where several threads learn, of its counts
    double heaviest = 0;           // max_i l(i)
    double total = 0;              // sum of l
    double m_sum = 0, n_sum = 0;   // E = m_sum / n_sum
    double C = 0;                  // the smallest leaf count below
    double floor = 0;              // no split makes a leaf below smaller than this
    LomCounts counts;

    [[nodiscard]] bool leaf() const { return load_shared(left) < 0; }
  };

  using Work = OnlineWork;

  // What one thread needs to learn rows; open() before the first. With a pass it learns while others do, and counts for
  // itself what settle() then takes over.
  struct alignas(64) Learner {
    Work work;
    std::vector<int32_t> ahead;  // nodes that the row at hand is likely to come to
    int32_t next = -1;           // the first of them in the next bank, as long as that is to be looked up
    LomCount* counted = nullptr;  // one thread: the label's sums at the node at hand, which stay where they are
    Gate::Pass* pass = nullptr;
    Progressive progressive;
  };

  struct Step {
    int32_t node;
    float margin;
    int32_t child;
  };

  LomTree(const Options& options, bool dense, int64_t n_columns);

  void open(Learner& learner, Gate::Pass* pass) { learner.pass = learner.work.pass = pass; }
  void settle(Learner& learner);

  // Answers for a row, and counts whether it is wrong.
  template <class Index>
  void test_row(Row<Index> row, int32_t label, double weight, Learner& learner) {
    (learner.pass ? learner.progressive : progressive_).count(best_label(row, learner.work) != label, weight);
  }
  // Learns a row; a weight of 0 is no example.
  template <class Index>
  void learn_row(Row<Index> row, int32_t label, double weight, Learner& learner);
  // Asks for the memory that a row to come will read first.
  template <class Index>
  void prefetch(Row<Index> row, const Learner&) const {
    if (!at(0).leaf()) routers_.prefetch_columns(0, row);
  }

  // The heaviest label of the leaf that the row comes to; -1 before the first example.
  template <class Index>
  int32_t best_label(Row<Index> row, Work& work) const;

  // labels, scores: rows x top, best first, as they share the leaf; -1 and 0 where it has fewer.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores, Monitor& monitor) const;

  // The way of a row, and the leaf.
  template <class Index>
  std::pair<std::vector<Step>, int32_t> path(Row<Index> row) const;
  // A leaf's labels with their shares, heaviest first, the `top` first of them. With `fill` those of the nodes above it
  // follow with a share of 0.
  [[nodiscard]] std::vector<std::pair<int32_t, double>> ranking(int32_t leaf, int32_t top, bool fill = false) const;

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] int64_t n_labels() const { return n_labels_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] const OnlineRegressors& regressors() const { return routers_; }
  [[nodiscard]] Progressive& progressive() { return progressive_; }
  [[nodiscard]] const Progressive& progressive() const { return progressive_; }
  [[nodiscard]] Trace& trace() { return trace_; }

  // Takes a whole tree, heaviest labels apart, which are found. False if it is none; then this one is to be thrown away.
  [[nodiscard]] bool restore(std::vector<Node> nodes, const OnlineRegressors::Arrays<OnlineRegressors::View>& routers);

 private:
  [[nodiscard]] Node& at(int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  [[nodiscard]] const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  [[nodiscard]] double T() const;
  void know(int32_t label, Gate::Pass* pass);
  size_t count(Node& j, int32_t label, double weight, Learner& learner);
  static LomCount& counted(Node& j, int32_t label, Learner& learner);
  int32_t train(int32_t j, int32_t label, double weight, Learner& learner);
  void look_ahead(int32_t j, int32_t label, Learner& learner);
  [[nodiscard]] int32_t place_to_split(int32_t j) const;
  bool split(int32_t j);
  bool split(int32_t j, Gate::Pass* pass);
  using Children = std::pair<int32_t, int32_t>;
  [[nodiscard]] bool has_room_below(int32_t j) const;
  Children create_children(int32_t j);
  [[nodiscard]] int32_t orphan() const;
  Children swap(int32_t v, int32_t s);
  void set_node(int32_t v);
  void repack();
  void update_c(int32_t v);
  template <class Index>
  int32_t leaf_of(Row<Index> row, Work& work) const;
  template <class Rows>
  void leaves_of(const Rows& X, int64_t first, int64_t n, std::vector<Work>& works, int32_t* leaves) const;
  void answer(int32_t leaf, int32_t top, int32_t* labels, float* scores) const;
  [[nodiscard]] int32_t leave_bank(int32_t j, Work& work) const;
  [[nodiscard]] int32_t answering(int32_t leaf) const;
  [[nodiscard]] bool is_tree() const;

  Options options_;
  OnlineRegressors routers_;
  std::vector<Node> nodes_;
  std::vector<char> known_;  // by label
  int64_t n_labels_ = 0;
  int64_t t_ = 0;             // internal nodes
  int64_t next_repack_ = 64;  // internal nodes at which the routers are laid out anew
  Progressive progressive_;
  Trace trace_;
  LoneSpinlock lock_;  // where several threads learn, of all that belongs to no node: links, C, floors, labels, mistakes
};

}  // namespace sapwood
