#include "trees/linear_trees.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 128;
constexpr uint32_t kFewestSlots = 16;
constexpr uint32_t kSlotsAValue = 4;  // most columns asked for are not in the row: an empty slot should be met at once

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

template <class T>
void check_begins(const T* begin, int64_t n, int64_t total, const char* what) {
  require(begin[0] == 0 && begin[n] == total, what);
  for (int64_t i = 0; i < n; ++i) require(begin[i] <= begin[i + 1], what);
}

}  // namespace

void LinearTreeArrays::append(const LinearTreeArrays& other) {
  const auto nodes = static_cast<int32_t>(bias.size());
  const auto leaves = static_cast<int32_t>(leaf_begin.size()) - 1;
  const auto moved = [&](int32_t child) { return child >= 0 ? child + nodes : child - leaves; };
  for (const int32_t root : other.roots) roots.push_back(moved(root));
  for (const int32_t child : other.children) children.push_back(moved(child));
  const int64_t first_weight = node_begin.back(), first_label = leaf_begin.back();
  for (size_t v = 1; v < other.node_begin.size(); ++v) node_begin.push_back(first_weight + other.node_begin[v]);
  for (size_t v = 1; v < other.leaf_begin.size(); ++v) leaf_begin.push_back(first_label + other.leaf_begin[v]);
  features.insert(features.end(), other.features.begin(), other.features.end());
  weights.insert(weights.end(), other.weights.begin(), other.weights.end());
  bias.insert(bias.end(), other.bias.begin(), other.bias.end());
  leaf_labels.insert(leaf_labels.end(), other.leaf_labels.begin(), other.leaf_labels.end());
  leaf_scores.insert(leaf_scores.end(), other.leaf_scores.begin(), other.leaf_scores.end());
}

void check_trees(const LinearTrees& t, int64_t n_weights, int64_t n_leaf_labels) {
  check_begins(t.node_begin, t.n_nodes, n_weights, "the model is damaged: its nodes do not fit their weights");
  check_begins(t.leaf_begin, t.n_leaves, n_leaf_labels, "the model is damaged: its leaves do not fit their labels");
  std::vector<char> node_met(static_cast<size_t>(t.n_nodes)), leaf_met(static_cast<size_t>(t.n_leaves));
  const auto meet = [&](int32_t child, int32_t parent) {
    const char* const wrong = "the model is damaged: its nodes are no trees";
    require(child < t.n_nodes && ~child < t.n_leaves && (child < 0 || child > parent), wrong);
    char& met = child >= 0 ? node_met[static_cast<size_t>(child)] : leaf_met[static_cast<size_t>(~child)];
    require(!met, wrong);
    met = 1;
  };
  require(t.n_trees > 0, "the model is damaged: it has no tree");
  for (int32_t i = 0; i < t.n_trees; ++i) meet(t.roots[i], -1);
  for (int32_t v = 0; v < t.n_nodes; ++v) {
    for (int side = 0; side < 2; ++side) meet(t.children[2 * v + side], v);
    require(std::isfinite(t.bias[v]), "the model is damaged: a bias is not finite");
  }
  require(std::count(node_met.begin(), node_met.end(), 1) == t.n_nodes && std::count(leaf_met.begin(), leaf_met.end(), 1) == t.n_leaves,
          "the model is damaged: it has nodes that no tree leads to");
  for (int64_t k = 0; k < n_weights; ++k) {
    require(t.features[k] >= 0 && t.features[k] < t.n_features, "the model is damaged: a feature is out of range");
    require(std::isfinite(t.weights[k]), "the model is damaged: a weight is not finite");
  }
  for (int64_t k = 0; k < n_leaf_labels; ++k) {
    require(t.leaf_labels[k] >= 0 && t.leaf_labels[k] < t.n_labels, "the model is damaged: a label is out of range");
    require(!t.leaf_scores || (t.leaf_scores[k] >= 0 && t.leaf_scores[k] <= 1), "the model is damaged: a leaf's score is out of range");
  }
  for (int32_t leaf = 0; leaf < t.n_leaves; ++leaf) {
    for (int64_t k = t.leaf_begin[leaf] + 1; k < t.leaf_begin[leaf + 1]; ++k) {
      require(t.leaf_labels[k - 1] < t.leaf_labels[k], "the model is damaged: a leaf's labels do not ascend");
    }
  }
}

