#include "trees/recall_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "trees/bank_order.h"
#include "trees/predict.h"

namespace sapwood {

namespace {

using Kind = TreeEvent::Kind;

constexpr int64_t kRowsATask = 256;

// The smallest d with base^d >= k.
int32_t ceil_log(int64_t k, int64_t base) {
  int32_t d = 0;
  for (int64_t power = 1; power < k; power *= base) ++d;
  return d;
}

// After 2^10, 2^13, 2^16, ... examples: an arrangement costs as much as learning some thousands of rows.
bool is_time_to_arrange(int64_t n_before, int64_t n_examples) {
  const int log = std::bit_width(static_cast<uint64_t>(n_examples)) - 1;
  return log >= 10 && log % 3 == 1 && n_before < int64_t{1} << log;
}

// A label's score as a probability: targets are -1 and +1, which a score short of them may pass.
double label_probability(OnlineLoss loss, double score) {
  if (loss == OnlineLoss::logistic) return sigmoid(score);
  return std::fmin(1.0, std::fmax(0.0, 0.5 + 0.5 * score));
}

}  // namespace

RecallTree::RecallTree(const RecallTreeOptions& options, bool dense, int64_t n_columns, uint64_t random_state)
    : options_(options),
      random_(random_state),
      routers_(options.router_rule, dense, n_columns, options.arity == 2 ? 1 : options.arity),
      labels_(options.score_rule, dense, n_columns),
      nodes_(1) {
  if (options_.max_depth >= 0) depth_limit_ = options_.max_depth;
  set_limits();
}

// Takes note of a label, and tells whether it is new; the limits follow the number of labels seen.
bool RecallTree::know(int32_t label) {
  if (static_cast<size_t>(label) >= known_.size()) known_.resize(static_cast<size_t>(label) + 1);
  if (known_[static_cast<size_t>(label)]) return false;
  known_[static_cast<size_t>(label)] = true;
  ++n_labels_;
  set_limits();
  return true;
}

void RecallTree::set_limits() {
  const int32_t wanted = options_.max_candidates > 0 ? options_.max_candidates : std::max(1, 4 * ceil_log(n_labels_, 2));
  if (options_.max_depth < 0) depth_limit_ = ceil_log((n_labels_ + wanted - 1) / wanted, options_.arity);
  if (wanted == n_candidates_) return;
  n_candidates_ = wanted;
  for (Node& node : nodes_) {
    node.hist.widen(n_candidates_);
    node.bound = node.hist.recall_bound(options_.bound);
  }
}

// Takes note of a label. True if its regressor is still to be made, which whoever carries out the task then does.
bool RecallTree::meet(int32_t label, Gate::Pass* pass) {
  if (!pass) return know(label);
  if (static_cast<size_t>(label) < known_.size() && known_[static_cast<size_t>(label)]) return false;
  pass->alone([&] {
    if (know(label)) labels_.add(label);
  });
  return false;
}

void RecallTree::count(int32_t number, int32_t label, double weight, Gate::Pass* pass) {
  {
    Node& node = at(number);
    const Guard guard(node.lock, pass);
    if (is_alone(pass)) {
      node.hist.add(label, weight, n_candidates_);
      node.bound = node.hist.recall_bound(options_.bound);
      return;
    }
    if (node.hist.has_room(label)) {
      node.hist.add_shared(label, weight, n_candidates_);
      return store_shared(node.bound, node.hist.recall_bound(options_.bound));
    }
  }
  pass->alone([&] { count(number, label, weight, pass); });
}

// A leaf above the depth limit gets children when an example comes to it.
bool RecallTree::has_children(int32_t node, Gate::Pass* pass) {
  if (!at(node).leaf()) return true;
  if (at(node).depth >= depth_limit_) return false;
  run_alone(pass, [&] {
    if (at(node).leaf()) add_children(node);
  });
  return true;
}

void RecallTree::add_children(int32_t node) {
  const auto first = static_cast<int32_t>(nodes_.size());
  at(node).first_child = first;
  nodes_.resize(nodes_.size() + static_cast<size_t>(options_.arity));
  for (auto child = nodes_.begin() + first; child != nodes_.end(); ++child) {
    child->parent = node;
    child->depth = at(node).depth + 1;
  }
  routers_.add(node, [&](int32_t v) { return at(v).parent; });
  if (trace_.wanted()) {
    std::vector<int32_t> told(static_cast<size_t>(options_.arity) + 1, node);
    std::iota(told.begin() + 1, told.end(), first);
    trace_.add_lists(Kind::split, std::move(told), {}, {});
  }
}

double RecallTree::importance(double delta, double total, double weight) const {
  if (options_.router_weight == RouterWeight::none) return weight;
  return options_.router_weight == RouterWeight::mean ? delta / total : delta;
}

// Algorithm 3; the scores after it. costs[i] is (n_i + w) H'_i - n_i H_i. Lane i learns whether child i is better than the
// best of the others, weighted by how much; of two children only the right one has a lane.
const float* RecallTree::update_router(int32_t number, int32_t label, double weight, Work& work) {
  const Node& node = at(number);
  const auto arity = static_cast<size_t>(options_.arity);
  const float* margins = routers_.scores_to_learn(number, work.online);
  work.costs.resize(arity);
  for (size_t i = 0; i < arity; ++i) {
    const LabelCounts& hist = nodes_[static_cast<size_t>(node.first_child) + i].hist;
    work.costs[i] = is_alone(work.online.pass) ? hist.cost(label, weight) : hist.cost_shared(label, weight);
  }
  // least cost, and the least of the others
  double best = std::numeric_limits<double>::infinity(), second = best;
  for (const double cost : work.costs) {
    second = std::min(second, std::max(best, cost));
    best = std::min(best, cost);
  }
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
    if (trace_.wanted()) targets.push_back(target);
  }
  if (trace_.wanted()) trace_.add_lists(Kind::target, {number}, std::move(targets), {});
  return routers_.learn_all(number, work.pushes.data(), work.online);
}

