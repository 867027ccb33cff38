// Views of the rows of a data matrix, dense or compressed (CSR). Nothing is owned, nothing is copied.
#pragma once

#include <cstdint>

// Kernels are compiled for several instruction sets: what they share with other code must never be emitted on its own.
#define SAPWOOD_INLINE [[gnu::always_inline]] inline

namespace sapwood {

template <class Index>
struct Row {
  const Index* index;
  const float* value;
  int64_t count;
};

template <class IndexType>
struct CsrRows {
  using Index = IndexType;
  const Index* indptr;
  const Index* indices;
  const float* values;
  int64_t n_rows;
  int64_t n_columns;

  [[nodiscard]] SAPWOOD_INLINE Row<Index> row(int64_t i) const {
    return {indices + indptr[i], values + indptr[i], static_cast<int64_t>(indptr[i + 1] - indptr[i])};
  }
  [[nodiscard]] int64_t entries() const { return indptr[n_rows] - indptr[0]; }
  // Asks for what row(i) reads.
  SAPWOOD_INLINE void prefetch(int64_t i) const { __builtin_prefetch(indptr + i); }
};

// A dense row is a sparse row whose indices are 0, 1, 2, ...: `columns` holds just that, once for all rows.
struct DenseRows {
  using Index = int32_t;
  const int32_t* columns;
  const float* values;
  int64_t n_rows;
  int64_t n_columns;
  int64_t stride;  // floats from one row to the next

  [[nodiscard]] SAPWOOD_INLINE Row<int32_t> row(int64_t i) const { return {columns, values + i * stride, n_columns}; }
  [[nodiscard]] int64_t entries() const { return n_rows * n_columns; }
  void prefetch(int64_t) const {}
};

}  // namespace sapwood
