#include "budgeted/tree_predict.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 256;

template <class Index>
int32_t find_leaf(const BudgetedTreeView& tree, Row<Index> row, float scale, std::vector<double>& scores) {
  int32_t node = 0;
  while (tree.children[2 * static_cast<size_t>(node)] >= 0) {
    bac_scores(tree.bac(node), row, scale, scores.data());
    node = tree.children[2 * static_cast<size_t>(node) + (bac_vote(scores) ? 0 : 1)];
  }
  return node;
}

// The k best labels of a leaf, filled up with the root's; `seen` marks labels, all false between calls.
void list_labels(const BudgetedTreeView& tree, int32_t leaf, int32_t k, std::vector<char>& seen, int32_t* labels, float* scores) {
  int32_t n = 0;
  const double examples = tree.examples[static_cast<size_t>(leaf)];
  const double little = 1.0 / static_cast<double>(std::max<int64_t>(1, tree.label_begin[1]));
  const auto take = [&](int32_t node, bool is_leaf) {
    const auto end = static_cast<size_t>(tree.label_begin[static_cast<size_t>(node) + 1]);
    for (auto at = static_cast<size_t>(tree.label_begin[static_cast<size_t>(node)]); at < end && n < k; ++at) {
      char& is_seen = seen[static_cast<size_t>(tree.labels[at])];
      if (is_seen) continue;
      is_seen = 1;
      labels[n] = tree.labels[at];
      scores[n++] = static_cast<float>(((is_leaf ? tree.shares[at] * examples : 0.0) + little) / (examples + 1.0));
    }
  };
  take(leaf, true);
  take(0, false);
  for (int32_t i = 0; i < n; ++i) seen[static_cast<size_t>(labels[i])] = 0;
  for (; n < k; ++n) labels[n] = -1, scores[n] = 0.0f;
}

template <class Rows, class ForRow>
void for_each_row(const Rows& X, int n_threads, Monitor& monitor, ForRow for_row) {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int thread) {
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) for_row(i, thread);
  });
}

void require(bool ok) {
  if (!ok) throw std::invalid_argument("the model is damaged: its nodes do not fit together");
}

void check_begins(std::span<const int64_t> begin, size_t n, size_t total) {
  require(begin.size() == n + 1 && begin[0] == 0 && begin[n] == static_cast<int64_t>(total));
  for (size_t v = 0; v < n; ++v) require(begin[v] <= begin[v + 1]);
}

}  // namespace

BacView BudgetedTreeView::bac(int32_t node) const {
  const auto v = static_cast<size_t>(node), folds = static_cast<size_t>(n_folds);
  const auto begin = static_cast<size_t>(bac_begin[v]), end = static_cast<size_t>(bac_begin[v + 1]);
  return {columns.subspan(begin, end - begin), weights.data() + begin * folds, offsets.subspan(v * folds, folds)};
}

void check_tree(const BudgetedTreeView& tree, int32_t n_labels, int64_t n_columns) {
  const size_t n = tree.children.size() / 2;
  require(tree.n_folds >= 1 && tree.n_folds <= 255 && n >= 1 && tree.children.size() == 2 * n && n < INT32_MAX);
  const auto folds = static_cast<size_t>(tree.n_folds);
  check_begins(tree.bac_begin, n, tree.columns.size());
  check_begins(tree.label_begin, n, tree.labels.size());
  require(tree.weights.size() == tree.columns.size() * folds && tree.offsets.size() == n * folds);
  require(tree.shares.size() == tree.labels.size() && tree.examples.size() == n);
  for (const double weight : tree.examples) require(std::isfinite(weight) && weight > 0);
  for (size_t v = 0; v < n; ++v) {
    const int32_t left = tree.children[2 * v], right = tree.children[2 * v + 1];
    const auto follows = [&](int32_t child) { return child > static_cast<int32_t>(v) && child < static_cast<int32_t>(n); };
    require((left == -1 && right == -1) || (follows(left) && follows(right) && left != right));
    for (auto at = static_cast<size_t>(tree.bac_begin[v]); at < static_cast<size_t>(tree.bac_begin[v + 1]); ++at) {
      const bool ascends = at == static_cast<size_t>(tree.bac_begin[v]) || tree.columns[at - 1] < tree.columns[at];
      require(tree.columns[at] >= 0 && tree.columns[at] < n_columns && ascends);
    }
    for (auto at = static_cast<size_t>(tree.label_begin[v]); at < static_cast<size_t>(tree.label_begin[v + 1]); ++at) {
      const bool descends = at == static_cast<size_t>(tree.label_begin[v]) || tree.shares[at - 1] >= tree.shares[at];
      require(tree.labels[at] >= 0 && tree.labels[at] < n_labels && descends && tree.shares[at] >= 0 && tree.shares[at] <= 1);
    }
  }
}

template <class Rows>
void predict_top(const BudgetedTreeView& tree, const Rows& X, bool normalize, int32_t k, int n_threads, int32_t* labels,
                 float* scores, Monitor& monitor) {
  const auto threads = static_cast<size_t>(std::max(n_threads, 1));
  std::vector<std::vector<double>> work(threads, std::vector<double>(static_cast<size_t>(tree.n_folds)));
  const int32_t most = tree.labels.empty() ? 0 : *std::max_element(tree.labels.begin(), tree.labels.end());
  std::vector<std::vector<char>> seen(threads, std::vector<char>(static_cast<size_t>(most) + 1));
  for_each_row(X, n_threads, monitor, [&](int64_t i, int thread) {
    const auto row = X.row(i);
    const int32_t leaf = find_leaf(tree, row, normalize ? unit_scale(row) : 1.0f, work[static_cast<size_t>(thread)]);
    list_labels(tree, leaf, k, seen[static_cast<size_t>(thread)], labels + i * k, scores + i * k);
  });
}

template <class Rows>
void find_leaves(const BudgetedTreeView& tree, const Rows& X, bool normalize, int n_threads, int32_t* leaves, Monitor& monitor) {
  std::vector<std::vector<double>> work(static_cast<size_t>(std::max(n_threads, 1)), std::vector<double>(static_cast<size_t>(tree.n_folds)));
  for_each_row(X, n_threads, monitor, [&](int64_t i, int thread) {
    const auto row = X.row(i);
    leaves[i] = find_leaf(tree, row, normalize ? unit_scale(row) : 1.0f, work[static_cast<size_t>(thread)]);
  });
}

#define SAPWOOD_FOR(Rows)                                                                                              \
  template void predict_top(const BudgetedTreeView&, const Rows&, bool, int32_t, int, int32_t*, float*, Monitor&);     \
  template void find_leaves(const BudgetedTreeView&, const Rows&, bool, int, int32_t*, Monitor&);

SAPWOOD_FOR(CsrRows<int32_t>)
SAPWOOD_FOR(CsrRows<int64_t>)
SAPWOOD_FOR(DenseRows)
#undef SAPWOOD_FOR

}  // namespace sapwood