// f > 0 goes right; of more than two children the best lane, ties to the first.
int32_t RecallTree::best_child(const float* margins) const {
  if (options_.arity == 2) return margins[0] > 0;
  return static_cast<int32_t>(std::max_element(margins, margins + options_.arity) - margins);
}

// As best_child, or at random, child i in proportion to the probability that its lane says yes.
int32_t RecallTree::training_child(const float* margins, Random& random) const {
  if (!options_.randomized_routing) return best_child(margins);
  const OnlineLoss loss = options_.router_rule.loss;
  double sums[16];
  double sum = 0;
  for (int i = 0; i < options_.arity; ++i) {
    const double margin = options_.arity > 2 ? margins[i] : i == 0 ? -margins[0] : margins[0];
    sum += score_probability(loss, margin);
    sums[i] = sum;
  }
  const double u = random.uniform() * sum;
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
      const float value = row.value[k] * work.scale;
      if (value != 0) work.online.row.add_path(path_key(node, static_cast<uint32_t>(row.index[k])), value);
    }
  }
}

// The fewest of the heaviest labels that hold `coverage` of the node's examples.
std::span<const LabelCount> RecallTree::candidates(const Node& node) const {
  const std::span<const LabelCount> top = node.hist.top();
  if (options_.coverage >= 1) return top;
  const double enough = options_.coverage * node.hist.total();
  double mass = 0;
  size_t n = 0;
  while (n < top.size() && mass < enough) mass += top[n++].count;
  return top.first(n);
}

void RecallTree::set_candidates(int32_t node, Work& work) const {
  work.candidates.clear();
  for (const LabelCount& entry : candidates(at(node))) work.candidates.push_back(entry.label);
}

