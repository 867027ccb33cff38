#include "trees/balanced_tree.h"

#include <algorithm>
#include <cmath>

#include "trees/predict.h"

namespace sapwood {

namespace {

using Kind = TreeEvent::Kind;

constexpr int64_t kRowsATask = 256;
constexpr int kMostDepth = 64;  // bits that say which routers were overruled

}  // namespace

BalancedTree::BalancedTree(const Options& options, bool dense, int64_t n_columns, uint64_t seed)
    : options_(options), random_(seed), routers_(options.rule, dense, n_columns) {}

template <class Index>
void BalancedTree::learn_row(Row<Index> row, int32_t label, double weight) {
  if (weight == 0) return;
  trace_.next_example();
  if (static_cast<size_t>(label) >= leaf_of_.size()) leaf_of_.resize(static_cast<size_t>(label) + 1, -1);
  if (leaf_of_[static_cast<size_t>(label)] < 0) grow(label);
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work_);
  path_.clear();
  for (int32_t v = leaf_of_[static_cast<size_t>(label)]; v >= 0; v = at(v).parent) path_.push_back(v);
  at(path_[0]).examples += weight;
  if (options_.filter) {  // from the leaf up, as long as the label wins
    for (size_t i = 1; i < path_.size(); ++i) {
      if (learn_router(path_[i], path_[i - 1], weight)) continue;
      trace_.add(Kind::stop, {path_[i]});
      break;
    }
  } else {
    for (size_t i = path_.size() - 1; i > 0; --i) learn_router(path_[i], path_[i - 1], weight);
  }
}

// The router learns that the example belongs to the child; returns whether it then agrees.
bool BalancedTree::learn_router(int32_t node, int32_t child, double weight) {
  Node& v = at(node);
  const bool is_right = v.right == child;
  const float score = routers_.learn(node, 0, is_right ? 1.0 : -1.0, weight, work_);
  trace_.add(Kind::target, {node}, {is_right ? 1.0 : -1.0});
  v.examples += weight;
  if (score > 0) v.sent_right += weight;
  const bool agrees = (score > 0) == is_right;
  if (agrees) v.agreed += weight;
  return agrees;
}

// A new label takes half of a leaf drawn among the shallowest.
void BalancedTree::grow(int32_t label) {
  if (nodes_.empty()) {
    new_leaf(-1, label, shallow_);
    return;
  }
  std::swap(shallow_[random_.below(static_cast<uint32_t>(shallow_.size()))], shallow_.back());
  const int32_t node = shallow_.back();
  shallow_.pop_back();
  const int32_t old = at(node).label;
  const bool old_is_left = random_.below(2) == 0;
  const int32_t left = new_leaf(node, old_is_left ? old : label, deep_);
  const int32_t right = new_leaf(node, old_is_left ? label : old, deep_);
  at(node).left = left;
  at(node).right = right;
  at(node).label = -1;
  std::swap(at(old_is_left ? left : right).examples, at(node).examples);  // the old label's
  routers_.add(node, [this](int32_t v) { return at(v).parent; });
  if (shallow_.empty()) shallow_.swap(deep_);
  trace_.add(Kind::grow, {node, left, right}, {}, {at(left).label, at(right).label});
}

int32_t BalancedTree::new_leaf(int32_t parent, int32_t label, std::vector<int32_t>& level) {
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({.parent = parent, .label = label});
  n_labels_ += leaf_of_[static_cast<size_t>(label)] < 0;
  leaf_of_[static_cast<size_t>(label)] = node;
  level.push_back(node);
  return node;
}

template <class Index>
int32_t BalancedTree::best_label(Row<Index> row, Work& work) const {
  if (nodes_.empty()) return -1;
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work);
  int32_t v = 0;
  while (!at(v).leaf()) v = routers_.score(v, work) > 0 ? at(v).right : at(v).left;
  return at(v).label;
}

// Best first: the cheapest branch goes on, ties to the one that follows its routers longer.
template <class Index>
void BalancedTree::rank(Row<Index> row, int32_t top, int32_t* labels, float* scores, Work& work,
                        std::vector<Branch>& heap) const {
  const auto after = [](const Branch& a, const Branch& b) {
    if (a.cost != b.cost) return a.cost > b.cost;
    return a.overruled != b.overruled ? a.overruled > b.overruled : a.depth > b.depth;
  };
  const auto push = [&](const Branch& branch) {
    heap.push_back(branch);
    std::push_heap(heap.begin(), heap.end(), after);
  };
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work);
  heap.assign(1, {0.0, 0, 0, 0});
  for (int32_t k = 0; k < top && !heap.empty();) {
    std::pop_heap(heap.begin(), heap.end(), after);
    const Branch here = heap.back();
    heap.pop_back();
    const Node& v = at(here.node);
    if (v.leaf()) {
      labels[k] = v.label;
      scores[k++] = static_cast<float>(std::exp(-here.cost));
      continue;
    }
    const float margin = routers_.score(here.node, work);
    const bool right = margin > 0;
    const uint64_t bit = uint64_t{1} << (kMostDepth - 1 - here.depth);
    push({here.cost, here.overruled, here.depth + 1, right ? v.right : v.left});
    push({here.cost + std::fabs(static_cast<double>(margin)), here.overruled | bit, here.depth + 1, right ? v.left : v.right});
  }
}

