#include "budgeted/worst_case.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace sapwood {

namespace {

constexpr int64_t kSparseSums = int64_t{1} << 18;  // doubles of a block: 2 MiB, and a bit for each column
constexpr int64_t kDenseSums = 2048;               // doubles of a block: half of a first-level cache

}  // namespace

void TopColumns::offer(int32_t column, double score) {
  if (!(score > 0)) return;
  if (heap_.size() == budget_) {
    if (score <= heap_.front().first) return;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.back() = {score, ~column};
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    return;
  }
  heap_.emplace_back(score, ~column);
  if (heap_.size() == budget_) std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::vector<int32_t> TopColumns::columns() const {
  std::vector<int32_t> columns;
  columns.reserve(heap_.size());
  for (const Scored& scored : heap_) columns.push_back(~scored.second);
  std::sort(columns.begin(), columns.end());
  return columns;
}

double TopColumns::sum() const {
  double sum = 0.0;
  for (const Scored& scored : heap_) sum += scored.first;
  return sum;
}

template <class Rows>
void WorstCase::find(const Rows& X, const BacProblem& problem, const std::vector<double>& alpha, int64_t budget,
                     const Monitor& monitor) {
  constexpr bool kIsDense = requires { X.stride; };
  top_.start(budget);
  among_ = problem.among;
  next_among_ = 0;
  take_active(problem, alpha);
  const auto lanes = static_cast<int64_t>(n_groups_) << log_lanes_;
  const int64_t width = std::min((kIsDense ? kDenseSums : kSparseSums) / lanes, X.n_columns);
  sums_.resize(std::max(sums_.size(), static_cast<size_t>(padded_width(width) * lanes)));
  touched_.resize(std::max(touched_.size(), static_cast<size_t>(width + 63) / 64));
  for (int64_t first = 0; first < X.n_columns; first += width) {
    if (monitor.stopped()) throw Interrupted{};
    sum_block(X, first, std::min(width, X.n_columns - first));
  }
}

// The rows that count, and their alphas with the folds of a row side by side.
void WorstCase::take_active(const BacProblem& problem, const std::vector<double>& alpha) {
  const auto folds = static_cast<size_t>(problem.n_folds);
  n_folds_ = folds;
  log_lanes_ = folds >= kSumLanes ? 3 : std::bit_width(folds - 1);
  n_groups_ = (folds + kSumLanes - 1) / kSumLanes;
  const size_t n = problem.rows.size(), lanes = size_t{1} << log_lanes_;
  active_.clear();
  alpha_.assign(n * lanes * n_groups_, 0.0);
  for (size_t i = 0; i < n; ++i) {
    const size_t place = active_.size();
    const double scale = problem.row_scale ? problem.row_scale[problem.rows[i]] : 1.0;
    bool is_active = false;
    for (size_t v = 0; v < folds; ++v) {
      const double a = alpha[v * n + i];
      alpha_[((v >> log_lanes_) * n + place) * lanes + (v & (lanes - 1))] = scale * a;
      is_active |= a != 0;
    }
    if (is_active) active_.push_back(problem.rows[i]);
  }
  cursor_.assign(active_.size(), 0);
}

template <class Rows>
void WorstCase::sum_block(const Rows& X, int64_t first, int64_t width) {
  const BacKernels& kernels = bac_kernels();
  const size_t n = alpha_.size() >> log_lanes_, per_group = n / n_groups_, lanes = size_t{1} << log_lanes_;
  const auto end = first + width;
  const bool is_whole = width == X.n_columns;
  for (size_t k = 0; k < active_.size(); ++k) {
    const auto row = X.row(active_[k]);
    int64_t from = cursor_[k], to = row.count;
    if (!is_whole) {
      to = from;
      while (to < row.count && static_cast<int64_t>(row.index[to]) < end) ++to;
      cursor_[k] = to;
    }
    for (size_t g = 0; g < n_groups_; ++g) {
      kernels.scatter(log_lanes_, {row.index + from, row.value + from, to - from}, first,
                      alpha_.data() + (g * per_group + k) * lanes,
                      sums_.data() + g * static_cast<size_t>(width) * lanes, touched_.data());
    }
  }
  for (size_t word = 0; word < static_cast<size_t>(width + 63) / 64; ++word) {
    for (uint64_t bits = std::exchange(touched_[word], 0); bits; bits &= bits - 1) {
      const size_t column = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      double score = 0.0;
      for (size_t g = 0; g < n_groups_; ++g) {
        double* const sums = sums_.data() + (g * static_cast<size_t>(width) + column) * lanes;
        for (size_t l = 0; l < lanes; ++l) score += sums[l] * sums[l], sums[l] = 0.0;
      }
      offer(first + static_cast<int64_t>(column), score);
    }
  }
}

template <>
void WorstCase::sum_block(const DenseRows& X, int64_t first, int64_t width) {
  const size_t stride = size_t{1} << log_lanes_, per_group = alpha_.size() / stride / n_groups_;
  const auto padded = static_cast<size_t>(padded_width(width));
  row_values_.clear();
  for (const int32_t row : active_) row_values_.push_back(X.row(row).value + first);
  for (size_t v = 0; v < n_folds_; v += stride) {
    const size_t lanes = std::min(stride, n_folds_ - v);
    bac_kernels().sum_rows(row_values_.data(), static_cast<int64_t>(active_.size()), width, alpha_.data() + v * per_group,
                           static_cast<int>(stride), static_cast<int>(lanes), sums_.data() + v * padded);
  }
  for (size_t column = 0; column < static_cast<size_t>(width); ++column) {
    double score = 0.0;
    for (size_t v = 0; v < n_folds_; ++v) score += sums_[v * padded + column] * sums_[v * padded + column];
    offer(first + static_cast<int64_t>(column), score);
  }
  std::fill_n(sums_.begin(), n_folds_ * padded, 0.0);
}

void WorstCase::offer(int64_t column, double score) {
  const auto j = static_cast<int32_t>(column);
  if (among_) {  // ascends, as the columns that are offered do
    while (next_among_ < among_->size() && (*among_)[next_among_] < j) ++next_among_;
    if (next_among_ == among_->size() || (*among_)[next_among_] != j) return;
  }
  top_.offer(j, score);
}

template void WorstCase::find(const CsrRows<int32_t>&, const BacProblem&, const std::vector<double>&, int64_t, const Monitor&);
template void WorstCase::find(const CsrRows<int64_t>&, const BacProblem&, const std::vector<double>&, int64_t, const Monitor&);
template void WorstCase::find(const DenseRows&, const BacProblem&, const std::vector<double>&, int64_t, const Monitor&);

}  // namespace sapwood
