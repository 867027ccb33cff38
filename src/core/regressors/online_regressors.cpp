#include "regressors/online_regressors.h"

#include <cstdlib>

namespace sapwood {

namespace {

// The node's ancestors within its page, as positions in the page, itself first.
template <class Visit>
void climb(size_t at, const std::array<int32_t, 16>& nodes, const std::array<int32_t, 16>& parents, Visit visit) {
  while (at < nodes.size()) {
    visit(at);
    if (parents[at] < 0) return;
    at = static_cast<size_t>(std::find(nodes.begin(), nodes.end(), parents[at]) - nodes.begin());
  }
}

}  // namespace

void OnlineRegressors::set_place(int32_t node, Place place) {
  if (static_cast<size_t>(node) >= places_.size()) places_.resize(static_cast<size_t>(node) + 1);
  places_[static_cast<size_t>(node)] = place;
}

void OnlineRegressors::add_row(int32_t node) {
  const auto n = static_cast<size_t>(stride() * width_);
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(rows_.size()));
    rows_.emplace_back();
  }
  DenseRow& row = rows_[static_cast<size_t>(free_.back())];
  row.weights = AlignedArray<float>(n);
  std::fill_n(row.weights.get(), n, 0.0f);
  if (rule_.adagrad) {
    row.squares = AlignedArray<float>(n);
    std::fill_n(row.squares.get(), n, rule_.initial);
  }
  set_place(node, {free_.back(), 0});
  free_.pop_back();
}

void OnlineRegressors::add_to(int32_t bank, int32_t node) {
  if (bank < 0) {
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(pages_.size()));
      pages_.emplace_back(rule_);
    }
    bank = free_.back();
    free_.pop_back();
  }
  Page& page = pages_[static_cast<size_t>(bank)];
  const auto slot = std::find(page.nodes.begin(), page.nodes.end(), -1) - page.nodes.begin();
  page.nodes[static_cast<size_t>(slot)] = node;
  ++page.n_nodes;
  set_place(node, {bank, static_cast<int32_t>(slot) * width_});
}

void OnlineRegressors::remove(int32_t node) {
  const Place at = place(node);
  if (at.bank < 0) return;
  set_place(node, {});
  if (dense_) {
    rows_[static_cast<size_t>(at.bank)] = {};
    return free_.push_back(at.bank);
  }
  ++version_;
  Page& page = pages_[static_cast<size_t>(at.bank)];
  page.nodes[static_cast<size_t>(at.lane / width_)] = -1;
  if (--page.n_nodes == 0) {
    page.bank.reset();
    return free_.push_back(at.bank);
  }
  for (int lane = at.lane; lane < at.lane + width_; ++lane) page.bank.clear_lane(lane);
}

// The subtree that comes nearest to half of the page moves to a page of its own.
void OnlineRegressors::split(int32_t bank, const std::array<int32_t, 16>& parents) {
  if (capacity() == 1) return;
  ++version_;
  const std::array<int32_t, 16> nodes = pages_[static_cast<size_t>(bank)].nodes;
  std::array<int, 16> size{};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] >= 0) climb(i, nodes, parents, [&](size_t above) { ++size[above]; });
  }
  size_t top = 0;
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (std::abs(2 * size[i] - capacity()) < std::abs(2 * size[top] - capacity())) top = i;
  }
  int32_t other = -1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    bool moves = false;
    if (nodes[i] >= 0) climb(i, nodes, parents, [&](size_t above) { moves |= above == top; });
    if (!moves) continue;
    add_to(other, nodes[i]);
    const Place to = place(nodes[i]);
    other = to.bank;
    Page& from = pages_[static_cast<size_t>(bank)];
    for (int w = 0; w < width_; ++w) {
      const int lane = static_cast<int>(i) * width_ + w;
      from.bank.copy_lane(lane, pages_[static_cast<size_t>(other)].bank, to.lane + w);
      from.bank.clear_lane(lane);
    }
    from.nodes[i] = -1;
    --from.n_nodes;
  }
  pages_[static_cast<size_t>(bank)].bank.compact();
}

const float* OnlineRegressors::dense_scores(Place at, OnlineWork& work) const {
  const float* const weights = rows_[static_cast<size_t>(at.bank)].weights.get();
  for (int w = 0; w < width_; ++w) {
    work.scores[static_cast<size_t>(w)] = exact_kernels().dense_score(weights + w * stride(), work.row.values.data(), stride());
  }
  return work.scores.data();
}

// The scores of a bank whose lines are in the work.
void OnlineRegressors::read(int32_t bank, bool writable, OnlineWork& work) const {
  work.scores.fill(0.0f);
  exact_kernels().add_scores(pages_[static_cast<size_t>(bank)].bank.weights(), work.entries(), work.scores.data());
  work.bank = bank;
  work.writable = writable;
  work.version = version_;
}

const float* OnlineRegressors::scores(int32_t node, OnlineWork& work) const {
  const Place at = place(node);
  if (dense_) return dense_scores(at, work);
  if (!is_here(at.bank, work)) {
    pages_[static_cast<size_t>(at.bank)].bank.find(work.row, work.lines.data());
    read(at.bank, false, work);
  }
  return work.scores.data() + at.lane;
}

const float* OnlineRegressors::scores_to_learn(int32_t node, OnlineWork& work) {
  const Place at = place(node);
  if (dense_) return dense_scores(at, work);
  if (!is_here(at.bank, work) || !work.writable) {
    pages_[static_cast<size_t>(at.bank)].bank.find_or_add(work.row, work.lines.data());
    read(at.bank, true, work);
  }
  return work.scores.data() + at.lane;
}

float OnlineRegressors::learn(int32_t node, int which, double target, double weight, OnlineWork& work) {
  const Place at = place(node);
  if (dense_) {
    DenseRow& row = rows_[static_cast<size_t>(at.bank)];
    float* const weights = row.weights.get() + which * stride();
    float* const squares = rule_.adagrad ? row.squares.get() + which * stride() : nullptr;
    const float* const x = work.row.values.data();
    const float score = exact_kernels().dense_score(weights, x, stride());
    return exact_kernels().dense_learn(weights, squares, x, stride(), push(rule_, score, target, weight), rule_.step);
  }
  const float score = scores_to_learn(node, work)[which];
  OnlineBank& bank = pages_[static_cast<size_t>(at.bank)].bank;
  const int lane = at.lane + which;
  const float after = exact_kernels().learn_lane(bank.weights(), bank.squares(), work.entries(), lane,
                                                 push(rule_, score, target, weight), rule_.step);
  work.scores[static_cast<size_t>(lane)] = after;
  return after;
}

size_t OnlineRegressors::bytes() const {
  if (dense_) return (rows_.size() - free_.size()) * static_cast<size_t>(stride() * width_) * sizeof(float) * (rule_.adagrad ? 2 : 1);
  size_t sum = 0;
  for (const Page& page : pages_) sum += page.bank.bytes();
  return sum;
}

}  // namespace sapwood
