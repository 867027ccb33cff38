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

void LabelRegressors::arrange(std::span<const int32_t> order) {
  std::vector<int32_t> moved(static_cast<size_t>(n_placed_), -1);  // by place
  int32_t n = 0;
  for (const int32_t label : order) moved[static_cast<size_t>(places_[static_cast<size_t>(label)])] = n++;
  for (int32_t& place : moved) {
    if (place < 0) place = n++;
  }
  store_.arrange(moved);
  for (int32_t& place : places_) {
    if (place >= 0) place = moved[static_cast<size_t>(place)];
  }
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

bool LabelRegressors::learn(std::span<const int32_t> labels, int32_t right, double weight, const OnlineRow& row, Work& work) {
  set_pushes(labels, right, weight, work);
  if (!make_lines(row, work)) return false;
  if (dense_) step_dense(labels, row, work);
  step_banks(row, work);
  return true;
}

void LabelRegressors::set_pushes(std::span<const int32_t> labels, int32_t right, double weight, Work& work) const {
  work.pushes.assign(work.banks.size() * kLanes, 0.0f);
  work.learning.assign(work.banks.size(), false);
  for (size_t i = 0; i < labels.size(); ++i) {
    const float by = push(rule_, work.scores[i], labels[i] == right ? 1.0 : -1.0, weight);
    if (by == 0) continue;
    const auto lane = static_cast<size_t>(work.lane[i]);
    work.pushes[lane] = by;
    work.learning[lane / kLanes] = true;
  }
}

// In the banks that learn, lines that are missing; false if memory would have to move and the thread is not alone.
bool LabelRegressors::make_lines(const OnlineRow& row, Work& work) {
  const size_t n = work.features.size();
  const auto learns = [&](size_t b) { return work.learning[b] != 0; };
  const auto lines = [&](size_t b) { return work.lines.data() + b * n; };
  const auto is_missing = [&](size_t b) { return learns(b) && std::find(lines(b), lines(b) + n, LaneStore::kNothing) != lines(b) + n; };
  size_t b = 0;
  while (b < work.banks.size() && !is_missing(b)) ++b;
  if (b == work.banks.size()) return true;

  const Guard guard(adding_, work.pass);
  if (!is_alone(work.pass) && !store_.has_room(work.features)) return false;
  store_.find_or_add(row, work.features);
  for (; b < work.banks.size(); ++b) {
    if (!learns(b)) continue;
    if (!is_alone(work.pass) && !store_.has_room(work.features, lines(b))) return false;
    store_.add_missing(work.features, work.banks[b], lines(b));
  }
  return true;
}

void LabelRegressors::step_dense(std::span<const int32_t> labels, const OnlineRow& row, const Work& work) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const float by = work.pushes[static_cast<size_t>(work.lane[i])];
    if (by == 0) continue;
    const auto label = static_cast<size_t>(labels[i]);
    float* const squares = rule_.adagrad ? squares_[label].get() : nullptr;
    exact_kernels().dense_learn(weights_[label].get(), squares, row.values.data(), row_floats_, by, rule_.step);
  }
}

void LabelRegressors::step_banks(const OnlineRow& row, const Work& work) {
  const ExactKernels& kernel = exact_kernels();
  const size_t n = work.features.size(), n_path = row.path.size(), n_raw = n - n_path;
  for (size_t b = 0; b < work.banks.size() && n > 0; ++b) {
    if (!work.learning[b]) continue;
    const int32_t* const lines = work.lines.data() + b * n;
    const float* const pushes = work.pushes.data() + b * kLanes;
    const auto step = [&](const int32_t* first, const float* values, size_t count) {
      kernel.learn_lanes(store_.weights(), store_.squares(), {first, values, static_cast<int64_t>(count)}, pushes, rule_.step);
    };
    step(lines, row.values.data(), n_raw);
    step(lines + n_raw, row.path_values.data(), n_path);
  }
}

