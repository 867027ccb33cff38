#include "budgeted/master.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace sapwood {

namespace {

constexpr double kRounding = 1e-12;  // relative error that a sum is allowed before a test of descent is said to have failed
constexpr double kLipschitzGrowth = 2.0;

}  // namespace

void Master::start(const BacProblem& problem, const BacOptions& options) {
  losses_.start(problem, options);
  chosen_.start(losses_.n());
  columns_.clear();
  by_column_.clear();
  position_.clear();
  plane_.clear();
  n_planes_ = 0;
  lipschitz_ = 0.0;
  steps_ = 0;
  const size_t folds = static_cast<size_t>(losses_.n_folds()), size = folds * static_cast<size_t>(losses_.n());
  for (Point* point : {&current_, &last_, &next_, &ahead_}) {
    point->w.clear();
    point->scores.assign(size, 0.0);
    point->b.assign(folds, 0.0);
  }
  for (auto* array : {&ratio_, &ratio_here_, &alpha_}) array->resize(size);
  losses_.find_offset(current_.scores, current_.b);
  objective_ = losses_.total(current_.scores, current_.b);
  losses_.find_ratio(current_.scores, current_.b, ratio_);
}

// Gives the columns of the plane that are new to U.
std::vector<int32_t> Master::place_plane(const std::vector<int32_t>& plane) {
  const auto before = [this](int32_t place, int32_t column) { return columns_[static_cast<size_t>(place)] < column; };
  const size_t n_known = columns_.size();
  std::vector<int32_t> fresh;
  for (const int32_t j : plane) {
    const auto end = by_column_.end(), found = std::lower_bound(by_column_.begin(), end, j, before);
    const bool is_known = found != end && columns_[static_cast<size_t>(*found)] == j;
    position_.push_back(is_known ? *found : static_cast<int32_t>(n_known + fresh.size()));
    plane_.push_back(static_cast<int32_t>(n_planes_));
    if (!is_known) fresh.push_back(j);
  }
  columns_.insert(columns_.end(), fresh.begin(), fresh.end());
  for (size_t place = n_known; place < columns_.size(); ++place) by_column_.push_back(static_cast<int32_t>(place));
  const auto by_column = [this](int32_t a, int32_t b) { return columns_[static_cast<size_t>(a)] < columns_[static_cast<size_t>(b)]; };
  std::inplace_merge(by_column_.begin(), by_column_.begin() + static_cast<std::ptrdiff_t>(n_known), by_column_.end(), by_column);
  ++n_planes_;
  const size_t size = position_.size() * static_cast<size_t>(losses_.n_folds());
  for (Point* point : {&current_, &last_, &next_, &ahead_}) point->w.resize(size, 0.0);
  return fresh;
}

void Master::solve(double tolerance, int32_t max_steps, const Monitor& monitor) {
  if (lipschitz_ == 0) {
    // A first guess from below; backtracking corrects it.
    const auto n_columns = static_cast<double>(std::max<size_t>(1, columns_.size()));
    lipschitz_ = losses_.C() * chosen_.sum_of_squares() / n_columns + kRounding;
  }
  lipschitz_ /= kLipschitzGrowth;
  double momentum = 1.0, best_dual = -std::numeric_limits<double>::infinity();
  bool is_ahead = false;
  for (int32_t k = 0; k < max_steps; ++k) {
    if (monitor.stopped()) throw Interrupted{};
    ++steps_;
    const Point& from = is_ahead ? ahead_ : current_;
    const double dual = find_gradient(from);
    const double moved = step(from, losses_.total(from.scores, from.b));
    if (dual > best_dual) {
      best_dual = dual;
      std::swap(ratio_, ratio_here_);
    }
    if (moved > objective_) {
      if (!is_ahead) break;  // a plain proximal step that does not descend: the end of the arithmetic
      is_ahead = false;
      momentum = 1.0;
      continue;
    }
    double uphill = 0.0;  // the gradient test of O'Donoghue and Candes
    for (size_t e = 0; e < next_.w.size(); ++e) uphill += (from.w[e] - next_.w[e]) * (next_.w[e] - current_.w[e]);
    std::swap(last_, current_);
    std::swap(current_, next_);
    objective_ = moved;
    if (objective_ - best_dual <= tolerance * objective_) break;
    is_ahead = uphill <= 0;
    if (!is_ahead) {
      momentum = 1.0;
      continue;
    }
    const double next_momentum = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
    extrapolate((momentum - 1.0) / next_momentum);
    momentum = next_momentum;
  }
}

// The gradient in w is minus the column sums of alpha, so it brings a dual point [6]: returns the dual value over the planes.
double Master::find_gradient(const Point& from) {
  losses_.find_ratio(from.scores, from.b, ratio_here_);
  losses_.sign_alpha(ratio_here_, alpha_);
  chosen_.column_sums(alpha_, losses_.n_folds(), column_sums_);
  const auto folds = static_cast<size_t>(losses_.n_folds());
  correlations_.resize(position_.size() * folds);
  for (size_t e = 0; e < position_.size(); ++e) {
    const double* const sums = column_sums_.data() + static_cast<size_t>(position_[e]) * folds;
    std::copy_n(sums, folds, correlations_.data() + e * folds);
  }
  find_norms(correlations_);
  const double top = norms_.empty() ? 0.0 : *std::max_element(norms_.begin(), norms_.end());
  return losses_.dual_value(ratio_here_, top * top);
}

