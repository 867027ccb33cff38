#define SAPWOOD_ISA exact_baseline  // a namespace of its own: nothing is shared with kernels_baseline.cpp, which may fuse
#define SAPWOOD_ISA_NAME "baseline"
#include "regressors/exact_kernels_impl.h"
