// How the regressors of the online trees learn; restates src/sapwood/reference/linear.py.
#pragma once

#include <cmath>
#include <cstdint>

namespace sapwood {

enum class OnlineLoss : int32_t { squared, logistic, absolute };

struct Rule {
  OnlineLoss loss = OnlineLoss::logistic;
  bool adagrad = true;  // else sgd
  float step = 0.5f;
  float initial = 0.01f;  // what sums of squared gradients start from
  double tolerance = 0;   // a derivative nearer to 0 than this teaches nothing
};

// 1 / (1 + exp(-z)), never through the exponential of a positive number.
inline double sigmoid(double z) {
  if (z > 0) return 1.0 / (1.0 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1.0 + e);
}

// The loss's derivative in the score, for a target of -1 or +1.
inline double derivative(OnlineLoss loss, double score, double target) {
  if (loss == OnlineLoss::squared) return score - target;
  if (loss == OnlineLoss::absolute) return static_cast<double>(score > target) - static_cast<double>(score < target);
  return -target * sigmoid(-target * score);
}

// Whether 1 / (1 + exp(z)) is below the tolerance beyond all doubt of rounding: told without the exponential, which is larger
// than the first terms of its series. Most routers and regressors that a row meets are settled.
inline bool is_settled(double z, double tolerance) {
  return z > 0 && tolerance * (2 + z * (1 + z * (1.0 / 2 + z * (1.0 / 6 + z * (1.0 / 24 + z / 120))))) > 1 + 1e-9;
}

// What one example pushes a regressor by: every entry of the row moves its weight by this times its value.
inline float push(const Rule& rule, float score, double target, double weight) {
  if (rule.loss == OnlineLoss::logistic && is_settled(target * static_cast<double>(score), rule.tolerance)) return 0.0f;
  const double slope = derivative(rule.loss, static_cast<double>(score), target);
  return std::fabs(slope) < rule.tolerance ? 0.0f : static_cast<float>(weight * slope);
}

// A score as the probability of +1: the logistic function; 1/2 + score, clipped, for other losses.
inline double score_probability(OnlineLoss loss, double score) {
  if (loss == OnlineLoss::logistic) return sigmoid(score);
  return std::fmin(1.0, std::fmax(0.0, 0.5 + score));
}

}  // namespace sapwood
