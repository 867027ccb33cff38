#include "trees/label_btree_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 128;
constexpr size_t kSlack = 64;      // labels beyond the best that may wait to be cut
// The say of inner nodes, which tell only groups apart, against that of leaves: half where rows have one label, and the
// more labels rows have the closer to the whole.
constexpr double kOneLabelDiscount = 0.5;

constexpr float kMostProbability = 0x1.fffffep-1f;  // the largest below 1: no answer is certain

bool better(TopLabel a, TopLabel b) { return a.score > b.score || (a.score == b.score && a.label < b.label); }

// Logarithm of the probability that a score of the squared hinge stands for.
float log_probability(float score) {
  const float short_by = std::max(0.0f, 1.0f - score);  // 0 where a score is no number: such must not be sorted
  return -short_by * short_by;
}

}  // namespace

LabelSearch::LabelSearch(const LabelBTree& tree, const LabelBTree::Search& search, int32_t top)
    : tree_(tree), search_(search), top_(static_cast<size_t>(top)), scores_(LabelBTree::kMostLanes) {
  // Every leaf but a lone one holds half of max_leaf at least: so many nodes are enough for the answer.
  const int32_t half = tree.options().max_leaf / 2;
  search_.beam = std::max({search.beam, (top + half - 1) / half, 1});
}

void LabelSearch::cut(size_t n) {
  if (best_.size() <= n) return;
  std::nth_element(best_.begin(), best_.begin() + static_cast<int64_t>(n) - 1, best_.end(), better);
  best_.resize(n);
  worst_ = best_.back().score;
}

void LabelSearch::offer(TopLabel x) {
  if (x.score < worst_) return;
  best_.push_back(x);
  if (best_.size() >= top_ + kSlack) cut(top_);
}

template <class Index>
void LabelSearch::visit(TopLabel at, Row<Index> row, float scale) {
  const LabelBTree::Node& o = *tree_.nodes()[static_cast<size_t>(at.label)];
  const auto n = static_cast<int32_t>(o.children.size());
  const int64_t n_found = o.group.find(row, scale, found_.data());
  kernels().group_scores(found_.data(), n_found, o.group.bias(), (n + kBankLanes - 1) / kBankLanes, scores_.data());
  const float share = o.is_leaf ? 1.0f : inner_share_;
  for (int32_t lane = 0; lane < n; ++lane) {
    scores_[static_cast<size_t>(lane)] = at.score + share * log_probability(scores_[static_cast<size_t>(lane)]);
  }
  for (int32_t lane = 0; lane < n; ++lane) {
    const TopLabel child{scores_[static_cast<size_t>(lane)], o.children[static_cast<size_t>(lane)]};
    if (o.is_leaf) {
      offer(child);
    } else {
      next_.push_back(child);
    }
  }
}

// The best nodes of a level, and of them those likely enough, as long as there are labels enough below.
void LabelSearch::keep_best_nodes() {
  const size_t n = std::min(next_.size(), static_cast<size_t>(search_.beam));
  std::partial_sort(next_.begin(), next_.begin() + static_cast<int64_t>(n), next_.end(), better);
  beam_.clear();
  int64_t labels = 0;
  for (size_t i = 0; i < n; ++i) {
    if (next_[i].score < next_[0].score + search_.min_log_share && labels >= static_cast<int64_t>(top_)) break;
    beam_.push_back(next_[i]);
    labels += tree_.nodes()[static_cast<size_t>(next_[i].label)]->n_labels;
  }
}

template <class Index>
std::span<const TopLabel> LabelSearch::run(Row<Index> row) {
  const float scale = tree_.options().normalize ? unit_scale(row) : 1.0f;
  found_.resize(static_cast<size_t>(row.count));
  best_.clear();
  worst_ = -std::numeric_limits<float>::infinity();
  inner_share_ = static_cast<float>(1 - kOneLabelDiscount / tree_.labels_a_row());
  beam_.assign(1, TopLabel{0.0f, tree_.root()});
  while (!beam_.empty()) {
    next_.clear();
    for (size_t i = 0; i < beam_.size(); ++i) {
      const TopLabel at = beam_[i];
      if (i + 1 < beam_.size()) group_of(beam_[i + 1]).prefetch(row);
      if (best_.size() > top_) cut(top_);
      if (at.score >= worst_) visit(at, row, scale);  // else no child can be among the best
    }
    keep_best_nodes();
    if (!beam_.empty()) group_of(beam_.front()).prefetch(row);
  }
  cut(top_);
  std::sort(best_.begin(), best_.end(), better);
  return best_;
}

template <class Rows>
void LabelBTree::predict_top(const Rows& X, int32_t top, const Search& search, int n_threads, int32_t* labels,
                             float* scores, Monitor& monitor) const {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    LabelSearch one(*this, search, top);
    const int64_t end = std::min(X.n_rows, (task + 1) * kRowsATask);
    const GrowingGroup& first = node(root_).group;
    for (int64_t i = task * kRowsATask; i < end; ++i) {
      if (i + 2 < end) first.prefetch(X.row(i + 2));
      if (i + 1 < end) first.prefetch_lines(X.row(i + 1));
      const std::span<const TopLabel> best = one.run(X.row(i));
      for (size_t k = 0; k < static_cast<size_t>(top); ++k) {
        labels[i * top + static_cast<int64_t>(k)] = k < best.size() ? best[k].label : -1;
        scores[i * top + static_cast<int64_t>(k)] = k < best.size() ? std::min(std::exp(best[k].score), kMostProbability) : 0.0f;
      }
    }
  });
}

template <class Rows>
std::vector<LabelBTree::PathStep> LabelBTree::path(const Rows& X, int64_t i, int32_t label) const {
  const auto row = X.row(i);
  const float scale = options_.normalize ? unit_scale(row) : 1.0f;
  std::vector<GroupLines> found(static_cast<size_t>(row.count));
  CacheLineVector<float> scores(kMostLanes);
  std::vector<PathStep> steps;
  int64_t n_labels = 1;
  auto [v, lane] = places_[static_cast<size_t>(label)];
  while (v >= 0) {
    const GrowingGroup& group = node(v).group;
    const int64_t n = group.find(row, scale, found.data());
    kernels().group_scores(found.data(), n, group.bias(), (size(v) + kBankLanes - 1) / kBankLanes, scores.data());
    const float score = scores[static_cast<size_t>(lane)];
    const auto rank = std::count_if(scores.begin(), scores.begin() + size(v), [&](float s) { return s > score; });
    steps.push_back({v, size(v), static_cast<int32_t>(rank), score, n_labels});
    n_labels = node(v).n_labels;
    lane = node(v).lane;
    v = node(v).parent;
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

template std::span<const TopLabel> LabelSearch::run(Row<int32_t>);
template std::span<const TopLabel> LabelSearch::run(Row<int64_t>);

#define SAPWOOD_FOR_ROWS(Rows)                                                                                   \
  template void LabelBTree::predict_top(const Rows&, int32_t, const Search&, int, int32_t*, float*, Monitor&) const; \
  template std::vector<LabelBTree::PathStep> LabelBTree::path(const Rows&, int64_t, int32_t) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
