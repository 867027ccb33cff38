#if defined(__x86_64__)
#define SAPWOOD_ISA exact_avx512  // a namespace of its own: nothing is shared with kernels_avx512.cpp, which may fuse
#define SAPWOOD_ISA_NAME "avx512"
#include "regressors/exact_kernels_impl.h"
#endif
