// Streams of rows through an online tree: the loop that learns them, and a loop over blocks of rows that answers for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rows.h"
#include "solvers/random.h"
#include "threads/gate.h"
#include "threads/parallel.h"
#include "trees/progressive.h"

namespace sapwood {

constexpr int64_t kRowsBetweenLooks = 256;  // at whether the user has interrupted

constexpr size_t kRowsAhead = 2;    // a shuffled row lies anywhere: it is asked for in time,
constexpr size_t kBoundsAhead = 8;  // and so is where it lies

template <class Index>
void prefetch_row(Row<Index> row) {
  constexpr int64_t kLine = 64, kMost = 1024;  // bytes
  for (int64_t at = 0; at < row.count * static_cast<int64_t>(sizeof(float)) && at < kMost; at += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(row.value) + at);
  }
  for (int64_t at = 0; at < row.count * static_cast<int64_t>(sizeof(Index)) && at < kMost; at += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(row.index) + at);
  }
}

// The rows that are examples: those of weight 0 are none, and take no part in a shuffle.
inline std::vector<int64_t> rows_with_weight(int64_t n_rows, const float* weights) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < n_rows; ++i) {
    if (!weights || weights[i] > 0) rows.push_back(i);
  }
  return rows;
}

// In random order (Fisher and Yates from the end).
inline std::vector<int64_t> random_order(std::vector<int64_t> rows, Random& random) {
  for (size_t last = rows.size() - 1; rows.size() > 1 && last > 0; --last) {
    std::swap(rows[last], rows[random.below(static_cast<uint32_t>(last + 1))]);
  }
  return rows;
}

// Learns the rows in the order given. With predict_first each row is answered for before it is learned, and the tree's
// progressive() counts the mistakes.
template <class Tree, class Rows>
void learn_rows(Tree& tree, const Rows& X, const int32_t* labels, const float* weights, const std::vector<int64_t>& order,
                bool predict_first, Monitor& monitor) {
  const auto each_row = [&](auto take) {
    for (size_t k = 0; k < order.size(); ++k) {
      if (k % kRowsBetweenLooks == 0 && monitor.stopped()) throw Interrupted{};
      const int64_t i = order[k];
      if (k + kBoundsAhead < order.size()) X.prefetch(order[k + kBoundsAhead]);
      if (k + kRowsAhead < order.size()) prefetch_row(X.row(order[k + kRowsAhead]));
      const auto next = X.row(k + 1 < order.size() ? order[k + 1] : i);
      take(X.row(i), next, labels[i], weights ? static_cast<double>(weights[i]) : 1.0);
      ++monitor.done;
    }
  };
  if constexpr (requires { typename Tree::Learner; }) {
    typename Tree::Learner learner;
    tree.open(learner, nullptr);
    each_row([&](const auto& row, const auto& next, int32_t label, double weight) {
      tree.prefetch(next, learner);
      if (predict_first) tree.test_row(row, label, weight, learner);
      tree.learn_row(row, label, weight, learner);
    });
    tree.settle(learner);
  } else {
    typename Tree::Work work;
    each_row([&](const auto& row, const auto&, int32_t label, double weight) {
      if (predict_first) tree.progressive().count(tree.best_label(row, work) != label, weight);
      tree.learn_row(row, label, weight);
    });
  }
}

// The same by several threads at once, who take the next few rows whenever they are done: the order is about that given,
// and no two runs are the same. Few rows are learned by one.
template <class Tree, class Rows>
void learn_rows_at_once(Tree& tree, const Rows& X, const int32_t* labels, const float* weights, const std::vector<int64_t>& order,
                        bool predict_first, int n_threads, Monitor& monitor) {
  constexpr int64_t kRowsAtOnce = 32;
  const auto n_rows = std::ssize(order);
  const int64_t n_tasks = (n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
  n_threads = static_cast<int>(std::min<int64_t>(n_threads, n_tasks));
  if (n_threads < 2) return learn_rows(tree, X, labels, weights, order, predict_first, monitor);
  Gate gate(n_threads);
  std::vector<typename Tree::Learner> learners(static_cast<size_t>(n_threads));
  for (int t = 0; t < n_threads; ++t) tree.open(learners[static_cast<size_t>(t)], &gate.pass(t));
  parallel_for(n_tasks, n_threads, monitor, [&](int64_t task, int thread) {
    typename Tree::Learner& learner = learners[static_cast<size_t>(thread)];
    const Gate::Visit visit(gate.pass(thread));
    const int64_t first = task * kRowsAtOnce, end = std::min<int64_t>(n_rows, first + kRowsAtOnce);
    for (int64_t k = first; k < end; ++k) {
      const auto row_of = [&](int64_t at) { return X.row(order[static_cast<size_t>(std::min<int64_t>(at, end - 1))]); };
      const auto i = static_cast<size_t>(order[static_cast<size_t>(k)]);
      const double weight = weights ? static_cast<double>(weights[i]) : 1.0;
      gate.pass(thread).rest();
      prefetch_row(row_of(k + static_cast<int64_t>(kRowsAhead)));
      tree.prefetch(row_of(k + 1), learner);
      if (predict_first) tree.test_row(row_of(k), labels[i], weight, learner);
      tree.learn_row(row_of(k), labels[i], weight, learner);
    }
    tree.settle(learner);
    monitor.done += end - first;
  });
}

}  // namespace sapwood
