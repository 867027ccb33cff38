#include "regressors/packer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "regressors/half.h"

namespace sapwood {

namespace {

constexpr float kLargestHalf = 65504.0f;
constexpr size_t kPadding = kExpandReach / sizeof(uint16_t);
constexpr int64_t kLinesPerBucket = 12;  // of 16 slots: few buckets are full, so few lookups need a second one

void append_weight(std::vector<uint16_t>& out, float weight, bool half) {
  if (half) {
    out.push_back(to_half(std::clamp(weight, -kLargestHalf, kLargestHalf)));
  } else {
    const auto bits = std::bit_cast<uint32_t>(weight);
    out.push_back(static_cast<uint16_t>(bits));
    out.push_back(static_cast<uint16_t>(bits >> 16));
  }
}

template <class To, class From>
void append(To& to, const From& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

BankLines pack_bank(const float* weights, int64_t n_features, std::span<const int32_t> features, uint16_t lanes,
                    float prune, bool half) {
  BankLines out;
  for (int64_t f = 0; f < n_features; ++f) {
    const float* const line = weights + 16 * f;
    uint16_t kept = 0;
    for (int l = 0; l < kBankLanes; ++l) {
      const float size = std::fabs(line[l]);
      kept |= static_cast<uint16_t>((size >= prune && size > 0.0f) << l);
    }
    kept &= lanes;
    if (!kept) continue;
    out.feature.push_back(features.empty() ? static_cast<int32_t>(f) : features[static_cast<size_t>(f)]);
    out.lanes.push_back(kept);
    for (unsigned left = kept; left; left &= left - 1) append_weight(out.weights, line[std::countr_zero(left)], half);
  }
  out.bias.assign(weights + 16 * n_features, weights + 16 * n_features + kBankLanes);
  return out;
}

PackedGroup pack_group(std::span<const BankLines> banks, bool half) {
  // A line of the group is put together from the lines that its banks have for one feature.
  struct Piece {
    int32_t feature;
    int32_t bank;
    uint32_t line;
    uint32_t weight;  // where its weights begin in the bank's
  };
  std::vector<Piece> pieces;
  const uint32_t units = half ? 1 : 2;
  PackedGroup group;
  for (size_t b = 0; b < banks.size(); ++b) {
    uint32_t weight = 0;
    for (size_t i = 0; i < banks[b].feature.size(); ++i) {
      pieces.push_back({banks[b].feature[i], static_cast<int32_t>(b), static_cast<uint32_t>(i), weight});
      weight += units * static_cast<uint32_t>(std::popcount(banks[b].lanes[i]));
    }
    append(group.bias, banks[b].bias);
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.feature != b.feature ? a.feature < b.feature : a.bank < b.bank;
  });
  int64_t n_lines = 0;
  for (size_t i = 0; i < pieces.size(); ++i) n_lines += i == 0 || pieces[i].feature != pieces[i - 1].feature;
  const auto n_buckets = static_cast<uint32_t>((n_lines + kLinesPerBucket - 1) / kLinesPerBucket);
  group.keys.assign(size_t{16} * n_buckets, kNoKey);
  group.lines.assign(size_t{16} * n_buckets, 0);

  for (size_t i = 0; i < pieces.size();) {
    const int32_t feature = pieces[i].feature;
    if (group.pool.size() > std::numeric_limits<uint32_t>::max()) throw std::length_error("a group of banks is too large");
    const auto line = static_cast<uint32_t>(group.pool.size());
    group.pool.push_back(0);
    for (; i < pieces.size() && pieces[i].feature == feature; ++i) {
      const BankLines& bank = banks[static_cast<size_t>(pieces[i].bank)];
      const uint16_t lanes = bank.lanes[pieces[i].line];
      group.pool[line] |= static_cast<uint16_t>(1u << pieces[i].bank);
      group.pool.push_back(lanes);
      const auto first = bank.weights.begin() + pieces[i].weight;
      group.pool.insert(group.pool.end(), first, first + units * static_cast<uint32_t>(std::popcount(lanes)));
    }
    size_t slot = size_t{16} * home_bucket(static_cast<uint32_t>(feature), n_buckets);
    while (group.keys[slot] != kNoKey) slot = slot + 1 == group.keys.size() ? 0 : slot + 1;
    group.keys[slot] = static_cast<uint32_t>(feature);
    group.lines[slot] = line;
  }
  return group;
}

void ForestArrays::expect(std::span<const PackedGroup> groups) {
  for (const PackedGroup& group : groups) {
    expected_slots_ += group.keys.size();
    expected_pool_ += group.pool.size();
    expected_lanes_ += group.bias.size();
  }
}

void ForestArrays::reserve() {
  keys.reserve(expected_slots_);
  lines.reserve(expected_slots_);
  pool.reserve(expected_pool_ + kPadding);
  bias.reserve(expected_lanes_);
  targets.reserve(expected_lanes_);
}

void ForestArrays::add_node(std::span<PackedGroup> groups, std::span<const int32_t> children, int32_t n_labels) {
  for (const PackedGroup& group : groups) {
    append(keys, group.keys);
    append(lines, group.lines);
    append(pool, group.pool);
    append(bias, group.bias);
    group_banks.push_back(static_cast<int32_t>(bias.size() / kBankLanes));
    group_buckets.push_back(static_cast<int64_t>(keys.size() / 16));
    group_pool.push_back(static_cast<int64_t>(pool.size()));
  }
  node_groups.push_back(static_cast<int32_t>(group_banks.size()) - 1);
  node_labels.push_back(n_labels);
  targets.insert(targets.end(), children.begin(), children.end());
  targets.resize(bias.size(), kNoTarget);
}

void ForestArrays::finish() { pool.resize(pool.size() + kPadding, 0); }

namespace {

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(std::string("the model is damaged: ") + what);
}

template <class Offset>
void check_offsets(const Offset* offsets, int64_t n, int64_t end, const char* what) {
  require(offsets[0] == 0 && offsets[n] == end, what);
  for (int64_t i = 0; i < n; ++i) require(offsets[i] <= offsets[i + 1], what);
}

// How many bits are set: by table, as machines that must run this may lack the instruction.
constexpr auto kBitsInByte = [] {
  std::array<uint8_t, 256> bits{};
  for (size_t i = 1; i < bits.size(); ++i) bits[i] = static_cast<uint8_t>(bits[i / 2] + i % 2);
  return bits;
}();
int bits_in(uint16_t set) { return kBitsInByte[set & 255] + kBitsInByte[set >> 8]; }

// Where in a group's pool lines begin: a bit for each 16-bit unit.
class LineStarts {
 public:
  // Walks the lines of the group, which fill its part of the pool one after the other.
  void find(const PackedForest& f, int32_t group) {
    const int banks_in_group = f.group_banks[group + 1] - f.group_banks[group];
    const uint16_t* const pool = f.pool + f.group_pool[group];
    const int64_t end = f.group_pool[group + 1] - f.group_pool[group];
    const int units = f.half ? 1 : 2;
    size_ = end;
    bits_.assign(static_cast<size_t>(end / 64 + 1), 0);
    bool ok = true;
    for (int64_t at = 0; ok && at < end;) {
      bits_[static_cast<size_t>(at / 64)] |= uint64_t{1} << (at % 64);
      const uint16_t banks = pool[at++];
      ok = std::bit_width(banks) <= banks_in_group;
      for (int left = bits_in(banks); left > 0 && ok; --left) {
        ok = at < end;
        if (ok) at += 1 + bits_in(pool[at]) * units;
      }
      ok = ok && at <= end;
    }
    require(ok, "a line names a bank that is not there, or runs over the end of its group");
  }
  [[nodiscard]] bool has(uint32_t at) const { return at < size_ && (bits_[at / 64] >> (at % 64) & 1); }

