#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "regressors/kernels.h"

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of sapwood. Private: use the estimators.";
  m.def("instruction_set", [] { return sapwood::kernels().name; }, "The instruction set the kernels were chosen for.");
  sapwood::kernels();  // a wrong SAPWOOD_ISA is told when the library is loaded
  sapwood::bindings::bind_io(m);
  sapwood::bindings::bind_rows(m);
  sapwood::bindings::bind_label_tree(m);
  sapwood::bindings::bind_label_btree(m);
  sapwood::bindings::bind_linear_trees(m);
  sapwood::bindings::bind_one_vs_all(m);
  sapwood::bindings::bind_recall_tree(m);
  sapwood::bindings::bind_lom_tree(m);
  sapwood::bindings::bind_balanced_tree(m);
  sapwood::bindings::bind_budgeted(m);
  sapwood::bindings::bind_budgeted_tree(m);
}
