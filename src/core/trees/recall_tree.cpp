#include "trees/recall_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sapwood {

namespace {

constexpr int64_t kRowsBetweenStopChecks = 256;
constexpr int64_t kRowsATask = 64;

// The smallest d with base^d >= k.
int32_t ceil_log(int64_t k, int64_t base) {
  int32_t d = 0;
  for (int64_t power = 1; power < k; power *= base) ++d;
  return d;
}

}  // namespace

RecallTree::RecallTree(const RecallTreeOptions& options, bool dense, int64_t n_columns, uint64_t seed)
    : options_(options),
      random_(seed),
      routers_(options.router_rule, dense, n_columns, options.arity == 2 ? 1 : options.arity),
      labels_(options.score_rule, dense, n_columns),
      nodes_(1) {
  if (options_.max_candidates > 0) n_candidates_ = options_.max_candidates;
  if (options_.max_depth >= 0) depth_limit_ = options_.max_depth;
}

void RecallTree::tell(RecallTreeEvent::Kind kind, std::vector<int32_t> nodes, std::vector<int32_t> labels,
                      std::vector<double> numbers) {
  events_->push_back({n_examples_ - 1, kind, std::move(nodes), std::move(labels), std::move(numbers)});
}

// Takes note of a label; the limits follow the number of labels seen.
void RecallTree::know(int32_t label) {
  if (labels_.knows(label)) return;
  labels_.add(label);
  ++n_labels_;
  if (options_.max_depth < 0) depth_limit_ = ceil_log(n_labels_, options_.arity);
  if (options_.max_candidates > 0) return;
  const int32_t wanted = std::max(1, 4 * ceil_log(n_labels_, 2));
  if (wanted == n_candidates_) return;
  n_candidates_ = wanted;
  for (Node& node : nodes_) {
    node.hist.widen(n_candidates_);
    node.bound = node.hist.recall_bound(options_.bound);
  }
}

void RecallTree::count(Node& node, int32_t label, double weight) {
  node.hist.add(label, weight, n_candidates_);
  node.bound = node.hist.recall_bound(options_.bound);
}

// A leaf above the depth limit gets children when an example comes to it.
bool RecallTree::has_children(int32_t node) {
  if (!nodes_[static_cast<size_t>(node)].leaf()) return true;
  const int32_t depth = nodes_[static_cast<size_t>(node)].depth;
  if (depth >= depth_limit_) return false;
  const auto first = static_cast<int32_t>(nodes_.size());
  nodes_[static_cast<size_t>(node)].first_child = first;
  nodes_.resize(nodes_.size() + static_cast<size_t>(options_.arity));
  for (auto child = nodes_.begin() + first; child != nodes_.end(); ++child) {
    child->parent = node;
    child->depth = depth + 1;
  }
  routers_.add(node, [&](int32_t v) { return nodes_[static_cast<size_t>(v)].parent; });
  if (events_) {
    std::vector<int32_t> told(static_cast<size_t>(options_.arity) + 1, node);
    std::iota(told.begin() + 1, told.end(), first);
    tell(RecallTreeEvent::Kind::split, std::move(told));
  }
  return true;
}

double RecallTree::importance(double delta, double total, double weight) const {
  if (options_.router_weight == RouterWeight::none) return weight;
  return options_.router_weight == RouterWeight::mean ? delta / total : delta;
}

// Algorithm 3; the scores after it. costs[i] is (n_i + w) H'_i - n_i H_i. Lane i learns whether child i is better than the
// best of the others, weighted by how much; of two children only the right one has a lane.
const float* RecallTree::update_router(int32_t number, int32_t label, double weight, Work& work) {
  const Node& node = nodes_[static_cast<size_t>(number)];
  const auto arity = static_cast<size_t>(options_.arity);
  work.costs.resize(arity);
  for (size_t i = 0; i < arity; ++i) {
    work.costs[i] = nodes_[static_cast<size_t>(node.first_child) + i].hist.cost(label, weight);
  }
  // least cost, and the least of the others
  double best = std::numeric_limits<double>::infinity(), second = best;
  for (const double cost : work.costs) {
    second = std::min(second, std::max(best, cost));
    best = std::min(best, cost);
  }
  const float* margins = routers_.scores_to_learn(number, work.online);
  const auto first_lane = static_cast<size_t>(arity == 2);
  work.pushes.assign(arity, 0.0f);
  std::vector<double> targets;
  for (size_t i = first_lane; i < arity; ++i) {
    const double delta = (work.costs[i] == best ? second : best) - work.costs[i];
    const double target = static_cast<double>(delta > 0) - static_cast<double>(delta < 0);
    if (target != 0) {
      const double by = importance(std::abs(delta), node.hist.total(), weight);
      work.pushes[i - first_lane] = push(options_.router_rule, margins[i - first_lane], target, by);
    }
    if (events_) targets.push_back(target);
  }
  if (events_) tell(RecallTreeEvent::Kind::target, {number}, {}, std::move(targets));
  return routers_.learn_all(number, work.pushes.data(), work.online);
}

