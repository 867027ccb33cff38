// The losses of all folds over the rows of a problem, the offsets that minimise them, and the dual points they give.
#pragma once

#include <cstdint>
#include <vector>

#include "budgeted/bac.h"
#include "budgeted/kernels.h"

namespace sapwood {

// Arrays of folds x n hold one fold after the other.
class FoldLosses {
 public:
  void start(const BacProblem& problem, const BacOptions& options);

  [[nodiscard]] int64_t n() const { return n_; }
  [[nodiscard]] int32_t n_folds() const { return n_folds_; }
  [[nodiscard]] double C() const { return C_; }

  // b of each fold, which holds a start, becomes the one that minimises the fold's loss, [8].
  void find_offset(const std::vector<double>& scores, std::vector<double>& b) const;
  // C sum of the losses of all folds.
  [[nodiscard]] double total(const std::vector<double>& scores, const std::vector<double>& b) const;
  // alpha_i / C_i of [6], exactly feasible where there is an offset.
  void find_ratio(const std::vector<double>& scores, const std::vector<double>& b, std::vector<double>& ratio) const;
  // The best D(s alpha), [7]; `top` is the largest sum of squares of a set's column sums.
  [[nodiscard]] double dual_value(const std::vector<double>& ratio, double top) const;
  // alpha_i y_i.
  void sign_alpha(const std::vector<double>& ratio, std::vector<double>& signed_alpha) const;

 private:
  [[nodiscard]] FoldRows fold(const std::vector<double>& scores, int32_t v) const {
    const auto at = static_cast<size_t>(v) * static_cast<size_t>(n_);
    return {scores.data() + at, signs_.data(), weights_.data() + at, n_};
  }
  [[nodiscard]] double offset(const FoldRows& rows, double b) const;
  void balance();

  int64_t n_ = 0;
  int32_t n_folds_ = 1;
  double C_ = 1.0;
  Loss loss_ = Loss::squared_hinge;
  bool fit_offset_ = true;
  std::vector<double> signs_;    // n
  std::vector<double> weights_;  // folds x n: c_i, 0 where the fold does not learn from the row
};

}  // namespace sapwood