// Algorithm 4, or a question.
void RecallTree::carry_out(const Task& task, Learner& learner) {
  if (task.is_new) labels_.add(task.label);
  if (task.is_question || task.learns) ask_or_teach(task, learner);
  if (!task.order.empty()) labels_.arrange(task.order);
}

void RecallTree::ask_or_teach(const Task& task, Learner& learner) {
  LabelRegressors::Work& scoring = learner.scoring;
  const auto score = [&] { labels_.score(task.candidates, task.row, scoring); };
  const auto learn = [&] { return labels_.learn(task.candidates, task.label, task.weight, task.row, scoring); };
  score();
  if (task.is_question) {
    const auto best = std::max_element(scoring.scores.begin(), scoring.scores.end()) - scoring.scores.begin();
    Progressive& progressive = learner.pass ? learner.progressive : progressive_;
    progressive.count(task.candidates[static_cast<size_t>(best)] != task.label, task.weight);
  } else if (!learn()) {
    learner.pass->alone([&] { score(), static_cast<void>(learn()); });
  }
}

void RecallTree::open(Learner& learner, Gate::Pass* pass) {
  constexpr size_t kTasks = 256;
  learner.pass = learner.work.online.pass = learner.scoring.pass = pass;
  labels_.set_shared(pass != nullptr);
  if (pass) {
    learner.random = Random(random_.next());
  } else if (n_threads_ > 1) {
    learner.pipe = std::make_unique<Pipe<Task>>(kTasks, [this, &learner](Task& task) { carry_out(task, learner); });
  }
}

void RecallTree::settle(Learner& learner) {
  if (learner.pipe) learner.pipe->finish();
  if (!learner.pass) return;
  const int64_t learned = std::exchange(learner.n_learned, 0);
  const Progressive counted = std::exchange(learner.progressive, {});
  bool is_time = false;
  {
    const Guard guard(settling_, learner.pass);
    is_time = is_time_to_arrange(n_examples_, n_examples_ + learned);
    n_examples_ += learned;
    progressive_.wrong += counted.wrong;
    progressive_.seen += counted.seen;
  }
  if (is_time) learner.pass->alone([&] { labels_.arrange(arrangement()); });
}

template <class Index>
void RecallTree::start(Row<Index> row, Work& work) const {
  work.scale = options_.normalize ? unit_scale(row) : 1.0f;
  routers_.start(row, work.scale, work.online);
  work.entered.clear();
}

template <class Index>
void RecallTree::test_row(Row<Index> row, int32_t label, double weight, Learner& learner) {
  if (at(0).hist.total() == 0) {  // then no task is under way
    return (learner.pass ? learner.progressive : progressive_).count(true, weight);
  }
  Work& work = learner.work;
  const int32_t node = descend(row, work, nullptr).node;
  add_path(row, node, work);
  {
    const Guard guard(at(node).lock, learner.pass);
    set_candidates(node, work);
  }
  Task& task = learner.pipe ? learner.pipe->next() : learner.task;
  task.is_question = true;
  task.is_new = false;
  task.label = label;
  task.weight = weight;
  task.order.clear();
  hand_over(task, learner);
}

