#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "check.h"
#include "random_rows.h"
#include "regressors/kernels.h"
#include "trees/label_shape.h"

using namespace sapwood;

namespace {

template <class Rows>
TreeShape cluster(const RandomRows& data, const Rows& rows, const ShapeOptions& options, int n_threads = 1) {
  Monitor monitor;
  return cluster_labels(rows, nullptr, LabelRows(data.sets()), options, n_threads, monitor);
}

int64_t n_labels_below(const TreeShape& shape, int32_t child) {
  if (child == kNoTarget) return 0;
  if (child < 0) return 1;
  const ShapeNode& node = shape.nodes[static_cast<size_t>(child)];
  return node.end - node.begin;
}

// What every shape promises, whoever made it.
void check_shape(const TreeShape& shape, const std::set<int32_t>& labels) {
  CHECK(std::set<int32_t>(shape.order.begin(), shape.order.end()) == labels);
  CHECK(shape.order.size() == labels.size());
  std::vector<int> parents(shape.nodes.size(), 0);
  for (size_t v = 0; v < shape.nodes.size(); ++v) {
    const ShapeNode& node = shape.nodes[v];
    std::set<int32_t> below;
    int64_t n = 0;
    for (const int32_t child : node.children) {
      n += n_labels_below(shape, child);
      if (child == kNoTarget) continue;
      if (child < 0) {
        below.insert(~child);
        continue;
      }
      CHECK(child > static_cast<int32_t>(v));
      ++parents[static_cast<size_t>(child)];
      const ShapeNode& of = shape.nodes[static_cast<size_t>(child)];
      below.insert(shape.order.begin() + of.begin, shape.order.begin() + of.end);
    }
    CHECK(n == node.end - node.begin);
    CHECK(below == std::set<int32_t>(shape.order.begin() + node.begin, shape.order.begin() + node.end));
    for (size_t b = 0; b < node.children.size(); b += kBankLanes) {  // a bank leads to nodes or to labels
      for (size_t l = b; l < std::min(b + kBankLanes, node.children.size()); ++l) {
        const int32_t child = node.children[l];
        CHECK(child == kNoTarget || (child >= 0) == (node.children[b] >= 0));
      }
    }
  }
  for (size_t v = 1; v < parents.size(); ++v) CHECK(parents[v] == 1);
  CHECK(parents[0] == 0);
}

bool same(const TreeShape& a, const TreeShape& b) {
  return a.order == b.order && a.nodes.size() == b.nodes.size() &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(),
                    [](const ShapeNode& x, const ShapeNode& y) { return x.begin == y.begin && x.end == y.end && x.children == y.children; });
}

std::set<int32_t> all_labels(int32_t n) {
  std::set<int32_t> labels;
  for (int32_t l = 0; l < n; ++l) labels.insert(l);
  return labels;
}

}  // namespace

TEST(clusters_hold_every_label_once_and_are_of_equal_size) {
  for (const int32_t n_labels : {1, 2, 3, 16, 17, 40, 97}) {
    const RandomRows data(3 * n_labels, 50, n_labels);
    for (const int32_t arity : {2, 3, 16}) {
      for (const int32_t max_leaf : {1, 2, 5, 100}) {
        for (const bool balanced : {true, false}) {
          const TreeShape shape = cluster(data, data.csr(), {arity, max_leaf, balanced, 7});
          check_shape(shape, all_labels(n_labels));
          for (const ShapeNode& node : shape.nodes) {
            const bool is_leaf = node.children[0] < 0;
            CHECK(!is_leaf || static_cast<int64_t>(node.children.size()) <= max_leaf);
            CHECK(is_leaf || static_cast<int64_t>(node.children.size()) <= arity);
            if (is_leaf || !balanced) continue;
            int64_t least = n_labels, most = 0;
            for (const int32_t child : node.children) {
              least = std::min(least, n_labels_below(shape, child));
              most = std::max(most, n_labels_below(shape, child));
            }
            CHECK(most - least <= 1);
          }
        }
      }
    }
  }
}

