// Which instruction sets this machine can test.
#pragma once

#include <vector>

#include "lanes_table.h"
#include "regressors/kernels.h"

namespace sapwood {
namespace baseline {
extern const Kernels kTable;
}
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
}  // namespace sapwood

inline bool runs_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

inline bool runs_avx512() {
#if defined(__x86_64__)
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

// Calls f with the table of every instruction set there is here.
template <class F>
void for_each_lanes_table(F f) {
  f(sapwood::baseline::kLanesTable);
#if defined(__x86_64__)
  if (runs_avx2()) f(sapwood::avx2::kLanesTable);
  if (runs_avx512()) f(sapwood::avx512::kLanesTable);
#endif
}

template <class F>
void for_each_kernels(F f) {
  f(sapwood::baseline::kTable);
#if defined(__x86_64__)
  if (runs_avx2()) f(sapwood::avx2::kTable);
  if (runs_avx512()) f(sapwood::avx512::kTable);
#endif
}