// Algorithm 2.
template <class Index>
void RecallTree::learn_row(Row<Index> row, int32_t label, double weight, Learner& learner) {
  if (weight == 0) return;
  Task& task = learner.pipe ? learner.pipe->next() : learner.task;
  Gate::Pass* const pass = learner.pass;
  Work& work = learner.work;
  if (!pass) trace_.next_example();
  task.is_question = false;
  task.is_new = meet(label, pass);
  task.label = label;
  task.weight = weight;
  start(row, work);
  int32_t n = 0;
  count(n, label, weight, pass);
  while (has_children(n, pass)) {
    for (int32_t i = 0; i < options_.arity; ++i) at(at(n).first_child + i).hist.prefetch(label);
    const float* const margins = update_router(n, label, weight, work);
    const int32_t c = at(n).first_child + training_child(margins, learner.random ? *learner.random : random_);
    trace_.add(Kind::route, {n, c});
    count(c, label, weight, pass);
    if (stops(at(n), at(c))) {
      trace_.add(Kind::stop, {n, c});
      break;
    }
    n = c;
    work.entered.push_back(n);
  }
  add_path(row, n, work);
  {
    const Guard guard(at(n).lock, pass);
    set_candidates(n, work);
    ++at(n).endings;
  }
  if (trace_.wanted()) trace_.add_lists(Kind::candidates, {n}, {}, work.candidates);
  task.learns = std::find(work.candidates.begin(), work.candidates.end(), label) != work.candidates.end();
  task.order.clear();
  if (pass) {
    ++learner.n_learned;
  } else if (++n_examples_; is_time_to_arrange(n_examples_ - 1, n_examples_)) {
    task.order = arrangement();
  }
  hand_over(task, learner);
}

// The row and its candidates go into the task, and the task to who carries it out.
void RecallTree::hand_over(Task& task, Learner& learner) {
  std::swap(task.row, learner.work.online.row);
  std::swap(task.candidates, learner.work.candidates);
  learner.pipe ? learner.pipe->push() : carry_out(task, learner);
}

// Labels that are candidates together share banks.
std::vector<int32_t> RecallTree::arrangement() {
  std::vector<LabelList> lists;
  for (Node& node : nodes_) {
    if (node.endings == 0) continue;
    lists.push_back({{}, node.endings});
    for (const LabelCount& entry : candidates(node)) lists.back().labels.push_back(entry.label);
    node.endings = 0;
  }
  return bank_order(lists);
}

// Algorithm 1, up to the node whose candidates are to be scored.
template <class Index>
RecallTree::Ending RecallTree::descend(Row<Index> row, Work& work, Explanation* told) const {
  start(row, work);
  int32_t n = 0;
  while (!at(n).leaf()) {
    const float* const margins = routers_.scores(n, work.online);
    const int32_t chosen = best_child(margins);
    const int32_t c = at(n).first_child + chosen;
    if (told) {
      told->steps.push_back({n, margins[lanes() == 1 ? 0 : chosen], c});
      told->margins.insert(told->margins.end(), margins, margins + lanes());
    }
    if (stops(at(n), at(c))) return {n, at(c).hist.total() == 0 ? Stopped::empty_child : Stopped::recall};
    n = c;
    work.entered.push_back(n);
  }
  return {n, Stopped::leaf};
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
  if (n_labels_ == 0) return -1;
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

// Adds to the candidates, until there are `top`, the next labels of the node, those of the nodes above, then all labels.
void RecallTree::fill_up(int32_t top, int32_t node, std::span<const LabelCount> all, Work& work) const {
  const auto add = [&](std::span<const LabelCount> labels) {
    for (const LabelCount& entry : labels) {
      if (std::ssize(work.candidates) >= top) return;
      if (std::find(work.candidates.begin(), work.candidates.end(), entry.label) == work.candidates.end()) {
        work.candidates.push_back(entry.label);
      }
    }
  };
  for (int32_t n = node; n >= 0 && std::ssize(work.candidates) < top; n = at(n).parent) add(at(n).hist.top());
  if (all.size() > work.candidates.size()) add(all);
}

template <class Rows>
void RecallTree::predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* probabilities,
                             Monitor& monitor) const {
  std::vector<LabelCount> all;
  if (top > n_candidates_) {
    all = at(0).hist.all();
    std::sort(all.begin(), all.end(), comes_before);
  }
  const OnlineLoss loss = options_.score_rule.loss;
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    Work work;
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const int32_t node = descend(X.row(i), work, nullptr).node;
      score_candidates(X.row(i), node, work);
      rank(top, work);
      int32_t k = 0;
      for (; k < std::min(top, static_cast<int32_t>(work.order.size())); ++k) {
        const auto place = static_cast<size_t>(work.order[static_cast<size_t>(k)]);
        labels[i * top + k] = work.candidates[place];
        probabilities[i * top + k] = static_cast<float>(label_probability(loss, static_cast<double>(work.labels.scores[place])));
      }
      if (k < top) fill_up(top, node, all, work);
      for (; k < top; ++k) {
        const auto place = static_cast<size_t>(k);
        labels[i * top + k] = place < work.candidates.size() ? work.candidates[place] : -1;
        probabilities[i * top + k] = 0;
      }
    }
  });
}

