#include "trees/online_one_vs_all.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "regressors/half.h"
#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsBetweenStopChecks = 256;
constexpr int64_t kRowsATask = 64;
constexpr float kSettledSquare = 1.0f;  // squared gradients of weights from a batch: they shall move, but not far

uint16_t lanes_in_use(int32_t n_labels, size_t bank) {
  const int32_t left = n_labels - static_cast<int32_t>(bank) * kBankLanes;
  return left >= kBankLanes ? 0xFFFF : static_cast<uint16_t>((1u << left) - 1);
}

float packed_weight(const uint16_t* weights, int place, bool half) {
  if (half) return from_half(weights[place]);
  return std::bit_cast<float>(weights[2 * place] | static_cast<uint32_t>(weights[2 * place + 1]) << 16);
}

float probability(Loss loss, float score) {
  if (loss == Loss::logistic) return 1 / (1 + std::exp(-score));
  const float short_by = std::max(1.0f - score, 0.0f);
  return std::exp(-short_by * short_by);
}

}  // namespace

void OnlineOneVsAll::grow(int32_t n_labels) {
  n_labels_ = std::max(n_labels_, n_labels);
  banks_.resize(static_cast<size_t>((n_labels_ + kBankLanes - 1) / kBankLanes));
  positive_.resize(banks_.size());
  lanes_.resize(banks_.size());
}

// Which lanes of which banks learn from the row: all, or its own labels and a sample of the others.
void OnlineOneVsAll::choose_lanes(std::span<const int32_t> labels) {
  const auto bit = [](int32_t label) { return static_cast<uint16_t>(1u << (label % kBankLanes)); };
  std::fill(positive_.begin(), positive_.end(), 0);
  for (const int32_t label : labels) positive_[static_cast<size_t>(label / kBankLanes)] |= bit(label);
  if (options_.negatives == 0 || options_.negatives >= n_labels_) {
    for (size_t b = 0; b < banks_.size(); ++b) lanes_[b] = lanes_in_use(n_labels_, b);
    return;
  }
  std::copy(positive_.begin(), positive_.end(), lanes_.begin());
  for (int32_t i = 0; i < options_.negatives; ++i) {
    const auto label = static_cast<int32_t>(random_.below(static_cast<uint32_t>(n_labels_)));
    lanes_[static_cast<size_t>(label / kBankLanes)] |= bit(label);
  }
}

void OnlineOneVsAll::grow_to(std::span<const int32_t> labels) {
  if (!labels.empty()) grow(*std::max_element(labels.begin(), labels.end()) + 1);
}

// Learns one row and returns what it would have been given before: the label with the highest score, the first of
// equals; -1 where none was known. Without `predict_first` banks that do not learn are not asked.
template <class Index>
int32_t OnlineOneVsAll::learn_row(Row<Index> row, std::span<const int32_t> labels, float weight, bool predict_first) {
  const int32_t n_before = n_labels_;
  grow_to(labels);
  if (weight == 0) return -1;
  choose_lanes(labels);
  const bool sampled = options_.negatives > 0 && options_.negatives < n_labels_;
  const float negative_weight = sampled ? static_cast<float>(n_labels_) / static_cast<float>(options_.negatives) : 1.0f;
  found_.resize(static_cast<size_t>(row.count));
  const float scale = options_.normalize ? unit_scale(row) : 1.0f;
  alignas(64) std::array<float, kBankLanes> scores, lane_weight;
  int32_t best = -1;
  float best_score = 0;
  for (size_t b = 0; b < banks_.size(); ++b) {
    if (!lanes_[b] && !predict_first) continue;
    if (positive_[b]) {
      banks_[b].find_or_add(row, found_.data());
    } else {
      banks_[b].find(row, found_.data());
    }
    if (lanes_[b]) {
      for (int l = 0; l < kBankLanes; ++l) lane_weight[static_cast<size_t>(l)] = positive_[b] >> l & 1 ? 1.0f : negative_weight;
      const OnlineStep step{sampled ? lane_weight.data() : nullptr, positive_[b], lanes_[b], options_.loss, options_.step, weight, scale};
      kernels().online_learn(banks_[b].lines(), found_.data(), row.value, row.count, step, scores.data());
    } else {
      kernels().online_scores(banks_[b].lines(), found_.data(), row.value, row.count, scale, scores.data());
    }
    const auto first = static_cast<int32_t>(b) * kBankLanes;
    for (int32_t label = first; label < std::min(first + kBankLanes, n_before); ++label) {
      const float score = scores[static_cast<size_t>(label - first)];
      if (best >= 0 && !(score > best_score)) continue;
      best = label;
      best_score = score;
    }
  }
  return best;
}

