#include <string_view>

#include "budgeted/kernels.h"
#include "regressors/kernels.h"

namespace sapwood {

namespace baseline {
extern const BacKernels kBacTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const BacKernels kBacTable;
}
namespace avx512 {
extern const BacKernels kBacTable;
}
#endif

namespace {

const BacKernels& table_of(std::string_view name) {
#if defined(__x86_64__)
  if (name == avx512::kBacTable.name) return avx512::kBacTable;
  if (name == avx2::kBacTable.name) return avx2::kBacTable;
#endif
  static_cast<void>(name);
  return baseline::kBacTable;
}

}  // namespace

const BacKernels& bac_kernels() {
  static const BacKernels& chosen = table_of(kernels().name);
  return chosen;
}

}  // namespace sapwood
