// The budget-aware classifier (BAC): section 4 of the budgeted-trees paper, Algorithm 1. Numbers in brackets are the
// equations of docs/budgeted_trees.md, numbers in parentheses those of the paper.
//
//   min over rho in E, w, b   1/2 ||w||^2 + sum_i C_i loss(y_i (w'(x_i * sqrt(rho)) + b)),   E = {rho in [0, 1]^m, sum rho <= B}
//
// Solved for several folds at once, which share the feature sets and have a classifier each: problem (11). The plain
// BAC is the case of one fold. The data are read where they lie: a problem names its rows by number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "regressors/kernels.h"
#include "rows.h"
#include "threads/parallel.h"

namespace sapwood {

struct BacOptions {
  int64_t budget = 1;           // B: columns of a plane
  double C = 1.0;
  Loss loss = Loss::squared_hinge;
  bool fit_offset = true;
  bool balanced = false;        // both classes of a fold weigh the same
  double tolerance = 1e-3;      // stop when the certified gap is at most this share of the objective
  int32_t max_planes = 20;
  int32_t max_steps = 2000;     // proximal steps of one master problem
};

// Which rows to tell apart. Everything is indexed by place in `rows`, but for what is said to go by number in X.
struct BacProblem {
  std::span<const int32_t> rows;       // n row numbers in X
  std::span<const int8_t> signs;       // n: +1 or -1
  const float* row_scale = nullptr;    // by number in X: factor of each row, or null
  const float* row_weight = nullptr;   // by number in X: importance of a row, or null
  const uint8_t* fold = nullptr;       // by number in X: the fold that does not learn from the row, or null
  int32_t n_folds = 1;
  std::optional<std::span<const int32_t>> among = std::nullopt;  // ascending columns to choose from; all, if it is not given
};

struct BacSolution {
  std::vector<int32_t> columns;     // with a weight in some fold, ascending
  std::vector<double> weights;      // columns x folds
  std::vector<double> offset;       // folds
  std::vector<std::vector<int32_t>> planes;  // each ascending
  std::vector<double> plane_norms;  // ||w_h||; divided by their sum they are the mu of (10)
  std::vector<double> objective;    // after each plane; never rises. Entry 0 is w = 0
  std::vector<double> bound;        // certified from below over all feature sets; never falls
  int64_t steps = 0;                // proximal steps taken

  [[nodiscard]] int32_t n_folds() const { return static_cast<int32_t>(offset.size()); }
  [[nodiscard]] double gap() const { return objective.back() - bound.back(); }
};

// A classifier wherever it lies.
struct BacView {
  std::span<const int32_t> columns;  // ascending
  const double* weights;             // columns x folds
  std::span<const double> offset;    // folds

  BacView(std::span<const int32_t> columns, const double* weights, std::span<const double> offset)
      : columns(columns), weights(weights), offset(offset) {}
  BacView(const BacSolution& bac) : BacView(bac.columns, bac.weights.data(), bac.offset) {}
};

// Memory to solve in, kept from one problem to the next: one for each thread.
class BacWorkspace {
 public:
  BacWorkspace();
  ~BacWorkspace();
  BacWorkspace(BacWorkspace&&) noexcept;
  BacWorkspace& operator=(BacWorkspace&&) noexcept;

  struct Parts;  // see bac.cpp
  [[nodiscard]] Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

// Solves the problem. Takes memory in proportion to n x folds, to the entries of the chosen columns and to a bit for each
// column of X; never n x columns. Throws Interrupted when the monitor is told to stop.
// Rows: CsrRows (columns of a row ascending) or DenseRows.
template <class Rows>
[[nodiscard]] BacSolution train_bac(const Rows& X, const BacProblem& problem, const BacOptions& options,
                                    BacWorkspace& workspace, const Monitor& monitor);

// f(x) of one row, its values times `scale`, for every fold: `scores` takes n_folds values. The row's columns ascend.
template <class Index>
void bac_scores(const BacView& bac, Row<Index> row, float scale, double* scores);

// Where the folds' majority is positive, [vote]: f = 0 casts no vote, the mean decides a tie.
[[nodiscard]] bool bac_vote(std::span<const double> scores);

}  // namespace sapwood
