#include "trees/coding_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 64;

// What one row's search keeps, from one row to the next.
template <class Rows>
class Search {
 public:
  Search(const LinearTrees& trees, int32_t beam) : trees_(trees), beam_(beam) {}

  void run(Row<typename Rows::Index> row, float scale, int32_t top, int32_t* labels, float* scores) {
    values_.set(row);
    branches_.clear();
    sum_.clear();
    branches_.push_back({0.0, trees_.roots[0]});
    for (int32_t leaves = 0; !branches_.empty() && (leaves < beam_ || sum_.size() < static_cast<size_t>(top)); ++leaves) {
      std::ranges::pop_heap(branches_, before);
      const Branch branch = branches_.back();
      branches_.pop_back();
      descend(branch, scale);
    }
    answer(top, labels, scores);
  }

 private:
  struct Branch {
    double log_probability;
    int32_t at;
  };
  using Scored = std::pair<int32_t, float>;

  static bool before(const Branch& a, const Branch& b) {
    return a.log_probability < b.log_probability || (a.log_probability == b.log_probability && a.at > b.at);
  }

  void descend(Branch branch, float scale) {
    while (branch.at >= 0) {
      const double f = node_score(trees_, branch.at, values_, scale);
      const int taken = f > 0 ? 0 : 1;
      const double odds = std::exp(-2 * std::abs(f)), likely = -std::log1p(odds);  // of the child taken
      branches_.push_back({branch.log_probability + likely - 2 * std::abs(f), trees_.children[2 * branch.at + 1 - taken]});
      std::ranges::push_heap(branches_, before);
      branch = {branch.log_probability + likely, trees_.children[2 * branch.at + taken]};
    }
    const int32_t leaf = ~branch.at;
    const float probability = std::max(static_cast<float>(std::exp(branch.log_probability)), std::numeric_limits<float>::min());
    for (int64_t k = trees_.leaf_begin[leaf]; k < trees_.leaf_begin[leaf + 1]; ++k) sum_[trees_.leaf_labels[k]] += probability;
  }

  void answer(int32_t top, int32_t* labels, float* scores) {
    met_.assign(sum_.begin(), sum_.end());
    const auto n = static_cast<int32_t>(std::min<size_t>(met_.size(), static_cast<size_t>(top)));
    std::partial_sort(met_.begin(), met_.begin() + n, met_.end(), [](const Scored& a, const Scored& b) {
      return a.second > b.second || (a.second == b.second && a.first < b.first);
    });
    for (int32_t k = 0; k < top; ++k) {
      labels[k] = k < n ? met_[static_cast<size_t>(k)].first : -1;
      scores[k] = k < n ? std::min(met_[static_cast<size_t>(k)].second, 1.0f) : 0.0f;
    }
  }

  const LinearTrees& trees_;
  int32_t beam_;
  RowValues<Rows> values_;
  std::vector<Branch> branches_;  // a heap
  std::unordered_map<int32_t, float> sum_;  // of the labels met: there may be millions of others
  std::vector<Scored> met_;
};

struct Classifier {
  std::vector<int32_t> features;
  std::vector<float> weights;
  float bias = 0;
};

}  // namespace

template <class Rows>
LinearTreeArrays train_coding_tree(const Rows& X, const CodingShape& shape, const float* row_scale, const float* row_weight,
                                   const BacOptions& options, int n_threads, Monitor& monitor) {
  const auto n_rows = [&](size_t v) { return shape.nodes[v].end - shape.nodes[v].begin; };
  std::vector<size_t> by_size(shape.nodes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, [&](size_t a, size_t b) { return n_rows(a) > n_rows(b); });
  int64_t total = 0;
  for (size_t v = 0; v < shape.nodes.size(); ++v) total += n_rows(v);
  monitor.total = total;

  struct Workspace {
    BacWorkspace bac;
    std::vector<int8_t> signs;
  };
  std::vector<std::unique_ptr<Workspace>> workspaces(static_cast<size_t>(std::max(n_threads, 1)));
  std::vector<Classifier> learned(shape.nodes.size());
  parallel_for(static_cast<int64_t>(by_size.size()), n_threads, monitor, [&](int64_t task, int thread) {
    auto& work = workspaces[static_cast<size_t>(thread)];
    if (!work) work = std::make_unique<Workspace>();
    const size_t v = by_size[static_cast<size_t>(task)];
    const CodingNode& node = shape.nodes[v];
    work->signs.assign(static_cast<size_t>(n_rows(v)), -1);
    std::fill_n(work->signs.begin(), node.middle - node.begin, int8_t{1});
    BacProblem problem;
    problem.rows = std::span(shape.order).subspan(static_cast<size_t>(node.begin), work->signs.size());
    problem.signs = work->signs;
    problem.row_scale = row_scale;
    problem.row_weight = row_weight;
    BacSolution solution = train_bac(X, problem, options, work->bac, monitor);
    learned[v].features = std::move(solution.columns);
    learned[v].weights.assign(solution.weights.begin(), solution.weights.end());
    learned[v].bias = static_cast<float>(solution.offset[0]);
    monitor.done += n_rows(v);
  });
  workspaces.clear();

  LinearTreeArrays out;
  out.roots.push_back(shape.root);
  out.children = shape.children;
  out.leaf_begin = shape.leaf_begin;
  out.leaf_labels = shape.leaf_labels;
  for (Classifier& c : learned) {
    out.features.insert(out.features.end(), c.features.begin(), c.features.end());
    out.weights.insert(out.weights.end(), c.weights.begin(), c.weights.end());
    out.node_begin.push_back(static_cast<int64_t>(out.features.size()));
    out.bias.push_back(c.bias);
    c = {};
  }
  return out;
}

template <class Rows>
void top_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, int n_threads, TopAnswers answers,
                   Monitor& monitor) {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    Search<Rows> search(trees, beam);
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask) && !monitor.stopped(); ++i) {
      const auto row = X.row(i);
      search.run(row, normalize ? unit_scale(row) : 1.0f, answers.top, answers.labels + i * answers.top, answers.scores + i * answers.top);
    }
  });
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                                          \
  template LinearTreeArrays train_coding_tree(const Rows&, const CodingShape&, const float*, const float*, const BacOptions&, \
                                              int, Monitor&);                                                           \
  template void top_by_search(const LinearTrees&, const Rows&, bool, int32_t, int, TopAnswers, Monitor&);
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
