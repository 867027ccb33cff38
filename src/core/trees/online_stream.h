// Streams of rows through an online tree: the loop that learns them, and a loop over blocks of rows that answers for them.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "rows.h"
#include "solvers/random.h"
#include "threads/parallel.h"
#include "trees/progressive.h"

namespace sapwood {

constexpr int64_t kRowsBetweenLooks = 256;  // at whether the user has interrupted

// Numbers 0 .. n-1 in random order (Fisher and Yates from the end).
inline std::vector<int64_t> random_order(int64_t n, Random& random) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t last = n - 1; last > 0; --last) {
    std::swap(order[static_cast<size_t>(last)], order[random.below(static_cast<uint32_t>(last + 1))]);
  }
  return order;
}

// Learns the rows in order or, if there is one, in the order given. With predict_first each row is answered for before
// it is learned, and the tree's progressive() counts the mistakes.
template <class Tree, class Rows>
void learn_rows(Tree& tree, const Rows& X, const int32_t* labels, const float* weights, const std::vector<int64_t>& order,
                bool predict_first, Monitor& monitor) {
  typename Tree::Work work;
  for (int64_t k = 0; k < X.n_rows; ++k) {
    if (k % kRowsBetweenLooks == 0 && monitor.stopped()) throw Interrupted{};
    const int64_t i = order.empty() ? k : order[static_cast<size_t>(k)];
    const double weight = weights ? static_cast<double>(weights[i]) : 1.0;
    if (weight > 0) {
      if (predict_first) tree.progressive().count(tree.best_label(X.row(i), work) != labels[i], weight);
      tree.learn_row(X.row(i), labels[i], weight);
    }
    ++monitor.done;
  }
}

}  // namespace sapwood
