#include "budgeted/chosen_columns.h"

#include <algorithm>

namespace sapwood {

namespace {

constexpr int64_t kDenseShare = 4;  // a column with a value in every 4th row is kept dense: half the bytes, and in vectors

float scale_of(const BacProblem& problem, size_t place) {
  return problem.row_scale ? problem.row_scale[problem.rows[place]] : 1.0f;
}

}  // namespace

template <class Rows>
void ChosenColumns::gather(const Rows& X, const BacProblem& problem, const std::vector<int32_t>& columns) {
  const auto bit = [](int64_t column) { return uint64_t{1} << (column & 63); };
  wanted_.resize(static_cast<size_t>(X.n_columns + 63) / 64);
  for (const int32_t j : columns) wanted_[static_cast<size_t>(j) >> 6] |= bit(j);
  found_.clear();
  for (size_t i = 0; i < problem.rows.size(); ++i) {
    const auto row = X.row(problem.rows[i]);
    const float scale = scale_of(problem, i);
    for (int64_t k = 0; k < row.count; ++k) {
      const auto j = static_cast<int64_t>(row.index[k]);
      if (!(wanted_[static_cast<size_t>(j) >> 6] & bit(j)) || row.value[k] == 0) continue;
      const auto place = std::lower_bound(columns.begin(), columns.end(), j) - columns.begin();
      found_.push_back({static_cast<int32_t>(place), static_cast<int32_t>(i), scale * row.value[k]});
    }
  }
  for (const int32_t j : columns) wanted_[static_cast<size_t>(j) >> 6] = 0;
  add_entries(found_, columns.size());
}

template <>
void ChosenColumns::gather(const DenseRows& X, const BacProblem& problem, const std::vector<int32_t>& columns) {
  const size_t n = problem.rows.size(), first = values_.size();
  add_dense_columns(columns.size());
  for (size_t i = 0; i < n; ++i) {
    const float* const values = X.row(problem.rows[i]).value;
    const float scale = scale_of(problem, i);
    float* const out = values_.data() + first + i;
    for (size_t c = 0; c < columns.size(); ++c) out[c * n] = scale * values[columns[c]];
  }
}

void ChosenColumns::add_dense_columns(size_t n) {
  const auto height = static_cast<size_t>(n_rows_);
  for (size_t c = 0; c < n; ++c) columns_.push_back({values_.size() + c * height, kDense, n_rows_});
  values_.resize(values_.size() + n * height);
}

// `found` is in the order of the rows.
void ChosenColumns::add_entries(const std::vector<Entry>& found, size_t n_columns) {
  std::vector<int64_t> count(n_columns);
  for (const Entry& entry : found) ++count[static_cast<size_t>(entry.place)];
  const size_t first = columns_.size();
  for (size_t c = 0; c < n_columns; ++c) {
    if (count[c] * kDenseShare >= n_rows_) {
      add_dense_columns(1);
      continue;
    }
    columns_.push_back({values_.size(), entries_.size(), 0});
    values_.resize(values_.size() + static_cast<size_t>(count[c]));
    entries_.resize(entries_.size() + static_cast<size_t>(count[c]));
  }
  for (const Entry& entry : found) {
    Column& column = columns_[first + static_cast<size_t>(entry.place)];
    if (column.entries == kDense) {
      values_[column.values + static_cast<size_t>(entry.row)] = entry.value;
      continue;
    }
    values_[column.values + static_cast<size_t>(column.count)] = entry.value;
    entries_[column.entries + static_cast<size_t>(column.count)] = entry.row;
    ++column.count;
  }
}

double ChosenColumns::sum_of_squares() const {
  double sum = 0.0;
  for (const float value : values_) sum += static_cast<double>(value) * value;
  return sum;
}

void ChosenColumns::scores(const std::vector<double>& w, int32_t n_folds, std::vector<double>& scores) const {
  const BacKernels& kernels = bac_kernels();
  std::fill(scores.begin(), scores.end(), 0.0);
  const auto folds = static_cast<size_t>(n_folds);
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    for (size_t v = 0; v < folds; ++v) {
      const double by = w[c * folds + v];
      double* const to = scores.data() + v * static_cast<size_t>(n_rows_);
      if (by == 0) continue;
      if (column.entries == kDense) kernels.add_dense(values_.data() + column.values, n_rows_, by, to);
      else kernels.add_sparse(entries_.data() + column.entries, values_.data() + column.values, column.count, by, to);
    }
  }
}

void ChosenColumns::column_sums(const std::vector<double>& alpha, int32_t n_folds, std::vector<double>& sums) const {
  const BacKernels& kernels = bac_kernels();
  const auto folds = static_cast<size_t>(n_folds);
  sums.resize(columns_.size() * folds);
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    for (size_t v = 0; v < folds; ++v) {
      const double* const with = alpha.data() + v * static_cast<size_t>(n_rows_);
      sums[c * folds + v] =
          column.entries == kDense
              ? kernels.dot_dense(values_.data() + column.values, n_rows_, with)
              : kernels.dot_sparse(entries_.data() + column.entries, values_.data() + column.values, column.count, with);
    }
  }
}

template void ChosenColumns::gather(const CsrRows<int32_t>&, const BacProblem&, const std::vector<int32_t>&);
template void ChosenColumns::gather(const CsrRows<int64_t>&, const BacProblem&, const std::vector<int32_t>&);

}  // namespace sapwood
