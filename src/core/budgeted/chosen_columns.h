// U: the columns of X that some plane has, over the rows of one problem. They are all that is copied out of X.
#pragma once

#include <cstdint>
#include <vector>

#include "budgeted/bac.h"
#include "budgeted/kernels.h"

namespace sapwood {

class ChosenColumns {
 public:
  void start(int64_t n_rows) {
    n_rows_ = n_rows;
    columns_.clear();
    values_.clear();
    entries_.clear();
  }

  // Adds the ascending `columns` of X over the problem's rows, none of which is there yet.
  template <class Rows>
  void gather(const Rows& X, const BacProblem& problem, const std::vector<int32_t>& columns);

  [[nodiscard]] size_t size() const { return columns_.size(); }
  [[nodiscard]] double sum_of_squares() const;

  // scores of each fold = U w of the fold; w: columns x folds, scores: folds x n.
  void scores(const std::vector<double>& w, int32_t n_folds, std::vector<double>& scores) const;
  // U' alpha: columns x folds.
  void column_sums(const std::vector<double>& alpha, int32_t n_folds, std::vector<double>& sums) const;

 private:
  struct Column {
    size_t values;   // where its values begin
    size_t entries;  // where its rows begin; kDense: it has a value for every row
    int64_t count;
  };
  static constexpr size_t kDense = ~size_t{0};
  struct Entry {
    int32_t place, row;
    float value;
  };

  void add_dense_columns(size_t n);
  void add_entries(const std::vector<Entry>& found, size_t n_columns);

  int64_t n_rows_ = 0;
  std::vector<Column> columns_;
  std::vector<float> values_;
  std::vector<int32_t> entries_;  // places of rows
  std::vector<uint64_t> wanted_;  // a bit for each column of X; all zero between calls
  std::vector<Entry> found_;
};

}  // namespace sapwood
