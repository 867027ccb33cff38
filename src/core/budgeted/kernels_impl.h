// The table of kernels for one instruction set. Included by kernels_*.cpp, each of which defines SAPWOOD_ISA.
// Vectors are the compilers' own, eight doubles wide whatever the machine has.
#include <math.h>
#include <stddef.h>

#include "budgeted/kernels.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed among inlined functions only

namespace sapwood::SAPWOOD_ISA {

using Doubles = double __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(32)));
constexpr int64_t kWidth = 8;

SAPWOOD_INLINE Doubles load(const double* p) {
  Doubles x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
SAPWOOD_INLINE Doubles load(const float* p) {
  Floats x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Doubles);
}
SAPWOOD_INLINE void store(double* p, const Doubles& x) { __builtin_memcpy(p, &x, sizeof x); }
SAPWOOD_INLINE double sum(const Doubles& x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

// Losses of the margin, for one number and for eight at once.
struct SquaredHinge {
  SAPWOOD_INLINE static double value(double z) { return z < 1.0 ? (1.0 - z) * (1.0 - z) : 0.0; }
  SAPWOOD_INLINE static double slope(double z) { return z < 1.0 ? 2.0 * (1.0 - z) : 0.0; }
  SAPWOOD_INLINE static double curvature(double z) { return z < 1.0 ? 2.0 : 0.0; }
  SAPWOOD_INLINE static double gain(double a) { return a * a; }
  SAPWOOD_INLINE static Doubles below(const Doubles& z) {
    const Doubles distance = 1.0 - z;
    return distance > 0.0 ? distance : Doubles{};
  }
  SAPWOOD_INLINE static Doubles value(const Doubles& z) { return below(z) * below(z); }
  SAPWOOD_INLINE static Doubles slope(const Doubles& z) { return 2.0 * below(z); }
  SAPWOOD_INLINE static Doubles curvature(const Doubles& z) { return z < 1.0 ? Doubles{} + 2.0 : Doubles{}; }
  SAPWOOD_INLINE static Doubles gain(const Doubles& a) { return a * a; }
};

struct Logistic {
  SAPWOOD_INLINE static double value(double z) { return ::log1p(::exp(-__builtin_fabs(z))) + (z < 0.0 ? -z : 0.0); }
  SAPWOOD_INLINE static double slope(double z) {
    const double e = ::exp(-__builtin_fabs(z));
    return (z > 0.0 ? e : 1.0) / (1.0 + e);
  }
  SAPWOOD_INLINE static double curvature(double z) {
    const double p = slope(z);
    return p * (1.0 - p);
  }
  SAPWOOD_INLINE static double gain(double a) {
    const double p = a < 0.0 ? 0.0 : a > 1.0 ? 1.0 : a;
    return -(p > 0.0 ? p * ::log(p) : 0.0) - (p < 1.0 ? (1.0 - p) * ::log1p(-p) : 0.0);
  }

#define SAPWOOD_EACH(f)                                       \
  SAPWOOD_INLINE static Doubles f(const Doubles& z) {         \
    Doubles out;                                              \
    for (int l = 0; l < kWidth; ++l) out[l] = f(double(z[l])); \
    return out;                                               \
  }
  SAPWOOD_EACH(value)
  SAPWOOD_EACH(slope)
  SAPWOOD_EACH(curvature)
  SAPWOOD_EACH(gain)
#undef SAPWOOD_EACH
};

template <class Loss>
OffsetSums offset_sums(const FoldRows& rows, double b) {
  Doubles slope{}, curvature{};
  int64_t i = 0;
  for (; i + kWidth <= rows.n; i += kWidth) {
    const Doubles sign = load(rows.signs + i), weight = load(rows.weights + i);
    const Doubles margin = sign * (load(rows.scores + i) + b);
    slope += weight * sign * Loss::slope(margin);
    curvature += weight * Loss::curvature(margin);
  }
  OffsetSums sums{sum(slope), sum(curvature)};
  for (; i < rows.n; ++i) {
    const double margin = rows.signs[i] * (rows.scores[i] + b);
    sums.slope += rows.weights[i] * rows.signs[i] * Loss::slope(margin);
    sums.curvature += rows.weights[i] * Loss::curvature(margin);
  }
  return sums;
}

template <class Loss>
double total_loss(const FoldRows& rows, double b) {
  Doubles total{};
  int64_t i = 0;
  for (; i + kWidth <= rows.n; i += kWidth) {
    total += load(rows.weights + i) * Loss::value(load(rows.signs + i) * (load(rows.scores + i) + b));
  }
  double all = sum(total);
  for (; i < rows.n; ++i) all += rows.weights[i] * Loss::value(rows.signs[i] * (rows.scores[i] + b));
  return all;
}

template <class Loss>
ClassSums slopes(const FoldRows& rows, double b, double* ratio) {
  Doubles positive{}, negative{};
  int64_t i = 0;
  for (; i + kWidth <= rows.n; i += kWidth) {
    const Doubles sign = load(rows.signs + i);
    const Doubles slope = Loss::slope(sign * (load(rows.scores + i) + b));
    const Doubles weighted = load(rows.weights + i) * slope;
    store(ratio + i, slope);
    positive += sign > 0.0 ? weighted : Doubles{};
    negative += sign > 0.0 ? Doubles{} : weighted;
  }
  ClassSums sums{sum(positive), sum(negative)};
  for (; i < rows.n; ++i) {
    ratio[i] = Loss::slope(rows.signs[i] * (rows.scores[i] + b));
    (rows.signs[i] > 0.0 ? sums.positive : sums.negative) += rows.weights[i] * ratio[i];
  }
  return sums;
}

template <class Loss>
DualSums dual_sums(const FoldRows& rows, const double* ratio) {
  Doubles all{}, gain{};
  int64_t i = 0;
  for (; i + kWidth <= rows.n; i += kWidth) {
    const Doubles a = load(ratio + i), weight = load(rows.weights + i);
    all += weight * a;
    gain += weight * Loss::gain(a);
  }
  DualSums sums{sum(all), sum(gain)};
  for (; i < rows.n; ++i) {
    sums.ratio += rows.weights[i] * ratio[i];
    sums.gain += rows.weights[i] * Loss::gain(ratio[i]);
  }
  return sums;
}

double largest(const double* x, int64_t n) {
  double most = 0.0;
  Doubles most_of_eight{};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Doubles size = load(x + i);
    size = size < 0.0 ? -size : size;
    most_of_eight = size > most_of_eight ? size : most_of_eight;
  }
  for (int l = 0; l < kWidth; ++l) most = most_of_eight[l] > most ? most_of_eight[l] : most;
  for (; i < n; ++i) most = __builtin_fabs(x[i]) > most ? __builtin_fabs(x[i]) : most;
  return most;
}

