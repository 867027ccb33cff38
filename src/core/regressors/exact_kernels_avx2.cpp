#if defined(__x86_64__)
#define SAPWOOD_ISA exact_avx2  // a namespace of its own: nothing is shared with kernels_avx2.cpp, which may fuse
#define SAPWOOD_ISA_NAME "avx2"
#include "regressors/exact_kernels_impl.h"
#endif