template <class Rows>
void RowValues<Rows>::set(Row<typename Rows::Index> row) {
  if (is_direct_) {
    for (const int32_t column : keys_) values_[static_cast<size_t>(column)] = 0.0f;
    keys_.assign(row.index, row.index + row.count);
    for (int64_t k = 0; k < row.count; ++k) values_[static_cast<size_t>(row.index[k])] = row.value[k];
    return;
  }
  const uint32_t slots = std::bit_ceil(std::max(kFewestSlots, kSlotsAValue * static_cast<uint32_t>(row.count)));
  mask_ = slots - 1;
  shift_ = 32 - std::countr_zero(slots);
  keys_.assign(slots, -1);
  if (values_.size() < slots) values_.resize(slots);
  for (int64_t k = 0; k < row.count; ++k) {
    const auto column = static_cast<int32_t>(row.index[k]);
    uint32_t slot = home(column);
    while (keys_[slot] >= 0) slot = (slot + 1) & mask_;
    keys_[slot] = column;
    values_[slot] = row.value[k];
  }
}

// Adds up the leaves of one row after the other.
template <class Rows>
class MeanScores {
 public:
  explicit MeanScores(const LinearTrees& trees) : trees_(trees), values_(trees.n_features), sum_(static_cast<size_t>(trees.n_labels)) {}

  void run(Row<typename Rows::Index> row, float scale, std::span<const int32_t> others, TopAnswers answer) {
    values_.set(row);
    met_.clear();
    for (int32_t t = 0; t < trees_.n_trees; ++t) add(leaf_of(trees_, t, values_, scale));
    const auto n = static_cast<int32_t>(std::min<size_t>(met_.size(), static_cast<size_t>(answer.top)));
    std::partial_sort(met_.begin(), met_.begin() + n, met_.end(), [&](int32_t a, int32_t b) {
      const float x = sum_[static_cast<size_t>(a)], y = sum_[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    int32_t filled = 0;
    for (; filled < n; ++filled) {
      answer.labels[filled] = met_[static_cast<size_t>(filled)];
      const float mean = sum_[static_cast<size_t>(answer.labels[filled])] / static_cast<float>(trees_.n_trees);
      answer.scores[filled] = std::min(mean, 1.0f);
    }
    std::fill(answer.scores + filled, answer.scores + answer.top, 0.0f);
    for (size_t k = 0; k < others.size() && filled < answer.top; ++k) {
      if (sum_[static_cast<size_t>(others[k])] == 0) answer.labels[filled++] = others[k];
    }
    std::fill(answer.labels + filled, answer.labels + answer.top, -1);
    for (const int32_t label : met_) sum_[static_cast<size_t>(label)] = 0;
  }

 private:
  void add(int32_t leaf) {
    for (int64_t k = trees_.leaf_begin[leaf]; k < trees_.leaf_begin[leaf + 1]; ++k) {
      const float score = trees_.leaf_scores ? trees_.leaf_scores[k] : 1.0f;
      if (score <= 0) continue;
      float& sum = sum_[static_cast<size_t>(trees_.leaf_labels[k])];
      if (sum == 0) met_.push_back(trees_.leaf_labels[k]);
      sum += score;
    }
  }

  const LinearTrees& trees_;
  RowValues<Rows> values_;
  std::vector<float> sum_;    // by label
  std::vector<int32_t> met_;  // labels with a sum
};

template <class Rows>
void find_leaves(const LinearTrees& trees, const Rows& X, bool normalize, int n_threads, int32_t* leaves, Monitor& monitor) {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    RowValues<Rows> values(X.n_columns);
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const auto row = X.row(i);
      const float scale = normalize ? unit_scale(row) : 1.0f;
      values.set(row);
      for (int32_t t = 0; t < trees.n_trees; ++t) leaves[i * trees.n_trees + t] = leaf_of(trees, t, values, scale);
    }
  });
}

template <class Rows>
void top_by_mean(const LinearTrees& trees, const Rows& X, bool normalize, const int32_t* others, int64_t n_others,
                 int n_threads, TopAnswers answers, Monitor& monitor) {
  std::vector<std::unique_ptr<MeanScores<Rows>>> scorers(static_cast<size_t>(std::max(n_threads, 1)));
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int thread) {
    auto& scorer = scorers[static_cast<size_t>(thread)];
    if (!scorer) scorer = std::make_unique<MeanScores<Rows>>(trees);
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const auto row = X.row(i);
      scorer->run(row, normalize ? unit_scale(row) : 1.0f, {others, static_cast<size_t>(n_others)},
                  {answers.labels + i * answers.top, answers.scores + i * answers.top, answers.top});
    }
  });
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                          \
  template void find_leaves(const LinearTrees&, const Rows&, bool, int, int32_t*, Monitor&);                  \
  template void top_by_mean(const LinearTrees&, const Rows&, bool, const int32_t*, int64_t, int, TopAnswers, Monitor&);
template class RowValues<CsrRows<int32_t>>;
template class RowValues<CsrRows<int64_t>>;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
