// Many banks over one set of features: a row that meets several banks is looked up once.
//
// Every feature has a directory of the banks that know it, and in each of them a line of 16 weights and, apart, a line of
// 16 sums of squared gradients, which predicting never touches. All lines lie in one array.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "aligned.h"
#include "regressors/exact_kernels.h"
#include "regressors/feature_index.h"
#include "regressors/online_row.h"
#include "solvers/rule.h"

namespace sapwood {

class LaneStore {
 public:
  // path_only: the rows are dense, and only their path features live here.
  LaneStore(const Rule& rule, int64_t n_columns, bool path_only);

  int32_t add_bank() { return n_banks_++; }
  [[nodiscard]] int32_t n_banks() const { return n_banks_; }

  // features: of the row's columns, the constant, the path features; kUnknown where no bank knows one.
  void find(const OnlineRow& row, std::vector<int32_t>& features) const;
  void find_or_add(const OnlineRow& row, std::vector<int32_t>& features);

  template <class Index>
  void prefetch(Row<Index> row) const {
    for (int64_t k = 0; k < row.count; ++k) {
      const auto column = static_cast<int64_t>(row.index[k]);
      if (column < n_direct_) __builtin_prefetch(&directories_[static_cast<size_t>(column) + 1]);
    }
  }

  // lines: banks x features; kNothing, which holds zeros, where a bank does not know a feature.
  void find_lines(std::span<const int32_t> features, std::span<const int32_t> banks, int32_t* lines) const;
  // lines: of the features in one bank; those that are not there are made.
  void add_missing(std::span<const int32_t> features, int32_t bank, int32_t* lines);

  // While several threads learn, one at a time may add, and others read, as long as no memory moves: if there is room for
  // the features of a row that are kUnknown, and for those lines of a bank that are kNothing.
  [[nodiscard]] bool has_room(std::span<const int32_t> features) const;
  [[nodiscard]] bool has_room(std::span<const int32_t> features, const int32_t* lines) const;
  void set_shared(bool is_shared);

  [[nodiscard]] const float* weights() const { return weights_.get(); }
  [[nodiscard]] float* weights() { return weights_.get(); }
  [[nodiscard]] float* squares() { return rule_.adagrad ? squares_.get() : nullptr; }
  [[nodiscard]] const float* squares() const { return rule_.adagrad ? squares_.get() : nullptr; }

  static constexpr int32_t kUnknown = -1;
  static constexpr int32_t kNothing = 0;

  // Lines 1 and on, in the order in which they were made: whose feature and bank each is.
  struct Line {
    uint64_t key;  // column + 1, a path feature (see online_row.h), or 0: the constant
    int32_t bank;
  };
  [[nodiscard]] int64_t n_lines() const { return n_lines_; }
  [[nodiscard]] std::vector<Line> all() const;
  // Makes a line and gives its number; kNothing if it was there.
  int32_t restore(const Line& line);
  // Moves every lane from place p (16 x bank + lane) to places[p]. Lines on which nothing was learned are dropped, and
  // those of one feature come to lie together.
  void arrange(std::span<const int32_t> places);

  // Of the directories.
  [[nodiscard]] size_t index_bytes() const;

 private:
  static constexpr uint32_t kNone = 31;
  struct alignas(8) Entry {
    int32_t bank;
    int32_t line;  // kNothing: an empty slot
  };
  // An open-addressed table of 2^log_size entries that begins at `first`; none if log_size is kNone. Read and written as
  // one word.
  struct alignas(8) Directory {
    uint32_t first = 0;
    uint32_t used : 27 = 0;
    uint32_t log_size : 5 = kNone;

    [[nodiscard]] bool is_full() const { return log_size == kNone || 4u * (used + 1u) > 3u << log_size; }
  };

  [[nodiscard]] static uint64_t column_key(uint32_t column) { return static_cast<uint64_t>(column) + 1; }
  [[nodiscard]] int32_t feature_of(uint64_t key) const;
  int32_t feature_or_new(uint64_t key);
  [[nodiscard]] static uint32_t home(int32_t bank, const Directory& d) {
    return static_cast<uint32_t>(bank) & ((1u << d.log_size) - 1);
  }
  [[nodiscard]] int32_t line_of(int32_t feature, int32_t bank) const;
  int32_t add_line(int32_t feature, int32_t bank);
  [[nodiscard]] Directory widened(const Directory& old);
  void reserve(int64_t n_lines);

  [[nodiscard]] uint64_t key_of(size_t feature) const;
  [[nodiscard]] bool has_learned(int32_t line, int64_t lane) const;
  void move_lines(const LaneStore& from, size_t feature, std::span<const int32_t> places, std::vector<int32_t>& by_bank);

  Rule rule_;
  bool path_only_;
  int64_t n_columns_;
  int64_t n_direct_;                  // columns below have feature 1 + column without a look-up
  int32_t n_banks_ = 0;
  FeatureIndex<uint64_t> index_;      // of all other features
  std::vector<uint64_t> indexed_;     // their keys
  std::vector<Directory> directories_;  // by feature; 0 is the constant
  std::vector<Entry> entries_;
  std::vector<std::vector<uint32_t>> free_;  // tables left by directories that have grown, by log_size
  std::vector<std::pair<uint32_t, uint32_t>> left_;  // (first, log_size) of those that another thread may still read
  bool is_shared_ = false;
  AlignedArray<float> weights_, squares_;
  int64_t n_lines_ = 0;
  int64_t room_ = 0;
};

}  // namespace sapwood
