// The read-only form of a set of trees: what prediction evaluates and what a model file holds, as is.
#pragma once

#include <cstdint>

#include "regressors/kernels.h"

namespace sapwood {

// A node has children, 16 to a bank; a child is another node or a label. Up to 16 banks form a group, which has one
// index from feature to line. A line is a 16-bit set of the group's banks and, for each of these, a 16-bit set of
// lanes followed by the weights of these lanes.
struct PackedForest {
  const int32_t* roots;          // trees
  const int32_t* node_groups;    // nodes + 1: where a node's groups begin
  const int32_t* node_labels;    // nodes: how many labels lie below
  const int32_t* group_banks;    // groups + 1: where a group's banks begin
  const int64_t* group_buckets;  // groups + 1: where a group's buckets begin
  const int64_t* group_pool;     // groups + 1: where a group's lines begin in the pool
  const uint32_t* keys;          // buckets x 16 features; a bucket is full before the next one is used
  const uint32_t* lines;         // buckets x 16: where the feature's line begins, counted from the group's first
  const uint16_t* pool;          // lines; kExpandReach bytes of padding at the end
  const float* bias;             // banks x 16
  const int32_t* targets;        // banks x 16: the node a lane leads to, ~label, or kNoTarget
  int32_t n_trees;
  int32_t n_nodes;
  int32_t n_groups;
  int32_t n_banks;
  int32_t n_labels;
  int32_t fewest_labels;         // below any node but the roots
  int32_t widest_node;           // banks of the widest node
  bool half;                     // weights are 16-bit floats, else 32-bit
  Loss loss;
};

constexpr int kExpandReach = 64;

// The bucket a feature belongs in. Multiplication by an odd constant spreads neighbours.
SAPWOOD_INLINE uint32_t home_bucket(uint32_t feature, uint32_t n_buckets) {
  return static_cast<uint32_t>((static_cast<uint64_t>(feature * 0x9E3779B1u) * n_buckets) >> 32);
}

}  // namespace sapwood
