#if defined(__x86_64__)
#define SAPWOOD_ISA avx2
#define SAPWOOD_ISA_NAME "avx2"
#include "regressors/kernels_impl.h"
#endif
