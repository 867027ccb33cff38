#include "regressors/label_regressors.h"

#include <algorithm>

namespace sapwood {

namespace {

constexpr int32_t kLanes = kExactLanes;

}  // namespace

LabelRegressors::LabelRegressors(const Rule& rule, bool dense, int64_t n_columns)
    : rule_(rule), dense_(dense), row_floats_((n_columns + 16) / 16 * 16), store_(rule, n_columns, dense) {}

void LabelRegressors::add(int32_t label) {
  const auto i = static_cast<size_t>(label);
  if (i >= places_.size()) places_.resize(i + 1, -1);
  places_[i] = n_placed_++;
  if (places_[i] % kLanes == 0) store_.add_bank();
  if (!dense_) return;
  const auto n = static_cast<size_t>(row_floats_);
  if (i >= weights_.size()) weights_.resize(i + 1);
  weights_[i] = AlignedArray<float>(n);
  std::fill_n(weights_[i].get(), n, 0.0f);
  if (!rule_.adagrad) return;
  if (i >= squares_.size()) squares_.resize(i + 1);
  squares_[i] = AlignedArray<float>(n);
  std::fill_n(squares_[i].get(), n, rule_.initial);
}

// Which banks the labels live in, each once, and where in them.
void LabelRegressors::meet_banks(std::span<const int32_t> labels, Work& work) const {
  if (work.met.size() < static_cast<size_t>(store_.n_banks())) work.met.resize(static_cast<size_t>(store_.n_banks()), 0);
  work.banks.clear();
  work.lane.resize(labels.size());
  ++work.time;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int32_t place = places_[static_cast<size_t>(labels[i])];
    const int32_t bank = place / kLanes;
    uint64_t& met = work.met[static_cast<size_t>(bank)];
    if (met >> 32 != work.time) {
      met = static_cast<uint64_t>(work.time) << 32 | work.banks.size();
      work.banks.push_back(bank);
    }
    work.lane[i] = static_cast<int32_t>(met & 0xFFFFFFFF) * kLanes + place % kLanes;
  }
}

void LabelRegressors::score_lanes(std::span<const int32_t> labels, const OnlineRow& row, Work& work) const {
  const ExactKernels& kernel = exact_kernels();
  work.lanes.assign(work.banks.size() * kLanes, 0.0f);
  if (dense_) {
    for (size_t i = 0; i < labels.size(); ++i) {
      const float* const weights = weights_[static_cast<size_t>(labels[i])].get();
      work.lanes[static_cast<size_t>(work.lane[i])] = kernel.dense_score(weights, row.values.data(), row_floats_);
    }
  }
  const size_t n = work.features.size(), n_path = row.path.size(), n_raw = n - n_path;
  for (size_t b = 0; b < work.banks.size() && n > 0; ++b) {
    const int32_t* const lines = work.lines.data() + b * n;
    float* const lanes = work.lanes.data() + b * kLanes;
    kernel.add_scores(store_.weights(), {lines, row.values.data(), static_cast<int64_t>(n_raw)}, lanes);
    kernel.add_scores(store_.weights(), {lines + n_raw, row.path_values.data(), static_cast<int64_t>(n_path)}, lanes);
  }
  work.scores.resize(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) work.scores[i] = work.lanes[static_cast<size_t>(work.lane[i])];
}

void LabelRegressors::score(std::span<const int32_t> labels, const OnlineRow& row, Work& work) const {
  meet_banks(labels, work);
  store_.find(row, work.features);
  work.lines.resize(work.banks.size() * work.features.size());
  store_.find_lines(work.features, work.banks, work.lines.data());
  score_lanes(labels, row, work);
}

void LabelRegressors::score_to_learn(std::span<const int32_t> labels, const OnlineRow& row, Work& work) {
  meet_banks(labels, work);
  store_.find_or_add(row, work.features);
  work.lines.resize(work.banks.size() * work.features.size());
  store_.find_or_add_lines(work.features, work.banks, work.lines.data());
  score_lanes(labels, row, work);
}

void LabelRegressors::learn(std::span<const int32_t> labels, int32_t right, double weight, const OnlineRow& row, Work& work) {
  const ExactKernels& kernel = exact_kernels();
  work.pushes.assign(work.banks.size() * kLanes, 0.0f);
  for (size_t i = 0; i < labels.size(); ++i) {
    const float by = push(rule_, work.scores[i], labels[i] == right ? 1.0 : -1.0, weight);
    work.pushes[static_cast<size_t>(work.lane[i])] = by;
    if (!dense_) continue;
    const auto label = static_cast<size_t>(labels[i]);
    float* const squares = rule_.adagrad ? squares_[label].get() : nullptr;
    kernel.dense_learn(weights_[label].get(), squares, row.values.data(), row_floats_, by, rule_.step);
  }
  const size_t n = work.features.size(), n_path = row.path.size(), n_raw = n - n_path;
  for (size_t b = 0; b < work.banks.size() && n > 0; ++b) {
    const int32_t* const lines = work.lines.data() + b * n;
    const float* const pushes = work.pushes.data() + b * kLanes;
    const auto step = [&](const int32_t* first, const float* values, size_t count) {
      kernel.learn_lanes(store_.weights(), store_.squares(), {first, values, static_cast<int64_t>(count)}, pushes, rule_.step);
    };
    step(lines, row.values.data(), n_raw);
    step(lines + n_raw, row.path_values.data(), n_path);
  }
}

}  // namespace sapwood
