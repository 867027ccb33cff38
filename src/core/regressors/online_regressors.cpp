#include "regressors/online_regressors.h"

#include <cstdlib>

namespace sapwood {

namespace {

// Of the row's columns, how many have no line.
size_t n_missing(const OnlineWork& work) {
  const auto n = static_cast<std::ptrdiff_t>(work.row.columns.size());
  return static_cast<size_t>(std::count(work.lines.begin(), work.lines.begin() + n, OnlineBank::kNothing));
}

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
      pages_.emplace_back(rule_, *pool_);
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
  Page old(rule_, *pool_);
  std::swap(old, pages_[static_cast<size_t>(bank)]);
  free_.push_back(bank);  // for the nodes that stay
  int32_t half[2] = {-1, -1};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] < 0) continue;
    bool moves = false;
    climb(i, nodes, parents, [&](size_t above) { moves |= above == top; });
    add_to(half[moves], nodes[i]);
    half[moves] = place(nodes[i]).bank;
  }
  const std::array<OnlineBank::Lane, 16> to = lanes_now(nodes);
  old.bank.expect_lanes(to);
  old.bank.move_lanes(to);
}

// Those in use, in the order of the first of their nodes: the same whether the model was read from a file or not.
std::vector<int32_t> OnlineRegressors::banks_in_order() const {
  std::vector<int32_t> banks;
  std::vector<bool> met(pages_.size());
  for (const Place at : places_) {
    if (at.bank < 0 || met[static_cast<size_t>(at.bank)]) continue;
    met[static_cast<size_t>(at.bank)] = true;
    banks.push_back(at.bank);
  }
  return banks;
}

void OnlineRegressors::rebuild(const Pages& plan) {
  ++version_;
  const std::vector<int32_t> old_banks = banks_in_order();
  std::vector<Page> old = std::move(pages_);
  pages_.clear();
  free_.clear();
  for (const std::vector<int32_t>& nodes : plan) {
    const auto bank = static_cast<int32_t>(pages_.size());
    pages_.emplace_back(rule_, *pool_);
    free_.push_back(bank);
    for (size_t i = 0; i < nodes.size(); ++i) add_to(i == 0 ? -1 : bank, nodes[i]);
  }
  std::vector<std::array<OnlineBank::Lane, 16>> to(old_banks.size());
  for (size_t b = 0; b < old_banks.size(); ++b) {
    const Page& from = old[static_cast<size_t>(old_banks[b])];
    to[b] = lanes_now(from.nodes);
    from.bank.expect_lanes(to[b]);
  }
  for (size_t b = 0; b < old_banks.size(); ++b) old[static_cast<size_t>(old_banks[b])].bank.move_lanes(to[b]);
}

// Where the lanes of a page are now that its nodes have other places.
std::array<OnlineBank::Lane, 16> OnlineRegressors::lanes_now(const std::array<int32_t, 16>& nodes) {
  std::array<OnlineBank::Lane, 16> to{};
  for (size_t i = 0; i < static_cast<size_t>(capacity()); ++i) {
    if (nodes[i] < 0) continue;
    const Place there = place(nodes[i]);
    for (int w = 0; w < width_; ++w) {
      to[i * static_cast<size_t>(width_) + static_cast<size_t>(w)] = {&pages_[static_cast<size_t>(there.bank)].bank, there.lane + w};
    }
  }
  return to;
}

const float* OnlineRegressors::dense_scores(Place at, OnlineWork& work) const {
  const float* const weights = rows_[static_cast<size_t>(at.bank)].weights.get();
  for (int w = 0; w < width_; ++w) {
    work.scores[static_cast<size_t>(w)] = exact_kernels().dense_score(weights + w * stride(), work.row.values.data(), stride());
  }
  return work.scores.data();
}

void OnlineRegressors::found(int32_t bank, bool writable, OnlineWork& work) const {
  work.bank = bank;
  work.scored = false;
  work.writable = writable;
  work.version = version_;
}

// The scores of the bank whose lines are in the work.
void OnlineRegressors::read(OnlineWork& work) const {
  work.scores.fill(0.0f);
  exact_kernels().add_scores(pages_[static_cast<size_t>(work.bank)].bank.weights(), work.entries(), work.scores.data());
  work.scored = true;
}

void OnlineRegressors::prefetch(int32_t node, const OnlineWork& work) const {
  if (!dense_) pages_[static_cast<size_t>(place(node).bank)].bank.prefetch(work.row);
}

void OnlineRegressors::look_ahead(int32_t node, OnlineWork& work) const {
  if (dense_) return;
  work.next_bank = place(node).bank;
  work.version = version_;
  pages_[static_cast<size_t>(work.next_bank)].bank.find(work.row, work.next_lines.data());
}

