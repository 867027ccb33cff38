#include <cstdlib>
#include <stdexcept>
#include <string>

#include "regressors/kernels.h"

namespace sapwood {

namespace baseline {
extern const Kernels kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kTable;
}
namespace avx512 {
extern const Kernels kTable;
}
#endif

namespace {

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

const Kernels& choose() {
  const char* const asked = std::getenv("SAPWOOD_ISA");
  const std::string wanted = asked ? asked : "";
  if (!wanted.empty() && wanted != "avx512" && wanted != "avx2" && wanted != "baseline") {
    throw std::runtime_error("SAPWOOD_ISA=" + wanted + " is unknown: use avx512, avx2 or baseline");
  }
#if defined(__x86_64__)
  if ((wanted.empty() || wanted == "avx512") && has_avx512()) return avx512::kTable;
  if ((wanted.empty() || wanted == "avx2") && has_avx2()) return avx2::kTable;
#endif
  if (wanted.empty() || wanted == "baseline") return baseline::kTable;
  throw std::runtime_error("SAPWOOD_ISA=" + wanted + ": this machine does not have it");
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace sapwood
