#include "regressors/lane_store.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "threads/gate.h"

namespace sapwood {

namespace {

constexpr int64_t kMostDirect = int64_t{1} << 20;
constexpr int64_t kLane = kExactLanes;

}  // namespace

LaneStore::LaneStore(const Rule& rule, int64_t n_columns, bool path_only)
    : rule_(rule),
      path_only_(path_only),
      n_columns_(n_columns),
      n_direct_(path_only ? 0 : std::min(n_columns, kMostDirect)),
      directories_(static_cast<size_t>(n_direct_) + 1) {
  reserve(1);
  std::fill_n(weights_.get(), kLane, 0.0f);
  n_lines_ = 1;
}

int32_t LaneStore::feature_of(uint64_t key) const {
  if (static_cast<int64_t>(key) <= n_direct_) return static_cast<int32_t>(key);
  return index_.line_of(key, kUnknown);
}

int32_t LaneStore::feature_or_new(uint64_t key) {
  int32_t feature = feature_of(key);
  if (feature != kUnknown) return feature;
  feature = static_cast<int32_t>(directories_.size());
  directories_.emplace_back();
  indexed_.push_back(key);
  index_.add(key, feature);
  return feature;
}

void LaneStore::find(const OnlineRow& row, std::vector<int32_t>& features) const {
  features.clear();
  for (const uint32_t column : row.columns) features.push_back(feature_of(column_key(column)));
  if (!path_only_) features.push_back(0);
  for (const uint64_t key : row.path) features.push_back(feature_of(key));
  for (const int32_t feature : features) {
    if (feature != kUnknown) __builtin_prefetch(&directories_[static_cast<size_t>(feature)]);
  }
}

void LaneStore::find_or_add(const OnlineRow& row, std::vector<int32_t>& features) {
  features.clear();
  for (const uint32_t column : row.columns) features.push_back(feature_or_new(column_key(column)));
  if (!path_only_) features.push_back(0);
  for (const uint64_t key : row.path) features.push_back(feature_or_new(key));
}

int32_t LaneStore::line_of(int32_t feature, int32_t bank) const {
  const Directory d = load_shared(directories_[static_cast<size_t>(feature)]);
  if (d.log_size == kNone) return kNothing;
  const Entry* const table = &entries_[d.first];
  const uint32_t mask = (1u << d.log_size) - 1;
  for (uint32_t s = home(bank, d);; s = (s + 1) & mask) {
    const Entry entry = load_shared(table[s]);
    if (entry.line == kNothing || entry.bank == bank) return entry.line;
  }
}

void LaneStore::find_lines(std::span<const int32_t> features, std::span<const int32_t> banks, int32_t* lines) const {
  const size_t n = features.size();
  for (const int32_t feature : features) {  // all that is waited for below is asked for first
    if (feature == kUnknown) continue;
    const Directory d = load_shared(directories_[static_cast<size_t>(feature)]);
    if (d.log_size == kNone) continue;
    const Entry* const table = &entries_[d.first];
    for (const int32_t bank : banks) __builtin_prefetch(table + home(bank, d));
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t b = 0; b < banks.size(); ++b) {
      const int32_t line = features[k] == kUnknown ? kNothing : line_of(features[k], banks[b]);
      lines[b * n + k] = line;
      __builtin_prefetch(weights_.get() + kLane * line);
    }
  }
}

void LaneStore::add_missing(std::span<const int32_t> features, int32_t bank, int32_t* lines) {
  for (size_t k = 0; k < features.size(); ++k) {
    if (lines[k] != kNothing) continue;
    lines[k] = line_of(features[k], bank);  // another thread may have made it by now
    if (lines[k] == kNothing) lines[k] = add_line(features[k], bank);
  }
}

bool LaneStore::has_room(std::span<const int32_t> features) const {
  const auto n = static_cast<size_t>(std::count(features.begin(), features.end(), kUnknown));
  const auto fits = [&](const auto& list) { return list.size() + n <= list.capacity(); };
  return n == 0 || (fits(directories_) && fits(indexed_) && index_.has_room(n));
}

bool LaneStore::has_room(std::span<const int32_t> features, const int32_t* lines) const {
  int64_t n_lines = 0;
  size_t n_entries = 0;  // at most: all tables that a directory comes to have, as if each line had its own
  for (size_t k = 0; k < features.size(); ++k) {
    if (lines[k] != kNothing) continue;
    const Directory& d = directories_[static_cast<size_t>(features[k])];
    ++n_lines;
    n_entries += 6 + (d.log_size == kNone ? 0 : size_t{4} << d.log_size);
  }
  return n_lines_ + n_lines <= room_ && entries_.size() + n_entries <= entries_.capacity();
}

void LaneStore::set_shared(bool is_shared) {
  is_shared_ = is_shared;
  for (const auto& [first, log_size] : left_) free_[log_size].push_back(first);
  left_.clear();
}

void LaneStore::reserve(int64_t n_lines) {
  if (n_lines <= room_) return;
  const int64_t room = std::min<int64_t>(std::max<int64_t>(n_lines, 4 * room_ + 64), INT32_MAX);  // untouched pages cost nothing
  if (n_lines > INT32_MAX) throw std::length_error("the model has more than 2^31 lines of weights");
  const auto moved = [&](AlignedArray<float>& array) {
    AlignedArray<float> larger(static_cast<size_t>(room * kLane));
    std::copy_n(array.get(), n_lines_ * kLane, larger.get());
    array = std::move(larger);
  };
  moved(weights_);
  if (rule_.adagrad) moved(squares_);
  room_ = room;
}

