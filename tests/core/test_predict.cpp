#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "check.h"
#include "forests.h"
#include "instruction_sets.h"
#include "random_rows.h"
#include "trees/label_tree.h"
#include "trees/predict.h"

using namespace sapwood;

namespace {

ForestArrays train(const RandomRows& data, int32_t arity, int32_t max_leaf, int n_trees, Solver solver, Loss loss, bool half,
                   int n_threads = 1) {
  Monitor monitor;
  const LabelRows label_rows(data.sets());
  std::vector<TreeShape> shapes;
  for (int t = 0; t < n_trees; ++t) {
    shapes.push_back(cluster_labels(data.csr(), nullptr, label_rows, {arity, max_leaf, true, static_cast<uint64_t>(t)}, n_threads, monitor));
  }
  const TrainOptions options{solver, loss, 1.0f, 0.1f, 0.3f, 5, 0.05f, half, 3, n_threads};
  return train_forest(data.csr(), label_rows, shapes, Importance{nullptr, nullptr, nullptr}, options, monitor);
}

double probability(Loss loss, double score) {
  if (loss == Loss::logistic) return 1 / (1 + std::exp(-score));
  return std::exp(-std::pow(std::max(0.0, 1 - score), 2));
}

// The probability of every label below a node, by the definition: the product along the path.
void walk(const PackedForest& f, const CsrRows<int32_t>& X, int64_t row, int32_t node, double above, std::map<int32_t, double>& out) {
  const int32_t first = f.group_banks[f.node_groups[node]], last = f.group_banks[f.node_groups[node + 1]];
  std::vector<float> scores(static_cast<size_t>(16 * (last - first)));
  score_node(f, X, row, node, false, scores.data());
  for (size_t i = 0; i < scores.size(); ++i) {
    const int32_t target = f.targets[static_cast<size_t>(16 * first) + i];
    if (target == kNoTarget) continue;
    const double here = above * probability(f.loss, static_cast<double>(scores[i]));
    if (target < 0) {
      out[~target] += here / f.n_trees;
    } else {
      walk(f, X, row, target, here, out);
    }
  }
}

struct Answers {
  std::vector<int32_t> labels;
  std::vector<float> scores;
};

template <class Rows>
Answers top(const PackedForest& forest, const Rows& rows, PredictOptions options) {
  Monitor monitor;
  const auto n = static_cast<size_t>(rows.n_rows * options.top);
  Answers answers{std::vector<int32_t>(n), std::vector<float>(n)};
  predict_top(forest, rows, options, answers.labels.data(), answers.scores.data(), monitor);
  return answers;
}

}  // namespace

TEST(a_wide_beam_finds_what_a_walk_of_the_whole_tree_finds) {
  const RandomRows data(120, 60, 50);
  for (const auto& [solver, loss] : {std::pair{Solver::dual, Loss::squared_hinge}, {Solver::adagrad, Loss::logistic}}) {
    for (const int n_trees : {1, 3}) {
      for (const bool half : {true, false}) {
        for (const int32_t max_leaf : {2, 7, 64}) {
          const ForestArrays arrays = train(data, 3, max_leaf, n_trees, solver, loss, half);
          const PackedForest forest = view(arrays, 50, half, loss);
          check_whole(forest, arrays);
          const Answers answers = top(forest, data.csr(), {1000, 50, 0.0f, false, 1});
          for (int64_t i = 0; i < 20; ++i) {
            std::map<int32_t, double> expected;
            for (int32_t t = 0; t < n_trees; ++t) walk(forest, data.csr(), i, forest.roots[t], 1, expected);
            CHECK(expected.size() == 50);
            for (size_t k = 0; k < 50; ++k) {
              const size_t at = static_cast<size_t>(i) * 50 + k;
              CHECK(std::fabs(answers.scores[at] - expected.at(answers.labels[at])) < 1e-5);
              CHECK(k == 0 || answers.scores[at] <= answers.scores[at - 1]);
            }
          }
        }
      }
    }
  }
}

