// Sixteen regressors that learn online, one lane each: a line of 16 weights for every feature met, and apart from them
// a line of 16 sums of squared gradients, which predicting never touches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "regressors/exact_kernels.h"
#include "regressors/feature_index.h"
#include "regressors/line_pool.h"
#include "regressors/online_row.h"
#include "solvers/rule.h"

namespace sapwood {

class OnlineBank {
 public:
  // The pool must outlive the bank.
  OnlineBank(const Rule& rule, LinePool& pool) : rule_(rule), pool_(&pool) { reset(); }

  // Asks for the memory that find will look at first.
  void prefetch(const OnlineRow& row) const {
    for (const uint32_t column : row.columns) columns_.prefetch(column);
  }

  template <class Index>
  void prefetch_columns(Row<Index> row) const {
    for (int64_t k = 0; k < row.count; ++k) columns_.prefetch(static_cast<uint32_t>(row.index[k]));
  }

  // lines: of the row's columns and, last, of the constant; kNothing, which holds zeros, where a column has no line.
  void find(const OnlineRow& row, int32_t* lines) const;
  // The same, and lines that are not there are made.
  void find_or_add(const OnlineRow& row, int32_t* lines);

  // For who has found and will learn: makes the lines that are not there, and asks for the step state.
  void add_missing(const OnlineRow& row, int32_t* lines);
  // For so many lines in all. add_missing makes room by itself, but little by little.
  void make_room(int64_t n_lines);
  // Whether so many lines can be made without moving memory: then one thread may make them while others read and learn.
  [[nodiscard]] bool has_room(size_t n) const {
    return n_lines_ + static_cast<int64_t>(n) <= room_ && columns_.has_room(n) && keys_.size() + n <= keys_.capacity();
  }

  // The same for the row's path features; a bank may have them only.
  void find_path(const OnlineRow& row, int32_t* lines) const;
  void find_or_add_path(const OnlineRow& row, int32_t* lines);

  [[nodiscard]] const float* weights() const { return weights_.get(); }
  [[nodiscard]] float* weights() { return weights_.get(); }
  [[nodiscard]] const float* squares() const { return rule_.adagrad ? squares_.get() : nullptr; }
  [[nodiscard]] float* squares() { return rule_.adagrad ? squares_.get() : nullptr; }

  // The lane is as new: no weights, no step state.
  void clear_lane(int lane);
  // Where a lane goes; null: nowhere.
  struct Lane {
    OnlineBank* bank = nullptr;
    int lane = 0;
  };
  // Gives weights and step state to lanes of other banks, which must be as new, and forgets everything. Room that
  // all of them have been told to expect before is made at once, not little by little.
  void expect_lanes(const std::array<Lane, 16>& to) const;
  void move_lanes(const std::array<Lane, 16>& to);
  // Forgets everything and gives the memory back.
  void reset();

  // Lines: kNothing, the constant, then one for each of keys(): a column, or a path feature above 2^32.
  static constexpr int32_t kNothing = 0;
  static constexpr int32_t kConstant = 1;
  static constexpr int32_t kFirstKey = 2;
  [[nodiscard]] int64_t n_lines() const { return n_lines_; }
  [[nodiscard]] const std::vector<uint64_t>& keys() const { return keys_; }
  [[nodiscard]] size_t bytes() const;

  // Takes back keys(), and weights() and squares() from the constant's line on; false if a feature stands twice.
  [[nodiscard]] bool restore(std::span<const uint64_t> keys, const float* weights, const float* squares);

 private:
  int32_t add(uint64_t key);
  void clear_line(int64_t line);
  int32_t line_or_add(uint64_t key);
  // Calls visit(line, lane) for every lane that goes somewhere and has learned something, line after line.
  template <class Visit>
  void for_each_moved(const std::array<Lane, 16>& to, Visit visit) const;
  void reserve(int64_t n_lines);

  Rule rule_;
  FeatureIndex<uint32_t> columns_;
  FeatureIndex<uint64_t> path_;
  std::vector<uint64_t> keys_;
  LinePool* pool_;
  LinePool::Lines weights_, squares_;
  int64_t n_lines_ = 0;
  int64_t room_ = 0;
  int64_t n_expected_ = 0;  // lines, see expect_lanes
};

}  // namespace sapwood
