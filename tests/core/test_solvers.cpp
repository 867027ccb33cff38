#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "aligned.h"
#include "check.h"
#include "instruction_sets.h"
#include "random_rows.h"

using namespace sapwood;

namespace {

constexpr int64_t kRows = 160, kColumns = 60;
constexpr int32_t kLabels = 13;

struct Solved {
  std::vector<float> weights;
};

// Trains the labels of `data` as the lanes of one bank.
template <class Rows>
std::vector<float> solve(const Kernels& table, const RandomRows& data, const Rows& rows, bool dual, BankProblem p) {
  std::vector<uint16_t> positive(static_cast<size_t>(kRows), 0);
  for (size_t i = 0; i < positive.size(); ++i) {
    for (int64_t k = data.label_indptr[i]; k < data.label_indptr[i + 1]; ++k) {
      positive[i] |= static_cast<uint16_t>(1u << data.labels[static_cast<size_t>(k)]);
    }
  }
  WorkBuffer<float> weights, per_row, per_feature;
  std::vector<float> norm(positive.size());
  std::vector<int32_t> order(positive.size());
  p.positive = positive.data();
  p.n = rows.n_rows;
  p.n_features = rows.n_columns;
  const size_t lines = 16 * static_cast<size_t>(kColumns + 1);
  const BankWork work{weights.ensure(lines), per_row.ensure(16 * positive.size()), per_feature.ensure(lines), norm.data(), order.data()};
  if (dual) {
    table.dual(rows, p, work);
  } else {
    table.adagrad(rows, p, work);
  }
  return {work.weights, work.weights + lines};
}

BankProblem problem() {
  BankProblem p{};
  p.seed = 5;
  p.lanes = (1u << kLabels) - 1;
  p.loss = Loss::squared_hinge;
  p.passes = 400;
  p.C = 1;
  p.tolerance = 1e-4f;
  p.step = 0.3f;
  return p;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

// LIBLINEAR's primal objective of one lane, bias regularised.
double objective(const RandomRows& data, const std::vector<float>& weights, int lane, double C) {
  double sum = 0;
  for (int64_t f = 0; f <= kColumns; ++f) sum += 0.5 * std::pow(weights[static_cast<size_t>(16 * f + lane)], 2);
  for (int64_t i = 0; i < kRows; ++i) {
    double score = weights[static_cast<size_t>(16 * kColumns + lane)];
    for (int64_t f = 0; f < kColumns; ++f) score += static_cast<double>(data.dense[static_cast<size_t>(i * kColumns + f)]) * weights[static_cast<size_t>(16 * f + lane)];
    bool positive = false;
    for (int64_t k = data.label_indptr[static_cast<size_t>(i)]; k < data.label_indptr[static_cast<size_t>(i) + 1]; ++k) positive |= data.labels[static_cast<size_t>(k)] == lane;
    sum += C * std::pow(std::max(0.0, 1 - (positive ? score : -score)), 2);
  }
  return sum;
}

}  // namespace

TEST(instruction_sets_and_forms_of_rows_solve_alike) {
  const RandomRows data(kRows, kColumns, kLabels);
  std::vector<float> row_scale(static_cast<size_t>(kRows), 0.9f), row_weight(static_cast<size_t>(kRows), 1.0f), lane_weight(16, 1.5f);
  for (size_t i = 0; i < row_weight.size(); ++i) row_weight[i] = 0.5f + static_cast<float>(i % 3);
  for (const bool weighted : {false, true}) {
    BankProblem dual = problem();
    BankProblem adagrad = problem();
    adagrad.passes = 3;
    BankProblem logistic = adagrad;
    logistic.loss = Loss::logistic;
    for (BankProblem* p : {&dual, &adagrad, &logistic}) {
      if (weighted) p->row_scale = row_scale.data(), p->row_weight = row_weight.data(), p->lane_weight = lane_weight.data();
      const bool is_dual = p == &dual;
      const std::vector<float> expected = solve(baseline::kTable, data, data.csr(), is_dual, *p);
      CHECK(*std::max_element(expected.begin(), expected.end()) > 0.5f);
      for_each_kernels([&](const Kernels& table) {
        const std::vector<float> got = solve(table, data, data.csr(), is_dual, *p);
        CHECK(largest_difference(got, expected) < 5e-3f);
        CHECK(solve(table, data, data.csr(), is_dual, *p) == got);
        CHECK(solve(table, data, data.wide(), is_dual, *p) == got);
        CHECK(largest_difference(solve(table, data, data.dense_rows(), is_dual, *p), got) < 5e-3f);
      });
    }
  }
}

TEST(lanes_do_not_disturb_one_another) {
  const RandomRows data(kRows, kColumns, kLabels);
  for (const bool dual : {true, false}) {
    BankProblem all = problem();
    all.passes = dual ? 400 : 3;
    for_each_kernels([&](const Kernels& table) {
      const std::vector<float> together = solve(table, data, data.csr(), dual, all);
      BankProblem one = all;
      one.lanes = 1u << 4;
      const std::vector<float> alone = solve(table, data, data.csr(), dual, one);
      for (size_t i = 0; i < alone.size(); ++i) {
        if (i % 16 == 4) {
          CHECK(std::fabs(alone[i] - together[i]) < 5e-3f);
        } else {
          CHECK(alone[i] == 0);
        }
      }
      for (size_t i = 0; i < together.size(); ++i) CHECK(i % 16 < kLabels || together[i] == 0);
    });
  }
}

TEST(dual_descent_reaches_a_minimum) {
  const RandomRows data(kRows, kColumns, kLabels);
  const BankProblem p = problem();
  const std::vector<float> weights = solve(kernels(), data, data.csr(), true, p);
  for (int lane = 0; lane < kLabels; ++lane) {
    const double best = objective(data, weights, lane, p.C);
    for (size_t f = 0; f <= static_cast<size_t>(kColumns); f += 7) {
      for (const float by : {-0.02f, 0.02f}) {
        std::vector<float> other = weights;
        other[16 * f + static_cast<size_t>(lane)] += by;
        CHECK(objective(data, other, lane, p.C) > best);
      }
    }
  }
}

TEST(rows_of_no_weight_are_not_there) {
  RandomRows data(kRows, kColumns, kLabels);
  std::vector<float> weight(static_cast<size_t>(kRows), 1.0f);
  std::fill(weight.begin() + kRows / 2, weight.end(), 0.0f);
  for (const bool dual : {true, false}) {
    BankProblem p = problem();
    p.passes = dual ? 400 : 3;
    BankProblem weighted = p;
    weighted.row_weight = weight.data();
    const std::vector<float> got = solve(kernels(), data, data.csr(), dual, weighted);
    CsrRows<int32_t> half = data.csr();
    half.n_rows /= 2;
    CHECK(solve(kernels(), data, half, dual, p) == got);
  }
}

TEST(a_solver_told_to_stop_stops) {
  const RandomRows data(kRows, kColumns, kLabels);
  const int stop = 1;
  for (const bool dual : {true, false}) {
    BankProblem p = problem();
    p.passes = 1 << 30;
    p.tolerance = 0;
    p.stop = &stop;
    const std::vector<float> got = solve(kernels(), data, data.csr(), dual, p);
    CHECK(std::all_of(got.begin(), got.end(), [](float w) { return w == 0; }));
  }
}
