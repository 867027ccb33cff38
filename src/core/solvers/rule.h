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

// What one example pushes a regressor by: every entry of the row moves its weight by this times its value.
inline float push(const Rule& rule, float score, double target, double weight) {
  const double slope = derivative(rule.loss, static_cast<double>(score), target);
  return std::fabs(slope) < rule.tolerance ? 0.0f : static_cast<float>(weight * slope);
}

// A score as the probability of +1: the logistic function; 1/2 + score, clipped, for other losses.
inline double score_probability(OnlineLoss loss, double score) {
  if (loss == OnlineLoss::logistic) return sigmoid(score);
  return std::fmin(1.0, std::fmax(0.0, 0.5 + score));
}

}  // namespace sapwood
