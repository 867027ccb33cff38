// One row as the regressors of the online trees read it. Kept from row to row: taking a row allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "aligned.h"
#include "rows.h"

namespace sapwood {

// A path feature: an indicator of a node, or its product with a column. Never 0.
[[nodiscard]] inline uint64_t path_key(int32_t node) { return static_cast<uint64_t>(static_cast<uint32_t>(node) + 1) << 32; }
[[nodiscard]] inline uint64_t path_key(int32_t node, uint32_t column) { return path_key(node) | (static_cast<uint64_t>(column) + 1); }

struct OnlineRow {
  // Sparse: the columns that are not 0, in the row's order; `values` holds theirs and the constant 1. Dense: `values` holds
  // all columns, the constant, zeros up to a multiple of 16.
  std::vector<uint32_t> columns;
  CacheLineVector<float> values;
  std::vector<uint64_t> path;
  std::vector<float> path_values;

  // Values are multiplied by `scale`, rounded. Path features of the row before are gone.
  template <class Index>
  void take_sparse(Row<Index> row, float scale) {
    clear_path();
    columns.clear();
    values.clear();
    for (int64_t k = 0; k < row.count; ++k) {
      const float value = row.value[k] * scale;
      if (value == 0) continue;
      columns.push_back(static_cast<uint32_t>(row.index[k]));
      values.push_back(value);
    }
    values.push_back(1.0f);
  }

  template <class Index>
  void take_dense(Row<Index> row, int64_t n_columns, float scale) {
    clear_path();
    columns.clear();
    values.assign(static_cast<size_t>((n_columns + 16) / 16 * 16), 0.0f);
    for (int64_t k = 0; k < row.count; ++k) values[static_cast<size_t>(row.index[k])] = row.value[k] * scale;
    values[static_cast<size_t>(n_columns)] = 1.0f;
  }

  void add_path(uint64_t key, float value) {
    path.push_back(key);
    path_values.push_back(value);
  }
  void clear_path() {
    path.clear();
    path_values.clear();
  }
};

}  // namespace sapwood