void OnlineRegressors::look_up(int32_t node, OnlineWork& work) const {
  const Place at = place(node);
  if (dense_ || is_here(at.bank, work)) return;
  pages_[static_cast<size_t>(at.bank)].bank.find(work.row, work.lines.data());
  found(at.bank, false, work);
}

const float* OnlineRegressors::scores(int32_t node, OnlineWork& work) const {
  const Place at = place(node);
  if (dense_) return dense_scores(at, work);
  look_up(node, work);
  if (!work.scored) read(work);
  return work.scores.data() + at.lane;
}

const float* OnlineRegressors::scores_to_learn(int32_t node, OnlineWork& work) {
  const Place at = place(node);
  if (dense_) return dense_scores(at, work);
  if (!is_here(at.bank, work)) {
    if (work.next_bank == at.bank && work.version == version_) {
      work.lines.swap(work.next_lines);
    } else {
      pages_[static_cast<size_t>(at.bank)].bank.find(work.row, work.lines.data());
    }
    work.next_bank = -1;
    found(at.bank, false, work);
  }
  if (!work.scored) read(work);
  return work.scores.data() + at.lane;
}

// Before a step on the node's bank, which is at hand: lines that are missing are made. False if the node has lost its
// routers: it may while the thread waits to be alone, and the bank may be another.
bool OnlineRegressors::make_lines(int32_t node, OnlineWork& work) {
  if (work.writable) return true;
  const auto add_missing = [&](Page& page) {
    page.bank.add_missing(work.row, work.lines.data());
    work.writable = true;
  };
  {
    Page& page = pages_[static_cast<size_t>(work.bank)];
    const Guard guard(page.adding, work.pass);
    if (is_alone(work.pass) || page.bank.has_room(n_missing(work))) add_missing(page);
  }
  if (work.writable) return true;
  bool is_there = false;
  work.pass->alone([&] {
    is_there = has(node);
    if (!is_there) return;
    scores_to_learn(node, work);
    Page& page = pages_[static_cast<size_t>(work.bank)];
    page.bank.make_room(2 * page.bank.n_lines() + std::ssize(work.row.columns));
    add_missing(page);
  });
  return is_there;
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
  const float pushed = push(rule_, score, target, weight);
  if (pushed == 0) return score;
  if (!make_lines(node, work)) return score;
  OnlineBank& bank = pages_[static_cast<size_t>(work.bank)].bank;
  const int lane = place(node).lane + which;
  const float after = exact_kernels().learn_lane(bank.weights(), bank.squares(), work.entries(), lane, pushed, rule_.step);
  work.scores[static_cast<size_t>(lane)] = after;
  return after;
}

const float* OnlineRegressors::learn_all(int32_t node, const float* pushes, OnlineWork& work) {
  const Place at = place(node);
  if (dense_) {
    DenseRow& row = rows_[static_cast<size_t>(at.bank)];
    for (int w = 0; w < width_; ++w) {
      float* const squares = rule_.adagrad ? row.squares.get() + w * stride() : nullptr;
      work.scores[static_cast<size_t>(w)] = exact_kernels().dense_learn(row.weights.get() + w * stride(), squares, work.row.values.data(),
                                                                        stride(), pushes[w], rule_.step);
    }
    return work.scores.data();
  }
  const float* const before = scores_to_learn(node, work);
  if (std::all_of(pushes, pushes + width_, [](float by) { return by == 0; })) return before;
  if (!make_lines(node, work)) return before;
  const int32_t lane = place(node).lane;
  alignas(64) std::array<float, 16> all{};
  std::copy_n(pushes, width_, all.begin() + lane);
  OnlineBank& bank = pages_[static_cast<size_t>(work.bank)].bank;
  exact_kernels().learn_lanes(bank.weights(), bank.squares(), work.entries(), all.data(), rule_.step);
  read(work);
  return work.scores.data() + lane;
}

void OnlineRegressors::put_bank(const OnlineBank& bank, Arrays<Owned>& out) {
  constexpr int64_t first = OnlineBank::kConstant * kExactLanes;
  const int64_t end = bank.n_lines() * kExactLanes;
  out.keys.push_back(0);
  out.keys.insert(out.keys.end(), bank.keys().begin(), bank.keys().end());
  out.weights.insert(out.weights.end(), bank.weights() + first, bank.weights() + end);
  if (bank.squares()) out.squares.insert(out.squares.end(), bank.squares() + first, bank.squares() + end);
  out.bank_lines.push_back(static_cast<int64_t>(out.keys.size()));
}