 private:
  std::vector<uint64_t> bits_;
  int64_t size_ = 0;
};

// parents[v]: how many lanes lead to node v.
void check_targets(const PackedForest& f, int32_t node, std::vector<int32_t>& parents) {
  for (int32_t g = f.node_groups[node]; g < f.node_groups[node + 1]; ++g) {
    for (int32_t b = f.group_banks[g]; b < f.group_banks[g + 1]; ++b) {
      const int32_t* const target = f.targets + int64_t{16} * b;
      const bool nodes = target[0] >= 0;
      for (int l = 0; l < kBankLanes; ++l) {
        if (target[l] == kNoTarget) continue;
        require((target[l] >= 0) == nodes, "a bank mixes nodes and labels");
        require(l == 0 || target[l - 1] != kNoTarget, "a bank has a gap between its lanes");
        // children come after their parents: a walk down always ends
        if (nodes) {
          require(target[l] > node && target[l] < f.n_nodes, "a lane leads to a node that is not there");
          ++parents[static_cast<size_t>(target[l])];
        }
        if (!nodes) require(~target[l] < f.n_labels, "a lane leads to a label that is not there");
      }
    }
  }
}

}  // namespace

void check_forest(const PackedForest& f, int64_t n_buckets, int64_t pool_size) {
  const int64_t padding = kExpandReach / static_cast<int64_t>(sizeof(uint16_t));
  require(pool_size >= padding, "the pool of weights is too short");
  require(f.n_trees > 0 && f.n_nodes > 0 && f.n_labels > 0, "it is empty");
  check_offsets(f.node_groups, f.n_nodes, f.n_groups, "its nodes");
  check_offsets(f.group_banks, f.n_groups, f.n_banks, "its groups");
  check_offsets(f.group_buckets, f.n_groups, n_buckets, "its index of features");
  check_offsets(f.group_pool, f.n_groups, pool_size - padding, "its weights");
  std::vector<int32_t> parents(static_cast<size_t>(f.n_nodes), 0);
  for (int32_t t = 0; t < f.n_trees; ++t) {
    require(f.roots[t] >= 0 && f.roots[t] < f.n_nodes, "a root is not there");
    ++parents[static_cast<size_t>(f.roots[t])];  // nothing but its tree leads to a root
  }
  for (int32_t v = 0; v < f.n_nodes; ++v) {
    require(f.node_labels[v] > 0 && f.node_labels[v] <= f.n_labels, "a node counts labels that are not there");
    check_targets(f, v, parents);
  }
  for (const int32_t n : parents) require(n == 1, "a node does not have one parent");
  LineStarts starts;
  for (int32_t g = 0; g < f.n_groups; ++g) {
    require(f.group_banks[g + 1] - f.group_banks[g] <= kGroupBanks, "a group has too many banks");
    starts.find(f, g);
    bool ok = true;
    for (int64_t slot = 16 * f.group_buckets[g]; slot < 16 * f.group_buckets[g + 1]; ++slot) {
      ok &= f.keys[slot] == kNoKey || starts.has(f.lines[slot]);
    }
    require(ok, "its index names a line that is not there");
  }
}

}  // namespace sapwood