template <class Rows>
void OnlineOneVsAll::learn(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int32_t n_known,
                           const float* row_weight, bool predict_first, Monitor& monitor) {
  grow(n_known);
  for (int64_t i = 0; i < X.n_rows; ++i) {
    if (i % kRowsBetweenStopChecks == 0 && monitor.stopped()) throw Interrupted{};
    const float weight = row_weight ? row_weight[i] : 1.0f;
    const std::span own(labels + label_indptr[i], static_cast<size_t>(label_indptr[i + 1] - label_indptr[i]));
    const int32_t best = learn_row(X.row(i), own, weight, predict_first);
    if (predict_first && !own.empty()) progressive_.count(std::find(own.begin(), own.end(), best) == own.end(), weight);
    ++monitor.done;
  }
}

void OnlineOneVsAll::take(const PackedForest& forest) {
  grow(forest.n_labels);
  const auto each_lane = [&](int32_t bank, uint16_t lanes, auto visit) {
    for (unsigned left = lanes; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const int32_t target = forest.targets[int64_t{16} * bank + lane];
      if (target >= 0 || target == kNoTarget) continue;
      const int32_t label = ~target;
      visit(banks_[static_cast<size_t>(label / kBankLanes)], label % kBankLanes, lane);
    }
  };
  for (int32_t g = 0; g < forest.n_groups; ++g) {
    const int32_t first_bank = forest.group_banks[g];
    for (int32_t b = first_bank; b < forest.group_banks[g + 1]; ++b) {
      each_lane(b, 0xFFFF, [&](GrowingBank& to, int lane, int from) {
        to.set_bias(lane, forest.bias[int64_t{16} * b + from], kSettledSquare);
      });
    }
    for (int64_t slot = 16 * forest.group_buckets[g]; slot < 16 * forest.group_buckets[g + 1]; ++slot) {
      if (forest.keys[slot] == kNoKey) continue;
      const uint16_t* line = forest.pool + forest.group_pool[g] + forest.lines[slot];
      for (unsigned banks = *line++; banks; banks &= banks - 1) {
        const uint16_t lanes = *line++;
        each_lane(first_bank + std::countr_zero(banks), lanes, [&](GrowingBank& to, int lane, int from) {
          const int place = std::popcount(static_cast<uint16_t>(lanes & ((1u << from) - 1)));
          to.set(forest.keys[slot], lane, packed_weight(line, place, forest.half), kSettledSquare);
        });
        line += std::popcount(lanes) * (forest.half ? 1 : 2);
      }
    }
  }
}

template <class Rows>
void OnlineOneVsAll::predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores,
                                 Monitor& monitor) const {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int) {
    WorkBuffer<float> score_memory;
    float* const all = score_memory.ensure(banks_.size() * kBankLanes);
    std::vector<int32_t> found, order(static_cast<size_t>(n_labels_));
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) {
      const auto row = X.row(i);
      const float scale = options_.normalize ? unit_scale(row) : 1.0f;
      found.resize(static_cast<size_t>(row.count));
      for (size_t b = 0; b < banks_.size(); ++b) {
        banks_[b].find(row, found.data());
        kernels().online_scores(banks_[b].lines(), found.data(), row.value, row.count, scale, all + b * kBankLanes);
      }
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](int32_t a, int32_t b) {
        return all[a] != all[b] ? all[a] > all[b] : a < b;
      });
      for (int32_t k = 0; k < top; ++k) {
        const int32_t label = order[static_cast<size_t>(k)];
        labels[i * top + k] = label;
        scores[i * top + k] = probability(options_.loss, all[label]);
      }
    }
  });
}

template <class Rows>
float OnlineOneVsAll::label_score(const Rows& X, int64_t i, int32_t label) const {
  const auto row = X.row(i);
  std::vector<int32_t> found(static_cast<size_t>(row.count));
  alignas(64) std::array<float, kBankLanes> scores;
  const GrowingBank& bank = banks_[static_cast<size_t>(label / kBankLanes)];
  bank.find(row, found.data());
  const float scale = options_.normalize ? unit_scale(row) : 1.0f;
  kernels().online_scores(bank.lines(), found.data(), row.value, row.count, scale, scores.data());
  return scores[static_cast<size_t>(label % kBankLanes)];
}

#define SAPWOOD_FOR_ROWS(Rows)                                                                                          \
  template void OnlineOneVsAll::learn(const Rows&, const int64_t*, const int32_t*, int32_t, const float*, bool,         \
                                      Monitor&);                                                                        \
  template void OnlineOneVsAll::predict_top(const Rows&, int32_t, int, int32_t*, float*, Monitor&) const; \
  template float OnlineOneVsAll::label_score(const Rows&, int64_t, int32_t) const;
SAPWOOD_FOR_ROWS(CsrRows<int32_t>)
SAPWOOD_FOR_ROWS(CsrRows<int64_t>)
SAPWOOD_FOR_ROWS(DenseRows)
#undef SAPWOOD_FOR_ROWS

}  // namespace sapwood