template <class Rows>
void BalancedTree::predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores,
                               Monitor& monitor) const {
  std::fill_n(labels, X.n_rows * top, -1);
  std::fill_n(scores, X.n_rows * top, 0.0f);
  if (nodes_.empty()) return;
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    Work work;
    std::vector<Branch> heap;
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      if (top > 1) {
        rank(X.row(i), top, labels + i * top, scores + i * top, work, heap);
        continue;
      }
      labels[i] = best_label(X.row(i), work);
      scores[i] = 1.0f;
    }
  });
}

template <class Index>
std::pair<std::vector<BalancedTree::Step>, int32_t> BalancedTree::path(Row<Index> row) const {
  Work work;
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work);
  std::vector<Step> steps;
  int32_t v = 0;
  while (!at(v).leaf()) {
    const float margin = routers_.score(v, work);
    const int32_t child = margin > 0 ? at(v).right : at(v).left;
    steps.push_back({v, margin, child});
    v = child;
  }
  return {steps, v};
}

// Whether the links make one binary tree of all nodes, not too deep, a router at each internal one, a label at each leaf.
bool BalancedTree::is_tree() const {
  std::vector<std::pair<int32_t, int>> stack{{0, 0}};
  size_t met = 0;
  while (!stack.empty() && met <= nodes_.size()) {
    const auto [v, depth] = stack.back();
    const Node& node = at(v);
    stack.pop_back();
    ++met;
    if (depth >= kMostDepth || node.leaf() == routers_.has(v) || node.leaf() != (node.right < 0) || node.leaf() != (node.label >= 0)) {
      return false;
    }
    if (node.leaf()) continue;
    for (const int32_t child : {node.left, node.right}) {
      if (child <= 0 || child >= std::ssize(nodes_) || at(child).parent != v) return false;
      stack.emplace_back(child, depth + 1);
    }
  }
  return met == nodes_.size() && at(0).parent == -1;
}

bool BalancedTree::restore(std::vector<Node> nodes, std::vector<int32_t> shallow, std::vector<int32_t> deep,
                           const OnlineRegressors::Arrays<OnlineRegressors::View>& routers) {
  if (!routers_.restore(routers, std::ssize(nodes))) return false;
  nodes_ = std::move(nodes);
  if (!nodes_.empty() && !is_tree()) return false;
  std::vector<bool> listed(nodes_.size());
  for (const std::vector<int32_t>* const level : {&shallow, &deep}) {
    for (const int32_t leaf : *level) {
      if (leaf < 0 || leaf >= std::ssize(nodes_) || !at(leaf).leaf() || listed[static_cast<size_t>(leaf)]) return false;
      listed[static_cast<size_t>(leaf)] = true;
    }
  }
  for (int32_t v = 0; v < std::ssize(nodes_); ++v) {
    if (!at(v).leaf()) continue;
    const auto label = static_cast<size_t>(at(v).label);
    if (label >= leaf_of_.size()) leaf_of_.resize(label + 1, -1);
    if (!listed[static_cast<size_t>(v)] || leaf_of_[label] >= 0) return false;
    leaf_of_[label] = v;
    ++n_labels_;
  }
  shallow_ = std::move(shallow);
  deep_ = std::move(deep);
  return nodes_.empty() || !shallow_.empty();
}

#define SAPWOOD_FOR_INDEX(Index)                                           \
  template void BalancedTree::learn_row(Row<Index>, int32_t, double);      \
  template int32_t BalancedTree::best_label(Row<Index>, Work&) const;      \
  template std::pair<std::vector<BalancedTree::Step>, int32_t> BalancedTree::path(Row<Index>) const;
SAPWOOD_FOR_INDEX(int32_t)
SAPWOOD_FOR_INDEX(int64_t)
#undef SAPWOOD_FOR_INDEX

#define SAPWOOD_FOR_ROWS(Rows) \
  template void BalancedTree::predict_top(const Rows&, int32_t, int, int32_t*, float*, Monitor&) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
