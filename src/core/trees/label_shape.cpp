#include "trees/label_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "regressors/kernels.h"
#include "solvers/random.h"

namespace sapwood {

LabelRows::LabelRows(const LabelSets& sets) : indptr(static_cast<size_t>(sets.n_labels) + 1, 0) {
  const int64_t n = sets.indptr[sets.n_rows];
  for (int64_t k = 0; k < n; ++k) ++indptr[static_cast<size_t>(sets.labels[k]) + 1];
  std::partial_sum(indptr.begin(), indptr.end(), indptr.begin());
  rows.resize(static_cast<size_t>(n));
  std::vector<int64_t> next(indptr.begin(), indptr.end() - 1);
  for (int64_t i = 0; i < sets.n_rows; ++i) {
    for (int64_t k = sets.indptr[i]; k < sets.indptr[i + 1]; ++k) {
      rows[static_cast<size_t>(next[static_cast<size_t>(sets.labels[k])]++)] = static_cast<int32_t>(i);
    }
  }
}

namespace {

struct Term {
  int32_t feature;
  float value;
};

using Centroid = std::vector<Term>;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int64_t kLabelsBetweenStopChecks = 1024;
constexpr size_t kMostTerms = 512;      // a centroid keeps its largest terms: the rest says little and costs much
constexpr int kMostRounds = 20;         // of 2-means
constexpr double kLeastProgress = 1e-4;

// Sums over features of which only some are touched.
class SparseSum {
 public:
  explicit SparseSum(int64_t n_features) : sum_(static_cast<size_t>(n_features), 0.0f) {}

  void add(int64_t feature, float x) {
    float& s = sum_[static_cast<size_t>(feature)];
    if (s == 0.0f) touched_.push_back(static_cast<int32_t>(feature));
    s += x;
  }

  // The terms, normalised, the largest kMostTerms of them, by feature; starts anew.
  Centroid take() {
    std::sort(touched_.begin(), touched_.end());
    Centroid out;
    for (const int32_t f : touched_) {
      float& s = sum_[static_cast<size_t>(f)];
      // A feature whose sum passed through zero stands here twice. Huge values may have added up to infinity or NaN.
      if (s != 0.0f && !std::isnan(s)) out.push_back({f, std::clamp(s, -kLargest, kLargest)});
      s = 0.0f;
    }
    touched_.clear();
    if (out.size() > kMostTerms) {
      const auto end = out.begin() + kMostTerms;
      const auto larger = [](Term a, Term b) {
        return std::fabs(a.value) != std::fabs(b.value) ? std::fabs(a.value) > std::fabs(b.value) : a.feature < b.feature;
      };
      std::nth_element(out.begin(), end, out.end(), larger);
      out.erase(end, out.end());
      std::sort(out.begin(), out.end(), [](Term a, Term b) { return a.feature < b.feature; });
    }
    double square = 0;
    for (const Term t : out) square += static_cast<double>(t.value) * t.value;
    const auto scale = static_cast<float>(square > 0 ? 1 / std::sqrt(square) : 0);
    for (Term& t : out) t.value *= scale;
    out.shrink_to_fit();
    return out;
  }

 private:
  std::vector<float> sum_;
  std::vector<int32_t> touched_;
};

// Two clusters' sums side by side, all zero between uses.
struct PairSums {
  std::vector<float> sums;

  explicit PairSums(int64_t n_features) : sums(2 * static_cast<size_t>(n_features), 0.0f) {}