// f > 0 goes right; of more than two children the best lane, ties to the first.
int32_t RecallTree::best_child(const float* margins) const {
  if (options_.arity == 2) return margins[0] > 0;
  return static_cast<int32_t>(std::max_element(margins, margins + options_.arity) - margins);
}

// As best_child, or at random, child i in proportion to the probability that its lane says yes.
int32_t RecallTree::training_child(const float* margins) {
  if (!options_.randomized_routing) return best_child(margins);
  const OnlineLoss loss = options_.router_rule.loss;
  double sums[16];
  double sum = 0;
  for (int i = 0; i < options_.arity; ++i) {
    const double margin = options_.arity > 2 ? margins[i] : i == 0 ? -margins[0] : margins[0];
    sum += score_probability(loss, margin);
    sums[i] = sum;
  }
  const double u = random_.uniform() * sum;
  for (int32_t i = 0; i < options_.arity; ++i) {
    if (u < sums[i]) return i;
  }
  return best_child(margins);
}

// Algorithm 1, line 9: the indicators, each followed by its products with the raw features.
template <class Index>
void RecallTree::add_path(Row<Index> row, int32_t last, Work& work) const {
  if (options_.path_features == PathFeatures::none) return;
  const std::span<const int32_t> nodes =
      options_.path_features == PathFeatures::path ? std::span<const int32_t>(work.entered) : std::span<const int32_t>(&last, 1);
  for (const int32_t node : nodes) {
    work.online.row.add_path(path_key(node), 1.0f);
    for (int64_t k = 0; options_.cross_path && k < row.count; ++k) {
      if (row.value[k] != 0) work.online.row.add_path(path_key(node, static_cast<uint32_t>(row.index[k])), row.value[k]);
    }
  }
}

void RecallTree::set_candidates(int32_t node, Work& work) const {
  work.candidates.clear();
  for (const LabelCount& entry : nodes_[static_cast<size_t>(node)].hist.top()) work.candidates.push_back(entry.label);
}

// Algorithm 4.
void RecallTree::learn_labels(int32_t node, int32_t label, double weight, Work& work) {
  set_candidates(node, work);
  if (events_) tell(RecallTreeEvent::Kind::candidates, {node}, work.candidates);
  if (std::find(work.candidates.begin(), work.candidates.end(), label) == work.candidates.end()) return;
  labels_.score_to_learn(work.candidates, work.online.row, work.labels);
  labels_.learn(work.candidates, label, weight, work.online.row, work.labels);
}

// Algorithm 2.
template <class Index>
void RecallTree::learn_row(Row<Index> row, int32_t label, double weight, Work& work) {
  ++n_examples_;
  know(label);
  routers_.start(row, 1.0f, work.online);
  work.entered.clear();
  int32_t n = 0;
  count(nodes_[0], label, weight);
  while (has_children(n)) {
    const float* const margins = update_router(n, label, weight, work);
    const int32_t c = nodes_[static_cast<size_t>(n)].first_child + training_child(margins);
    if (events_) tell(RecallTreeEvent::Kind::route, {n, c});
    count(nodes_[static_cast<size_t>(c)], label, weight);
    if (stops(nodes_[static_cast<size_t>(n)], nodes_[static_cast<size_t>(c)])) {
      if (events_) tell(RecallTreeEvent::Kind::stop, {n, c});
      break;
    }
    n = c;
    work.entered.push_back(n);
  }
  add_path(row, n, work);
  learn_labels(n, label, weight, work);
}

