// Beam search for the best labels of one row. Scores are logarithms of probabilities and add up along a path.
// Included by kernels_*.cpp only.
#pragma once

#include "regressors/lanes.h"
#include "regressors/packed_forest.h"

namespace sapwood::SAPWOOD_ISA {

inline bool better(TopLabel a, TopLabel b) { return a.score > b.score || (a.score == b.score && a.label < b.label); }

// The `room` best of all that were offered, the worst of them on top of the heap.
class Best {
 public:
  Best(TopLabel* heap, int32_t room) : heap_(heap), room_(room) {}

  [[nodiscard]] bool full() const { return size_ == room_; }
  [[nodiscard]] float worst() const { return heap_[0].score; }

  void offer(TopLabel x) {
    if (size_ < room_) {
      rise(size_++, x);
    } else if (better(x, heap_[0])) {
      sink(x);
    }
  }

  // Puts the kept ones in order, best first, and says how many there are.
  int32_t sort() {
    const int32_t n = size_;
    while (size_ > 1) {
      const TopLabel worst = heap_[0], last = heap_[--size_];
      sink(last);
      heap_[size_] = worst;
    }
    size_ = 0;
    return n;
  }

 private:
  void rise(int32_t i, TopLabel x) {
    for (; i > 0 && better(heap_[(i - 1) / 2], x); i = (i - 1) / 2) heap_[i] = heap_[(i - 1) / 2];
    heap_[i] = x;
  }
  void sink(TopLabel x) {
    int32_t i = 0;
    for (int32_t child = 1; child < size_; child = 2 * i + 1) {
      if (child + 1 < size_ && better(heap_[child], heap_[child + 1])) ++child;
      if (!better(x, heap_[child])) break;
      heap_[i] = heap_[child];
      i = child;
    }
    heap_[i] = x;
  }