// A directory that is three quarters full moves to a table twice as large, the first time to one of two entries.
LaneStore::Directory LaneStore::widened(const Directory& old) {
  const size_t log_size = old.log_size == kNone ? 1 : old.log_size + 1;
  free_.resize(std::max(free_.size(), log_size + 1));
  if (free_[log_size].empty()) {
    const size_t first = entries_.size();
    if (first + (size_t{1} << log_size) > UINT32_MAX) throw std::length_error("the model has too many lines of weights");
    entries_.resize(first + (size_t{1} << log_size));
    free_[log_size].push_back(static_cast<uint32_t>(first));
  }
  Directory wide = old;
  wide.first = free_[log_size].back();
  free_[log_size].pop_back();
  wide.log_size = static_cast<uint32_t>(log_size) & 31;
  const uint32_t size = 1u << log_size;
  std::fill_n(entries_.begin() + wide.first, size, Entry{0, kNothing});
  if (old.log_size == kNone) return wide;
  for (uint32_t i = 0; i < 1u << old.log_size; ++i) {
    const Entry entry = entries_[old.first + i];
    if (entry.line == kNothing) continue;
    uint32_t s = home(entry.bank, wide);
    while (entries_[wide.first + s].line != kNothing) s = (s + 1) & (size - 1);
    entries_[wide.first + s] = entry;
  }
  if (is_shared_) {
    left_.emplace_back(old.first, old.log_size);
  } else {
    free_[old.log_size].push_back(old.first);
  }
  return wide;
}

int32_t LaneStore::add_line(int32_t feature, int32_t bank) {
  reserve(n_lines_ + 1);
  Directory d = directories_[static_cast<size_t>(feature)];
  if (d.is_full()) d = widened(d);
  uint32_t s = home(bank, d);
  while (entries_[d.first + s].line != kNothing) s = (s + 1) & ((1u << d.log_size) - 1);
  const auto line = static_cast<int32_t>(n_lines_++);
  ++d.used;
  std::fill_n(weights_.get() + kLane * line, kLane, 0.0f);
  if (rule_.adagrad) std::fill_n(squares_.get() + kLane * line, kLane, rule_.initial);
  store_shared(entries_[d.first + s], Entry{bank, line});  // who finds a line finds it ready
  store_shared(directories_[static_cast<size_t>(feature)], d);
  return line;
}

std::vector<LaneStore::Line> LaneStore::all() const {
  std::vector<Line> lines(static_cast<size_t>(n_lines_) - 1);
  for (size_t feature = 0; feature < directories_.size(); ++feature) {
    const Directory& d = directories_[feature];
    for (uint32_t i = 0; d.log_size != kNone && i < 1u << d.log_size; ++i) {
      const Entry& entry = entries_[d.first + i];
      if (entry.line != kNothing) lines[static_cast<size_t>(entry.line) - 1] = {key_of(feature), entry.bank};
    }
  }
  return lines;
}

uint64_t LaneStore::key_of(size_t feature) const {
  const size_t n_direct = static_cast<size_t>(n_direct_) + 1;
  return feature < n_direct ? feature : indexed_[feature - n_direct];
}

bool LaneStore::has_learned(int32_t line, int64_t lane) const {
  const int64_t at = kLane * line + lane;
  return weights_.get()[at] != 0 || (rule_.adagrad && squares_.get()[at] != rule_.initial);
}

// by_bank: the last line made in each bank.
void LaneStore::move_lines(const LaneStore& from, size_t feature, std::span<const int32_t> places, std::vector<int32_t>& by_bank) {
  const Directory& d = from.directories_[feature];
  if (d.log_size == kNone) return;
  std::vector<Entry> entries;
  std::copy_if(from.entries_.begin() + d.first, from.entries_.begin() + d.first + (int64_t{1} << d.log_size),
               std::back_inserter(entries), [](const Entry& entry) { return entry.line != kNothing; });
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.line < b.line; });
  for (const Entry& entry : entries) {
    __builtin_prefetch(from.weights_.get() + kLane * entry.line);
    if (rule_.adagrad) __builtin_prefetch(from.squares_.get() + kLane * entry.line);
  }
  const int64_t first_line = n_lines_;
  int32_t own = kUnknown;
  for (const Entry& entry : entries) {
    for (int64_t lane = 0; lane < kLane; ++lane) {
      if (!from.has_learned(entry.line, lane)) continue;
      const auto place = static_cast<uint32_t>(places[static_cast<size_t>(entry.bank * kLane + lane)]);
      int32_t& line = by_bank[place / kLane];
      if (line < first_line) {  // of a feature before
        if (own == kUnknown) own = feature_or_new(from.key_of(feature));
        line = add_line(own, static_cast<int32_t>(place / kLane));
      }
      const int64_t to = kLane * line + place % kLane, at = kLane * entry.line + lane;
      weights_.get()[to] = from.weights_.get()[at];
      if (rule_.adagrad) squares_.get()[to] = from.squares_.get()[at];
    }
  }
}

void LaneStore::arrange(std::span<const int32_t> places) {
  LaneStore arranged(rule_, n_columns_, path_only_);
  arranged.n_banks_ = n_banks_;
  arranged.is_shared_ = is_shared_;
  arranged.reserve(room_);  // pages that are not touched cost nothing
  std::vector<int32_t> by_bank(static_cast<size_t>(n_banks_), kNothing);
  for (size_t feature = 0; feature < directories_.size(); ++feature) arranged.move_lines(*this, feature, places, by_bank);
  *this = std::move(arranged);
}

size_t LaneStore::index_bytes() const {
  return directories_.size() * sizeof(Directory) + entries_.size() * sizeof(Entry) + index_.bytes();
}

int32_t LaneStore::restore(const Line& line) {
  const int32_t feature = feature_or_new(line.key);
  if (line_of(feature, line.bank) != kNothing) return kNothing;
  return add_line(feature, line.bank);
}

}  // namespace sapwood
