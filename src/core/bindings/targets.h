// Labels and weights of a training set, checked before the core sees them.
#pragma once

#include <optional>
#include <string>

#include "bindings/arrays.h"
#include "regressors/kernels.h"
#include "trees/label_shape.h"

namespace sapwood::bindings {

inline LabelSets label_sets(const Array<int64_t>& indptr, const Array<int32_t>& labels, int32_t n_labels) {
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  if (n < 0 || indptr(0) != 0 || indptr(static_cast<size_t>(n)) != static_cast<int64_t>(labels.shape(0))) {
    throw nb::value_error("the labels' indptr does not fit the labels");
  }
  for (int64_t i = 0; i < n; ++i) {
    if (indptr(static_cast<size_t>(i)) > indptr(static_cast<size_t>(i) + 1)) throw nb::value_error("the labels' indptr must ascend");
  }
  for (size_t k = 0; k < labels.shape(0); ++k) {
    if (labels(k) < 0 || labels(k) >= n_labels) throw nb::value_error("a label code is out of range");
  }
  return {indptr.data(), labels.data(), n, n_labels};
}

template <class T>
const T* data_or_null(const std::optional<Array<T>>& array, size_t n, const char* name) {
  if (!array) return nullptr;
  if (array->shape(0) != n) throw nb::value_error((std::string(name) + " has the wrong length").c_str());
  return array->data();
}

inline Loss loss_named(const std::string& name) {
  if (name == "squared_hinge") return Loss::squared_hinge;
  if (name == "logistic") return Loss::logistic;
  throw nb::value_error("loss must be 'squared_hinge' or 'logistic'");
}

}  // namespace sapwood::bindings
