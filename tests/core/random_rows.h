// A random sparse data set with labels that can be learned, in every form the core reads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "rows.h"
#include "trees/label_shape.h"

struct RandomRows {
  std::vector<int32_t> indptr{0}, indices, columns, labels;
  std::vector<int64_t> wide_indptr, wide_indices, label_indptr{0};
  std::vector<float> values, dense;
  int64_t n_rows, n_columns;
  int32_t n_labels;

  RandomRows(int64_t n_rows, int64_t n_columns, int32_t n_labels, uint32_t seed = 1)
      : columns(static_cast<size_t>(n_columns)), n_rows(n_rows), n_columns(n_columns), n_labels(n_labels) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(0.1f, 1.0f);
    dense.assign(static_cast<size_t>(n_rows * n_columns), 0.0f);
    std::iota(columns.begin(), columns.end(), 0);
    for (int64_t i = 0; i < n_rows; ++i) {
      float* const row = dense.data() + i * n_columns;
      const auto label = static_cast<int32_t>(i % n_labels);
      labels.push_back(label);
      for (int k = 0; k < 3; ++k) row[(label * 3 + k * 7) % n_columns] += uniform(random);
      for (int k = 0; k < 5; ++k) row[random() % static_cast<uint32_t>(n_columns)] += 0.5f * uniform(random);
      if (i % 5 == 0) labels.push_back((label + 1) % n_labels);
      label_indptr.push_back(static_cast<int64_t>(labels.size()));
      float square = 0;
      for (int64_t j = 0; j < n_columns; ++j) square += row[j] * row[j];
      for (int64_t j = 0; j < n_columns; ++j) {
        row[j] /= std::sqrt(square);
        if (row[j] == 0) continue;
        indices.push_back(static_cast<int32_t>(j));
        values.push_back(row[j]);
      }
      indptr.push_back(static_cast<int32_t>(indices.size()));
    }
    wide_indptr.assign(indptr.begin(), indptr.end());
    wide_indices.assign(indices.begin(), indices.end());
  }

  [[nodiscard]] sapwood::CsrRows<int32_t> csr() const {
    return {indptr.data(), indices.data(), values.data(), n_rows, n_columns};
  }
  [[nodiscard]] sapwood::CsrRows<int64_t> wide() const {
    return {wide_indptr.data(), wide_indices.data(), values.data(), n_rows, n_columns};
  }
  [[nodiscard]] sapwood::DenseRows dense_rows() const { return {columns.data(), dense.data(), n_rows, n_columns, n_columns}; }
  [[nodiscard]] sapwood::LabelSets sets() const { return {label_indptr.data(), labels.data(), n_rows, n_labels}; }
};
