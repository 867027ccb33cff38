// From trained banks to the packed form (see packed_forest.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned.h"
#include "regressors/packed_forest.h"

namespace sapwood {

// The lines of one bank that are left after pruning, features ascending by their place in `features`.
struct BankLines {
  std::vector<int32_t> feature;    // one a line
  std::vector<uint16_t> lanes;     // one a line: which lanes have a weight
  std::vector<uint16_t> weights;   // as packed: 16-bit floats, or 32-bit floats in two halves
  std::vector<float> bias;         // 16
};

// Keeps the weights of magnitude `prune` or more. weights: (n_features + 1) x 16, the bias last; feature f of the
// problem is features[f] of the data, or f itself where `features` is empty.
BankLines pack_bank(const float* weights, int64_t n_features, std::span<const int32_t> features, uint16_t lanes,
                    float prune, bool half);

struct PackedGroup {
  std::vector<uint32_t> keys;
  std::vector<uint32_t> lines;
  std::vector<uint16_t> pool;
  std::vector<float> bias;
};

// Up to 16 banks under one index.
PackedGroup pack_group(std::span<const BankLines> banks, bool half);

// The arrays of a PackedForest.
struct ForestArrays {
  std::vector<int32_t> roots, node_groups{0}, node_labels, group_banks{0}, targets;
  std::vector<int64_t> group_buckets{0}, group_pool{0};
  CacheLineVector<uint32_t> keys, lines;
  std::vector<uint16_t> pool;
  CacheLineVector<float> bias;

  // Before the first node, so that no array grows by copying: what is to come, and then room for it.
  void expect(std::span<const PackedGroup> groups);
  void reserve();

  // A node's groups and its children (16 to a bank, the last one filled up with kNoTarget); returns its number.
  void add_node(std::span<PackedGroup> groups, std::span<const int32_t> children, int32_t n_labels);
  void finish();  // adds the padding that kernels may read

 private:
  size_t expected_slots_ = 0, expected_pool_ = 0, expected_lanes_ = 0;
};

// Throws std::invalid_argument that says what is wrong with arrays read from a file; after it no kernel can go astray.
void check_forest(const PackedForest& forest, int64_t n_buckets, int64_t pool_size);

}  // namespace sapwood