  void add(const Centroid& c, int side) {
    for (const Term t : c) sums[2 * static_cast<size_t>(t.feature) + static_cast<size_t>(side)] += t.value;
  }
  void clear(const Centroid& c) {
    for (const Term t : c) sums[2 * static_cast<size_t>(t.feature)] = sums[2 * static_cast<size_t>(t.feature) + 1] = 0;
  }
  [[nodiscard]] std::pair<float, float> dot(const Centroid& c) const {
    float left = 0, right = 0;
    for (const Term t : c) {
      left += t.value * sums[2 * static_cast<size_t>(t.feature)];
      right += t.value * sums[2 * static_cast<size_t>(t.feature) + 1];
    }
    return {left, right};
  }
};

// Spherical 2-means of the labels in [begin, end), which it puts in order: those of the first cluster first. Returns how
// many these are: `wanted` where balanced.
int64_t bisect(int32_t* begin, int32_t* end, int64_t wanted, bool balanced, const std::vector<Centroid>& centroids,
               PairSums& sums, Random& random, const Monitor& monitor) {
  const auto n = static_cast<int64_t>(end - begin);
  const auto centroid = [&](int64_t i) -> const Centroid& { return centroids[static_cast<size_t>(begin[i])]; };
  std::vector<std::pair<float, int32_t>> score(static_cast<size_t>(n));  // how much more a label is of the first cluster
  std::vector<char> side(static_cast<size_t>(n));
  std::vector<std::pair<float, float>> dots(static_cast<size_t>(n));

  const int64_t first = random.below(static_cast<uint32_t>(n));
  int64_t second = random.below(static_cast<uint32_t>(n - 1));
  second += second >= first;
  sums.add(centroid(first), 0);
  sums.add(centroid(second), 1);
  double left_length = 1, right_length = 1, best = -1;
  int64_t size = wanted;
  for (int round = 0; round < kMostRounds; ++round) {
    for (int64_t i = 0; i < n; ++i) {
      if (i % kLabelsBetweenStopChecks == 0 && monitor.stopped()) throw Interrupted{};
      if (round == 0) dots[static_cast<size_t>(i)] = sums.dot(centroid(i));
      const auto [l, r] = dots[static_cast<size_t>(i)];
      score[static_cast<size_t>(i)] = {static_cast<float>(r / right_length - l / left_length), static_cast<int32_t>(i)};
    }
    if (round == 0) {
      sums.clear(centroid(first));
      sums.clear(centroid(second));
    }
    if (!balanced) {
      const auto middle = std::count_if(score.begin(), score.end(), [](const auto& s) { return s.first < 0; });
      size = std::clamp<int64_t>(middle, 1, n - 1);
    }
    std::nth_element(score.begin(), score.begin() + size, score.end());
    for (int64_t k = 0; k < n; ++k) side[static_cast<size_t>(score[static_cast<size_t>(k)].second)] = k >= size;

    for (int64_t i = 0; i < n; ++i) sums.add(centroid(i), side[static_cast<size_t>(i)]);
    double left = 0, right = 0;  // squared lengths of the two sums
    for (int64_t i = 0; i < n; ++i) {
      if (i % kLabelsBetweenStopChecks == 0 && monitor.stopped()) throw Interrupted{};
      dots[static_cast<size_t>(i)] = sums.dot(centroid(i));
      (side[static_cast<size_t>(i)] ? right : left) +=
          side[static_cast<size_t>(i)] ? dots[static_cast<size_t>(i)].second : dots[static_cast<size_t>(i)].first;
    }
    for (int64_t i = 0; i < n; ++i) sums.clear(centroid(i));
    left_length = std::sqrt(left) + 1e-9;
    right_length = std::sqrt(right) + 1e-9;
    const double quality = (left_length + right_length) / static_cast<double>(n);
    if (quality - best < kLeastProgress) break;
    best = quality;
  }
  std::vector<int32_t> ordered;
  ordered.reserve(static_cast<size_t>(n));
  for (const char wanted_side : {0, 1}) {
    for (int64_t i = 0; i < n; ++i) {
      if (side[static_cast<size_t>(i)] == wanted_side) ordered.push_back(begin[i]);
    }
  }
  std::copy(ordered.begin(), ordered.end(), begin);
  return size;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Labels that shall end up below `parts` children of node `parent`.
struct Group {
  int64_t begin, end;
  int64_t parts;
  int32_t parent;
};

class ShapeBuilder {
 public:
  ShapeBuilder(TreeShape& shape, const ShapeOptions& options) : shape_(shape), options_(options) {}

  // Makes the node for these labels below `parent` and returns what is left to split.
  void add(int64_t begin, int64_t end, int32_t parent, std::vector<Group>& left) {
    const auto id = static_cast<int32_t>(shape_.nodes.size());
    if (parent >= 0) shape_.nodes[static_cast<size_t>(parent)].children.push_back(id);
    shape_.nodes.push_back({begin, end, {}});
    const int64_t n = end - begin;
    if (n > options_.max_leaf) {
      left.push_back({begin, end, std::min<int64_t>({options_.arity, ceil_div(n, options_.max_leaf), n}), id});
    } else {
      for (int64_t i = begin; i < end; ++i) shape_.nodes.back().children.push_back(~shape_.order[static_cast<size_t>(i)]);
    }
  }

 private:
  TreeShape& shape_;
  const ShapeOptions& options_;
};

}  // namespace

template <class Rows>
TreeShape cluster_labels(const Rows& X, const float* row_scale, const LabelRows& label_rows, const ShapeOptions& options,
                         int n_threads, Monitor& monitor) {
  const auto n_labels = static_cast<int64_t>(label_rows.indptr.size()) - 1;
  TreeShape shape;
  for (int32_t l = 0; l < n_labels; ++l) {
    if (label_rows.count(l) > 0) shape.order.push_back(l);
  }
  ShapeBuilder builder(shape, options);
  std::vector<Group> groups;
  builder.add(0, static_cast<int64_t>(shape.order.size()), -1, groups);
  if (groups.empty()) return shape;

  std::vector<Centroid> centroids(static_cast<size_t>(n_labels));
  std::vector<std::unique_ptr<SparseSum>> sparse(static_cast<size_t>(n_threads));
  constexpr int64_t kLabelsATask = 64;
  parallel_for(ceil_div(n_labels, kLabelsATask), n_threads, monitor, [&](int64_t task, int thread) {
    auto& sum = sparse[static_cast<size_t>(thread)];
    if (!sum) sum = std::make_unique<SparseSum>(X.n_columns);
    for (int64_t l = task * kLabelsATask; l < std::min(n_labels, (task + 1) * kLabelsATask); ++l) {
      for (int64_t k = label_rows.indptr[static_cast<size_t>(l)]; k < label_rows.indptr[static_cast<size_t>(l) + 1]; ++k) {
        const int64_t i = label_rows.rows[static_cast<size_t>(k)];
        const auto row = X.row(i);
        const float scale = row_scale ? row_scale[i] : 1.0f;
        for (int64_t t = 0; t < row.count; ++t) {
          if (row.value[t] != 0.0f) sum->add(static_cast<int64_t>(row.index[t]), scale * row.value[t]);
        }
      }
      centroids[static_cast<size_t>(l)] = sum->take();
    }
  });
  sparse.clear();

  // All groups of a round are bisected side by side; a group of one part becomes a node.
  std::vector<std::unique_ptr<PairSums>> pairs(static_cast<size_t>(n_threads));
  while (!groups.empty()) {
    std::vector<int64_t> middle(groups.size());
    parallel_for(static_cast<int64_t>(groups.size()), n_threads, monitor, [&](int64_t task, int thread) {
      const Group& g = groups[static_cast<size_t>(task)];
      auto& sums = pairs[static_cast<size_t>(thread)];
      if (!sums) sums = std::make_unique<PairSums>(X.n_columns);
      const int64_t n = g.end - g.begin;
      const int64_t wanted = std::clamp<int64_t>(n * (g.parts / 2) / g.parts, 1, n - 1);
      Random random(options.seed ^ (static_cast<uint64_t>(g.begin) << 32) ^ static_cast<uint64_t>(g.end));
      int32_t* const labels = shape.order.data();
      middle[static_cast<size_t>(task)] =
          g.begin + bisect(labels + g.begin, labels + g.end, wanted, options.balanced, centroids, *sums, random, monitor);
    });
    std::vector<Group> next;
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group g = groups[i];
      const int64_t left_parts = g.parts / 2;
      const auto go_on = [&](int64_t begin, int64_t end, int64_t parts) {
        parts = std::min(parts, end - begin);
        if (parts > 1) {
          next.push_back({begin, end, parts, g.parent});
        } else {
          builder.add(begin, end, g.parent, next);
        }
      };
      go_on(g.begin, middle[i], left_parts);
      go_on(middle[i], g.end, g.parts - left_parts);
    }
    groups.swap(next);
  }
  return shape;
}

TreeShape given_shape(std::span<const int64_t> indptr, std::span<const int32_t> children) {
  TreeShape shape;
  const size_t n_nodes = indptr.size() - 1;
  shape.nodes.resize(n_nodes);
  // Labels in the order of a walk, depth first, so that those below a node stand together.
  struct Visit {
    int32_t node;
    bool leaving;
  };
  std::vector<Visit> walk{{0, false}};
  while (!walk.empty()) {
    const Visit visit = walk.back();
    walk.pop_back();
    ShapeNode& node = shape.nodes[static_cast<size_t>(visit.node)];
    const auto here = static_cast<int64_t>(shape.order.size());
    if (visit.leaving) {
      node.end = here;
      continue;
    }
    node.begin = here;
    walk.push_back({visit.node, true});
    const auto own = children.subspan(static_cast<size_t>(indptr[static_cast<size_t>(visit.node)]),
                                      static_cast<size_t>(indptr[static_cast<size_t>(visit.node) + 1] - indptr[static_cast<size_t>(visit.node)]));
    for (const int32_t child : own) {
      if (child >= 0) {
        node.children.push_back(child);
        walk.push_back({child, false});
      }
    }
    // A bank leads to nodes or to labels, never to both.
    const bool has_labels = std::any_of(own.begin(), own.end(), [](int32_t child) { return child < 0; });
    while (has_labels && node.children.size() % kBankLanes) node.children.push_back(kNoTarget);
    for (const int32_t child : own) {
      if (child < 0) {
        node.children.push_back(child);
        shape.order.push_back(~child);
      }
    }
  }
  return shape;
}

template TreeShape cluster_labels(const CsrRows<int32_t>&, const float*, const LabelRows&, const ShapeOptions&, int, Monitor&);
template TreeShape cluster_labels(const CsrRows<int64_t>&, const float*, const LabelRows&, const ShapeOptions&, int, Monitor&);
template TreeShape cluster_labels(const DenseRows&, const float*, const LabelRows&, const ShapeOptions&, int, Monitor&);

}  // namespace sapwood
