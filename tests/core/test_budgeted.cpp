// The budgeted methods from C++: forms of the data, threads, a workspace used again. What they find is tested in Python.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "budgeted/bac.h"
#include "budgeted/bac_set.h"
#include "budgeted/tree.h"
#include "budgeted/tree_predict.h"
#include "check.h"
#include "random_rows.h"

using namespace sapwood;

namespace {

struct SignedRows {
  RandomRows data;
  std::vector<int32_t> rows;
  std::vector<int8_t> signs;
  std::vector<uint8_t> fold;

  SignedRows(int64_t n, int64_t columns) : data(n, columns, 6), rows(static_cast<size_t>(n)), fold(static_cast<size_t>(n)) {
    std::iota(rows.begin(), rows.end(), 0);
    for (int64_t i = 0; i < n; ++i) {
      signs.push_back(i % 6 < 3 ? 1 : -1);
      fold[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 11);
    }
  }
  [[nodiscard]] BacProblem problem(int32_t n_folds) const {
    BacProblem problem{rows, signs};
    problem.n_folds = n_folds;
    if (n_folds > 1) problem.fold = fold.data();
    return problem;
  }
};

BacOptions few_columns() {
  BacOptions options;
  options.budget = 4;
  options.max_planes = 5;
  options.tolerance = 1e-3;
  return options;
}

bool are_close(const BacSolution& a, const BacSolution& b) {
  if (a.columns != b.columns || a.planes != b.planes) return false;
  for (size_t k = 0; k < a.weights.size(); ++k) {
    if (std::abs(a.weights[k] - b.weights[k]) > 1e-6) return false;
  }
  return true;
}

}  // namespace

TEST(bac_is_the_same_for_every_form_of_rows_and_any_workspace) {
  const SignedRows given(200, 90);
  const Monitor monitor;
  for (const int32_t n_folds : {1, 3, 5, 11}) {
    BacWorkspace used;
    const auto csr = train_bac(given.data.csr(), given.problem(n_folds), few_columns(), used, monitor);
    const auto wide = train_bac(given.data.wide(), given.problem(n_folds), few_columns(), used, monitor);
    BacWorkspace fresh;
    const auto dense = train_bac(given.data.dense_rows(), given.problem(n_folds), few_columns(), fresh, monitor);
    CHECK(csr.weights == wide.weights && csr.objective == wide.objective);
    CHECK(are_close(csr, dense));
    CHECK(csr.gap() >= -1e-9 && !csr.columns.empty());
  }
}

TEST(bac_of_few_rows_after_many) {
  const SignedRows given(200, 90);
  const Monitor monitor;
  BacWorkspace used, fresh;
  static_cast<void>(train_bac(given.data.csr(), given.problem(5), few_columns(), used, monitor));
  const std::vector<int32_t> rows{4, 17, 100, 111};
  const std::vector<int8_t> signs{1, -1, 1, -1};
  const BacProblem few{rows, signs};
  const auto again = train_bac(given.data.csr(), few, few_columns(), used, monitor);
  const auto alone = train_bac(given.data.csr(), few, few_columns(), fresh, monitor);
  CHECK(again.weights == alone.weights && again.columns == alone.columns);
}

TEST(bac_chooses_among_the_columns_that_it_may) {
  const SignedRows given(200, 90);
  const std::vector<int32_t> among{3, 7, 30, 31, 60};
  BacProblem problem = given.problem(1);
  problem.among = among;
  BacWorkspace workspace;
  const auto found = train_bac(given.data.csr(), problem, few_columns(), workspace, Monitor{});
  for (const int32_t column : found.columns) CHECK(std::find(among.begin(), among.end(), column) != among.end());
}

TEST(bac_that_is_told_to_stop_throws) {
  const SignedRows given(200, 90);
  Monitor monitor;
  monitor.request_stop();
  BacWorkspace workspace;
  CHECK_THROWS(train_bac(given.data.csr(), given.problem(1), few_columns(), workspace, monitor), Interrupted);
}

TEST(budgeted_trees_and_sets_are_the_same_for_any_threads) {
  const SignedRows given(300, 90);
  const RandomRows& data = given.data;
  std::vector<int32_t> rank(6);
  std::iota(rank.begin(), rank.end(), 0);
  const LabelOrder order{rank, std::vector<int32_t>(6, 0)};
  std::vector<uint8_t> fold = given.fold;
  for (uint8_t& f : fold) f = static_cast<uint8_t>(f % 3);
  TreeOptions options;
  options.bac = few_columns();
  options.n_folds = 3;
  const TreeProblem problem{data.sets(), nullptr, nullptr, fold.data(), order};
  Monitor monitor;
  const BudgetedTree one = grow_budgeted_tree(data.csr(), problem, options, monitor);
  options.n_threads = 4;
  const BudgetedTree four = grow_budgeted_tree(data.csr(), problem, options, monitor);
  CHECK(one.nodes.size() == four.nodes.size() && one.nodes.size() > 5);
  for (size_t v = 0; v < one.nodes.size(); ++v) CHECK(one.nodes[v].bac.weights == four.nodes[v].bac.weights);
  CHECK(one.cv_error == four.cv_error && one.cv_error <= one.unpruned_cv_error);

  const BacSet set = train_one_against_all(data.csr(), data.sets(), nullptr, nullptr, few_columns(), 1, monitor);
  const BacSet again = train_one_against_all(data.csr(), data.sets(), nullptr, nullptr, few_columns(), 4, monitor);
  for (size_t b = 0; b < set.bacs.size(); ++b) CHECK(set.bacs[b].weights == again.bacs[b].weights);
}
