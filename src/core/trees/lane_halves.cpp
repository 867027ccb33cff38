#include "trees/lane_halves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sapwood {

namespace {

constexpr size_t kMostTerms = 32;
constexpr float kMostWeight = 1e30f;  // larger ones, and infinity, say nothing
constexpr int kStarts = 3;
constexpr int kMostRounds = 8;
constexpr double kTie = 1e-6;
constexpr double kGrain = 1e-5;  // scores that differ by less are the same: profiles that share features with each other alone
constexpr double kWorthARound = 1e-4;  // relative gain below which the rounds end

struct Term {
  uint32_t feature;
  float weight;
};

LaneProfile profile_of(std::vector<Term>& terms) {
  if (terms.size() > kMostTerms) {
    const auto larger = [](const Term& a, const Term& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.feature < b.feature;
    };
    std::nth_element(terms.begin(), terms.begin() + kMostTerms, terms.end(), larger);
    terms.resize(kMostTerms);
  }
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.feature < b.feature; });
  double square = 0;
  for (const Term& term : terms) square += static_cast<double>(term.weight) * term.weight;
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0.0;
  LaneProfile profile;
  for (const Term& term : terms) {
    profile.features.push_back(term.feature);
    profile.weights.push_back(static_cast<float>(term.weight * scale));
  }
  return profile;
}

// The profiles with features numbered from 0, and the search for two halves of them.
class TwoMeans {
 public:
  explicit TwoMeans(std::span<const LaneProfile> profiles) : profiles_(profiles) {
    std::vector<uint32_t> all;
    for (const LaneProfile& p : profiles) all.insert(all.end(), p.features.begin(), p.features.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    numbers_.resize(profiles.size());
    for (size_t i = 0; i < profiles.size(); ++i) {
      for (const uint32_t feature : profiles[i].features) {
        numbers_[i].push_back(static_cast<int32_t>(std::lower_bound(all.begin(), all.end(), feature) - all.begin()));
      }
    }
    direction_.resize(all.size());
    other_.resize(all.size());
    scores_.resize(profiles.size());
    grains_.resize(profiles.size());
  }

  // Orders the members so that the first `n_first` belong together, and the others.
  void halve(std::span<int32_t> members, size_t n_first, Random& random) {
    members_ = members;
    n_first_ = n_first;
    const auto n = static_cast<uint32_t>(members.size());
    double best_fit = 0;
    std::vector<int32_t> best;
    for (int start = 0; start < kStarts; ++start) {
      const uint32_t first = random.below(n);
      uint32_t second = random.below(n - 1);
      second += second >= first;
      const double fit = run(members[first], members[second]);
      if (start > 0 && fit <= best_fit + kTie * std::abs(best_fit)) continue;  // perhaps the same halves the other way round
      best_fit = fit;
      best = kept_;
    }
    std::copy(best.begin(), best.end(), members.begin());
  }

 private:
  void add(int32_t i, double factor, std::vector<double>& sum) const {
    const auto& numbers = numbers_[static_cast<size_t>(i)];
    const auto& weights = profiles_[static_cast<size_t>(i)].weights;
    for (size_t k = 0; k < numbers.size(); ++k) sum[static_cast<size_t>(numbers[k])] += factor * weights[k];
  }

  // Leaves the order in kept_ and returns how well the halves fit: likenesses to the own mean less those to the other.
  double run(int32_t first, int32_t second) {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    add(first, 1.0, direction_);
    add(second, -1.0, direction_);
    double fit = -std::numeric_limits<double>::infinity();
    for (int round = 0; round < kMostRounds; ++round) {
      const double now = sort();
      if (round > 1 && now <= fit + kWorthARound * std::abs(fit)) break;
      fit = now;
      kept_ = order_;
      point();
    }
    return fit;
  }

  // Orders the members along the direction, those that point along it first.
  double sort() {
    for (const int32_t i : members_) scores_[static_cast<size_t>(i)] = along(i);
    order_.assign(members_.begin(), members_.end());
    const auto score = [&](int32_t i) { return scores_[static_cast<size_t>(i)]; };
    const auto grains = [&](int32_t i) { return grains_[static_cast<size_t>(i)]; };
    for (const int32_t i : members_) grains_[static_cast<size_t>(i)] = std::nearbyint(score(i) / kGrain);
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return grains(a) != grains(b) ? grains(a) > grains(b) : a < b; });
    double fit = 0;
    for (size_t k = 0; k < order_.size(); ++k) fit += k < n_first_ ? score(order_[k]) : -score(order_[k]);
    return fit;
  }

  [[nodiscard]] double along(int32_t i) const {
    const auto& numbers = numbers_[static_cast<size_t>(i)];
    const auto& weights = profiles_[static_cast<size_t>(i)].weights;
    double sum = 0;
    for (size_t k = 0; k < numbers.size(); ++k) sum += direction_[static_cast<size_t>(numbers[k])] * weights[k];
    return sum;
  }

  // Sets the direction from the mean of the others to that of the first.
  void point() {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    std::fill(other_.begin(), other_.end(), 0.0);
    for (size_t k = 0; k < order_.size(); ++k) add(order_[k], 1.0, k < n_first_ ? direction_ : other_);
    const auto unit = [](const std::vector<double>& x) {
      const double square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
      return square > 0 ? 1 / std::sqrt(square) : 0.0;
    };
    const double a = unit(direction_), b = unit(other_);
    for (size_t f = 0; f < direction_.size(); ++f) direction_[f] = a * direction_[f] - b * other_[f];
  }

  std::span<const LaneProfile> profiles_;
  std::vector<std::vector<int32_t>> numbers_;
  std::vector<double> direction_, other_, scores_, grains_;
  std::span<int32_t> members_;
  size_t n_first_ = 0;
  std::vector<int32_t> order_, kept_;
};

}  // namespace