template <class Index>
RecallTree::Explanation RecallTree::explain(Row<Index> row) const {
  Explanation told;
  Work work;
  told.ending = descend(row, work, &told);
  score_candidates(row, told.ending.node, work);
  rank(std::numeric_limits<int32_t>::max(), work);
  for (const int32_t place : work.order) {
    told.labels.push_back(work.candidates[static_cast<size_t>(place)]);
    told.scores.push_back(work.labels.scores[static_cast<size_t>(place)]);
  }
  return told;
}

// Whether every node but the root is a child of one node before it, and the routers stand where the children do.
bool RecallTree::is_tree() const {
  std::vector<int32_t> parents(nodes_.size(), -1);
  for (size_t v = 0; v < nodes_.size(); ++v) {
    const int32_t first = nodes_[v].first_child;
    if (routers_.has(static_cast<int32_t>(v)) != (first >= 0)) return false;
    if (first < 0) continue;
    if (first <= static_cast<int32_t>(v) || first > std::ssize(nodes_) - options_.arity) return false;
    for (auto c = static_cast<size_t>(first); c < static_cast<size_t>(first + options_.arity); ++c) {
      if (parents[c] >= 0) return false;
      parents[c] = static_cast<int32_t>(v);
    }
  }
  for (size_t v = 0; v < nodes_.size(); ++v) {
    if (nodes_[v].parent != parents[v] || (v > 0 && parents[v] < 0)) return false;
  }
  return true;
}

bool RecallTree::restore(std::vector<Node> nodes, const OnlineRegressors::Arrays<OnlineRegressors::View>& routers,
                         const LabelRegressors::Arrays<LabelRegressors::View>& labels, int64_t n_examples) {
  if (nodes.empty() || !labels_.restore(labels)) return false;
  nodes_ = std::move(nodes);
  if (!routers_.restore(routers, std::ssize(nodes_)) || !is_tree()) return false;
  for (size_t v = 1; v < nodes_.size(); ++v) nodes_[v].depth = at(nodes_[v].parent).depth + 1;
  for (const Node& node : nodes_) {
    for (const LabelCount& entry : node.hist.all()) {
      if (!labels_.knows(entry.label)) return false;
    }
  }
  n_examples_ = n_examples;
  n_labels_ = labels_.size();
  for (int32_t label = 0; label < std::ssize(labels.places); ++label) known_.push_back(labels_.knows(label));
  n_candidates_ = 0;
  set_limits();
  return n_labels_ == 0 || at(0).hist.total() > 0;
}

#define SAPWOOD_FOR_INDEX(Index)                                                     \
  template void RecallTree::learn_row(Row<Index>, int32_t, double, Learner&);        \
  template void RecallTree::test_row(Row<Index>, int32_t, double, Learner&);         \
  template int32_t RecallTree::best_label(Row<Index>, RecallTree::Work&) const;      \
  template RecallTree::Explanation RecallTree::explain(Row<Index>) const;
SAPWOOD_FOR_INDEX(int32_t)
SAPWOOD_FOR_INDEX(int64_t)
#undef SAPWOOD_FOR_INDEX

#define SAPWOOD_FOR_ROWS(Rows) \
  template void RecallTree::predict_top(const Rows&, int32_t, int, int32_t*, float*, Monitor&) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
