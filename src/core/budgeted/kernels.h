// The hot loops of the budget-aware solver, one table of them per instruction set (see regressors/lanes.h for the rules).
#pragma once

#include <cstdint>

#include "rows.h"

namespace sapwood {

// One fold: f(x) without the offset, sign and weight of each row.
struct FoldRows {
  const double* scores;
  const double* signs;
  const double* weights;
  int64_t n;
};

struct OffsetSums {
  double slope;      // sum of weight * sign * slope: minus the derivative of the loss in the offset
  double curvature;  // sum of weight * curvature
};

struct ClassSums {
  double positive, negative;
};

struct DualSums {
  double ratio;  // sum of weight * a
  double gain;   // squared hinge: sum of weight * a^2; logistic: sum of weight * -loss*(-a)
};

// What is summed over a fold's rows for one loss.
struct LossKernels {
  OffsetSums (*offset)(const FoldRows&, double b);
  double (*total)(const FoldRows&, double b);                    // sum of weight * loss
  ClassSums (*slopes)(const FoldRows&, double b, double* ratio);  // writes the slopes [6]; sums weight * slope by class
  DualSums (*dual)(const FoldRows&, const double* ratio);
};

SAPWOOD_INLINE constexpr int64_t padded_width(int64_t n) { return (n + 7) / 8 * 8; }

constexpr int kSumLanes = 8;  // folds that one pass over sparse entries sums up at most

struct BacKernels {
  const char* name;
  LossKernels losses[2];  // by Loss

  double (*largest)(const double* x, int64_t n);  // max |x_i|
  double (*dot)(const double* a, const double* b, int64_t n);

  // A column of U, dense or its non-zero entries.
  void (*add_dense)(const float* column, int64_t n, double by, double* to);
  double (*dot_dense)(const float* column, int64_t n, const double* with);
  void (*add_sparse)(const int32_t* rows, const float* values, int64_t n, double by, double* to);
  double (*dot_sparse)(const int32_t* rows, const float* values, int64_t n, const double* with);

  // sums[index - first][lane] += value * alpha[lane], and marks the columns touched; by log2 of the lanes.
  void (*scatter32[4])(Row<int32_t> entries, int64_t first, const double* alpha, double* sums, uint64_t* touched);
  void (*scatter64[4])(Row<int64_t> entries, int64_t first, const double* alpha, double* sums, uint64_t* touched);
  // sums[lane][j] += rows[k][j] * alpha[k][lane] over k; `stride` is that of alpha, padded_width(width) that of sums.
  void (*sum_rows)(const float* const* rows, int64_t n, int64_t width, const double* alpha, int stride, int lanes,
                   double* sums);

  void scatter(int log_lanes, Row<int32_t> entries, int64_t first, const double* alpha, double* sums, uint64_t* touched) const {
    scatter32[log_lanes](entries, first, alpha, sums, touched);
  }
  void scatter(int log_lanes, Row<int64_t> entries, int64_t first, const double* alpha, double* sums, uint64_t* touched) const {
    scatter64[log_lanes](entries, first, alpha, sums, touched);
  }
};

// For the instruction set that kernels() has chosen.
const BacKernels& bac_kernels();

}  // namespace sapwood
