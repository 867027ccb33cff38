#define SAPWOOD_ISA baseline
#define SAPWOOD_ISA_NAME "baseline"
#include "regressors/kernels_impl.h"