  TopLabel* heap_;
  int32_t room_;
  int32_t size_ = 0;
};

// The line of a feature in a group, or null.
inline const uint16_t* find_line(const PackedForest& f, int32_t group, uint32_t feature) {
  const int64_t first = f.group_buckets[group];
  const auto n = static_cast<uint32_t>(f.group_buckets[group + 1] - first);
  uint32_t bucket = home_bucket(feature, n);
  for (uint32_t tried = 0; tried < n; ++tried) {
    const int64_t at = 16 * (first + bucket);
    const int slot = find_key(f.keys + at, feature);
    if (slot >= 0) return f.pool + f.group_pool[group] + f.lines[at + slot];
    if (f.keys[at + 15] == kNoKey) return nullptr;
    bucket = bucket + 1 == n ? 0 : bucket + 1;
  }
  return nullptr;
}

template <bool half>
inline void add_line(const uint16_t* line, float x, float* scores) {
  constexpr int units = half ? 1 : 2;  // 16-bit units a weight takes
  for (unsigned banks = *line++; banks; banks &= banks - 1) {
    float* const score = scores + 16 * __builtin_ctz(banks);
    const uint16_t set = *line++;
    if (half) {
      add_expanded_half(score, line, set, x);
    } else {
      add_expanded_float(score, line, set, x);
    }
    line += units * popcount(set);
  }
}

// scores: banks of the group x 16, starting from the bias.
template <bool half, class Index>
inline void score_group(const PackedForest& f, int32_t group, Row<Index> row, float scale, float* scores) {
  constexpr int64_t kBlock = 64;
  const int64_t first = f.group_buckets[group];
  const auto n_buckets = static_cast<uint32_t>(f.group_buckets[group + 1] - first);
  for (int32_t b = f.group_banks[group]; b < f.group_banks[group + 1]; ++b) {
    store(scores + 16 * (b - f.group_banks[group]), load(f.bias + 16 * static_cast<int64_t>(b)));
  }
  if (n_buckets == 0) return;
  const uint16_t* found[kBlock];
  float values[kBlock];
  for (int64_t begin = 0; begin < row.count; begin += kBlock) {
    const int64_t end = begin + kBlock < row.count ? begin + kBlock : row.count;
    for (int64_t k = begin; k < end; ++k) {
      __builtin_prefetch(f.keys + 16 * (first + home_bucket(static_cast<uint32_t>(row.index[k]), n_buckets)));
    }
    int n = 0;
    for (int64_t k = begin; k < end; ++k) {
      const uint16_t* const line = find_line(f, group, static_cast<uint32_t>(row.index[k]));
      __builtin_prefetch(line);
      found[n] = line;
      values[n] = scale * row.value[k];
      n += line != nullptr;
    }
    for (int k = 0; k < n; ++k) add_line<half>(found[k], values[k], scores);
  }
}

template <class Index>
void score(const PackedForest& f, int32_t group, const Row<Index>& row, float scale, float* scores) {
  if (f.half) {
    score_group<true>(f, group, row, scale, scores);
  } else {
    score_group<false>(f, group, row, scale, scores);
  }
}

// Logarithm of the probability that a score stands for.
inline Lanes log_probability(Loss loss, Lanes score) {
  if (loss == Loss::logistic) {  // -log(1 + e^-s) = min(s, 0) - log(1 + e^-|s|)
    return min(score, zero()) - log1p_unit(exp(zero() - abs(score)));
  }
  const Lanes short_by = max(broadcast(1.0f) - score, zero());
  return zero() - short_by * short_by;
}

// Scores all children of a node and offers them.
template <class OfferNode, class OfferLabels, class Index>
inline void visit(const PackedForest& f, TopLabel node, Row<Index> row, float scale, float* scores,
                  OfferNode offer_node, OfferLabels offer_labels) {
  for (int32_t g = f.node_groups[node.label]; g < f.node_groups[node.label + 1]; ++g) {
    score(f, g, row, scale, scores);
    for (int32_t b = f.group_banks[g]; b < f.group_banks[g + 1]; ++b) {
      const Lanes score = log_probability(f.loss, load(scores + 16 * (b - f.group_banks[g]))) + broadcast(node.score);
      const int32_t* const target = f.targets + 16 * static_cast<int64_t>(b);
      if (target[0] >= 0) {
        float each[kLanes];
        store(each, score);
        for (int l = 0; l < kLanes && target[l] != kNoTarget; ++l) offer_node(TopLabel{each[l], target[l]});
      } else {
        offer_labels(score, target);
      }
    }
  }
}

// Searches one tree; labels go to `offer_labels(scores, targets)`, sixteen at a time.
template <class OfferLabels, class Index>
inline void search_tree(const PackedForest& f, int32_t root, Row<Index> row, const SearchOptions& o,
                        const SearchWork& work, OfferLabels offer_labels) {
  int32_t width = 1;
  work.beam[0] = {0.0f, root};
  while (width > 0) {
    Best next(work.nodes, o.beam);
    const auto offer_node = [&](TopLabel node) { next.offer(node); };
    for (int32_t i = 0; i < width; ++i) visit(f, work.beam[i], row, o.row_scale, work.scores, offer_node, offer_labels);
    const int32_t n = next.sort();
    int64_t labels = 0;  // below the nodes kept: enough for the answer, however poor the last of them
    for (width = 0; width < n; ++width) {
      const TopLabel node = work.nodes[width];
      if (node.score < work.nodes[0].score + o.min_log_share && labels >= o.top) break;
      labels += f.node_labels[node.label];
      work.beam[width] = node;
    }
  }
}

template <class Index>
int32_t search(const PackedForest& f, const Row<Index>& row, const SearchOptions& o, const SearchWork& work) {
  Best labels(work.heap, o.top);
  if (f.n_trees == 1) {
    search_tree(f, f.roots[0], row, o, work, [&](Lanes score, const int32_t* target) {
      const uint16_t worth = labels.full() ? bits(score > broadcast(labels.worst())) : uint16_t{0xFFFF};
      if (!worth) return;
      float each[kLanes];
      store(each, score);
      for (unsigned left = worth; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (target[l] != kNoTarget) labels.offer({each[l], ~target[l]});
      }
    });
    return labels.sort();
  }
  // Several trees: a label's score is its mean probability over the trees.
  int32_t seen = 0;
  for (int32_t t = 0; t < f.n_trees; ++t) {
    search_tree(f, f.roots[t], row, o, work, [&](Lanes score, const int32_t* target) {
      float each[kLanes];
      store(each, exp(score));
      for (int l = 0; l < kLanes && target[l] != kNoTarget; ++l) {
        float& sum = work.label_sum[~target[l]];
        if (sum == 0.0f) work.label_seen[seen++] = ~target[l];
        sum += each[l];  // exp never gives zero
      }
    });
  }
  for (int32_t i = 0; i < seen; ++i) {
    const int32_t label = work.label_seen[i];
    labels.offer({work.label_sum[label] / static_cast<float>(f.n_trees), label});
    work.label_sum[label] = 0.0f;
  }
  return labels.sort();
}

}  // namespace sapwood::SAPWOOD_ISA
