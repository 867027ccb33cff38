// One function for each part of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace sapwood::bindings {

void bind_balanced_tree(nanobind::module_& m);
void bind_budgeted(nanobind::module_& m);
void bind_budgeted_tree(nanobind::module_& m);
void bind_io(nanobind::module_& m);
void bind_label_btree(nanobind::module_& m);
void bind_label_tree(nanobind::module_& m);
void bind_linear_trees(nanobind::module_& m);
void bind_lom_tree(nanobind::module_& m);
void bind_one_vs_all(nanobind::module_& m);
void bind_recall_tree(nanobind::module_& m);
void bind_rows(nanobind::module_& m);

}  // namespace sapwood::bindings
