// Threads that learn a tree at once: what they count is exact, and what they leave is a sound tree.
#include <atomic>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "random_rows.h"
#include "threads/gate.h"
#include "trees/lom_tree.h"
#include "trees/recall_tree.h"

using namespace sapwood;

namespace {

constexpr int64_t kRows = 1500, kColumns = 60;
constexpr int32_t kLabels = 37;
constexpr Rule kRule{OnlineLoss::logistic, true, 0.5f, 0.01f, 0.05};

struct Stream {
  RandomRows rows{kRows, kColumns, kLabels};
  std::vector<int32_t> labels;
  std::vector<int64_t> order;

  Stream() {
    for (int64_t i = 0; i < kRows; ++i) {
      labels.push_back(static_cast<int32_t>(i % kLabels));
      order.push_back(i);
    }
  }
  template <class Tree, class Rows>
  void teach(Tree& tree, const Rows& X, int n_threads, int passes = 3) const {
    Monitor monitor;
    for (int pass = 0; pass < passes; ++pass) learn_rows_at_once(tree, X, labels.data(), nullptr, order, true, n_threads, monitor);
    CHECK(monitor.done == kRows * passes);
  }
  template <class Tree>
  [[nodiscard]] double error(const Tree& tree) const {
    Monitor monitor;
    std::vector<int32_t> best(static_cast<size_t>(kRows));
    std::vector<float> scores(best.size());
    tree.predict_top(rows.csr(), 1, 1, best.data(), scores.data(), monitor);
    double wrong = 0;
    for (size_t i = 0; i < best.size(); ++i) wrong += best[i] != labels[i];
    return wrong / static_cast<double>(kRows);
  }
};

OnlineRegressors::Arrays<OnlineRegressors::View> view(const OnlineRegressors::Arrays<OnlineRegressors::Owned>& a) {
  return {a.banks, a.lanes, a.bank_lines, a.keys, a.weights, a.squares};
}
LabelRegressors::Arrays<LabelRegressors::View> view(const LabelRegressors::Arrays<LabelRegressors::Owned>& a) {
  return {a.places, a.keys, a.banks, a.weights, a.squares, a.dense_weights, a.dense_squares};
}

template <class Tree>
std::vector<typename Tree::Node> copy_of(const Tree& tree) {
  return {tree.nodes().begin(), tree.nodes().end()};
}

// Every label came to the root as often as it was learned.
template <class Counts>
void check_counts(const Counts& counts, int64_t passes) {
  std::map<int32_t, double> expected;
  for (int64_t i = 0; i < kRows; ++i) expected[static_cast<int32_t>(i % kLabels)] += static_cast<double>(passes);
  CHECK(counts == expected);
}

void check_lom_tree(const LomTree& tree, const LomTree::Options& options, bool dense) {
  std::map<int32_t, double> counts;
  for (const LomCount& count : tree.nodes()[0].counts.sorted()) counts[count.label] = count.l;
  check_counts(counts, 3);
  CHECK(tree.nodes()[0].total == 3.0 * kRows);
  CHECK(tree.progressive().seen == 3.0 * kRows);
  for (const LomTree::Node& node : tree.nodes()) {
    double sum = 0;
    for (const LomCount& count : node.counts.sorted()) sum += count.l;
    CHECK(sum == node.total);
    if (node.leaf()) continue;
    CHECK(node.C == std::min(tree.nodes()[static_cast<size_t>(node.left)].C, tree.nodes()[static_cast<size_t>(node.right)].C));
  }
  LomTree again(options, dense, kColumns);
  CHECK(again.restore(copy_of(tree), view(tree.regressors().arrays())));
}

void check_recall_tree(const RecallTree& tree, bool dense) {
  std::map<int32_t, double> counts;
  for (const LabelCount& count : tree.nodes()[0].hist.all()) counts[count.label] = count.count;
  check_counts(counts, 3);
  CHECK(tree.n_examples() == 3 * kRows);
  CHECK(tree.progressive().seen == 3.0 * kRows);
  double routed = 0;
  for (const RecallTree::Node& node : tree.nodes()) {
    CHECK(node.depth <= tree.depth_limit());
    CHECK(static_cast<int32_t>(node.hist.top().size()) == std::min(node.hist.n_labels(), tree.n_candidates()));
    CHECK(node.bound == node.hist.recall_bound(tree.options().bound));
    if (node.parent == 0) routed += node.hist.total();
  }
  CHECK(routed <= 3.0 * kRows && routed > 2.0 * kRows);  // all, but those of the time when there were no children yet
  RecallTree again(tree.options(), dense, kColumns, 0);
  CHECK(again.restore(copy_of(tree), view(tree.regressors().arrays()), view(tree.labels().arrays()), tree.n_examples()));
}

}  // namespace

