// The worst case of problem (9): the B columns with the largest sum over the folds of (sum_i alpha_i y_i x_ij)^2, found
// exactly in one pass over the data. Columns are summed block by block, so memory does not grow with their number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "budgeted/bac.h"
#include "budgeted/kernels.h"

namespace sapwood {

// Keeps the B largest scores of columns that come in ascending order: ties go to the smaller column, zeros are not taken.
class TopColumns {
 public:
  void start(int64_t budget) {
    budget_ = static_cast<size_t>(budget);
    heap_.clear();
  }
  void offer(int32_t column, double score);
  [[nodiscard]] std::vector<int32_t> columns() const;  // ascending
  [[nodiscard]] double sum() const;                    // of the scores kept

 private:
  using Scored = std::pair<double, int32_t>;  // score, ~column: the smallest is the first to give way
  size_t budget_ = 0;
  std::vector<Scored> heap_;
};

class WorstCase {
 public:
  // alpha: folds x rows, alpha_i y_i.
  template <class Rows>
  void find(const Rows& X, const BacProblem& problem, const std::vector<double>& alpha, int64_t budget, const Monitor& monitor);

  [[nodiscard]] std::vector<int32_t> columns() const { return top_.columns(); }
  [[nodiscard]] double sum() const { return top_.sum(); }

 private:
  void take_active(const BacProblem& problem, const std::vector<double>& alpha);
  template <class Rows>
  void sum_block(const Rows& X, int64_t first, int64_t width);
  void offer(int64_t column, double score);

  TopColumns top_;
  std::optional<std::span<const int32_t>> among_;
  size_t next_among_ = 0;
  size_t n_folds_ = 1;
  int log_lanes_ = 0;             // of a group of folds; more than eight folds make several groups
  size_t n_groups_ = 1;
  std::vector<int32_t> active_;   // numbers of the rows with an alpha that is not zero
  std::vector<double> alpha_;     // groups x active x lanes, times the rows' scales
  std::vector<int64_t> cursor_;   // for each active row, its first entry at or beyond the block
  std::vector<double> sums_;      // groups x columns of the block x lanes; all zero between blocks
  std::vector<uint64_t> touched_; // a bit for each column of the block; all zero between blocks
  std::vector<const float*> row_values_;
};

}  // namespace sapwood