// A proximal step as long as the quadratic model bounds the loss. Its outcome is next_; returns the objective there.
double Master::step(const Point& from, double loss_there) {
  while (true) {
    const double penalty = move_against_gradient(from);
    add_up(next_.w);
    chosen_.scores(coefficients_, losses_.n_folds(), next_.scores);
    next_.b = from.b;
    losses_.find_offset(next_.scores, next_.b);
    const double loss = losses_.total(next_.scores, next_.b);
    double model = loss_there;
    for (size_t e = 0; e < next_.w.size(); ++e) {
      const double move = next_.w[e] - from.w[e];
      model += (0.5 * lipschitz_ * move - correlations_[e]) * move;
    }
    if (!(loss > model + kRounding * (std::abs(loss_there) + std::abs(loss)))) return penalty + loss;
    lipschitz_ *= kLipschitzGrowth;
  }
}

// next_.w = argmin_w 1/2 ||w - v||^2 + tau/2 (sum_h ||w_h||)^2, [5]; returns the penalty 1/2 (sum_h ||w_h||)^2.
double Master::move_against_gradient(const Point& from) {
  const double tau = 1.0 / lipschitz_;
  for (size_t e = 0; e < from.w.size(); ++e) next_.w[e] = from.w[e] + tau * correlations_[e];
  find_norms(next_.w);
  shrink_norms(tau);
  const auto folds = static_cast<size_t>(losses_.n_folds());
  for (size_t e = 0; e < position_.size(); ++e) {
    const auto h = static_cast<size_t>(plane_[e]);
    const double factor = norms_[h] > 0 ? shrunk_[h] / norms_[h] : 0.0;
    for (size_t v = 0; v < folds; ++v) next_.w[e * folds + v] *= factor;
  }
  double sum = 0.0;
  for (const double norm : shrunk_) sum += norm;
  return 0.5 * sum * sum;
}

void Master::extrapolate(double beta) {
  const auto beyond = [beta](const std::vector<double>& now, const std::vector<double>& before, std::vector<double>& out) {
    for (size_t i = 0; i < now.size(); ++i) out[i] = now[i] + beta * (now[i] - before[i]);
  };
  beyond(current_.w, last_.w, ahead_.w);
  beyond(current_.scores, last_.scores, ahead_.scores);  // linear in w: no product is needed
  ahead_.b = current_.b;
  losses_.find_offset(ahead_.scores, ahead_.b);
}

// ||w_h|| of each plane.
void Master::find_norms(const std::vector<double>& w) {
  const auto folds = static_cast<size_t>(losses_.n_folds());
  norms_.assign(n_planes_, 0.0);
  for (size_t e = 0; e < position_.size(); ++e) {
    double& square = norms_[static_cast<size_t>(plane_[e])];
    for (size_t v = 0; v < folds; ++v) square += w[e * folds + v] * w[e * folds + v];
  }
  for (double& norm : norms_) norm = std::sqrt(norm);
}

// The minimiser r >= 0 of 1/2 ||r - norms||^2 + tau/2 (sum r)^2, [5].
void Master::shrink_norms(double tau) {
  descending_ = norms_;
  std::sort(descending_.begin(), descending_.end(), std::greater<>());
  double sum = 0.0, most = 0.0;
  for (size_t k = 0; k < descending_.size(); ++k) {
    sum += descending_[k];
    most = std::max(most, sum / (1.0 + tau * static_cast<double>(k + 1)));
  }
  shrunk_ = norms_;
  for (double& norm : shrunk_) norm = std::max(0.0, norm - tau * most);
}

// sum_h w_h of each column of U.
void Master::add_up(const std::vector<double>& w) {
  const auto folds = static_cast<size_t>(losses_.n_folds());
  coefficients_.assign(columns_.size() * folds, 0.0);
  for (size_t e = 0; e < position_.size(); ++e) {
    double* const to = coefficients_.data() + static_cast<size_t>(position_[e]) * folds;
    for (size_t v = 0; v < folds; ++v) to[v] += w[e * folds + v];
  }
}

void Master::write(BacSolution& solution) {
  const auto folds = static_cast<size_t>(losses_.n_folds());
  add_up(current_.w);
  for (const int32_t place : by_column_) {
    const double* const w = coefficients_.data() + static_cast<size_t>(place) * folds;
    if (std::all_of(w, w + folds, [](double weight) { return weight == 0; })) continue;
    solution.columns.push_back(columns_[static_cast<size_t>(place)]);
    solution.weights.insert(solution.weights.end(), w, w + folds);
  }
  find_norms(current_.w);
  solution.plane_norms = norms_;
  solution.offset = current_.b;
  solution.steps = steps_;
}

}  // namespace sapwood
