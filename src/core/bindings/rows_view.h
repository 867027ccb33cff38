// The data matrix as Python hands it over: one object for dense and CSR, which keeps the arrays alive.
#pragma once

#include <string>
#include <variant>

#include "bindings/arrays.h"
#include "rows.h"

namespace sapwood::bindings {

class RowsView {
 public:
  // Checks that the arrays fit together: every row lies within them.
  template <class Index>
  static RowsView csr(Array<Index> indptr, Array<Index> indices, Array<float> values, int64_t n_columns);
  static RowsView dense(Matrix<float> values);

  [[nodiscard]] int64_t n_rows() const {
    return std::visit([](const auto& x) { return x.n_rows; }, view_);
  }
  [[nodiscard]] int64_t n_columns() const {
    return std::visit([](const auto& x) { return x.n_columns; }, view_);
  }

  [[nodiscard]] bool is_dense() const { return std::holds_alternative<DenseRows>(view_); }

  // Throws ValueError that names row and column of the first value that is not finite or index out of range.
  void check() const;

  // Whether the columns of every row ascend, none named twice.
  [[nodiscard]] bool ascends() const;

  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), view_);
  }

 private:
  std::variant<CsrRows<int32_t>, CsrRows<int64_t>, DenseRows> view_;
  nb::object owners_;
  std::vector<int32_t> columns_;  // 0, 1, 2, ... for dense rows
};


}  // namespace sapwood::bindings
