// Random tree and filter tree: a balanced binary tree with one label a leaf, which grows as labels appear. Restates
// src/sapwood/reference/{balanced_tree,random_tree,filter_tree}.py.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "regressors/online_regressors.h"
#include "solvers/random.h"
#include "threads/parallel.h"
#include "trees/online_stream.h"
#include "trees/progressive.h"
#include "trees/trace.h"

namespace sapwood {

class BalancedTree {
 public:
  struct Options {
    Rule rule;
    bool filter;  // a router learns only from labels that win all the way up to it
    bool normalize;
  };

  struct Node {
    int32_t parent = -1, left = -1, right = -1;
    int32_t label = -1;     // of a leaf
    double examples = 0;    // weight that trained the router or, of a leaf, weight of its label
    double sent_right = 0;  // of it: the part that the router then sent right
    double agreed = 0;      // of it: the part that the router then sent to its label's side

    [[nodiscard]] bool leaf() const { return left < 0; }
  };

  using Work = OnlineWork;

  struct Step {
    int32_t node;
    float margin;
    int32_t child;
  };

  BalancedTree(const Options& options, bool dense, int64_t n_columns, uint64_t seed);

  // Learns a row; a weight of 0 is no example.
  template <class Index>
  void learn_row(Row<Index> row, int32_t label, double weight);

  // The label that the routers lead to; -1 before the first example.
  template <class Index>
  int32_t best_label(Row<Index> row, Work& work) const;

  // labels, scores: rows x top, best first: exp(-sum of |margin| over the routers that a label overrules); -1 and 0 where
  // there are fewer labels.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores, Monitor& monitor) const;

  // The way of a row, and the leaf.
  template <class Index>
  std::pair<std::vector<Step>, int32_t> path(Row<Index> row) const;

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] int64_t n_labels() const { return n_labels_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] const OnlineRegressors& regressors() const { return routers_; }
  [[nodiscard]] Progressive& progressive() { return progressive_; }
  [[nodiscard]] const Progressive& progressive() const { return progressive_; }
  [[nodiscard]] Trace& trace() { return trace_; }
  // Leaves of the smaller depth and those one deeper, in the order that decides where the next label goes.
  [[nodiscard]] const std::vector<int32_t>& shallow() const { return shallow_; }
  [[nodiscard]] const std::vector<int32_t>& deep() const { return deep_; }
  [[nodiscard]] uint64_t random_state() const { return random_.state(); }
  void set_random_state(uint64_t state) { random_ = Random(state); }

  // Takes a whole tree; false if it is none.
  [[nodiscard]] bool restore(std::vector<Node> nodes, std::vector<int32_t> shallow, std::vector<int32_t> deep,
                             const OnlineRegressors::Arrays<OnlineRegressors::View>& routers);

 private:
  // A place in the search for the best labels: what it cost to come here, and the routers overruled, from the root.
  struct Branch {
    double cost;
    uint64_t overruled;
    int32_t depth;
    int32_t node;
  };

  [[nodiscard]] Node& at(int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  [[nodiscard]] const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  void grow(int32_t label);
  int32_t new_leaf(int32_t parent, int32_t label, std::vector<int32_t>& level);
  bool learn_router(int32_t node, int32_t child, double weight);
  [[nodiscard]] bool is_tree() const;
  template <class Index>
  void rank(Row<Index> row, int32_t top, int32_t* labels, float* scores, Work& work, std::vector<Branch>& heap) const;

  Options options_;
  Random random_;
  OnlineRegressors routers_;
  std::vector<Node> nodes_;
  std::vector<int32_t> leaf_of_;  // by label; -1: not seen
  std::vector<int32_t> shallow_, deep_;
  std::vector<int32_t> path_;  // of the label at hand
  int64_t n_labels_ = 0;
  Progressive progressive_;
  Trace trace_;
  Work work_;
};

}  // namespace sapwood