std::vector<int32_t> LabelRegressors::labels_by_place() const {
  std::vector<int32_t> labels(static_cast<size_t>(n_placed_));
  for (size_t label = 0; label < places_.size(); ++label) {
    if (places_[label] >= 0) labels[static_cast<size_t>(places_[label])] = static_cast<int32_t>(label);
  }
  return labels;
}

LabelRegressors::Arrays<LabelRegressors::Owned> LabelRegressors::arrays() const {
  Arrays<Owned> out;
  out.places = places_;
  for (const LaneStore::Line& line : store_.all()) {
    out.keys.push_back(line.key);
    out.banks.push_back(line.bank);
  }
  const auto lines_of = [&](const float* lines) { return std::vector<float>(lines + kLanes, lines + kLanes * store_.n_lines()); };
  out.weights = lines_of(store_.weights());
  if (rule_.adagrad) out.squares = lines_of(store_.squares());
  if (!dense_) return out;
  for (const int32_t label : labels_by_place()) {
    const auto append = [&](std::vector<float>& to, const float* row) { to.insert(to.end(), row, row + row_floats_); };
    append(out.dense_weights, weights_[static_cast<size_t>(label)].get());
    if (rule_.adagrad) append(out.dense_squares, squares_[static_cast<size_t>(label)].get());
  }
  return out;
}

bool LabelRegressors::restore(const Arrays<View>& arrays) {
  std::vector<int32_t> labels;  // by place
  for (size_t label = 0; label < arrays.places.size(); ++label) {
    const int32_t place = arrays.places[label];
    if (place < 0) continue;
    if (static_cast<size_t>(place) >= arrays.places.size()) return false;
    if (static_cast<size_t>(place) >= labels.size()) labels.resize(static_cast<size_t>(place) + 1, -1);
    if (labels[static_cast<size_t>(place)] >= 0) return false;
    labels[static_cast<size_t>(place)] = static_cast<int32_t>(label);
  }
  if (std::find(labels.begin(), labels.end(), -1) != labels.end()) return false;
  for (const int32_t label : labels) add(label);
  places_.resize(arrays.places.size(), -1);

  const size_t n_lines = arrays.keys.size(), lane_floats = n_lines * kLanes;
  const size_t dense_floats = dense_ ? labels.size() * static_cast<size_t>(row_floats_) : 0;
  const auto if_adagrad = [&](size_t size) { return rule_.adagrad ? size : 0; };
  if (arrays.banks.size() != n_lines || arrays.weights.size() != lane_floats || arrays.squares.size() != if_adagrad(lane_floats) ||
      arrays.dense_weights.size() != dense_floats || arrays.dense_squares.size() != if_adagrad(dense_floats)) {
    return false;
  }
  for (size_t i = 0; i < n_lines; ++i) {
    if (arrays.banks[i] < 0 || arrays.banks[i] >= store_.n_banks()) return false;
    if (store_.restore({arrays.keys[i], arrays.banks[i]}) == LaneStore::kNothing) return false;
  }
  std::copy(arrays.weights.begin(), arrays.weights.end(), store_.weights() + kLanes);
  if (rule_.adagrad) std::copy(arrays.squares.begin(), arrays.squares.end(), store_.squares() + kLanes);
  for (size_t place = 0; dense_ && place < labels.size(); ++place) {
    const auto label = static_cast<size_t>(labels[place]);
    const auto take = [&](View<float> from, float* to) {
      std::copy_n(from.data() + place * static_cast<size_t>(row_floats_), row_floats_, to);
    };
    take(arrays.dense_weights, weights_[label].get());
    if (rule_.adagrad) take(arrays.dense_squares, squares_[label].get());
  }
  return true;
}

size_t LabelRegressors::bytes() const {
  const size_t floats = static_cast<size_t>(store_.n_lines() * kLanes) + (dense_ ? static_cast<size_t>(n_placed_ * row_floats_) : 0);
  return floats * sizeof(float) * (rule_.adagrad ? 2 : 1) + store_.index_bytes();
}

}  // namespace sapwood
