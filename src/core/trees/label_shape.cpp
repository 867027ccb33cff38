#include "trees/label_shape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>

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

// A centroid keeps its largest terms, as many as leave all centroids together smaller than the data: the rest says
// little and costs much.
constexpr int64_t kFewestTerms = 128, kMostTerms = 512;
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr size_t kLabelsBetweenStopChecks = 1024;
constexpr int64_t kFewLabels = 3;  // have one start
constexpr int kStarts = 3;       // of which the best is kept: a bad split high in the tree costs half a point
constexpr int kMostRounds = 20;  // of 2-means
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

  // The terms, normalised, the largest `most` of them, by feature; starts anew.
  Centroid take(size_t most) {
    std::sort(touched_.begin(), touched_.end());
    Centroid out;
    for (const int32_t f : touched_) {
      float& s = sum_[static_cast<size_t>(f)];
      // A feature whose sum passed through zero stands here twice. Huge values may have added up to infinity or NaN.
      if (s != 0.0f && !std::isnan(s)) out.push_back({f, std::clamp(s, -kLargest, kLargest)});
      s = 0.0f;
    }
    touched_.clear();
    if (out.size() > most) {
      const auto end = out.begin() + static_cast<std::ptrdiff_t>(most);
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

// A way to part labels in two: for each of them 0 or 1, and how close labels are to their cluster in the mean.
struct Parting {
  double quality = -1;
  std::vector<char> side;

  // Puts the labels of the first cluster first, else in their order, and returns how many these are.
  int64_t apply(std::span<int32_t> labels) const {
    std::vector<int32_t> ordered;
    ordered.reserve(labels.size());
    for (const char wanted_side : {0, 1}) {
      for (size_t i = 0; i < labels.size(); ++i) {
        if (side[i] == wanted_side) ordered.push_back(labels[i]);
      }
    }
    std::copy(ordered.begin(), ordered.end(), labels.begin());
    return std::count(side.begin(), side.end(), 0);
  }
};

// Spherical 2-means of some labels, from two of them at random.
class Bisection {
 public:
  // wanted: how many labels shall be in the first cluster, where balanced.
  Bisection(std::span<const int32_t> labels, int64_t wanted, bool balanced, const std::vector<Centroid>& centroids,
            PairSums& sums, const Monitor& monitor)
      : labels_(labels), wanted_(wanted), balanced_(balanced), centroids_(centroids), sums_(sums), monitor_(monitor),
        score_(labels.size()), dots_(labels.size()), side_(labels.size()) {}

  // Goes on until nothing is gained.
  Parting run(Random random) {
    const auto n = static_cast<uint32_t>(labels_.size());
    const size_t first = random.below(n);
    size_t second = random.below(n - 1);
    second += second >= first;
    std::fill(side_.begin(), side_.end(), char{2});  // of neither
    side_[first] = 0;
    side_[second] = 1;
    double best = measure();
    for (int round = 0; round < kMostRounds; ++round) {
      assign();
      const double quality = measure();
      const double gain = quality - best;
      best = round > 0 ? std::max(quality, best) : quality;
      if (round > 0 && gain < kLeastProgress) break;
    }
    return {best, std::move(side_)};
  }

 private:
  [[nodiscard]] const Centroid& centroid(size_t i) const { return centroids_[static_cast<size_t>(labels_[i])]; }

  // Each label goes to the cluster that it is closer to, as far as there is room.
  void assign() {
    for (size_t i = 0; i < labels_.size(); ++i) {
      score_[i] = {static_cast<float>(dots_[i].second / length_[1] - dots_[i].first / length_[0]), static_cast<int32_t>(i)};
    }
    int64_t size = wanted_;
    if (!balanced_) {
      const auto closer = std::count_if(score_.begin(), score_.end(), [](const auto& s) { return s.first < 0; });
      size = std::clamp<int64_t>(closer, 1, static_cast<int64_t>(labels_.size()) - 1);
    }
    std::nth_element(score_.begin(), score_.begin() + size, score_.end());
    for (size_t k = 0; k < score_.size(); ++k) side_[static_cast<size_t>(score_[k].second)] = static_cast<int64_t>(k) >= size;
  }

  // Sums the clusters up; how close each label is to both, and how long the sums are.
  double measure() {
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (side_[i] < 2) sums_.add(centroid(i), side_[i]);
    }
    double square[2] = {0, 0};
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (i % kLabelsBetweenStopChecks == 0 && monitor_.stopped()) throw Interrupted{};
      dots_[i] = sums_.dot(centroid(i));
      if (side_[i] < 2) square[static_cast<size_t>(side_[i])] += side_[i] ? dots_[i].second : dots_[i].first;
    }
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (side_[i] < 2) sums_.clear(centroid(i));
    }
    for (const int side : {0, 1}) length_[side] = std::sqrt(square[side]) + 1e-9;
    return (length_[0] + length_[1]) / static_cast<double>(labels_.size());
  }

  std::span<const int32_t> labels_;
  int64_t wanted_;
  bool balanced_;
  const std::vector<Centroid>& centroids_;
  PairSums& sums_;
  const Monitor& monitor_;
  std::vector<std::pair<float, int32_t>> score_;  // how much closer a label is to the second cluster
  std::vector<std::pair<float, float>> dots_;     // how close to each
  std::vector<char> side_;                        // the cluster of each label
  double length_[2] = {1, 1};
};

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
      left.push_back({begin, end, std::min<int64_t>({options_.arity, parts_of(n), n}), id});
    } else {
      for (int64_t i = begin; i < end; ++i) shape_.nodes.back().children.push_back(~shape_.order[static_cast<size_t>(i)]);
    }
  }

 private:
  // As many parts as make leaves, rounded up to a power of two: parts come from halving, and a third cut off a whole is
  // a worse cluster than a half.
  [[nodiscard]] int64_t parts_of(int64_t n) const {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_div(n, options_.max_leaf))));
  }

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
  constexpr int64_t kLabelsATask = 8;
  const auto most_terms = static_cast<size_t>(std::clamp(X.entries() / (2 * n_labels), kFewestTerms, kMostTerms));
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
      centroids[static_cast<size_t>(l)] = sum->take(most_terms);
    }
  });
  sparse.clear();

  // All starts of all groups of a round are tried side by side; a group of one part becomes a node.
  std::vector<std::unique_ptr<PairSums>> pairs(static_cast<size_t>(n_threads));
  while (!groups.empty()) {
    std::vector<Parting> tried(groups.size() * kStarts);
    parallel_for(static_cast<int64_t>(tried.size()), n_threads, monitor, [&](int64_t task, int thread) {
      const Group& g = groups[static_cast<size_t>(task / kStarts)];
      const int64_t start = task % kStarts, n = g.end - g.begin;
      if (start > 0 && n <= kFewLabels) return;
      auto& sums = pairs[static_cast<size_t>(thread)];
      if (!sums) sums = std::make_unique<PairSums>(X.n_columns);
      const std::span<const int32_t> labels(shape.order.data() + g.begin, static_cast<size_t>(n));
      const int64_t wanted = std::clamp<int64_t>(n * (g.parts / 2) / g.parts, 1, n - 1);
      const Random random(options.seed ^ static_cast<uint64_t>(g.begin) << 32 ^ static_cast<uint64_t>(g.end) ^ static_cast<uint64_t>(start) << 62);
      tried[static_cast<size_t>(task)] = Bisection(labels, wanted, options.balanced, centroids, *sums, monitor).run(random);
    });
    std::vector<int64_t> middle;
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto first = tried.begin() + static_cast<std::ptrdiff_t>(i * kStarts);
      const auto best = std::max_element(first, first + kStarts, [](const Parting& a, const Parting& b) { return a.quality < b.quality; });
      const Group& g = groups[i];
      middle.push_back(g.begin + best->apply({shape.order.data() + g.begin, static_cast<size_t>(g.end - g.begin)}));
    }
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
