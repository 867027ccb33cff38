#include "trees/lom_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "trees/predict.h"

namespace sapwood {

static_assert(std::is_nothrow_move_constructible_v<LomTree::Node>);  // where nodes move their counts stay

namespace {

using Kind = TreeEvent::Kind;

constexpr int64_t kRowsATask = 256;
constexpr int64_t kRowsAtOnce = 8;  // as many wait for memory together
constexpr int32_t kNowhere = -1, kNew = -2;  // see place_to_split

}  // namespace

LomTree::LomTree(const Options& options, bool dense, int64_t n_columns)
    : options_(options), routers_(options.rule, dense, n_columns), nodes_(1) {}

double LomTree::T() const {
  if (options_.max_internal >= 0) return static_cast<double>(options_.max_internal);
  return static_cast<double>(options_.internal_per_label) * static_cast<double>(n_labels_) - 1;
}

void LomTree::know(int32_t label, Gate::Pass* pass) {
  const auto i = static_cast<size_t>(label);
  if (i >= known_.size()) {
    run_alone(pass, [&] { known_.resize(std::max(known_.size(), 2 * i + 1)); });
  }
  if (load_shared(known_[i])) return;
  const Guard guard(lock_.lock, pass);
  if (known_[i]) return;
  store_shared(known_[i], char{1});
  ++n_labels_;
}

template <class Index>
void LomTree::learn_row(Row<Index> row, int32_t label, double weight, Learner& learner) {
  if (weight == 0) return;
  Gate::Pass* const pass = learner.pass;
  if (!pass) trace_.next_example();
  know(label, pass);
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, learner.work);
  learner.next = -1;
  int32_t j = 0;
  while (true) {
    const int32_t recycles = at(j).recycles;
    const size_t n_labels = count(at(j), label, weight, learner);
    const bool ends = at(j).leaf() && !(n_labels >= 2 && split(j, pass));
    if (at(j).recycles != recycles) return;  // while this thread waited to be alone: the row's way is no more
    if (ends) break;
    look_ahead(j, label, learner);
    j = train(j, label, weight, learner);
    if (j < 0) return;
  }
  {
    const Guard guard(lock_.lock, pass);
    at(j).C += weight;
    update_c(j);
  }
  if (load_shared(t_) < next_repack_) return;
  run_alone(pass, [&] {
    if (t_ >= next_repack_) repack();
  });
}

void LomTree::settle(Learner& learner) {
  const Guard guard(lock_.lock, learner.pass);
  const Progressive counted = std::exchange(learner.progressive, {});
  progressive_.wrong += counted.wrong;
  progressive_.seen += counted.seen;
}

// Growth leaves banks half full, so the routers are laid out anew each time that the tree has doubled.
void LomTree::repack() {
  while (next_repack_ <= t_) next_repack_ *= 2;
  routers_.repack(0, [this](int32_t v) { return std::array{at(v).left, at(v).right}; }, [this](int32_t v) { return at(v).total; });
}

// l_j(y)++; how many labels the node knows.
size_t LomTree::count(Node& j, int32_t label, double weight, Learner& learner) {
  const Guard guard(j.lock, learner.pass);
  LomCount& y = j.counts.of(label);
  learner.counted = learner.pass ? nullptr : &y;
  const double l = y.l += weight;
  store_shared(j.total, j.total + weight);
  if (l > j.heaviest || (l == j.heaviest && label < j.heaviest_label)) {
    store_shared(j.heaviest, l);
    store_shared(j.heaviest_label, label);
  }
  return j.counts.size();
}

// Where a row enters a bank: asks for what the nodes on its likely way know of the label, and for what a look-up in the
// next bank reads; and one node later for that bank's lines. Learning seldom changes the way, and takes the time that
// memory needs. Where there are more threads nodes may move meanwhile: they look the bank up at once.
void LomTree::look_ahead(int32_t j, int32_t label, Learner& learner) {
  Work& work = learner.work;
  const int32_t next = std::exchange(learner.next, -1);
  if (!routers_.enters(j, work)) {
    if (next >= 0) routers_.look_ahead(next, work);
    return;
  }
  const int32_t bank = routers_.place(j).bank;
  learner.ahead.clear();
  while (!at(j).leaf() && routers_.place(j).bank == bank) {
    j = *routers_.scores_to_learn(j, work) > 0 ? at(j).right : at(j).left;
    learner.ahead.push_back(j);
    __builtin_prefetch(reinterpret_cast<const char*>(&at(j)) + 64);
  }
  if (!at(j).leaf()) routers_.prefetch(j, work);
  for (const int32_t v : learner.ahead) at(v).counts.prefetch(label);
  if (at(j).leaf()) return;
  if (learner.pass) return routers_.look_ahead(j, work);
  learner.next = j;
}

