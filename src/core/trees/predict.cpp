#include "trees/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "aligned.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 128;

// What a thread needs to search for one row after the other.
class Searcher {
 public:
  Searcher(const PackedForest& forest, const SearchOptions& options)
      : nodes_(static_cast<size_t>(options.beam)), beam_(nodes_.size()), heap_(static_cast<size_t>(options.top)) {
    if (forest.n_trees > 1) {
      label_sum_.assign(static_cast<size_t>(forest.n_labels), 0.0f);
      label_seen_.resize(static_cast<size_t>(forest.n_labels));
    }
    work_ = {nodes_.data(), beam_.data(), heap_.data(), scores_.ensure(size_t{16} * kGroupBanks), label_sum_.data(),
             label_seen_.data()};
  }
  [[nodiscard]] const SearchWork& work() const { return work_; }

 private:
  std::vector<TopLabel> nodes_, beam_, heap_;
  WorkBuffer<float> scores_;
  std::vector<float> label_sum_;
  std::vector<int32_t> label_seen_;
  SearchWork work_{};
};

}  // namespace

template <class Index>
float unit_scale(Row<Index> row) {
  double square = 0;  // of any float, without overflow
  for (int64_t k = 0; k < row.count; ++k) square += static_cast<double>(row.value[k]) * row.value[k];
  if (square == 0) return 1.0f;
  return static_cast<float>(std::min(1 / std::sqrt(square), double{std::numeric_limits<float>::max()}));
}

template <class Rows>
void predict_top(const PackedForest& forest, const Rows& X, const PredictOptions& options, int32_t* labels,
                 float* scores, Monitor& monitor) {
  const int32_t top = options.top;
  // Every node of the beam holds fewest_labels at least: this many nodes are enough for the answer.
  const int32_t enough = (top + forest.fewest_labels - 1) / std::max(forest.fewest_labels, 1);
  const SearchOptions common{std::max({options.beam, enough, 1}), top, 1.0f, std::log(options.min_beam_share)};
  const int64_t n_tasks = (X.n_rows + kRowsATask - 1) / kRowsATask;
  parallel_for(n_tasks, options.n_threads, monitor, [&](int64_t task, int) {
    const Searcher searcher(forest, common);
    SearchOptions search = common;
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const auto row = X.row(i);
      if (options.normalize) search.row_scale = unit_scale(row);
      const int32_t found = kernels().search(forest, row, search, searcher.work());
      for (int32_t k = 0; k < top; ++k) {
        const TopLabel best = k < found ? searcher.work().heap[k] : TopLabel{0.0f, -1};
        const bool log_score = forest.n_trees == 1 && k < found;
        labels[i * top + k] = best.label;
        scores[i * top + k] = log_score ? std::exp(best.score) : best.score;
      }
    }
    monitor.done += kRowsATask;
  });
}

namespace {

// Calls reach(label) for the labels that one row comes to.
template <class Index, class Reach>
void descend(const PackedForest& forest, Row<Index> row, float scale, std::vector<int32_t>& stack, float* scores, Reach reach) {
  stack.assign(1, forest.roots[0]);
  while (!stack.empty()) {
    const int32_t node = stack.back();
    stack.pop_back();
    for (int32_t g = forest.node_groups[node]; g < forest.node_groups[node + 1]; ++g) {
      kernels().score(forest, g, row, scale, scores);
      const int32_t* const target = forest.targets + 16 * static_cast<int64_t>(forest.group_banks[g]);
      const int32_t n = 16 * (forest.group_banks[g + 1] - forest.group_banks[g]);
      for (int32_t lane = 0; lane < n; ++lane) {
        if (target[lane] == kNoTarget || !(scores[lane] > 0)) continue;
        if (target[lane] >= 0) {
          stack.push_back(target[lane]);
        } else {
          reach(~target[lane]);
        }
      }
    }
  }
}

}  // namespace

template <class Rows>
Reached descend_by_threshold(const PackedForest& forest, const Rows& X, bool normalize, int n_threads, Monitor& monitor) {
  const int64_t n_tasks = (X.n_rows + kRowsATask - 1) / kRowsATask;
  std::vector<std::vector<int32_t>> found(static_cast<size_t>(n_tasks));
  Reached out;
  out.indptr.assign(static_cast<size_t>(X.n_rows) + 1, 0);
  parallel_for(n_tasks, n_threads, monitor, [&](int64_t task, int) {
    std::vector<int32_t>& labels = found[static_cast<size_t>(task)];
    std::vector<int32_t> stack;
    WorkBuffer<float> work;
    float* const scores = work.ensure(size_t{16} * kGroupBanks);
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const auto row = X.row(i);
      const auto first = static_cast<int64_t>(labels.size());
      descend(forest, row, normalize ? unit_scale(row) : 1.0f, stack, scores, [&](int32_t label) { labels.push_back(label); });
      std::sort(labels.begin() + first, labels.end());
      out.indptr[static_cast<size_t>(i) + 1] = static_cast<int64_t>(labels.size()) - first;
    }
  });
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  for (const auto& labels : found) out.labels.insert(out.labels.end(), labels.begin(), labels.end());
  return out;
}

template <class Rows>
void score_node(const PackedForest& forest, const Rows& X, int64_t row, int32_t node, bool normalize, float* scores) {
  const float scale = normalize ? unit_scale(X.row(row)) : 1.0f;
  WorkBuffer<float> group_scores;
  float* const work = group_scores.ensure(size_t{16} * kGroupBanks);
  for (int32_t g = forest.node_groups[node]; g < forest.node_groups[node + 1]; ++g) {
    kernels().score(forest, g, X.row(row), scale, work);
    const int64_t n = 16 * (forest.group_banks[g + 1] - forest.group_banks[g]);
    scores = std::copy(work, work + n, scores);
  }
}

template float unit_scale(Row<int32_t>);
template float unit_scale(Row<int64_t>);

#define SAPWOOD_FOR_ROWS(Rows)                                                                              \
  template void predict_top(const PackedForest&, const Rows&, const PredictOptions&, int32_t*, float*, Monitor&); \
  template Reached descend_by_threshold(const PackedForest&, const Rows&, bool, int, Monitor&);                     \
  template void score_node(const PackedForest&, const Rows&, int64_t, int32_t, bool, float*);
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
