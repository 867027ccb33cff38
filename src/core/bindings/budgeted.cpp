#include "bindings/budgeted.h"

#include <nanobind/stl/optional.h>

#include <numeric>
#include <optional>

#include "bindings/bind.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"

namespace sapwood::bindings {

namespace {

nb::dict to_dict(BacSolution&& found) {
  const size_t n_columns = found.columns.size(), n_folds = found.offset.size();
  nb::list planes;
  for (std::vector<int32_t>& plane : found.planes) planes.append(to_numpy(std::move(plane)));
  nb::dict out;
  out["columns"] = to_numpy(std::move(found.columns));
  out["weights"] = to_numpy(std::move(found.weights), {n_columns, n_folds});
  out["offset"] = to_numpy(std::move(found.offset));
  out["planes"] = planes;
  out["plane_norms"] = to_numpy(std::move(found.plane_norms));
  out["objective"] = to_numpy(std::move(found.objective));
  out["bound"] = to_numpy(std::move(found.bound));
  out["steps"] = found.steps;
  return out;
}

// One problem over all rows: what the parity tests compare with the reference, fold by fold.
nb::dict train_one_bac(const RowsView& X, const Array<int8_t>& signs, const nb::dict& options_named,
                       std::optional<Array<float>> row_scale, std::optional<Array<float>> row_weight,
                       std::optional<Array<uint8_t>> fold, int32_t n_folds, const nb::object& progress) {
  const auto n = static_cast<size_t>(X.n_rows());
  const BacOptions options = bac_options(options_named);
  if (signs.shape(0) != n) throw nb::value_error("X and the signs differ in length");
  for (size_t i = 0; i < n; ++i) {
    if (signs(i) != 1 && signs(i) != -1) throw nb::value_error("signs must be -1 or +1");
  }
  if (n_folds < 1 || n_folds > 255) throw nb::value_error("there may be 1 to 255 folds");
  if (X.n_rows() > INT32_MAX || X.n_columns() >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 rows or columns are not supported");
  std::vector<int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  BacProblem problem{rows, {signs.data(), n}};
  problem.row_scale = data_or_null(row_scale, n, "row_scale");
  problem.row_weight = data_or_null(row_weight, n, "row_weight");
  problem.fold = data_or_null(fold, n, "fold");
  problem.n_folds = n_folds;
  BacSolution found;
  run_interruptible(progress, [&](Monitor& monitor) {
    BacWorkspace workspace;
    X.visit([&](const auto& view) { found = train_bac(view, problem, options, workspace, monitor); });
  });
  return to_dict(std::move(found));
}

}  // namespace

void bind_budgeted(nb::module_& m) {
  m.def("train_bac", &train_one_bac, nb::arg("X"), nb::arg("signs"), nb::arg("options"), nb::kw_only(),
        nb::arg("row_scale").none() = nb::none(), nb::arg("row_weight").none() = nb::none(), nb::arg("fold").none() = nb::none(),
        nb::arg("n_folds") = 1, nb::arg("progress").none() = nb::none(),
        "Train one budget-aware classifier, or one for each fold with the same features.");
}

}  // namespace sapwood::bindings