// What node j knows of the label that was counted there last.
LomCount& LomTree::counted(Node& j, int32_t label, Learner& learner) {
  return learner.counted ? *learner.counted : j.counts.of(label);
}

// Trains the router of j and says where the example goes by its new score; nowhere, -1, if j was taken from its place
// by another thread.
int32_t LomTree::train(int32_t number, int32_t label, double weight, Learner& learner) {
  double c = 0;
  const int32_t recycles = at(number).recycles;
  {
    Node& j = at(number);
    const Guard guard(j.lock, learner.pass);
    const LomCount& y = counted(j, label, learner);
    const double E = j.n_sum > 0 ? j.m_sum / j.n_sum : 0.0;
    const double e = y.n > 0 ? y.m / y.n : 0.0;
    c = e < E ? -1.0 : 1.0;
  }
  trace_.add(Kind::target, {number}, {c});
  const auto score = static_cast<double>(routers_.learn(number, 0, c, weight, learner.work));
  Node& j = at(number);
  if (j.recycles != recycles) return -1;
  {
    const Guard guard(j.lock, learner.pass);
    LomCount& y = counted(j, label, learner);
    y.n += weight;
    y.m += weight * score;
    j.n_sum += weight;
    j.m_sum += weight * score;
    if (score > 0) y.sent_right += weight;
  }
  const int32_t child = score > 0 ? j.right : j.left;
  trace_.add(Kind::route, {number, child});
  return child;
}

// Whence leaf j may get two children: kNew while t < T, else an orphan and its parent, if there is one; kNowhere.
int32_t LomTree::place_to_split(int32_t j) const {
  if (std::floor(at(j).C / 2) < at(j).floor) return kNowhere;
  if (static_cast<double>(t_) < T()) return kNew;
  const int32_t s = orphan();
  const bool is_worth_it =  // inequality (2)
      s >= 0 && at(j).C - load_shared(at(j).heaviest) > options_.swap_resistance * (at(s).C + 1);
  return is_worth_it ? s : kNowhere;
}

// Gives the leaf two children.
bool LomTree::split(int32_t j) {
  const int32_t s = place_to_split(j);
  if (s == kNowhere) return false;
  const double left_C = std::floor(at(j).C / 2);
  const double floor = s == kNew ? at(j).floor : std::max(at(j).floor, std::min(2 * (at(s).C + 1), left_C));
  const auto [left, right] = s == kNew ? create_children(j) : swap(j, s);
  routers_.add(j, [this](int32_t v) { return at(v).parent; });
  at(left).floor = at(right).floor = floor;
  at(left).C = left_C;
  at(right).C = at(j).C - left_C;
  at(j).right = right;
  store_shared(at(j).left, left);  // last: other threads may go down from here on
  update_c(left);
  return true;
}

// The same where other threads may do so too: whether j has children now. New ones are made in place if no memory moves.
bool LomTree::split(int32_t j, Gate::Pass* pass) {
  if (!pass) return split(j);
  {
    const Guard guard(lock_.lock, pass);
    if (!at(j).leaf()) return true;
    const int32_t s = place_to_split(j);
    if (s == kNowhere) return false;
    if (s == kNew && has_room_below(j)) return split(j);
  }
  pass->alone([&] {
    if (at(j).leaf() && at(j).counts.size() >= 2) split(j);
  });
  return !at(j).leaf();
}

bool LomTree::has_room_below(int32_t j) const {
  return nodes_.size() + 2 <= nodes_.capacity() && routers_.has_room(j, at(j).parent);
}

LomTree::Children LomTree::create_children(int32_t j) {
  const auto left = static_cast<int32_t>(nodes_.size());
  nodes_.resize(nodes_.size() + 2);
  at(left).parent = at(left + 1).parent = j;
  store_shared(t_, t_ + 1);
  trace_.add(Kind::split, {j, left, left + 1});
  return {left, left + 1};
}

