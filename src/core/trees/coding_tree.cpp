#include "trees/coding_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 64;
constexpr float kLeast = std::numeric_limits<float>::min();  // probability of a leaf: whatever was met has a score

// Gives the leaves of one row after the other, the most probable first.
template <class Rows>
class LeafSearch {
 public:
  LeafSearch(const LinearTrees& trees, float slope) : trees_(trees), slope_(static_cast<double>(slope)) {}

  void start(Row<typename Rows::Index> row, bool normalize) {
    values_.set(row);
    scale_ = normalize ? unit_scale(row) : 1.0f;
    branches_.assign(1, {0.0, trees_.roots[0]});
  }
  [[nodiscard]] bool exhausted() const { return branches_.empty(); }
  // What is left is at most this probable.
  [[nodiscard]] float next_probability() const { return probability(branches_.front()); }

  struct Leaf {
    int32_t number;
    float probability;
  };
  Leaf next() {
    while (true) {
      std::ranges::pop_heap(branches_, before);
      const Branch branch = branches_.back();
      branches_.pop_back();
      if (branch.at < 0) return {~branch.at, probability(branch)};
      const double f = node_score(trees_, branch.at, values_, scale_), sure = slope_ * std::abs(f);
      const double likely = branch.log_probability - std::log1p(std::exp(-sure));
      push({f > 0 ? likely : likely - sure, trees_.children[2 * branch.at]});
      push({f > 0 ? likely - sure : likely, trees_.children[2 * branch.at + 1]});
    }
  }

  // The leaf that the decisions alone lead to.
  [[nodiscard]] int32_t decided() const { return leaf_of(trees_, 0, values_, scale_); }

 private:
  struct Branch {
    double log_probability;
    int32_t at;
  };
  static bool before(const Branch& a, const Branch& b) {
    return a.log_probability < b.log_probability || (a.log_probability == b.log_probability && a.at > b.at);
  }
  static float probability(const Branch& branch) {
    return std::max(static_cast<float>(std::exp(branch.log_probability)), kLeast);
  }
  void push(Branch branch) {
    branches_.push_back(branch);
    std::ranges::push_heap(branches_, before);
  }

  const LinearTrees& trees_;
  double slope_;
  RowValues<Rows> values_;
  float scale_ = 1.0f;
  std::vector<Branch> branches_;  // a heap
};

std::span<const int32_t> labels_of(const LinearTrees& trees, int32_t leaf) {
  const int64_t first = trees.leaf_begin[leaf];
  return {trees.leaf_labels + first, static_cast<size_t>(trees.leaf_begin[leaf + 1] - first)};
}

using Scored = std::pair<int32_t, float>;

bool better(const Scored& a, const Scored& b) { return a.second > b.second || (a.second == b.second && a.first < b.first); }

// Adds up the probabilities of the leaves that have a label.
class LabelScores {
 public:
  void clear() { sum_.clear(); }
  void add(std::span<const int32_t> labels, float probability) {
    for (const int32_t label : labels) sum_[label] += probability;
  }
  [[nodiscard]] size_t met() const { return sum_.size(); }

  // The best of them, in order.
  [[nodiscard]] std::span<const Scored> best(size_t most) {
    sorted_.assign(sum_.begin(), sum_.end());
    const size_t n = std::min(most, sorted_.size());
    std::partial_sort(sorted_.begin(), sorted_.begin() + static_cast<int64_t>(n), sorted_.end(), better);
    return {sorted_.data(), n};
  }

 private:
  std::unordered_map<int32_t, float> sum_;  // of the labels met: there may be millions of others
  std::vector<Scored> sorted_;
};

// Chooses the label set with the largest expected F1 where the truth is one of a few leaves' sets.
class ExpectedF1 {
 public:
  explicit ExpectedF1(const LinearTrees& trees) : trees_(trees) {}

  void clear() {
    scores_.clear();
    leaves_.clear();
    carriers_.clear();
  }
  void add(int32_t leaf, float probability) {
    const auto labels = labels_of(trees_, leaf);
    scores_.add(labels, probability);
    for (const int32_t label : labels) carriers_.emplace_back(label, static_cast<int32_t>(leaves_.size()));
    leaves_.push_back({static_cast<double>(probability), static_cast<double>(labels.size()), 0});
  }

