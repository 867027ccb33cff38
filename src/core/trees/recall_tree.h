// Recall Tree (Daumé, Karampatziakis, Langford and Mineiro, ICML 2017); restates src/sapwood/reference/recall_tree.py.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "regressors/label_regressors.h"
#include "regressors/online_regressors.h"
#include "solvers/random.h"
#include "solvers/rule.h"
#include "threads/gate.h"
#include "threads/parallel.h"
#include "threads/pipe.h"
#include "trees/label_counts.h"
#include "trees/progressive.h"
#include "trees/trace.h"

namespace sapwood {

enum class RouterWeight : int32_t { mean, total, none };
enum class PathFeatures : int32_t { none, path, leaf };
enum class Stopped : int32_t { leaf, recall, empty_child };

struct RecallTreeOptions {
  int32_t max_candidates = 0;  // F; 0: follows the labels seen
  double coverage = 1;         // share of a node's examples that its candidates must hold, if F of them can
  int32_t max_depth = -1;      // -1: follows the labels seen
  double bound = 1;            // lambda of equation (1)
  bool early_stop = true;
  RouterWeight router_weight = RouterWeight::mean;
  bool randomized_routing = false;
  PathFeatures path_features = PathFeatures::path;
  bool cross_path = false;
  int32_t arity = 2;
  bool normalize = false;
  Rule router_rule, score_rule;
};

class RecallTree {
 public:
  struct alignas(64) Node {
    int32_t parent = -1;
    int32_t first_child = -1;  // its children are numbered one after the other
    int32_t depth = 0;
    mutable Spinlock lock;  // where several threads learn, of what is below; bound, total and counts are read without
    double bound = -std::numeric_limits<double>::infinity();  // of its recall, as of now
    int64_t endings = 0;  // examples that learned its candidates since the labels were arranged
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
    float scale = 1;                  // of the row
    std::vector<int32_t> order;       // places among the candidates, the best first
  };

  struct Ending {
    int32_t node;
    Stopped stopped;
  };

  RecallTree(const RecallTreeOptions& options, bool dense, int64_t n_columns, uint64_t random_state);

  // What the tree has decided of an example, for the regressors to carry out: they have no say in the tree, so that
  // another thread may do it, and the model is the same.
  struct Task {
    bool is_question;               // to be answered and compared, not to be learned from
    OnlineRow row;                  // with its path features
    std::vector<int32_t> candidates;
    int32_t label;
    bool is_new, learns;            // the label
    double weight;
    std::vector<int32_t> order;     // labels to be arranged so, after this example
  };

  // What one thread needs to learn rows; open() before the first. With a pass it learns while others do, and counts for
  // itself what settle() then takes over. Without, it may hand half of the work to a second thread.
  struct alignas(64) Learner {
    Work work;                        // of the tree
    LabelRegressors::Work scoring;    // of the regressors
    Task task;
    Gate::Pass* pass = nullptr;
    Progressive progressive;
    int64_t n_learned = 0;
    std::optional<Random> random;
    std::unique_ptr<Pipe<Task>> pipe;  // the last member: it ends before what it works with
  };

  // How many threads learning in order may use, of which it takes two at most: one for the tree, one for the regressors.
  void set_threads(int n) { n_threads_ = n; }
  void open(Learner& learner, Gate::Pass* pass);
  void settle(Learner& learner);

  // Answers for a row, and counts whether it is wrong.
  template <class Index>
  void test_row(Row<Index> row, int32_t label, double weight, Learner& learner);
  // Learns a row; a weight of 0 is no example.
  template <class Index>
  void learn_row(Row<Index> row, int32_t label, double weight, Learner& learner);

  // Asks for the memory that a row to come will read first.
  template <class Index>
  void prefetch(Row<Index> row, const Learner& learner) const {
    if (!at(0).leaf()) routers_.prefetch_columns(0, row);
    if (!learner.pipe) labels_.prefetch(row);
  }

  // The best candidate; -1 before the first example.
  template <class Index>
  int32_t best_label(Row<Index> row, Work& work) const;

  // labels, probabilities: rows x top, best first. After the candidates come those of the nodes above, then the other
  // labels by their weight, all with probability 0; -1 where there are no more labels.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* probabilities, Monitor& monitor) const;

