// What the budgeted methods share at the border: options as Python gives them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/rows_view.h"
#include "bindings/targets.h"
#include "budgeted/bac.h"
#include "trees/predict.h"

namespace sapwood::bindings {

// A dict of the options of a budget-aware classifier: budget, C, loss, fit_offset, balanced, tol, max_planes, max_steps.
inline BacOptions bac_options(const nb::dict& named) {
  const auto get = [&]<class T>(const char* name, T& out) {
    if (!named.contains(name)) throw nb::value_error((std::string("the option ") + name + " is missing").c_str());
    if (!nb::try_cast(named[name], out)) throw nb::value_error((std::string("the option ") + name + " is of another kind").c_str());
  };
  BacOptions options;
  std::string loss;
  get("budget", options.budget);
  get("C", options.C);
  get("loss", loss);
  get("fit_offset", options.fit_offset);
  get("balanced", options.balanced);
  get("tol", options.tolerance);
  get("max_planes", options.max_planes);
  get("max_steps", options.max_steps);
  options.loss = loss_named(loss);
  if (options.budget < 1 || options.max_planes < 1 || options.max_steps < 1 || !(options.C > 0) || !(options.tolerance > 0)) {
    throw nb::value_error("budget, max_planes and max_steps must be at least 1, C and tol positive");
  }
  return options;
}

// A whole array of a model's dict, whose memory `owners` keeps.
template <class T>
std::span<const T> model_array(const nb::dict& arrays, const char* name, nb::list& owners) {
  Array<T> array;
  if (!arrays.contains(name) || !nb::try_cast(nb::object(arrays[name]), array, false)) {
    throw nb::value_error(("the model is damaged: its array '" + std::string(name) + "' is missing or of another kind").c_str());
  }
  owners.append(array);
  return {array.data(), array.shape(0)};
}

// What training on rows and their labels is given, checked. Rows of weight 0 have no labels.
struct TrainingSet {
  LabelSets all_labels, labels;
  std::vector<float> row_scale;  // empty: rows are taken as they are
  const float* row_weight;

  TrainingSet(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& label_codes, int32_t n_labels,
              const std::optional<Array<float>>& row_weight, bool normalize)
      : all_labels(label_sets(label_indptr, label_codes, n_labels)),
        labels(all_labels),
        row_weight(data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight")) {
    if (labels.n_rows != X.n_rows()) throw nb::value_error("X and the labels differ in length");
    if (X.n_rows() > INT32_MAX) throw nb::value_error("more than 2^31 - 1 rows are not supported");
    if (X.n_columns() >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 columns are not supported");
    if (this->row_weight) drop_weightless();
    if (!normalize) return;
    row_scale.resize(static_cast<size_t>(X.n_rows()));
    X.visit([&](const auto& rows) {
      for (size_t i = 0; i < row_scale.size(); ++i) row_scale[i] = unit_scale(rows.row(static_cast<int64_t>(i)));
    });
  }
  TrainingSet(const TrainingSet&) = delete;
  [[nodiscard]] const float* scale() const { return row_scale.empty() ? nullptr : row_scale.data(); }

 private:
  void drop_weightless() {
    kept_indptr_.push_back(0);
    for (int64_t i = 0; i < labels.n_rows; ++i) {
      if (row_weight[i] > 0) kept_labels_.insert(kept_labels_.end(), labels.labels + labels.indptr[i], labels.labels + labels.indptr[i + 1]);
      kept_indptr_.push_back(static_cast<int64_t>(kept_labels_.size()));
    }
    labels.indptr = kept_indptr_.data();
    labels.labels = kept_labels_.data();
  }

  std::vector<int64_t> kept_indptr_;
  std::vector<int32_t> kept_labels_;
};

}  // namespace sapwood::bindings