TEST(every_row_gets_as_many_labels_as_it_asks_for) {
  const RandomRows data(64, 60, 50);
  const ForestArrays arrays = train(data, 2, 2, 1, Solver::dual, Loss::squared_hinge, true);
  const PackedForest forest = view(arrays, 50, true);
  for (const int32_t beam : {1, 2, 10}) {
    for (const int32_t k : {1, 2, 5, 33, 50}) {
      for (const float share : {0.0f, 0.5f, 1.0f}) {
        const Answers answers = top(forest, data.csr(), {beam, k, share, true, 1});
        CHECK(std::count(answers.labels.begin(), answers.labels.end(), -1) == 0);
      }
    }
  }
}

TEST(answers_are_the_same_for_any_threads_and_form) {
  const RandomRows data(700, 60, 50);
  const ForestArrays arrays = train(data, 3, 5, 2, Solver::dual, Loss::squared_hinge, true);
  const PackedForest forest = view(arrays, 50, true);
  const Answers expected = top(forest, data.csr(), {4, 5, 0.05f, true, 1});
  for (const int n_threads : {2, 3, 9}) {
    const Answers got = top(forest, data.wide(), {4, 5, 0.05f, true, n_threads});
    CHECK(got.labels == expected.labels && got.scores == expected.scores);
  }
  const Answers dense = top(forest, data.dense_rows(), {4, 5, 0.05f, true, 2});
  for (size_t i = 0; i < dense.scores.size(); ++i) CHECK(std::fabs(dense.scores[i] - expected.scores[i]) < 1e-5f);
}

TEST(training_is_the_same_for_any_threads) {
  const RandomRows data(300, 60, 50);
  const ForestArrays expected = train(data, 3, 5, 2, Solver::dual, Loss::squared_hinge, true);
  for (const int n_threads : {2, 3}) {
    const ForestArrays got = train(data, 3, 5, 2, Solver::dual, Loss::squared_hinge, true, n_threads);
    CHECK(got.pool == expected.pool && got.keys == expected.keys && got.bias == expected.bias && got.targets == expected.targets);
  }
}

TEST(instruction_sets_search_alike) {
  const RandomRows data(100, 60, 50);
  for (const int n_trees : {1, 2}) {
    const ForestArrays arrays = train(data, 3, 5, n_trees, Solver::dual, Loss::squared_hinge, true);
    const PackedForest forest = view(arrays, 50, true);
    for_each_kernels([&](const Kernels& table) {
      std::vector<TopLabel> nodes(20), beam(20), heap(5), expected(5);
      std::vector<float> sum(50, 0.0f);
      std::vector<int32_t> seen(50);
      WorkBuffer<float> scores;
      const SearchOptions options{20, 5, 1.0f, std::log(0.01f)};
      for (int64_t i = 0; i < data.n_rows; ++i) {
        const SearchWork work{nodes.data(), beam.data(), heap.data(), scores.ensure(256), sum.data(), seen.data()};
        const SearchWork other{nodes.data(), beam.data(), expected.data(), scores.ensure(256), sum.data(), seen.data()};
        CHECK(table.search(forest, data.csr().row(i), options, work) == 5);
        CHECK(baseline::kTable.search(forest, data.csr().row(i), options, other) == 5);
        for (size_t k = 0; k < 5; ++k) CHECK(std::fabs(heap[k].score - expected[k].score) < 1e-4f);
        CHECK(std::all_of(sum.begin(), sum.end(), [](float s) { return s == 0; }));
      }
    });
  }
}

TEST(the_length_of_a_row_is_known_whatever_its_size) {
  const std::vector<int32_t> index{0, 1};
  for (const float x : {1e-45f, 1e-30f, 1.0f, 1e18f, 1e30f, 3.4e38f}) {
    const std::vector<float> value{x, x};
    const float scale = unit_scale(Row<int32_t>{index.data(), value.data(), 2});
    CHECK(std::isfinite(scale) && scale > 0);
    if (x > 1e-38f) CHECK(std::fabs(scale * x - std::sqrt(0.5)) < 1e-6);
  }
  const std::vector<float> zeros{0.0f, -0.0f};
  CHECK(unit_scale(Row<int32_t>{index.data(), zeros.data(), 2}) == 1);
  CHECK(unit_scale(Row<int32_t>{nullptr, nullptr, 0}) == 1);
}