OnlineRegressors::Arrays<OnlineRegressors::Owned> OnlineRegressors::arrays() const {
  Arrays<Owned> out;
  std::vector<int32_t> number(pages_.size(), -1);
  out.bank_lines.push_back(0);
  for (const int32_t bank : dense_ ? std::vector<int32_t>{} : banks_in_order()) {
    number[static_cast<size_t>(bank)] = static_cast<int32_t>(out.bank_lines.size()) - 1;
    put_bank(pages_[static_cast<size_t>(bank)].bank, out);
  }
  for (const Place at : places_) {
    out.lanes.push_back(at.bank < 0 ? -1 : at.lane);
    if (at.bank < 0 || dense_) {
      out.banks.push_back(at.bank < 0 ? -1 : 0);
      if (at.bank < 0) continue;
      const DenseRow& row = rows_[static_cast<size_t>(at.bank)];
      const int64_t n = stride() * width_;
      out.weights.insert(out.weights.end(), row.weights.get(), row.weights.get() + n);
      if (rule_.adagrad) out.squares.insert(out.squares.end(), row.squares.get(), row.squares.get() + n);
      continue;
    }
    out.banks.push_back(number[static_cast<size_t>(at.bank)]);
  }
  return out;
}

bool OnlineRegressors::restore_page(const Arrays<View>& arrays, size_t bank) {
  const int64_t first = arrays.bank_lines[bank], end = arrays.bank_lines[bank + 1];
  if (first >= end || end > static_cast<int64_t>(arrays.keys.size())) return false;
  const auto keys = arrays.keys.subspan(static_cast<size_t>(first + 1), static_cast<size_t>(end - first - 1));
  const float* const squares = rule_.adagrad ? arrays.squares.data() + first * kExactLanes : nullptr;
  pages_.emplace_back(rule_, *pool_);
  return pages_.back().bank.restore(keys, arrays.weights.data() + first * kExactLanes, squares);
}

bool OnlineRegressors::restore(const Arrays<View>& arrays, int64_t n_nodes) {
  const auto n_banks = static_cast<int64_t>(arrays.bank_lines.size()) - 1;
  const auto n_lines = static_cast<int64_t>(arrays.keys.size());
  if (static_cast<int64_t>(arrays.banks.size()) > n_nodes || arrays.lanes.size() != arrays.banks.size() || n_banks < 0) return false;
  const int64_t n_rows = std::ssize(arrays.banks) - std::count(arrays.banks.begin(), arrays.banks.end(), -1);
  const int64_t n_floats = dense_ ? n_rows * stride() * width_ : n_lines * kExactLanes;
  if (std::ssize(arrays.weights) != n_floats || std::ssize(arrays.squares) != (rule_.adagrad ? n_floats : 0)) return false;
  if (arrays.bank_lines[0] != 0 || arrays.bank_lines[static_cast<size_t>(n_banks)] != n_lines || (dense_ && n_banks != 0)) return false;
  for (int64_t bank = 0; bank < n_banks; ++bank) {
    if (!restore_page(arrays, static_cast<size_t>(bank))) return false;
  }
  places_.resize(arrays.banks.size());
  int64_t row = 0;
  for (size_t node = 0; node < arrays.banks.size(); ++node) {
    const int32_t bank = arrays.banks[node], lane = arrays.lanes[node];
    if (bank == -1) continue;
    if (dense_) {
      add_row(static_cast<int32_t>(node));
      DenseRow& to = rows_.back();
      const int64_t n = stride() * width_;
      std::copy_n(arrays.weights.data() + row * n, n, to.weights.get());
      if (rule_.adagrad) std::copy_n(arrays.squares.data() + row * n, n, to.squares.get());
      ++row;
      continue;
    }
    if (bank < 0 || bank >= n_banks || lane < 0 || lane % width_ != 0 || lane / width_ >= capacity()) return false;
    Page& page = pages_[static_cast<size_t>(bank)];
    int32_t& slot = page.nodes[static_cast<size_t>(lane / width_)];
    if (slot >= 0) return false;
    slot = static_cast<int32_t>(node);
    ++page.n_nodes;
    places_[node] = {bank, lane};
  }
  return std::all_of(pages_.begin(), pages_.end(), [](const Page& page) { return page.n_nodes > 0; });
}

size_t OnlineRegressors::bytes() const {
  if (dense_) {
    const auto n_rows = rows_.size() - free_.size();
    return n_rows * static_cast<size_t>(stride() * width_) * sizeof(float) * (rule_.adagrad ? 2 : 1);
  }
  size_t sum = 0;
  for (const Page& page : pages_) sum += page.bank.bytes();
  return sum;
}

}  // namespace sapwood
