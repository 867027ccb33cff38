// Small packed forests for tests, and plain questions to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "aligned.h"
#include "regressors/kernels.h"
#include "regressors/packed_forest.h"
#include "regressors/packer.h"

inline sapwood::PackedForest view(const sapwood::ForestArrays& a, int32_t n_labels, bool half,
                                  sapwood::Loss loss = sapwood::Loss::squared_hinge) {
  sapwood::PackedForest f{};
  f.roots = a.roots.data();
  f.node_groups = a.node_groups.data();
  f.node_labels = a.node_labels.data();
  f.group_banks = a.group_banks.data();
  f.group_buckets = a.group_buckets.data();
  f.group_pool = a.group_pool.data();
  f.keys = a.keys.data();
  f.lines = a.lines.data();
  f.pool = a.pool.data();
  f.bias = a.bias.data();
  f.targets = a.targets.data();
  f.n_trees = static_cast<int32_t>(a.roots.size());
  f.n_nodes = static_cast<int32_t>(a.node_labels.size());
  f.n_groups = static_cast<int32_t>(a.group_banks.size()) - 1;
  f.n_banks = static_cast<int32_t>(a.bias.size() / 16);
  f.n_labels = n_labels;
  f.half = half;
  f.loss = loss;
  f.fewest_labels = n_labels;
  for (int32_t v = 0; v < f.n_nodes; ++v) {
    if (std::find(a.roots.begin(), a.roots.end(), v) == a.roots.end()) f.fewest_labels = std::min(f.fewest_labels, a.node_labels[static_cast<size_t>(v)]);
  }
  return f;
}

inline void check_whole(const sapwood::PackedForest& f, const sapwood::ForestArrays& a) {
  check_forest(f, static_cast<int64_t>(a.keys.size() / 16), static_cast<int64_t>(a.pool.size()));
}

// A forest of one node whose children are the labels 0, 1, 2, ...
inline sapwood::ForestArrays one_node(std::span<const sapwood::BankLines> banks, bool half) {
  sapwood::ForestArrays arrays;
  std::vector<sapwood::PackedGroup> groups{sapwood::pack_group(banks, half)};
  std::vector<int32_t> children;
  for (size_t i = 0; i < 16 * banks.size(); ++i) children.push_back(~static_cast<int32_t>(i));
  arrays.roots.push_back(0);
  arrays.add_node(groups, children, static_cast<int32_t>(children.size()));
  arrays.finish();
  return arrays;
}

template <class Index = int32_t>
std::vector<float> scores_of(const sapwood::Kernels& table, const sapwood::PackedForest& forest, int32_t group,
                             const std::vector<std::pair<int32_t, float>>& row) {
  std::vector<Index> index;
  std::vector<float> value;
  for (const auto& [i, x] : row) {
    index.push_back(i);
    value.push_back(x);
  }
  sapwood::WorkBuffer<float> memory;
  float* const scores = memory.ensure(size_t{16} * sapwood::kGroupBanks);
  table.score(forest, group, sapwood::Row<Index>{index.data(), value.data(), static_cast<int64_t>(index.size())}, 1.0f, scores);
  const auto n = static_cast<size_t>(16 * (forest.group_banks[group + 1] - forest.group_banks[group]));
  return {scores, scores + n};
}
