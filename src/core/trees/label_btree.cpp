#include "trees/label_btree.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trees/label_btree_search.h"
#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsBetweenStopChecks = 256;
constexpr int64_t kMostFetched = 256;  // features of a row: more would drive each other out of the cache
constexpr int64_t kRowsBetweenTrims = 64;
constexpr int64_t kRegroupFactor = 256;
constexpr double kOneLabel = 1.1;     // labels a row up to which most rows have one
constexpr int64_t kMostRows = int64_t{1} << 50;
constexpr int64_t kYoung = 16;  // rows up to which a label has still to find its neighbours
constexpr float kClose = 0.01f;  // a right child that leads by no more than this is mistaken
constexpr double kAgeing = 10;  // rows a label in which a node's steps begin to shrink
constexpr int64_t kMostWaiting = int64_t{1} << 20;  // entries of the rows that wait for their second look
constexpr int64_t kDroppedShare = 4;  // a trim drops one line in so many

}  // namespace

LabelBTree::LabelBTree(const Options& options, uint64_t seed)
    : options_(options), random_(seed), scores_(kMostLanes), gradients_(kMostLanes) {
  root_ = new_node(true);
}

// The more labels a row has, the smaller the step: as a row's loss is shared among its labels. And it shrinks with the
// eighth root of the node's age: AdaGrad alone never calms down where features are rare.
float LabelBTree::step(const Node& o) const {
  const double rows_a_label = static_cast<double>(o.n_rows) / static_cast<double>(std::max<int64_t>(o.n_labels, 1));
  const double age = options_.decay > 0 ? 1 : 1 + rows_a_label / kAgeing;
  return static_cast<float>(options_.step / std::sqrt(labels_a_row() * std::sqrt(std::sqrt(age))));
}

double LabelBTree::labels_a_row() const {
  return std::max(static_cast<double>(figures_.row_labels) / static_cast<double>(std::max<int64_t>(figures_.rows, 1)), 1.0);
}

template <class Index>
void LabelBTree::learn_node(Node& o, Row<Index> row, float scale, const uint16_t* positive, float weight) {
  found_.resize(static_cast<size_t>(row.count));
  const int64_t n = o.group.find_or_add(row, scale, positive, found_.data());
  const GroupStep s{positive, static_cast<int32_t>(o.children.size()), step(o), weight, 1 - options_.decay};
  kernels().group_learn(found_.data(), n, o.group.bias(), s, scores_.data(), gradients_.data());
}

// The leaf that the regressors lead to.
template <class Index>
int32_t LabelBTree::route(Row<Index> row, float scale) {
  found_.resize(static_cast<size_t>(row.count));
  int32_t v = root_;
  while (!node(v).is_leaf) {
    const GrowingGroup& group = node(v).group;
    const int64_t n = group.find(row, scale, found_.data());
    kernels().group_scores(found_.data(), n, group.bias(), (size(v) + kBankLanes - 1) / kBankLanes, scores_.data());
    const auto best = std::max_element(scores_.begin(), scores_.begin() + size(v)) - scores_.begin();
    v = node(v).children[static_cast<size_t>(best)];
  }
  return v;
}

template <class Index>
void LabelBTree::insert(int32_t label, Row<Index> row, float scale) {
  int32_t leaf = route(row, scale);
  while (size(leaf) == options_.max_leaf) {
    split(leaf);
    leaf = route(row, scale);
  }
  node(leaf).children.push_back(label);
  attach(leaf, size(leaf) - 1, label);
  count_labels(leaf, 1);
}

// The nodes on the ways from the labels to the root: all rows come to the root, also those without a label.
void LabelBTree::collect_visits(std::span<const int32_t> labels) {
  visits_.assign(1, Visit{root_, {}});
  for (const int32_t label : labels) {
    int32_t v = places_[static_cast<size_t>(label)].node, lane = places_[static_cast<size_t>(label)].lane;
    while (v >= 0) {
      auto visit = std::find_if(visits_.begin(), visits_.end(), [&](const Visit& o) { return o.node == v; });
      if (visit == visits_.end()) visit = visits_.insert(visit, Visit{v, {}});
      visit->positive[static_cast<size_t>(lane / kBankLanes)] |= static_cast<uint16_t>(1u << (lane % kBankLanes));
      lane = node(v).lane;
      v = node(v).parent;
    }
  }
}

// When a label has met a few rows on average, and again when these are many more, its regressor knows better than its
// first row did where it belongs. With several labels a row they would be torn from those they occur with.
void LabelBTree::regroup_where_due() {
  if (labels_a_row() > kOneLabel) return;
  for (const Visit& visit : visits_) {
    Node& o = node(visit.node);
    if (o.is_leaf || !node(o.children.front()).is_leaf || o.n_rows / o.n_labels < o.regroup_at) continue;
    o.regroup_at *= kRegroupFactor;
    regroup(visit.node);
  }
}

bool LabelBTree::any_young(std::span<const int32_t> labels) const {
  return std::any_of(labels.begin(), labels.end(), [&](int32_t label) { return counts_[static_cast<size_t>(label)] <= kYoung; });
}

