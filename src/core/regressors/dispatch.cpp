#include <cstdlib>
#include <stdexcept>
#include <string>

#include "regressors/exact_kernels.h"
#include "regressors/kernels.h"

namespace sapwood {

namespace baseline {
extern const Kernels kTable;
}
namespace exact_baseline {
extern const ExactKernels kExactTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kTable;
}
namespace exact_avx2 {
extern const ExactKernels kExactTable;
}
namespace avx512 {
extern const Kernels kTable;
}
namespace exact_avx512 {
extern const ExactKernels kExactTable;
}
#endif

namespace {

struct Tables {
  const Kernels& kernels;
  const ExactKernels& exact;
};

// F16C, POPCNT and LZCNT came before or with these; clang cannot ask for all of them.
bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(__x86_64__)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

Tables choose() {
  const char* const asked = std::getenv("SAPWOOD_ISA");
  const std::string wanted = asked ? asked : "";
  if (!wanted.empty() && wanted != "avx512" && wanted != "avx2" && wanted != "baseline") {
    throw std::runtime_error("SAPWOOD_ISA=" + wanted + " is unknown: use avx512, avx2 or baseline");
  }
#if defined(__x86_64__)
  if ((wanted.empty() || wanted == "avx512") && has_avx512()) return {avx512::kTable, exact_avx512::kExactTable};
  if ((wanted.empty() || wanted == "avx2") && has_avx2()) return {avx2::kTable, exact_avx2::kExactTable};
#endif
  if (wanted.empty() || wanted == "baseline") return {baseline::kTable, exact_baseline::kExactTable};
  throw std::runtime_error("SAPWOOD_ISA=" + wanted + ": this machine does not have it");
}

const Tables& tables() {
  static const Tables chosen = choose();
  return chosen;
}

}  // namespace

const Kernels& kernels() { return tables().kernels; }
const ExactKernels& exact_kernels() { return tables().exact; }

}  // namespace sapwood
