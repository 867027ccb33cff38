#include "regressors/online_bank.h"

#include <algorithm>
#include <utility>

namespace sapwood {

namespace {

constexpr int64_t kWidth = kExactLanes;

}  // namespace

void OnlineBank::reset() {
  columns_ = {};
  path_ = {};
  keys_ = {};
  weights_ = {};
  squares_ = {};
  n_lines_ = room_ = 0;
  reserve(kFirstKey);
  while (n_lines_ < kFirstKey) clear_line(n_lines_++);
}

void OnlineBank::clear_line(int64_t line) {
  std::fill_n(weights_.get() + kWidth * line, kWidth, 0.0f);
  if (rule_.adagrad) std::fill_n(squares_.get() + kWidth * line, kWidth, rule_.initial);
}

void OnlineBank::reserve(int64_t n_lines) {
  if (n_lines <= room_) return;
  const size_t room = LinePool::room(static_cast<size_t>(n_lines));
  const auto grow = [&](LinePool::Lines& lines) {
    LinePool::Lines more = pool_->take(room);
    std::copy_n(lines.get(), n_lines_ * kWidth, more.get());
    lines = std::move(more);
  };
  grow(weights_);
  if (rule_.adagrad) grow(squares_);
  room_ = static_cast<int64_t>(room);
}

void OnlineBank::make_room(int64_t n_lines) {
  reserve(n_lines);
  keys_.reserve(static_cast<size_t>(n_lines));
  columns_.reserve(static_cast<size_t>(n_lines));
}

int32_t OnlineBank::add(uint64_t key) {
  reserve(n_lines_ + 1);
  const auto line = static_cast<int32_t>(n_lines_++);
  clear_line(line);
  keys_.push_back(key);
  if (key >> 32) {
    path_.add(key, line);
  } else {
    columns_.add(static_cast<uint32_t>(key), line);
  }
  return line;
}

void OnlineBank::find(const OnlineRow& row, int32_t* lines) const {
  prefetch(row);
  const float* const weights = weights_.get();
  for (const uint32_t column : row.columns) {
    const int32_t line = columns_.line_of(column, kNothing);
    __builtin_prefetch(weights + kWidth * line);
    *lines++ = line;
  }
  *lines = kConstant;
}

void OnlineBank::add_missing(const OnlineRow& row, int32_t* lines) {
  for (const uint32_t column : row.columns) {
    if (*lines == kNothing) *lines = line_or_add(column);  // another thread may have made it by now
    if (rule_.adagrad) __builtin_prefetch(squares_.get() + kWidth * *lines);
    ++lines;
  }
}

void OnlineBank::find_or_add(const OnlineRow& row, int32_t* lines) {
  find(row, lines);
  add_missing(row, lines);
}

void OnlineBank::find_path(const OnlineRow& row, int32_t* lines) const {
  for (const uint64_t key : row.path) *lines++ = path_.line_of(key, kNothing);
}

void OnlineBank::find_or_add_path(const OnlineRow& row, int32_t* lines) {
  for (const uint64_t key : row.path) {
    int32_t line = path_.line_of(key, kNothing);
    if (line == kNothing) line = add(key);
    *lines++ = line;
  }
}

void OnlineBank::clear_lane(int lane) {
  for (int64_t line = 0; line < n_lines_; ++line) weights_.get()[kWidth * line + lane] = 0.0f;
  if (!rule_.adagrad) return;
  for (int64_t line = 0; line < n_lines_; ++line) squares_.get()[kWidth * line + lane] = rule_.initial;
}

int32_t OnlineBank::line_or_add(uint64_t key) {
  const int32_t line = key >> 32 ? path_.line_of(key, kNothing) : columns_.line_of(static_cast<uint32_t>(key), kNothing);
  return line == kNothing ? add(key) : line;
}

template <class Visit>
void OnlineBank::for_each_moved(const std::array<Lane, 16>& to, Visit visit) const {
  for (int64_t line = kConstant; line < n_lines_; ++line) {
    const float* const w = weights_.get() + kWidth * line;
    const float* const g = rule_.adagrad ? squares_.get() + kWidth * line : nullptr;
    for (size_t lane = 0; lane < to.size(); ++lane) {
      if (to[lane].bank && (w[lane] != 0.0f || (g && g[lane] != rule_.initial))) visit(line, lane);
    }
  }
}

void OnlineBank::expect_lanes(const std::array<Lane, 16>& to) const {
  std::pair<int64_t, const OnlineBank*> last{-1, nullptr};
  for_each_moved(to, [&](int64_t line, size_t lane) {
    OnlineBank* const bank = to[lane].bank;
    if (last != std::pair<int64_t, const OnlineBank*>{line, bank}) ++bank->n_expected_;
    last = {line, bank};
  });
}

void OnlineBank::move_lanes(const std::array<Lane, 16>& to) {
  std::pair<int64_t, const OnlineBank*> last{-1, nullptr};
  int64_t there = 0;
  for_each_moved(to, [&](int64_t line, size_t lane) {
    OnlineBank* const bank = to[lane].bank;
    if (last != std::pair<int64_t, const OnlineBank*>{line, bank}) {
      if (bank->n_expected_ > 0) bank->make_room(kFirstKey + std::exchange(bank->n_expected_, 0));
      there = line == kConstant ? kConstant : bank->line_or_add(keys_[static_cast<size_t>(line - kFirstKey)]);
    }
    last = {line, bank};
    bank->weights_.get()[kWidth * there + to[lane].lane] = weights_.get()[kWidth * line + static_cast<int64_t>(lane)];
    if (rule_.adagrad) bank->squares_.get()[kWidth * there + to[lane].lane] = squares_.get()[kWidth * line + static_cast<int64_t>(lane)];
  });
  reset();
}

bool OnlineBank::restore(std::span<const uint64_t> keys, const float* weights, const float* squares) {
  reset();
  for (const uint64_t key : keys) {
    const int32_t there = key >> 32 ? path_.line_of(key, kNothing) : columns_.line_of(static_cast<uint32_t>(key), kNothing);
    if (there != kNothing) return false;
    add(key);
  }
  const int64_t n = (n_lines_ - kConstant) * kWidth;
  std::copy_n(weights, n, weights_.get() + kConstant * kWidth);
  if (rule_.adagrad) std::copy_n(squares, n, squares_.get() + kConstant * kWidth);
  return true;
}

size_t OnlineBank::bytes() const {
  const size_t lines = static_cast<size_t>(room_ * kWidth) * sizeof(float) * (rule_.adagrad ? 2 : 1);
  return lines + columns_.bytes() + path_.bytes() + keys_.capacity() * sizeof(uint64_t);
}

}  // namespace sapwood