// The best wrong lane of the node just learned where it was above a right one, else -1.
int32_t LabelBTree::mistake(const Visit& visit) const {
  float right = std::numeric_limits<float>::infinity(), wrong = -right;
  int32_t best = -1;
  for (int32_t lane = 0; lane < size(visit.node); ++lane) {
    const float score = scores_[static_cast<size_t>(lane)];
    const bool is_right = visit.positive[static_cast<size_t>(lane / kBankLanes)] >> (lane % kBankLanes) & 1;
    if (is_right) {
      right = std::min(right, score);
    } else if (score > wrong) {
      wrong = score;
      best = lane;
    }
  }
  return right < wrong + kClose ? best : -1;
}

// The nodes on the ways learn which of their children are right. Says whether one of them was mistaken, if anyone asks:
// looking through all lanes for it takes time.
template <class Index>
bool LabelBTree::learn_ways(Row<Index> row, float scale, float weight, bool asks) {
  astray_.clear();
  bool mistaken = false;
  for (const Visit& visit : visits_) {
    Node& o = node(visit.node);
    ++o.n_rows;
    learn_node(o, row, scale, visit.positive.data(), weight);
    const int32_t wrong = asks ? mistake(visit) : -1;
    if (wrong < 0) continue;
    mistaken = true;
    if (!o.is_leaf) astray_.push_back(o.children[static_cast<size_t>(wrong)]);
  }
  return mistaken;
}

// Where a wrong child was above a right one, the nodes it leads to learn that none of theirs is right. Only where rows have
// several labels: where a row has one and the features leave it open which, a leaf would unlearn what it should answer.
template <class Index>
void LabelBTree::learn_astray(Row<Index> row, float scale, float weight) {
  constexpr std::array<uint16_t, kGroupBanks> kNone{};
  for (size_t k = 0; k < astray_.size(); ++k) {
    const int32_t v = astray_[k];
    if (std::any_of(visits_.begin(), visits_.end(), [&](const Visit& visit) { return visit.node == v; })) continue;
    learn_node(node(v), row, scale, kNone.data(), weight);
    const auto best = std::max_element(scores_.begin(), scores_.begin() + size(v)) - scores_.begin();
    if (!node(v).is_leaf) astray_.push_back(node(v).children[static_cast<size_t>(best)]);
  }
}

// What was learned of a young label was learned against the neighbours it had then, where its first row led: rows that
// were mistaken are learned once more when it has had the time to meet those it has now.
void LabelBTree::look_again() {
  while (!waiting_.empty() &&
         (figures_.rows - waiting_.learned() >= options_.second_look || waiting_.entries() > kMostWaiting)) {
    placed_.clear();
    for (const int32_t label : waiting_.labels()) {
      if (places_[static_cast<size_t>(label)].node >= 0) placed_.push_back(label);
    }
    if (!placed_.empty()) {
      collect_visits(placed_);
      for (const Visit& visit : visits_) learn_node(node(visit.node), waiting_.row(), 1.0f, visit.positive.data(), waiting_.weight());
    }
    waiting_.pop();
  }
}

template <class Index>
void LabelBTree::learn_row(Row<Index> row, std::span<const int32_t> labels, float weight) {
  const float scale = options_.normalize ? unit_scale(row) : 1.0f;
  ++figures_.rows;
  figures_.row_labels += static_cast<int64_t>(labels.size());
  for (const int32_t label : labels) {
    ++counts_[static_cast<size_t>(label)];
    if (places_[static_cast<size_t>(label)].node < 0) insert(label, row, scale);
  }
  if (n_placed() == 0) return;
  collect_visits(labels);
  const bool has_several = labels_a_row() > kOneLabel, looks_again = options_.second_look > 0 && any_young(labels);
  const bool mistaken = learn_ways(row, scale, weight, has_several || looks_again);
  if (has_several) learn_astray(row, scale, weight);
  regroup_where_due();
  if (mistaken && looks_again) waiting_.push(row, scale, labels, weight, figures_.rows);
  look_again();
  if (options_.max_memory > 0 && figures_.rows % kRowsBetweenTrims == 0) trim();
}

// Learning a row waits for memory more than it computes: what the nodes know of a row to come is asked for beforehand, first
// where it stands, later the lines. Only on the way from its first label.
template <class Rows>
void LabelBTree::fetch(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int64_t i, bool lines) const {
  if (i >= X.n_rows || X.row(i).count > kMostFetched) return;
  const bool has_place = label_indptr[i] < label_indptr[i + 1] && places_[static_cast<size_t>(labels[label_indptr[i]])].node >= 0;
  for (int32_t v = has_place ? places_[static_cast<size_t>(labels[label_indptr[i]])].node : root_; v >= 0; v = node(v).parent) {
    if (lines) node(v).group.prefetch_lines(X.row(i));
    else node(v).group.prefetch(X.row(i));
  }
}