std::vector<LaneProfile> lane_profiles(const GrowingGroup& group, int n_lanes) {
  std::vector<std::vector<Term>> terms(static_cast<size_t>(n_lanes));
  const auto is_positive = [](float w) { return w > 0 && w < kMostWeight; };
  group.each_slot([&](const GrowingGroup::Slot& slot) {
    if (slot.is_lone()) {
      if (slot.lane < n_lanes && is_positive(slot.lone[0])) terms[slot.lane].push_back({slot.feature, slot.lone[0]});
      return;
    }
    for (unsigned banks = slot.banks; banks; banks &= banks - 1) {
      const int bank = std::countr_zero(banks);
      const float* const weights = group.weights(slot, bank);
      for (unsigned lanes = lanes_where(weights, is_positive); lanes; lanes &= lanes - 1) {
        const int l = std::countr_zero(lanes), lane = kBankLanes * bank + l;
        if (lane < n_lanes) terms[static_cast<size_t>(lane)].push_back({slot.feature, weights[l]});
      }
    }
  });
  std::vector<LaneProfile> profiles;
  for (auto& lane : terms) profiles.push_back(profile_of(lane));
  return profiles;
}

std::vector<std::vector<int32_t>> deal_out(std::span<const LaneProfile> profiles, int32_t parts, Random& random) {
  TwoMeans means(profiles);
  std::vector<int32_t> all(profiles.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int32_t>> dealt;
  const auto deal = [&](auto self, std::span<int32_t> members, int32_t n) -> void {
    if (n == 1) return dealt.emplace_back(members.begin(), members.end()), void();
    const size_t first = members.size() * static_cast<size_t>(n / 2) / static_cast<size_t>(n);
    means.halve(members, first, random);
    self(self, members.first(first), n / 2);
    self(self, members.subspan(first), n - n / 2);
  };
  deal(deal, all, parts);
  return dealt;
}

double likeness(const LaneProfile& a, const LaneProfile& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.features.size() && j < b.features.size();) {
    if (a.features[i] == b.features[j]) sum += static_cast<double>(a.weights[i++]) * b.weights[j++];
    else if (a.features[i] < b.features[j]) ++i;
    else ++j;
  }
  return sum;
}

}  // namespace sapwood