template <class T>
double dot_with(const T* a, const double* b, int64_t n) {
  Doubles even{}, odd{};
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + kWidth) * load(b + i + kWidth);
  }
  double all = sum(even + odd);
  for (; i < n; ++i) all += a[i] * b[i];
  return all;
}

double dot(const double* a, const double* b, int64_t n) { return dot_with(a, b, n); }
double dot_dense(const float* column, int64_t n, const double* with) { return dot_with(column, with, n); }

void add_dense(const float* column, int64_t n, double by, double* to) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(to + i, load(to + i) + by * load(column + i));
  for (; i < n; ++i) to[i] += by * column[i];
}

void add_sparse(const int32_t* rows, const float* values, int64_t n, double by, double* to) {
  for (int64_t k = 0; k < n; ++k) to[rows[k]] += by * values[k];
}

double dot_sparse(const int32_t* rows, const float* values, int64_t n, const double* with) {
  double sums[4] = {};
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    for (int l = 0; l < 4; ++l) sums[l] += values[k + l] * with[rows[k + l]];
  }
  for (; k < n; ++k) sums[0] += values[k] * with[rows[k]];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <int kLanes, class Index>
void scatter(Row<Index> entries, int64_t first, const double* alpha, double* sums, uint64_t* touched) {
  for (int64_t k = 0; k < entries.count; ++k) {
    const int64_t column = static_cast<int64_t>(entries.index[k]) - first;
    const double value = entries.value[k];
    double* const at = sums + column * kLanes;
    touched[column >> 6] |= uint64_t{1} << (column & 63);
    for (int l = 0; l < kLanes; ++l) at[l] += value * alpha[l];
  }
}

constexpr int64_t kRowsTogether = 4;

// Eight values of a row, or the `n` that are left and zeros: the last columns are summed just as all others, to the bit.
SAPWOOD_INLINE Doubles load_some(const float* p, int64_t n) {
  if (n >= kWidth) return load(p);
  float some[kWidth] = {};
  __builtin_memcpy(some, p, static_cast<size_t>(n) * sizeof(float));
  return load(some);
}

void sum_rows(const float* const* rows, int64_t n, int64_t width, const double* alpha, int stride, int lanes, double* sums) {
  const int64_t padded = padded_width(width);
  int64_t k = 0;
  for (; k + kRowsTogether <= n; k += kRowsTogether) {
    const double* const by = alpha + k * stride;
    for (int64_t j = 0; j < width; j += kWidth) {
      const Doubles a = load_some(rows[k] + j, width - j), b = load_some(rows[k + 1] + j, width - j);
      const Doubles c = load_some(rows[k + 2] + j, width - j), d = load_some(rows[k + 3] + j, width - j);
      for (int l = 0; l < lanes; ++l) {
        double* const at = sums + l * padded + j;
        store(at, load(at) + ((a * by[l] + b * by[stride + l]) + (c * by[2 * stride + l] + d * by[3 * stride + l])));
      }
    }
  }
  for (; k < n; ++k) {
    for (int64_t j = 0; j < width; j += kWidth) {
      const Doubles a = load_some(rows[k] + j, width - j);
      for (int l = 0; l < lanes; ++l) store(sums + l * padded + j, load(sums + l * padded + j) + a * alpha[k * stride + l]);
    }
  }
}

template <class Loss>
constexpr LossKernels loss_kernels() {
  return {&offset_sums<Loss>, &total_loss<Loss>, &slopes<Loss>, &dual_sums<Loss>};
}

extern const BacKernels kBacTable;
const BacKernels kBacTable = {
    SAPWOOD_ISA_NAME,
    {loss_kernels<SquaredHinge>(), loss_kernels<Logistic>()},
    &largest,
    &dot,
    &add_dense,
    &dot_dense,
    &add_sparse,
    &dot_sparse,
    {&scatter<1, int32_t>, &scatter<2, int32_t>, &scatter<4, int32_t>, &scatter<8, int32_t>},
    {&scatter<1, int64_t>, &scatter<2, int64_t>, &scatter<4, int64_t>, &scatter<8, int64_t>},
    &sum_rows,
};

}  // namespace sapwood::SAPWOOD_ISA
