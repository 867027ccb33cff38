#include "budgeted/fold_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sapwood {

namespace {

constexpr int kMostOffsetSteps = 100;

}  // namespace

void FoldLosses::start(const BacProblem& problem, const BacOptions& options) {
  const size_t n = problem.rows.size();
  n_ = static_cast<int64_t>(n);
  n_folds_ = problem.n_folds;
  C_ = options.C;
  loss_ = options.loss;
  fit_offset_ = options.fit_offset;
  signs_.assign(problem.signs.begin(), problem.signs.end());
  weights_.resize(n * static_cast<size_t>(n_folds_));
  for (int32_t v = 0; v < n_folds_; ++v) {
    double* const weights = weights_.data() + static_cast<size_t>(v) * n;
    for (size_t i = 0; i < n; ++i) {
      const auto row = static_cast<size_t>(problem.rows[i]);
      const bool learns = !problem.fold || problem.fold[row] != v;
      weights[i] = learns ? (problem.row_weight ? problem.row_weight[row] : 1.0) : 0.0;
    }
  }
  if (options.balanced) balance();
}

// c_i = total / (2 total of the class), in every fold: scikit-learn's "balanced".
void FoldLosses::balance() {
  const auto n = static_cast<size_t>(n_);
  for (int32_t v = 0; v < n_folds_; ++v) {
    double* const weights = weights_.data() + static_cast<size_t>(v) * n;
    double positive = 0.0, negative = 0.0;
    for (size_t i = 0; i < n; ++i) (signs_[i] > 0 ? positive : negative) += weights[i];
    const double half = 0.5 * (positive + negative);
    const double for_positive = positive > 0 ? half / positive : 0.0;
    const double for_negative = negative > 0 ? half / negative : 0.0;
    for (size_t i = 0; i < n; ++i) weights[i] *= signs_[i] > 0 ? for_positive : for_negative;
  }
}

// A Newton step from the last b where it lands strictly inside the shrinking bracket, a bisection elsewhere.
double FoldLosses::offset(const FoldRows& rows, double b) const {
  const LossKernels& loss = bac_kernels().losses[static_cast<int>(loss_)];
  const double reach = 1.0 + bac_kernels().largest(rows.scores, rows.n) + std::log(static_cast<double>(rows.n));
  const double close = 4 * std::numeric_limits<double>::epsilon() * reach;
  double low = -reach, high = reach;
  b = std::clamp(b, low, high);
  for (int step = 0; step < kMostOffsetSteps; ++step) {
    const auto [slope, curvature] = loss.offset(rows, b);
    if (slope > 0) low = b;
    if (slope < 0) high = b;
    const double newton = curvature > 0 ? b + slope / curvature : b;
    const double last = b;
    if (slope != 0) b = newton > low && newton < high ? newton : 0.5 * (low + high);
    if (std::abs(b - last) <= close) break;
  }
  return b;
}

void FoldLosses::find_offset(const std::vector<double>& scores, std::vector<double>& b) const {
  for (int32_t v = 0; v < n_folds_; ++v) {
    double& of_fold = b[static_cast<size_t>(v)];
    of_fold = fit_offset_ ? offset(fold(scores, v), of_fold) : 0.0;
  }
}

double FoldLosses::total(const std::vector<double>& scores, const std::vector<double>& b) const {
  double total = 0.0;
  for (int32_t v = 0; v < n_folds_; ++v) {
    total += bac_kernels().losses[static_cast<int>(loss_)].total(fold(scores, v), b[static_cast<size_t>(v)]);
  }
  return C_ * total;
}

void FoldLosses::find_ratio(const std::vector<double>& scores, const std::vector<double>& b,
                            std::vector<double>& ratio) const {
  for (int32_t v = 0; v < n_folds_; ++v) {
    double* const of_fold = ratio.data() + static_cast<size_t>(v) * static_cast<size_t>(n_);
    const auto [up, down] =
        bac_kernels().losses[static_cast<int>(loss_)].slopes(fold(scores, v), b[static_cast<size_t>(v)], of_fold);
    if (!fit_offset_) continue;
    // sum_i alpha_i y_i = 0 holds up to rounding; scaling the heavier class down makes it exact.
    const double light = std::min(up, down);
    const double for_positive = up > 0 ? light / up : 0.0, for_negative = down > 0 ? light / down : 0.0;
    for (int64_t i = 0; i < n_; ++i) of_fold[i] *= signs_[static_cast<size_t>(i)] > 0 ? for_positive : for_negative;
  }
}

double FoldLosses::dual_value(const std::vector<double>& ratio, double top) const {
  DualSums all{0.0, 0.0};
  for (int32_t v = 0; v < n_folds_; ++v) {
    const double* const of_fold = ratio.data() + static_cast<size_t>(v) * static_cast<size_t>(n_);
    const auto [sum, gain] = bac_kernels().losses[static_cast<int>(loss_)].dual(fold(ratio, v), of_fold);
    all.ratio += C_ * sum;
    all.gain += C_ * gain;
  }
  if (loss_ == Loss::logistic) return all.gain - 0.5 * top;  // alpha <= C leaves no cone to move in
  const double quadratic = 0.25 * all.gain + 0.5 * top;      // D(s alpha) = s sum alpha - s^2 quadratic, [7]
  return quadratic > 0 ? all.ratio * all.ratio / (4.0 * quadratic) : all.ratio;
}

void FoldLosses::sign_alpha(const std::vector<double>& ratio, std::vector<double>& signed_alpha) const {
  const auto n = static_cast<size_t>(n_);
  for (size_t at = 0; at < ratio.size(); at += n) {
    for (size_t i = 0; i < n; ++i) signed_alpha[at + i] = C_ * weights_[at + i] * ratio[at + i] * signs_[i];
  }
}

}  // namespace sapwood
