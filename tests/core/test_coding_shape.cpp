#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "check.h"
#include "solvers/random.h"
#include "trees/coding_shape.h"
#include "trees/linear_trees.h"

using namespace sapwood;

namespace {

using Set = std::vector<int32_t>;

// Label sets of random rows, some of them empty, few distinct.
struct RandomSets {
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> labels;
  std::vector<Set> rows;
  int32_t n_labels;

  RandomSets(int64_t n_rows, int32_t n_labels_, uint64_t seed) : n_labels(n_labels_) {
    Random random(seed);
    for (int64_t i = 0; i < n_rows; ++i) {
      Set set;
      for (int32_t label = 0; label < n_labels; ++label) {
        if (random.below(4) == 0) set.push_back(label);
      }
      labels.insert(labels.end(), set.begin(), set.end());
      indptr.push_back(static_cast<int64_t>(labels.size()));
      rows.push_back(set);
    }
  }
  [[nodiscard]] LabelSets view() const {
    return {indptr.data(), labels.data(), static_cast<int64_t>(rows.size()), n_labels};
  }
};

Set leaf_set(const CodingShape& shape, int32_t leaf) {
  const auto l = static_cast<size_t>(leaf);
  return {shape.leaf_labels.begin() + shape.leaf_begin[l], shape.leaf_labels.begin() + shape.leaf_begin[l + 1]};
}

// Every node's rows are those of its children; parents come first; the leaves hold each row once, with its own set.
void check_shape(const CodingShape& shape, const RandomSets& data) {
  CHECK(shape.children.size() == 2 * shape.nodes.size());
  std::set<int32_t> all(shape.order.begin(), shape.order.end());
  CHECK(all.size() == data.rows.size() && shape.order.size() == data.rows.size());
  int32_t leaf = 0;
  int64_t next_row = 0;
  std::vector<int32_t> stack{shape.root};
  while (!stack.empty()) {
    const int32_t at = stack.back();
    stack.pop_back();
    if (at < 0) {
      CHECK(~at == leaf++);
      for (double left = shape.leaf_mass[static_cast<size_t>(~at)]; left > 0; --left, ++next_row) {
        CHECK(data.rows[static_cast<size_t>(shape.order[static_cast<size_t>(next_row)])] == leaf_set(shape, ~at));
      }
      continue;
    }
    const CodingNode& node = shape.nodes[static_cast<size_t>(at)];
    CHECK(node.begin == next_row && node.begin < node.middle && node.middle < node.end);
    for (int side = 1; side >= 0; --side) {
      const int32_t child = shape.children[static_cast<size_t>(2 * at + side)];
      CHECK(child < 0 || child > at);
      stack.push_back(child);
    }
  }
}

}  // namespace

TEST(distinct_sets_are_numbered_in_lexicographic_order) {
  const RandomSets data(500, 5, 1);
  const DistinctSets found = distinct_sets(data.view(), nullptr);
  std::map<Set, int32_t> expected;
  for (const Set& set : data.rows) ++expected[set];
  CHECK(static_cast<size_t>(found.size()) == expected.size());
  size_t number = 0;
  for (const auto& [set, count] : expected) {
    CHECK(std::ranges::equal(set, std::vector<int32_t>(found.labels.begin() + found.begin[number], found.labels.begin() + found.begin[number + 1])));
    CHECK(found.mass[number] == count && found.n_rows(static_cast<int32_t>(number)) == count);
    ++number;
  }
  for (size_t i = 0; i < data.rows.size(); ++i) {
    CHECK(std::next(expected.begin(), found.set_of_row[i])->first == data.rows[i]);
  }
}

TEST(rows_of_weight_zero_are_left_out) {
  const RandomSets data(100, 4, 2);
  std::vector<float> weight(100, 0.5f);
  for (size_t i = 0; i < 100; i += 3) weight[i] = 0;
  const DistinctSets found = distinct_sets(data.view(), weight.data());
  for (size_t i = 0; i < 100; ++i) CHECK((found.set_of_row[i] < 0) == (weight[i] == 0));
  CHECK(found.rows.size() == 66);
}

TEST(coding_trees_hold_every_row_once) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const RandomSets data(1 + static_cast<int64_t>(seed) * 15, 6, seed);
    const DistinctSets sets = distinct_sets(data.view(), nullptr);
    check_shape(powerset_shape(sets), data);
    check_shape(annotation_shape(sets, false, 2), data);
    check_shape(annotation_shape(sets, true, 2), data);
  }
}

TEST(balanced_annotation_trees_are_shallow) {
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> labels;
  for (int32_t k = 0; k < 4096; ++k) {
    labels.push_back(k);
    indptr.push_back(k + 1);
  }
  const DistinctSets sets = distinct_sets({indptr.data(), labels.data(), 4096, 4096}, nullptr);
  const CodingShape shape = annotation_shape(sets, true, 2);
  std::vector<int> depth(shape.nodes.size());
  for (size_t v = 0; v < depth.size(); ++v) {
    for (size_t side = 0; side < 2; ++side) {
      const int32_t child = shape.children[2 * v + side];
      if (child >= 0) depth[static_cast<size_t>(child)] = depth[v] + 1;
    }
  }
  CHECK(std::ranges::max(depth) == 11);
}

TEST(row_values_are_found_by_column) {
  for (const int32_t apart : {1, 1000}) {  // in an array of all columns, and in a table
    Random random(3);
    std::vector<int32_t> index;
    std::vector<float> value;
    for (int32_t column = 0; column < 5000; ++column) {
      if (random.below(50) != 0) continue;
      index.push_back(column * apart);
      value.push_back(static_cast<float>(column) + 0.5f);
    }
    RowValues<CsrRows<int32_t>> values(5000 * apart);
    for (int turn = 0; turn < 2; ++turn) {
      values.set({index.data(), value.data(), static_cast<int64_t>(index.size())});
      size_t next = 0;
      for (int32_t column = 0; column < 5000; ++column) {
        const bool has = next < index.size() && index[next] == column * apart;
        CHECK(values.at(column * apart) == (has ? value[next] : 0.0f));
        next += has;
      }
      values.set({index.data(), value.data(), 0});
      CHECK(values.at(index[0]) == 0.0f);
    }
  }
}

TEST(damaged_trees_are_refused) {
  const std::vector<int32_t> roots{0}, features{1}, leaf_labels{0, 1};
  std::vector<int32_t> children{~0, ~1};
  const std::vector<int64_t> node_begin{0, 1}, leaf_begin{0, 1, 2};
  const std::vector<float> weights{1.0f}, bias{0.0f};
  LinearTrees trees{roots.data(), children.data(), node_begin.data(), features.data(), weights.data(), bias.data(), leaf_begin.data(),
                    leaf_labels.data(), nullptr, 1, 1, 2, 2, 2};
  check_trees(trees, 1, 2);
  for (const std::vector<int32_t> wrong : {std::vector<int32_t>{0, ~1}, {~0, ~0}, {~0, ~2}, {1, ~1}, {~0, INT32_MIN}}) {
    children = wrong;
    trees.children = children.data();
    CHECK_THROWS(check_trees(trees, 1, 2), std::invalid_argument);
  }
}