template <class Rows>
void LabelBTree::learn(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int32_t n_labels,
                       const float* row_weight, bool predict_first, const Search& search, Monitor& monitor) {
  places_.resize(std::max(places_.size(), static_cast<size_t>(n_labels)));
  counts_.resize(places_.size());
  LabelSearch ahead(*this, search, 1);
  for (int64_t i = 0; i < X.n_rows; ++i, ++monitor.done) {
    if (i % kRowsBetweenStopChecks == 0 && monitor.stopped()) throw Interrupted{};
    fetch(X, label_indptr, labels, i + 2, false);
    fetch(X, label_indptr, labels, i + 1, true);
    const float weight = row_weight ? row_weight[i] : 1.0f;
    if (weight == 0) continue;
    const std::span own(labels + label_indptr[i], static_cast<size_t>(label_indptr[i + 1] - label_indptr[i]));
    if (predict_first && !own.empty()) {
      const auto best = n_placed() ? ahead.run(X.row(i)) : std::span<const TopLabel>{};
      const bool is_right = !best.empty() && std::find(own.begin(), own.end(), best.front().label) != own.end();
      figures_.progressive.count(!is_right, weight);
    }
    learn_row(X.row(i), own, weight);
  }
}

int64_t LabelBTree::memory() const {
  int64_t sum = 0;
  for (const auto& o : nodes_) sum += o->group.memory();
  return sum;
}

// Drops the lines of least weight until the model fits.
void LabelBTree::trim() {
  int64_t dropped = 1;
  while (memory() > options_.max_memory && dropped > 0) {
    std::vector<float> sizes;  // of each line its largest weight
    for (const auto& o : nodes_) o->group.largest_weights(sizes);
    const auto cut = sizes.begin() + static_cast<int64_t>(sizes.size()) / kDroppedShare;
    if (cut == sizes.end()) return;
    std::nth_element(sizes.begin(), cut, sizes.end());
    dropped = 0;
    for (auto& o : nodes_) dropped += o->group.drop_lines(*cut);
    figures_.dropped_lines += dropped;
  }
}

LabelBTree::Figures LabelBTree::figures() const {
  Figures figures = figures_;
  figures.random_state = random_.state();
  return figures;
}

bool LabelBTree::restore(std::vector<std::unique_ptr<Node>> nodes, int32_t root, std::vector<int64_t> counts,
                         const Figures& figures, RowQueue::Arrays waiting) {
  const auto n = static_cast<int32_t>(nodes.size());
  const auto is_count = [](int64_t x) { return x >= 0 && x <= kMostRows; };
  if (root < 0 || root >= n || !is_count(figures.rows) || !is_count(figures.row_labels)) return false;
  for (const auto& o : nodes) {
    if (!is_count(o->n_rows) || !is_count(o->regroup_at)) return false;
  }
  nodes_ = std::move(nodes);
  root_ = root;
  counts_ = std::move(counts);
  const auto is_label = [&](int32_t label) { return label >= 0 && static_cast<size_t>(label) < counts_.size(); };
  if (!std::all_of(waiting.labels.begin(), waiting.labels.end(), is_label)) return false;
  waiting_.restore(std::move(waiting));
  places_.assign(counts_.size(), {});
  figures_ = figures;
  random_ = Random(figures.random_state);
  std::vector<int32_t> depth(nodes_.size(), -1);
  std::vector<int32_t> order{root};
  depth[static_cast<size_t>(root)] = 0;
  int32_t leaf_depth = -1;
  for (size_t k = 0; k < order.size(); ++k) {
    const int32_t v = order[k];
    const bool too_few = v == root ? !node(v).is_leaf && size(v) < 2 : 2 * size(v) < most(v);
    if (too_few || size(v) > most(v)) return false;
    if (node(v).is_leaf && leaf_depth >= 0 && depth[static_cast<size_t>(v)] != leaf_depth) return false;
    if (node(v).is_leaf) leaf_depth = depth[static_cast<size_t>(v)];
    for (int32_t lane = 0; lane < size(v); ++lane) {
      const int32_t child = node(v).children[static_cast<size_t>(lane)];
      const size_t most_children = node(v).is_leaf ? places_.size() : nodes_.size();
      if (child < 0 || static_cast<size_t>(child) >= most_children) return false;
      if (node(v).is_leaf ? places_[static_cast<size_t>(child)].node >= 0 : depth[static_cast<size_t>(child)] >= 0) return false;
      attach(v, lane, child);
      if (node(v).is_leaf) continue;
      depth[static_cast<size_t>(child)] = depth[static_cast<size_t>(v)] + 1;
      order.push_back(child);
    }
    if (node(v).is_leaf) count_labels(v, size(v));
  }
  return order.size() == nodes_.size();
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                                \
  template void LabelBTree::learn(const Rows&, const int64_t*, const int32_t*, int32_t, const float*, bool, \
                                  const Search&, Monitor&);
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

// The rows of profiles, for the shape.
template void LabelBTree::learn_node(Node&, Row<uint32_t>, float, const uint16_t*, float);

}  // namespace sapwood