  // A router met on the way down, or the routers of a node with more than two children.
  struct Step {
    int32_t node;
    float margin;  // of the child chosen or, of two children, of the right one
    int32_t child;
  };
  struct Explanation {
    std::vector<Step> steps;
    std::vector<float> margins;  // steps x lanes
    Ending ending;
    std::vector<int32_t> labels;  // candidates, the best first
    std::vector<float> scores;
  };
  template <class Index>
  [[nodiscard]] Explanation explain(Row<Index> row) const;
  template <class Index>
  [[nodiscard]] std::pair<std::vector<Step>, int32_t> path(Row<Index> row) const {
    Explanation told = explain(row);
    return {std::move(told.steps), told.ending.node};
  }

  [[nodiscard]] int64_t n_labels() const { return n_labels_; }
  [[nodiscard]] int32_t n_candidates() const { return n_candidates_; }
  [[nodiscard]] int32_t depth_limit() const { return depth_limit_; }
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] const RecallTreeOptions& options() const { return options_; }
  [[nodiscard]] int lanes() const { return options_.arity == 2 ? 1 : options_.arity; }

  [[nodiscard]] const OnlineRegressors& regressors() const { return routers_; }
  [[nodiscard]] const LabelRegressors& labels() const { return labels_; }
  [[nodiscard]] Progressive& progressive() { return progressive_; }
  [[nodiscard]] const Progressive& progressive() const { return progressive_; }
  [[nodiscard]] Trace& trace() { return trace_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] int64_t n_examples() const { return n_examples_; }

  // Takes a whole tree: of its nodes the parts that are not derived. False if it is none; then this one is to be thrown away.
  [[nodiscard]] bool restore(std::vector<Node> nodes, const OnlineRegressors::Arrays<OnlineRegressors::View>& routers,
                             const LabelRegressors::Arrays<LabelRegressors::View>& labels, int64_t n_examples);

 private:
  [[nodiscard]] Node& at(int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  [[nodiscard]] const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  template <class Index>
  void start(Row<Index> row, Work& work) const;
  template <class Index>
  Ending descend(Row<Index> row, Work& work, Explanation* told) const;

  bool know(int32_t label);
  bool meet(int32_t label, Gate::Pass* pass);
  void count(int32_t node, int32_t label, double weight, Gate::Pass* pass);
  bool has_children(int32_t node, Gate::Pass* pass);
  void add_children(int32_t node);
  const float* update_router(int32_t node, int32_t label, double weight, Work& work);
  [[nodiscard]] double importance(double delta, double total, double weight) const;
  [[nodiscard]] int32_t best_child(const float* margins) const;
  [[nodiscard]] int32_t training_child(const float* margins, Random& random) const;
  [[nodiscard]] bool stops(const Node& node, const Node& child) const {
    return child.hist.total() == 0 || (options_.early_stop && load_shared(node.bound) > load_shared(child.bound));
  }
  template <class Index>
  void add_path(Row<Index> row, int32_t node, Work& work) const;
  void hand_over(Task& task, Learner& learner);
  void carry_out(const Task& task, Learner& learner);
  void ask_or_teach(const Task& task, Learner& learner);
  [[nodiscard]] std::span<const LabelCount> candidates(const Node& node) const;
  void set_candidates(int32_t node, Work& work) const;
  template <class Index>
  void score_candidates(Row<Index> row, int32_t node, Work& work) const;
  void rank(int32_t top, Work& work) const;
  void fill_up(int32_t top, int32_t node, std::span<const LabelCount> all, Work& work) const;
  void set_limits();
  [[nodiscard]] std::vector<int32_t> arrangement();
  [[nodiscard]] bool is_tree() const;

  RecallTreeOptions options_;
  Random random_;
  OnlineRegressors routers_;
  LabelRegressors labels_;
  std::vector<Node> nodes_;
  std::vector<bool> known_;  // by label
  int64_t n_labels_ = 0;
  int32_t n_candidates_ = 0;
  int32_t depth_limit_ = 0;
  int64_t n_examples_ = 0;
  Progressive progressive_;
  Trace trace_;
  Spinlock settling_;
  int n_threads_ = 1;
};

}  // namespace sapwood