TEST(one_thread_is_alone_at_the_gate) {
  constexpr int kThreads = 3, kTurns = 2000;
  Gate gate(kThreads);
  std::vector<int64_t> grows(1);  // moved by one thread while the others read
  const auto visit = [&](int thread) {
    Gate::Pass& pass = gate.pass(thread);
    const Gate::Visit inside(pass);
    for (int turn = 0; turn < kTurns; ++turn) {
      pass.rest();
      CHECK(grows.back() == static_cast<int64_t>(grows.size()) - 1);
      if (turn % 8 != 0) continue;
      pass.alone([&] { pass.alone([&] { grows.push_back(static_cast<int64_t>(grows.size())); }); });
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < kThreads; ++t) threads.emplace_back(visit, t);
  visit(0);
  for (std::thread& thread : threads) thread.join();
  CHECK(grows.size() == 1 + kThreads * kTurns / 8);
}

TEST(a_thread_that_throws_at_the_gate_lets_the_others_in) {
  Gate gate(2);
  CHECK_THROWS([&] {
    const Gate::Visit inside(gate.pass(0));
    gate.pass(0).alone([] { throw std::runtime_error("no"); });
  }(), std::runtime_error);
  const Gate::Visit inside(gate.pass(1));
  bool ran = false;
  gate.pass(1).alone([&] { ran = true; });
  CHECK(ran && !gate.pass(1).is_alone());
}

TEST(a_lom_tree_learned_at_once_is_sound) {
  const Stream stream;
  for (const bool dense : {false, true}) {
    for (const int64_t max_internal : {-1, 20}) {
      const LomTree::Options options{kRule, max_internal, 4, 1.0, false};
      LomTree tree(options, dense, kColumns);
      dense ? stream.teach(tree, stream.rows.dense_rows(), 3) : stream.teach(tree, stream.rows.csr(), 3);
      check_lom_tree(tree, options, dense);
    }
  }
}

TEST(a_recall_tree_learned_at_once_is_sound) {
  const Stream stream;
  for (const bool dense : {false, true}) {
    for (const int32_t arity : {2, 4}) {
      RecallTreeOptions options;
      options.max_candidates = arity == 2 ? 0 : 5;
      options.early_stop = arity == 2;
      options.cross_path = arity == 2;
      options.randomized_routing = arity == 2;
      options.arity = arity;
      options.router_weight = RouterWeight::total;
      options.router_rule = options.score_rule = kRule;
      RecallTree tree(options, dense, kColumns, 1);
      dense ? stream.teach(tree, stream.rows.dense_rows(), 3) : stream.teach(tree, stream.rows.csr(), 3);
      check_recall_tree(tree, dense);
    }
  }
}

TEST(trees_learned_at_once_are_as_accurate) {
  const Stream stream;
  const LomTree::Options lom{kRule, -1, 4, 4.0, false};
  RecallTreeOptions recall;
  recall.max_candidates = 5;
  recall.early_stop = false;
  recall.arity = 4;
  recall.router_weight = RouterWeight::total;
  recall.path_features = PathFeatures::none;
  recall.router_rule = recall.score_rule = kRule;
  const auto error = [&](auto tree, int n_threads) {
    stream.teach(*tree, stream.rows.csr(), n_threads, 8);
    return stream.error(*tree);
  };
  const double of_lom = error(std::make_unique<LomTree>(lom, false, kColumns), 1);
  const double of_recall = error(std::make_unique<RecallTree>(recall, false, kColumns, 1), 1);
  CHECK(of_lom < 0.2 && of_recall < 0.2);
  for (const int n_threads : {2, 3}) {
    CHECK(error(std::make_unique<LomTree>(lom, false, kColumns), n_threads) < of_lom + 0.1);
    CHECK(error(std::make_unique<RecallTree>(recall, false, kColumns, 1), n_threads) < of_recall + 0.1);
  }
}

TEST(one_thread_at_once_is_one_after_the_other) {
  const Stream stream;
  const LomTree::Options options{kRule, 30, 4, 1.0, false};
  LomTree one(options, false, kColumns), other(options, false, kColumns);
  Monitor monitor;
  stream.teach(one, stream.rows.csr(), 1, 1);
  learn_rows(other, stream.rows.csr(), stream.labels.data(), nullptr, stream.order, true, monitor);
  const auto a = one.regressors().arrays(), b = other.regressors().arrays();
  CHECK(a.banks == b.banks && a.keys == b.keys && a.weights == b.weights && a.squares == b.squares);
}

namespace {

struct ThrowingTree {
  struct Learner {};
  std::atomic<int> n_learned{0};

  void open(Learner&, Gate::Pass*) {}
  void settle(Learner&) {}
  template <class Row>
  void prefetch(const Row&, const Learner&) const {}
  template <class Row>
  void test_row(const Row&, int32_t, double, Learner&) {}
  template <class Row>
  void learn_row(const Row&, int32_t, double, Learner&) {
    if (++n_learned == 100) throw std::runtime_error("no");
  }
};

}  // namespace

TEST(what_one_thread_throws_stops_all) {
  const Stream stream;
  ThrowingTree tree;
  CHECK_THROWS(stream.teach(tree, stream.rows.csr(), 3), std::runtime_error);
  CHECK(tree.n_learned < kRows);
  LomTree interrupted({kRule, -1, 4, 4.0, false}, false, kColumns);
  Monitor monitor;
  monitor.request_stop();
  CHECK_THROWS(learn_rows_at_once(interrupted, stream.rows.csr(), stream.labels.data(), nullptr, stream.order, true, 2, monitor), Interrupted);
}
