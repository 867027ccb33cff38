#include "trees/label_counts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sapwood {

namespace {

constexpr int kTabled = 1024;            // counts whose phi_increase by 1 is looked up
constexpr double kGrain = 1024;          // weights that are multiples of 1 / kGrain add up without rounding,
constexpr double kMostExact = 0x1p42;    // as long as the sum stays below

double increase(double a, double w) {
  if (a == 0) return w * std::log(w);
  return a * std::log1p(w / a) + w * std::log(a + w);
}

std::array<double, kTabled> increases_by_one() {
  std::array<double, kTabled> table;
  for (int a = 0; a < kTabled; ++a) table[static_cast<size_t>(a)] = increase(a, 1);
  return table;
}

}  // namespace

double phi_increase(double a, double w) {
  static const std::array<double, kTabled> table = increases_by_one();
  if (w == 1 && a < kTabled) {
    const auto whole = static_cast<int>(a);
    if (whole == a) return table[static_cast<size_t>(whole)];
  }
  return increase(a, w);
}

const LabelCount* LabelCounts::find(int32_t label) const {
  if (map_.empty()) return nullptr;
  for (size_t s = home(label); load_shared(map_[s].count) != 0; s = s + 1 == map_.size() ? 0 : s + 1) {
    if (map_[s].label == label) return &map_[s];
  }
  return nullptr;
}

double LabelCounts::count(int32_t label) const {
  const LabelCount* const found = find(label);
  return found ? load_shared(found->count) : 0;
}

// The slot of a label; a new one has a count of 0, which the caller raises.
LabelCount& LabelCounts::find_or_add(int32_t label) {
  if (const LabelCount* const found = find(label)) return const_cast<LabelCount&>(*found);
  if (4 * static_cast<size_t>(n_labels_ + 1) > 3 * map_.size()) grow();
  size_t s = home(label);
  while (map_[s].count != 0) s = s + 1 == map_.size() ? 0 : s + 1;
  ++n_labels_;
  map_[s].label = label;
  return map_[s];
}

void LabelCounts::grow() {
  std::vector<LabelCount> old(map_.empty() ? 4 : 2 * map_.size(), LabelCount{0, 0});
  old.swap(map_);
  shift_ = 32;
  for (size_t size = map_.size(); size > 1; size /= 2) --shift_;
  for (const LabelCount& entry : old) {
    if (entry.count == 0) continue;
    size_t s = home(entry.label);
    while (map_[s].count != 0) s = s + 1 == map_.size() ? 0 : s + 1;
    map_[s] = entry;
  }
}

void LabelCounts::add(int32_t label, double weight, int32_t size) {
  LabelCount& slot = find_or_add(label);
  const double old = slot.count;
  store_shared(slot.count, old + weight);  // a label that is new is there by now
  sum_phi_ += phi_increase(old, weight);
  store_shared(total_, total_ + weight);
  store_shared(asked_weight_, 0.0);
  const double grains = weight * kGrain;
  is_exact_ = is_exact_ && grains == std::floor(grains) && total_ < kMostExact;
  raise(old, slot, size);
}

// Lets a label that was counted move up among the heaviest. All labels that are not there come after the last of them.
void LabelCounts::raise(double old_count, const LabelCount& now, int32_t size) {
  const LabelCount before{old_count, now.label};
  const bool is_full = static_cast<int32_t>(top_.size()) >= size;
  const bool was_in = old_count > 0 && !top_.empty() && !comes_before(top_.back(), before);
  if (!was_in && is_full && !comes_before(now, top_.back())) {
    return;
  }
  auto place = top_.end();
  if (was_in) {
    place = std::lower_bound(top_.begin(), top_.end(), before, comes_before);
  } else if (is_full) {
    place = top_.end() - 1;
    mass_ -= place->count;
    mass_ += old_count;
  } else {
    place = top_.insert(top_.end(), now);
    mass_ += old_count;
  }
  mass_ += now.count - old_count;
  auto to = place;
  for (; to != top_.begin() && comes_before(now, *(to - 1)); --to) *to = *(to - 1);
  *to = now;
  if (!is_exact_) resum();
}

void LabelCounts::resum() {
  mass_ = 0;
  for (const LabelCount& entry : top_) mass_ += entry.count;
}

void LabelCounts::widen(int32_t size) {
  const auto wanted = std::min(static_cast<size_t>(size), static_cast<size_t>(n_labels_));
  if (top_.size() >= wanted) return;
  std::vector<LabelCount> counts = all();
  const auto end = counts.begin() + static_cast<std::ptrdiff_t>(wanted);
  std::partial_sort(counts.begin(), end, counts.end(), comes_before);
  top_.assign(counts.begin(), end);
  resum();
}

double LabelCounts::recall() const { return std::min(1.0, mass_ / total_); }

double LabelCounts::recall_bound(double lambda) const {
  if (total_ == 0) return -std::numeric_limits<double>::infinity();
  const double r = recall();
  return r - std::sqrt(lambda * r * (1 - r) / total_) - lambda / total_;
}

double LabelCounts::entropy() const {
  return total_ == 0 ? 0 : std::max(0.0, std::log(total_) - sum_phi_ / total_);
}

double LabelCounts::cost(int32_t label, double weight) const {
  if (weight != asked_weight_) {
    asked_increase_ = phi_increase(total_, weight);
    asked_weight_ = weight;
  }
  return asked_increase_ - phi_increase(count(label), weight);
}

void LabelCounts::add_shared(int32_t label, double weight, int32_t size) {
  add(label, weight, size);
  store_shared(asked_increase_, phi_increase(total_, weight));
  store_shared(asked_weight_, weight);
}

double LabelCounts::cost_shared(int32_t label, double weight) const {
  const bool is_ready = load_shared(asked_weight_) == weight;
  return (is_ready ? load_shared(asked_increase_) : phi_increase(total(), weight)) - phi_increase(count(label), weight);
}

std::vector<LabelCount> LabelCounts::all() const {
  std::vector<LabelCount> counts;
  counts.reserve(static_cast<size_t>(n_labels_));
  std::copy_if(map_.begin(), map_.end(), std::back_inserter(counts), [](const LabelCount& c) { return c.count != 0; });
  return counts;
}

bool LabelCounts::restore(std::span<const LabelCount> counts, double total, double sum_phi) {
  for (const LabelCount& entry : counts) {
    if (!(entry.count > 0)) return false;
    LabelCount& slot = find_or_add(entry.label);
    if (slot.count != 0) return false;
    slot.count = entry.count;
    const double grains = entry.count * kGrain;
    is_exact_ = is_exact_ && grains == std::floor(grains);
  }
  is_exact_ = is_exact_ && total < kMostExact;
  total_ = total;
  sum_phi_ = sum_phi;
  return true;
}

}  // namespace sapwood