TEST(clusters_are_the_same_for_a_seed_whatever_the_threads_and_the_form) {
  const RandomRows data(300, 50, 90);
  const ShapeOptions options{3, 4, true, 11};
  const TreeShape shape = cluster(data, data.csr(), options);
  for (const int n_threads : {1, 2, 3, 5}) {
    CHECK(same(cluster(data, data.csr(), options, n_threads), shape));
    CHECK(same(cluster(data, data.wide(), options, n_threads), shape));
    CHECK(same(cluster(data, data.dense_rows(), options, n_threads), shape));
  }
  CHECK(!same(cluster(data, data.csr(), {3, 4, true, 12}), shape));
}

TEST(labels_without_rows_are_left_out) {
  RandomRows data(60, 50, 20);
  for (int32_t& label : data.labels) label *= 2;
  data.n_labels = 40;
  std::set<int32_t> even;
  for (int32_t l = 0; l < 40; l += 2) even.insert(l);
  check_shape(cluster(data, data.csr(), {2, 3, true, 1}), even);
  check_shape(cluster(data, data.csr(), {2, 100, true, 1}), even);
}

TEST(labels_that_nothing_tells_apart_are_clustered_all_the_same) {
  RandomRows data(120, 50, 40);
  std::fill(data.values.begin(), data.values.end(), 0.0f);
  check_shape(cluster(data, data.csr(), {2, 2, true, 1}), all_labels(40));
  std::fill(data.dense.begin(), data.dense.end(), 1.0f);
  for (const bool balanced : {true, false}) check_shape(cluster(data, data.dense_rows(), {4, 2, balanced, 1}), all_labels(40));
}

TEST(values_whose_sum_is_no_float_are_clustered_all_the_same) {
  RandomRows data(120, 50, 40);
  const float largest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < data.values.size(); ++i) data.values[i] = i % 3 ? largest : -largest;
  for (const bool balanced : {true, false}) check_shape(cluster(data, data.csr(), {2, 2, balanced, 1}), all_labels(40));
}

TEST(clustering_stops_when_told_to) {
  const RandomRows data(120, 50, 40);
  Monitor monitor;
  monitor.request_stop();
  CHECK_THROWS(cluster_labels(data.csr(), nullptr, LabelRows(data.sets()), {2, 2, true, 1}, 2, monitor), Interrupted);
}

TEST(rows_of_labels_are_the_labels_of_rows_turned_round) {
  const RandomRows data(50, 20, 7);
  const LabelRows turned(data.sets());
  for (int32_t l = 0; l < 7; ++l) {
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < 50; ++i) {
      for (int64_t k = data.label_indptr[static_cast<size_t>(i)]; k < data.label_indptr[static_cast<size_t>(i) + 1]; ++k) {
        if (data.labels[static_cast<size_t>(k)] == l) rows.push_back(i);
      }
    }
    CHECK(turned.count(l) == static_cast<int64_t>(rows.size()));
    CHECK(std::equal(rows.begin(), rows.end(), turned.rows.begin() + turned.indptr[static_cast<size_t>(l)]));
  }
}

TEST(a_given_shape_is_taken_as_it_is) {
  // 0: (1, 2, label 0), 1: (labels 3, 1), 2: (3, label 2), 3: (labels 4, 5)
  const std::vector<int64_t> indptr{0, 3, 5, 7, 9};
  const std::vector<int32_t> children{1, 2, ~0, ~3, ~1, 3, ~2, ~4, ~5};
  const TreeShape shape = given_shape(indptr, children);
  check_shape(shape, all_labels(6));
  CHECK(shape.nodes.size() == 4);
  CHECK(shape.nodes[0].children.size() == 17);  // labels begin a bank of their own
  CHECK(shape.nodes[0].children[16] == ~0 && shape.nodes[0].children[2] == kNoTarget);
  CHECK((shape.nodes[1].children == std::vector<int32_t>{~3, ~1}));
  CHECK(shape.nodes[2].children[0] == 3 && shape.nodes[2].children[16] == ~2);
}

TEST(a_given_shape_may_be_a_long_chain) {
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> children;
  const int32_t depth = 20000;
  for (int32_t v = 0; v < depth; ++v) {
    children.push_back(v + 1 < depth ? v + 1 : ~depth);
    children.push_back(~v);
    indptr.push_back(static_cast<int64_t>(children.size()));
  }
  CHECK(given_shape(indptr, children).order.size() == static_cast<size_t>(depth) + 1);
}