// The smallest leaf that has a grandparent, ties to the left; -1 if there is none.
int32_t LomTree::orphan() const {
  const Node& root = at(0);
  if (root.leaf()) return -1;
  const auto larger = [this](int32_t v) { return at(v).leaf() ? std::numeric_limits<double>::infinity() : at(v).C; };
  if (at(root.left).leaf() && at(root.right).leaf()) return -1;
  int32_t v = larger(root.left) <= larger(root.right) && !at(root.left).leaf() ? root.left : root.right;
  while (!at(v).leaf()) v = at(at(v).left).C <= at(at(v).right).C ? at(v).left : at(v).right;
  return v;
}

// Swap(v), figure 2.
LomTree::Children LomTree::swap(int32_t v, int32_t s) {
  const int32_t s_pa = at(s).parent;
  const int32_t s_gpa = at(s_pa).parent;
  const int32_t s_sib = at(s_pa).left == s ? at(s_pa).right : at(s_pa).left;
  trace_.add(Kind::swap, {v, s, s_pa, s_gpa, s_sib}, {at(v).C, at(v).heaviest, at(s).C, at(0).C});
  (at(s_gpa).left == s_pa ? at(s_gpa).left : at(s_gpa).right) = s_sib;
  at(s_sib).parent = s_gpa;
  update_c(s_sib);
  set_node(s);
  set_node(s_pa);
  at(s).parent = at(s_pa).parent = v;
  return {s, s_pa};
}

// SetNode(v) on recycling: only the number of recycles stays, and the floor until it is set anew.
void LomTree::set_node(int32_t v) {
  if (!at(v).leaf()) routers_.remove(v);
  const int32_t recycles = at(v).recycles + 1;
  at(v) = {};
  at(v).recycles = recycles;
}

// UpdateC(v).
void LomTree::update_c(int32_t v) {
  while (at(v).parent >= 0 && at(at(v).parent).C != at(v).C) {
    v = at(v).parent;
    at(v).C = std::min(at(at(v).left).C, at(at(v).right).C);
  }
}

template <class Index>
int32_t LomTree::leaf_of(Row<Index> row, Work& work) const {
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work);
  int32_t j = 0;
  while (!at(j).leaf()) j = routers_.score(j, work) > 0 ? at(j).right : at(j).left;
  return j;
}

// A leaf that no example has reached answers as its parent.
int32_t LomTree::answering(int32_t leaf) const {
  return load_shared(at(leaf).total) > 0 || at(leaf).parent < 0 ? leaf : at(leaf).parent;
}

template <class Index>
int32_t LomTree::best_label(Row<Index> row, Work& work) const {
  return load_shared(at(answering(leaf_of(row, work))).heaviest_label);
}

std::vector<std::pair<int32_t, double>> LomTree::ranking(int32_t leaf, int32_t top, bool fill) const {
  std::vector<std::pair<int32_t, double>> ranking;
  const int32_t first = answering(leaf);
  for (int32_t v = first; v >= 0 && std::ssize(ranking) < top; v = fill ? at(v).parent : -1) {
    std::vector<LomCount> counts = at(v).counts.sorted();
    std::erase_if(counts, [&](const LomCount& count) {
      return std::any_of(ranking.begin(), ranking.end(), [&](const auto& listed) { return listed.first == count.label; });
    });
    const auto end = counts.begin() + std::min(top - std::ssize(ranking), std::ssize(counts));
    std::partial_sort(counts.begin(), end, counts.end(), [](const LomCount& a, const LomCount& b) {
      return a.l != b.l ? a.l > b.l : a.label < b.label;
    });
    std::for_each(counts.begin(), end, [&](const LomCount& count) {
      ranking.emplace_back(count.label, v == first ? count.l / at(v).total : 0.0);
    });
  }
  return ranking;
}

// Follows the routers as long as they lie in the bank at hand.
int32_t LomTree::leave_bank(int32_t j, Work& work) const {
  const int32_t bank = routers_.place(j).bank;
  do {
    j = routers_.score(j, work) > 0 ? at(j).right : at(j).left;
  } while (!at(j).leaf() && routers_.place(j).bank == bank);
  return j;
}

// Several rows go down together, a bank at a time, so that their waits for memory overlap.
template <class Rows>
void LomTree::leaves_of(const Rows& X, int64_t first, int64_t n, std::vector<Work>& works, int32_t* leaves) const {
  for (int64_t r = 0; r < n; ++r) {
    const auto row = X.row(first + r);
    routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, works[static_cast<size_t>(r)]);
    leaves[r] = 0;
  }
  const auto each_on_its_way = [&](auto visit) {
    bool any = false;
    for (int64_t r = 0; r < n; ++r) {
      if (at(leaves[r]).leaf()) continue;
      visit(leaves[r], works[static_cast<size_t>(r)]);
      any = true;
    }
    return any;
  };
  while (each_on_its_way([&](int32_t j, Work& work) { routers_.prefetch(j, work); })) {
    each_on_its_way([&](int32_t j, Work& work) { routers_.look_up(j, work); });
    each_on_its_way([&](int32_t& j, Work& work) { j = leave_bank(j, work); });
  }
}