template <class Rows>
void RecallTree::learn(const Rows& X, const int32_t* labels, const float* weight, std::span<const int64_t> order,
                       bool predict_first, Monitor& monitor) {
  for (int64_t i = 0; i < X.n_rows; ++i) {
    if (i % kRowsBetweenStopChecks == 0 && monitor.stopped()) throw Interrupted{};
    ++monitor.done;
    const int64_t r = order.empty() ? i : order[static_cast<size_t>(i)];
    const double w = weight ? static_cast<double>(weight[r]) : 1.0;
    if (w == 0) continue;
    if (predict_first) progressive_.count(n_examples_ == 0 || best_label(X.row(r), work_) != labels[r], w);
    learn_row(X.row(r), labels[r], w, work_);
  }
}

// Algorithm 1, up to the node whose candidates are to be scored.
template <class Index>
RecallTree::Ending RecallTree::descend(Row<Index> row, Work& work, Explanation* told) const {
  routers_.start(row, 1.0f, work.online);
  work.entered.clear();
  int32_t n = 0;
  while (!nodes_[static_cast<size_t>(n)].leaf()) {
    const float* const margins = routers_.scores(n, work.online);
    const int32_t c = nodes_[static_cast<size_t>(n)].first_child + best_child(margins);
    if (told) {
      told->nodes.push_back(n);
      told->children.push_back(c);
      told->margins.insert(told->margins.end(), margins, margins + lanes());
    }
    const Node& child = nodes_[static_cast<size_t>(c)];
    if (stops(nodes_[static_cast<size_t>(n)], child)) {
      return {n, child.hist.total() == 0 ? Stopped::empty_child : Stopped::recall, c};
    }
    n = c;
    work.entered.push_back(n);
  }
  return {n, Stopped::leaf, -1};
}

// Scores the candidates of the node where the descent ended.
template <class Index>
void RecallTree::score_candidates(Row<Index> row, int32_t node, Work& work) const {
  add_path(row, node, work);
  set_candidates(node, work);
  labels_.score(work.candidates, work.online.row, work.labels);
}

template <class Index>
int32_t RecallTree::best_label(Row<Index> row, Work& work) const {
  score_candidates(row, descend(row, work, nullptr).node, work);
  const auto& scores = work.labels.scores;
  return work.candidates[static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin())];
}

// Places of the best candidates, ties in the order of the candidates.
void RecallTree::rank(int32_t top, Work& work) const {
  const auto& scores = work.labels.scores;
  work.order.resize(scores.size());
  std::iota(work.order.begin(), work.order.end(), 0);
  const auto end = work.order.begin() + std::min<std::ptrdiff_t>(top, std::ssize(work.order));
  std::partial_sort(work.order.begin(), end, work.order.end(), [&](int32_t a, int32_t b) {
    const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
}

template <class Rows>
void RecallTree::predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores,
                             Monitor& monitor) const {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    Work work;
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      score_candidates(X.row(i), descend(X.row(i), work, nullptr).node, work);
      rank(top, work);
      for (int32_t k = 0; k < top; ++k) {
        const bool is_there = static_cast<size_t>(k) < work.order.size();
        const auto place = is_there ? static_cast<size_t>(work.order[static_cast<size_t>(k)]) : 0;
        labels[i * top + k] = is_there ? work.candidates[place] : -1;
        scores[i * top + k] = is_there ? work.labels.scores[place] : 0;
      }
    }
  });
}

template <class Rows>
RecallTree::Explanation RecallTree::explain(const Rows& X, int64_t i) const {
  Explanation told;
  Work work;
  told.ending = descend(X.row(i), work, &told);
  score_candidates(X.row(i), told.ending.node, work);
  rank(std::numeric_limits<int32_t>::max(), work);
  for (const int32_t place : work.order) {
    told.labels.push_back(work.candidates[static_cast<size_t>(place)]);
    told.scores.push_back(work.labels.scores[static_cast<size_t>(place)]);
  }
  return told;
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                                    \
  template void RecallTree::learn(const Rows&, const int32_t*, const float*, std::span<const int64_t>, bool, Monitor&); \
  template void RecallTree::predict_top(const Rows&, int32_t, int, int32_t*, float*, Monitor&) const;              \
  template RecallTree::Explanation RecallTree::explain(const Rows&, int64_t) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