  // Appends the labels, ascending.
  void choose(std::vector<int32_t>& out) {
    const auto ranked = scores_.best(scores_.met());
    std::ranges::sort(carriers_);
    double best = 0;
    for (const Leaf& leaf : leaves_) best += leaf.size == 0 ? leaf.probability : 0;  // of the empty set
    size_t size = 0;
    for (size_t k = 0; k < ranked.size(); ++k) {
      auto carrier = std::ranges::lower_bound(carriers_, std::pair{ranked[k].first, 0});
      for (; carrier != carriers_.end() && carrier->first == ranked[k].first; ++carrier) ++leaves_[static_cast<size_t>(carrier->second)].hits;
      double expected = 0;
      for (const Leaf& leaf : leaves_) expected += leaf.probability * 2 * leaf.hits / (static_cast<double>(k + 1) + leaf.size);
      if (expected > best) {
        best = expected;
        size = k + 1;
      }
    }
    const auto first = static_cast<int64_t>(out.size());
    for (size_t k = 0; k < size; ++k) out.push_back(ranked[k].first);
    std::sort(out.begin() + first, out.end());
  }

 private:
  struct Leaf {
    double probability, size, hits;
  };
  const LinearTrees& trees_;
  LabelScores scores_;
  std::vector<Leaf> leaves_;
  std::vector<std::pair<int32_t, int32_t>> carriers_;  // label, place in leaves_
};

int64_t n_tasks(int64_t n_rows) { return (n_rows + kRowsATask - 1) / kRowsATask; }

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
void top_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, float slope, int n_threads, TopAnswers answers,
                   Monitor& monitor) {
  const auto top = static_cast<size_t>(answers.top);
  parallel_for(n_tasks(X.n_rows), n_threads, monitor, [&](int64_t task, int) {
    LeafSearch<Rows> search(trees, slope);
    LabelScores met;
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask) && !monitor.stopped(); ++i) {
      search.start(X.row(i), normalize);
      met.clear();
      float last = 1.0f;
      for (int32_t leaves = 0; !search.exhausted(); ++leaves) {
        if (leaves >= beam && met.met() >= top && (search.next_probability() < last || last <= kLeast)) break;
        const auto leaf = search.next();
        met.add(labels_of(trees, leaf.number), leaf.probability);
        last = leaf.probability;
      }
      const auto best = met.best(top);
      int32_t* const labels = answers.labels + i * answers.top;
      float* const scores = answers.scores + i * answers.top;
      for (size_t k = 0; k < top; ++k) {
        labels[k] = k < best.size() ? best[k].first : -1;
        scores[k] = k < best.size() ? std::min(best[k].second, 1.0f) : 0.0f;
      }
    }
  });
}

template <class Rows>
Reached sets_by_search(const LinearTrees& trees, const Rows& X, bool normalize, int32_t beam, float slope, int n_threads, Monitor& monitor) {
  std::vector<std::vector<int32_t>> found(static_cast<size_t>(n_tasks(X.n_rows)));
  Reached out;
  out.indptr.assign(static_cast<size_t>(X.n_rows) + 1, 0);
  parallel_for(n_tasks(X.n_rows), n_threads, monitor, [&](int64_t task, int) {
    std::vector<int32_t>& labels = found[static_cast<size_t>(task)];
    LeafSearch<Rows> search(trees, slope);
    ExpectedF1 chooser(trees);
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask) && !monitor.stopped(); ++i) {
      const size_t before = labels.size();
      search.start(X.row(i), normalize);
      if (beam == 1) {
        const auto set = labels_of(trees, search.decided());
        labels.insert(labels.end(), set.begin(), set.end());
      } else {
        chooser.clear();
        for (int32_t k = 0; k < beam && !search.exhausted(); ++k) {
          const auto leaf = search.next();
          chooser.add(leaf.number, leaf.probability);
        }
        chooser.choose(labels);
      }
      out.indptr[static_cast<size_t>(i) + 1] = static_cast<int64_t>(labels.size() - before);
    }
  });
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  for (const auto& labels : found) out.labels.insert(out.labels.end(), labels.begin(), labels.end());
  return out;
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                                          \
  template LinearTreeArrays train_coding_tree(const Rows&, const CodingShape&, const float*, const float*, const BacOptions&, \
                                              int, Monitor&);                                                           \
  template Reached sets_by_search(const LinearTrees&, const Rows&, bool, int32_t, float, int, Monitor&);                        \
  template void top_by_search(const LinearTrees&, const Rows&, bool, int32_t, float, int, TopAnswers, Monitor&);
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
