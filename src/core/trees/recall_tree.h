// Recall Tree (Daumé, Karampatziakis, Langford and Mineiro, ICML 2017); restates src/sapwood/reference/recall_tree.py.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "regressors/label_regressors.h"
#include "regressors/online_regressors.h"
#include "solvers/random.h"
#include "solvers/rule.h"
#include "threads/parallel.h"
#include "trees/label_counts.h"
#include "trees/progressive.h"

namespace sapwood {

enum class RouterWeight : int32_t { mean, total, none };
enum class PathFeatures : int32_t { none, path, leaf };
enum class Stopped : int32_t { leaf, recall, empty_child };

struct RecallTreeOptions {
  int32_t max_candidates = 0;  // F; 0: follows the labels seen
  int32_t max_depth = -1;      // -1: follows the labels seen
  double bound = 1;            // lambda of equation (1)
  bool early_stop = true;
  RouterWeight router_weight = RouterWeight::mean;
  bool randomized_routing = false;
  PathFeatures path_features = PathFeatures::path;
  bool cross_path = false;
  int32_t arity = 2;
  Rule router_rule, score_rule;
};

// A decision about the example being learned, as the reference's `Event` has it.
struct RecallTreeEvent {
  enum class Kind : int32_t { route, target, split, stop, candidates };
  int64_t example;
  Kind kind;
  std::vector<int32_t> nodes, labels;
  std::vector<double> numbers;
};

class RecallTree {
 public:
  struct Node {
    int32_t parent = -1;
    int32_t first_child = -1;  // its children are numbered one after the other
    int32_t depth = 0;
    double bound = -std::numeric_limits<double>::infinity();  // of its recall, as of now
    LabelCounts hist;

    [[nodiscard]] bool leaf() const { return first_child < 0; }
  };

  // What one thread needs to follow a row.
  struct Work {
    OnlineWork online;
    LabelRegressors::Work labels;
    std::vector<int32_t> entered;     // nodes, without the root
    std::vector<int32_t> candidates;  // of the node where the descent ended
    std::vector<double> costs;        // of the children
    std::vector<float> pushes;
    std::vector<int32_t> order;       // places among the candidates, the best first
  };

  struct Ending {
    int32_t node;
    Stopped stopped;
    int32_t refused;  // the child that was not entered, or -1
  };

  RecallTree(const RecallTreeOptions& options, bool dense, int64_t n_columns, uint64_t seed);

  // Learns the rows in order or, if an order is given, rows order[0], order[1], ... Labels may be any from 0 on.
  // With `predict_first` each row is predicted before it is learned, and progressive() tells how that went.
  template <class Rows>
  void learn(const Rows& X, const int32_t* labels, const float* weight, std::span<const int64_t> order, bool predict_first,
             Monitor& monitor);

  // labels, scores: rows x top, best first; -1 and 0 where there are fewer candidates.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores, Monitor& monitor) const;

  struct Explanation {
    std::vector<int32_t> nodes, children;
    std::vector<float> margins;  // nodes x lanes
    Ending ending;
    std::vector<int32_t> labels;  // candidates, the best first
    std::vector<float> scores;
  };
  template <class Rows>
  [[nodiscard]] Explanation explain(const Rows& X, int64_t row) const;

  [[nodiscard]] int32_t n_labels() const { return n_labels_; }
  [[nodiscard]] int32_t n_candidates() const { return n_candidates_; }
  [[nodiscard]] int32_t depth_limit() const { return depth_limit_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] const RecallTreeOptions& options() const { return options_; }
  [[nodiscard]] int lanes() const { return options_.arity == 2 ? 1 : options_.arity; }

  [[nodiscard]] const Progressive& progressive() const { return progressive_; }

  [[nodiscard]] int64_t lines() const { return labels_.store().n_lines(); }
  [[nodiscard]] int32_t place(int32_t label) const { return labels_.place(label); }

  void record(std::vector<RecallTreeEvent>* events) { events_ = events; }

 private:
  template <class Index>
  void learn_row(Row<Index> row, int32_t label, double weight, Work& work);
  template <class Index>
  Ending descend(Row<Index> row, Work& work, Explanation* told) const;
  template <class Index>
  int32_t best_label(Row<Index> row, Work& work) const;

  void know(int32_t label);
  void count(Node& node, int32_t label, double weight);
  bool has_children(int32_t node);
  const float* update_router(int32_t node, int32_t label, double weight, Work& work);
  [[nodiscard]] double importance(double delta, double total, double weight) const;
  [[nodiscard]] int32_t best_child(const float* margins) const;
  [[nodiscard]] int32_t training_child(const float* margins);
  [[nodiscard]] bool stops(const Node& node, const Node& child) const {
    return child.hist.total() == 0 || (options_.early_stop && node.bound > child.bound);
  }
  template <class Index>
  void add_path(Row<Index> row, int32_t node, Work& work) const;
  void learn_labels(int32_t node, int32_t label, double weight, Work& work);
  void set_candidates(int32_t node, Work& work) const;
  template <class Index>
  void score_candidates(Row<Index> row, int32_t node, Work& work) const;
  void rank(int32_t top, Work& work) const;
  void tell(RecallTreeEvent::Kind kind, std::vector<int32_t> nodes, std::vector<int32_t> labels = {},
            std::vector<double> numbers = {});

  RecallTreeOptions options_;
  Random random_;
  OnlineRegressors routers_;
  LabelRegressors labels_;
  std::vector<Node> nodes_;
  int32_t n_labels_ = 0;
  int32_t n_candidates_ = 1;
  int32_t depth_limit_ = 0;
  int64_t n_examples_ = 0;
  Progressive progressive_;
  Work work_;
  std::vector<RecallTreeEvent>* events_ = nullptr;
};

}  // namespace sapwood
