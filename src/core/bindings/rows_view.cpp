#include "bindings/rows_view.h"

#include <algorithm>

#include <cmath>
#include <numeric>

#include "bindings/bind.h"

namespace sapwood::bindings {

namespace {

std::string place(int64_t row, int64_t column) {
  return " in row " + std::to_string(row) + ", column " + std::to_string(column);
}

// Finite if the exponent is not all ones; an integer test that compilers turn into vector code.
bool all_finite(const float* values, int64_t n) {
  uint32_t worst = 0;
  for (int64_t k = 0; k < n; ++k) {
    uint32_t bits;
    __builtin_memcpy(&bits, values + k, sizeof bits);
    bits &= 0x7F800000u;
    worst = bits > worst ? bits : worst;
  }
  return worst != 0x7F800000u;
}

template <class Index>
bool all_within(const Index* indices, int64_t n, int64_t n_columns) {
  bool ok = true;
  for (int64_t k = 0; k < n; ++k) ok &= static_cast<uint64_t>(indices[k]) < static_cast<uint64_t>(n_columns);
  return ok;
}

bool columns_ascend(const DenseRows&) { return true; }

// Counts where an index does not ascend from one entry to the next, in one sweep that compilers turn into vector code,
// and takes off the places where a row begins.
template <class Index>
bool columns_ascend(const CsrRows<Index>& X) {
  const Index *const first = X.indices + X.indptr[0], *const end = X.indices + X.indptr[X.n_rows];
  int64_t falls = 0;
  for (const Index* p = first; p + 1 < end; ++p) falls += p[0] >= p[1];
  const Index* last_begin = first;
  for (int64_t i = 1; i < X.n_rows; ++i) {
    const Index* const begin = X.indices + X.indptr[i];
    if (begin == last_begin || begin >= end) continue;  // the row before is empty, or this one and all that follow are
    falls -= begin[-1] >= begin[0];
    last_begin = begin;
  }
  return falls == 0;
}

template <class Rows>
[[noreturn]] void tell_what_is_wrong(const Rows& X) {
  for (int64_t i = 0; i < X.n_rows; ++i) {
    const auto row = X.row(i);
    for (int64_t k = 0; k < row.count; ++k) {
      const auto column = static_cast<int64_t>(row.index[k]);
      if (column < 0) throw nb::value_error(("X has a negative column index" + place(i, column)).c_str());
      if (column >= X.n_columns) {
        throw nb::value_error(
            ("X has a column index beyond its " + std::to_string(X.n_columns) + " columns" + place(i, column)).c_str());
      }
      if (!std::isfinite(row.value[k])) {
        const char* const what = std::isnan(row.value[k]) ? "NaN" : "infinity";
        throw nb::value_error(("Input X contains " + std::string(what) + place(i, column)).c_str());
      }
    }
  }
  throw nb::value_error("X is damaged");
}

void check_rows(const DenseRows& X) {
  if (!all_finite(X.values, X.n_rows * X.n_columns)) tell_what_is_wrong(X);
}

template <class Index>
void check_rows(const CsrRows<Index>& X) {
  const int64_t n = X.entries();
  if (!all_finite(X.values + X.indptr[0], n) || !all_within(X.indices + X.indptr[0], n, X.n_columns)) tell_what_is_wrong(X);
}

}  // namespace

template <class Index>
RowsView RowsView::csr(Array<Index> indptr, Array<Index> indices, Array<float> values, int64_t n_columns) {
  if (indptr.shape(0) < 1) throw nb::value_error("indptr must have one entry more than there are rows");
  if (indices.shape(0) != values.shape(0)) throw nb::value_error("X is damaged: its indices and values differ in number");
  const auto n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
  const auto size = static_cast<int64_t>(indices.shape(0));
  const Index* const p = indptr.data();
  bool ok = p[0] >= 0 && p[n_rows] <= size;
  for (int64_t i = 0; i < n_rows; ++i) ok &= p[i] <= p[i + 1];
  if (!ok) throw nb::value_error("X is damaged: its indptr must ascend from 0 to the number of values at most");
  RowsView rows;
  rows.view_ = CsrRows<Index>{p, indices.data(), values.data(), n_rows, n_columns};
  rows.owners_ = nb::make_tuple(indptr, indices, values);
  return rows;
}

RowsView RowsView::dense(Matrix<float> values) {
  RowsView rows;
  const auto n_columns = static_cast<int64_t>(values.shape(1));
  rows.columns_.resize(values.shape(1));
  std::iota(rows.columns_.begin(), rows.columns_.end(), 0);
  rows.view_ = DenseRows{rows.columns_.data(), values.data(), static_cast<int64_t>(values.shape(0)), n_columns, n_columns};
  rows.owners_ = nb::make_tuple(values);
  return rows;
}

void RowsView::check() const {
  const nb::gil_scoped_release no_gil;
  visit([](const auto& X) { check_rows(X); });
}

bool RowsView::ascends() const {
  const nb::gil_scoped_release no_gil;
  return visit([](const auto& X) { return columns_ascend(X); });
}

void bind_rows(nb::module_& m) {
  nb::class_<RowsView>(m, "Rows", nb::dynamic_attr(), "A view of the rows of a dense or CSR matrix of float32.")
      .def_static("csr", &RowsView::csr<int32_t>, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_columns"))
      .def_static("csr", &RowsView::csr<int64_t>, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("n_columns"))
      .def_static("dense", &RowsView::dense, nb::arg("values"))
      .def_prop_ro("n_rows", &RowsView::n_rows)
      .def_prop_ro("n_columns", &RowsView::n_columns)
      .def_prop_ro("is_dense", &RowsView::is_dense)
      .def("check", &RowsView::check, "Raise ValueError if a value is not finite or an index out of range.")
      .def("ascends", &RowsView::ascends, "Whether the columns of every row ascend, none named twice.");
}

}  // namespace sapwood::bindings