template <class Rows>
void LomTree::predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores, Monitor& monitor) const {
  std::fill_n(labels, X.n_rows * top, -1);
  std::fill_n(scores, X.n_rows * top, 0.0f);
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    const int64_t end = std::min(X.n_rows, (task + 1) * kRowsATask);
    std::vector<Work> works(static_cast<size_t>(std::min(kRowsAtOnce, end - task * kRowsATask)));
    std::array<int32_t, kRowsAtOnce> leaves;
    for (int64_t first = task * kRowsATask; first < end; first += kRowsAtOnce) {
      const int64_t n = std::min<int64_t>(kRowsAtOnce, end - first);
      leaves_of(X, first, n, works, leaves.data());
      for (int64_t r = 0; r < n; ++r) answer(leaves[static_cast<size_t>(r)], top, labels + (first + r) * top, scores + (first + r) * top);
    }
  });
}

void LomTree::answer(int32_t leaf, int32_t top, int32_t* labels, float* scores) const {
  const Node& node = at(answering(leaf));
  if (node.heaviest_label < 0) return;
  if (top == 1) {
    *labels = node.heaviest_label;
    *scores = static_cast<float>(node.heaviest / node.total);
    return;
  }
  for (const auto& [label, share] : ranking(leaf, top, true)) {
    *labels++ = label;
    *scores++ = static_cast<float>(share);
  }
}

template <class Index>
std::pair<std::vector<LomTree::Step>, int32_t> LomTree::path(Row<Index> row) const {
  Work work;
  routers_.start(row, options_.normalize ? unit_scale(row) : 1.0f, work);
  std::vector<Step> steps;
  int32_t j = 0;
  while (!at(j).leaf()) {
    const float margin = routers_.score(j, work);
    const int32_t child = margin > 0 ? at(j).right : at(j).left;
    steps.push_back({j, margin, child});
    j = child;
  }
  return {steps, j};
}

// Whether the links make one binary tree of all nodes, every internal one with a router.
bool LomTree::is_tree() const {
  std::vector<int32_t> stack{0};
  size_t met = 0;
  while (!stack.empty() && met <= nodes_.size()) {
    const int32_t v = stack.back();
    const Node& node = at(v);
    stack.pop_back();
    ++met;
    if (node.leaf() == routers_.has(v) || node.leaf() != (node.right < 0)) return false;
    if (node.leaf()) continue;
    for (const int32_t child : {node.left, node.right}) {
      if (child <= 0 || child >= std::ssize(nodes_) || at(child).parent != v) return false;
      stack.push_back(child);
    }
  }
  return met == nodes_.size() && at(0).parent == -1;
}

bool LomTree::restore(std::vector<Node> nodes, const OnlineRegressors::Arrays<OnlineRegressors::View>& routers) {
  if (nodes.empty() || !routers_.restore(routers, std::ssize(nodes))) return false;
  nodes_ = std::move(nodes);
  if (!is_tree()) return false;
  t_ = std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.leaf(); });
  while (next_repack_ <= t_) next_repack_ *= 2;
  for (Node& node : nodes_) {
    node.heaviest = 0;
    for (const LomCount& count : node.counts.sorted()) {
      if (count.l > node.heaviest) {  // by label: the first of equals
        node.heaviest = count.l;
        node.heaviest_label = count.label;
      }
    }
  }
  for (const LomCount& count : at(0).counts.sorted()) know(count.label, nullptr);
  return true;
}

#define SAPWOOD_FOR_INDEX(Index)                                                            \
  template void LomTree::learn_row(Row<Index>, int32_t, double, Learner&);                  \
  template int32_t LomTree::best_label(Row<Index>, Work&) const;                            \
  template std::pair<std::vector<LomTree::Step>, int32_t> LomTree::path(Row<Index>) const;
SAPWOOD_FOR_INDEX(int32_t)
SAPWOOD_FOR_INDEX(int64_t)
#undef SAPWOOD_FOR_INDEX

#define SAPWOOD_FOR_ROWS(Rows) \
  template void LomTree::predict_top(const Rows&, int32_t, int, int32_t*, float*, Monitor&) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
