// The table of kernels for one instruction set. Included by kernels_*.cpp, each of which defines SAPWOOD_ISA.
#include "regressors/kernels.h"
#include "solvers/adagrad.h"
#include "solvers/dual_cd.h"
#include "solvers/group_step.h"
#include "solvers/online_step.h"
#include "trees/search.h"

namespace sapwood::SAPWOOD_ISA {

extern const Kernels kTable;
const Kernels kTable = {
    SAPWOOD_ISA_NAME,
    &solve_dual<CsrRows<int32_t>>,
    &solve_dual<CsrRows<int64_t>>,
    &solve_dual<DenseRows>,
    &solve_adagrad<CsrRows<int32_t>>,
    &solve_adagrad<CsrRows<int64_t>>,
    &solve_adagrad<DenseRows>,
    &search<int32_t>,
    &search<int64_t>,
    &score<int32_t>,
    &score<int64_t>,
    &online_scores,
    &online_learn,
    &group_scores,
    &group_learn,
};

}  // namespace sapwood::SAPWOOD_ISA
