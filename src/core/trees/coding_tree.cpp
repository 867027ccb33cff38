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
constexpr float kLess = 0.9999f;
constexpr float kLeast = std::numeric_limits<float>::min();  // probability of a leaf: whatever was met has a score

// Gives the leaves of one row: the one that the decisions lead to, then the one that they lead to from the most probable
// branch not taken yet, and so on. To have the leaves in the exact order of their probabilities would mean to open most of
// a tree that is in doubt.
template <class Rows>
class LeafSearch {
 public:
  LeafSearch(const LinearTrees& trees, float slope) : trees_(trees), slope_(static_cast<double>(slope)), values_(trees.n_features) {}

  void start(Row<typename Rows::Index> row, bool normalize) {
    values_.set(row);
    scale_ = normalize ? unit_scale(row) : 1.0f;
    branches_.assign(1, {0.0, trees_.roots[0]});
  }
  [[nodiscard]] bool exhausted() const { return branches_.empty(); }
  // The leaf that the decisions lead to, without a look at the others.
  [[nodiscard]] int32_t first() const { return leaf_of(trees_, 0, values_, scale_); }

  struct Leaf {
    int32_t number;
    float probability;
  };
  Leaf next() {
    std::ranges::pop_heap(branches_, before);
    Branch branch = branches_.back();
    branches_.pop_back();
    while (branch.at >= 0) {
      const double f = node_score(trees_, branch.at, values_, scale_), sure = slope_ * std::abs(f);
      const double likely = branch.log_probability - std::log1p(std::exp(-sure));
      const int32_t* const child = trees_.children + 2 * branch.at;
      const int taken = f > 0 ? 0 : 1;
      branches_.push_back({likely - sure, child[1 - taken]});
      std::ranges::push_heap(branches_, before);
      branch = {likely, child[taken]};
    }
    return {~branch.at, std::max(static_cast<float>(std::exp(branch.log_probability)), kLeast)};
  }

 private:
  struct Branch {
    double log_probability;
    int32_t at;
  };
  static bool before(const Branch& a, const Branch& b) {
    return a.log_probability < b.log_probability || (a.log_probability == b.log_probability && a.at > b.at);
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
  // A label not met before gets `most_new` at the most.
  void add(std::span<const int32_t> labels, float probability, float most_new) {
    for (const int32_t label : labels) {
      const auto [met, is_new] = sum_.try_emplace(label, std::min(probability, most_new));
      if (!is_new) met->second += probability;
    }
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
    leaves_.clear();
    carriers_.clear();
  }
  void add(int32_t leaf, float probability) {
    const auto labels = labels_of(trees_, leaf);
    for (const int32_t label : labels) carriers_.emplace_back(label, static_cast<int32_t>(leaves_.size()));
    leaves_.push_back({static_cast<double>(probability), labels.size(), 0});
  }

  // Appends the labels, ascending.
  void choose(std::vector<int32_t>& out) {
    rank();
    prepare_inverses();
    double best = 0;
    for (const Leaf& leaf : leaves_) best += leaf.size == 0 ? leaf.probability : 0;  // of the empty set
    size_t size = 0;
    for (size_t k = 0; k < ranked_.size(); ++k) {
      for (size_t c = ranked_[k].begin; c < ranked_[k].end; ++c) {
        Leaf& leaf = leaves_[static_cast<size_t>(carriers_[c].second)];
        leaf.hit += leaf.probability;
      }
      double expected = 0;
      for (const Leaf& leaf : leaves_) expected += leaf.hit * twice_inverse_[k + 1 + leaf.size];
      if (expected > best) {
        best = expected;
        size = k + 1;
      }
    }
    const auto first = static_cast<int64_t>(out.size());
    for (size_t k = 0; k < size; ++k) out.push_back(ranked_[k].label);
    std::sort(out.begin() + first, out.end());
  }

 private:
  struct Leaf {
    double probability;
    size_t size;
    double hit;  // probability times how many of the labels chosen so far it has
  };
  struct Ranked {
    double marginal;
    int32_t label;
    size_t begin, end;  // of its carriers
  };

  // The labels by the probability of the leaves that have them.
  void rank() {
    std::ranges::sort(carriers_);
    ranked_.clear();
    for (size_t c = 0; c < carriers_.size(); ++c) {
      if (c == 0 || carriers_[c].first != carriers_[c - 1].first) ranked_.push_back({0, carriers_[c].first, c, c});
      ranked_.back().marginal += leaves_[static_cast<size_t>(carriers_[c].second)].probability;
      ranked_.back().end = c + 1;
    }
    std::ranges::sort(ranked_, [](const Ranked& a, const Ranked& b) {
      return a.marginal > b.marginal || (a.marginal == b.marginal && a.label < b.label);
    });
  }

  void prepare_inverses() {
    size_t largest = ranked_.size();
    for (const Leaf& leaf : leaves_) largest = std::max(largest, ranked_.size() + leaf.size);
    for (size_t n = twice_inverse_.size(); n <= largest; ++n) twice_inverse_.push_back(n ? 2.0 / static_cast<double>(n) : 0);
  }

  const LinearTrees& trees_;
  std::vector<Leaf> leaves_;
  std::vector<std::pair<int32_t, int32_t>> carriers_;  // label, place in leaves_
  std::vector<Ranked> ranked_;
  std::vector<double> twice_inverse_;  // 2 / n
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
      // Who asks for more labels than the beam meets learns of others, but gets the same best one.
      float most_new = 1.0f;
      for (int32_t leaves = 0; !search.exhausted() && (leaves < beam || met.met() < top); ++leaves) {
        if (leaves == beam && met.met() > 0) most_new = kLess * met.best(1)[0].second;
        const auto leaf = search.next();
        met.add(labels_of(trees, leaf.number), leaf.probability, most_new);
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
        const auto set = labels_of(trees, search.first());
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
