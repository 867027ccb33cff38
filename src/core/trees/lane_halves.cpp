#include "trees/lane_halves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sapwood {

namespace {

constexpr size_t kMostTerms = 128;
constexpr float kMostWeight = 1e30f;  // larger ones, and infinity, say nothing
constexpr int kStarts = 3;
constexpr int kMostRounds = 20;
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
  explicit TwoMeans(std::span<const LaneProfile> profiles) : profiles_(profiles), order_(profiles.size()) {
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
  }

  // Leaves the halves in order() and returns how well they fit: the sum of the likenesses to the own mean less the other.
  double run(size_t first, size_t second) {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    add(first, 1.0, direction_);
    add(second, -1.0, direction_);
    double fit = -std::numeric_limits<double>::infinity();
    std::vector<int32_t> best;
    for (int round = 0; round < kMostRounds; ++round) {
      const double now = sort();
      if (round > 1 && now <= fit + kWorthARound * std::abs(fit)) break;
      fit = now;
      best = order_;
      point();
    }
    order_ = std::move(best);
    return fit;
  }
  [[nodiscard]] const std::vector<int32_t>& order() const { return order_; }

 private:
  void add(size_t i, double factor, std::vector<double>& sum) const {
    for (size_t k = 0; k < numbers_[i].size(); ++k) sum[static_cast<size_t>(numbers_[i][k])] += factor * profiles_[i].weights[k];
  }

  // Orders the children along the direction, those that point along it first.
  double sort() {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      double score = 0;
      for (size_t k = 0; k < numbers_[i].size(); ++k) score += direction_[static_cast<size_t>(numbers_[i][k])] * profiles_[i].weights[k];
      scores_[i] = score;
    }
    order_.resize(numbers_.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto score = [&](int32_t i) { return scores_[static_cast<size_t>(i)]; };
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
    double fit = 0;
    for (size_t k = 0; k < order_.size(); ++k) fit += k < order_.size() / 2 ? score(order_[k]) : -score(order_[k]);
    return fit;
  }

  // Sets the direction from the mean of the second half to that of the first.
  void point() {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    std::fill(other_.begin(), other_.end(), 0.0);
    for (size_t k = 0; k < order_.size(); ++k) add(static_cast<size_t>(order_[k]), 1.0, k < order_.size() / 2 ? direction_ : other_);
    const auto unit = [](const std::vector<double>& x) {
      const double square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
      return square > 0 ? 1 / std::sqrt(square) : 0.0;
    };
    const double a = unit(direction_), b = unit(other_);
    for (size_t f = 0; f < direction_.size(); ++f) direction_[f] = a * direction_[f] - b * other_[f];
  }

  std::span<const LaneProfile> profiles_;
  std::vector<std::vector<int32_t>> numbers_;
  std::vector<double> direction_, other_, scores_;
  std::vector<int32_t> order_;
};

}  // namespace

std::vector<LaneProfile> lane_profiles(const GrowingGroup& group, int n_lanes) {
  std::vector<std::vector<Term>> terms(static_cast<size_t>(n_lanes));
  for (const GrowingGroup::Slot& slot : group.slots()) {
    if (!slot.room) continue;
    for (unsigned banks = slot.banks; banks; banks &= banks - 1) {
      const int bank = std::countr_zero(banks);
      const float* const weights = group.weights(slot, bank);
      for (int l = 0; l < kBankLanes && kBankLanes * bank + l < n_lanes; ++l) {
        if (weights[l] > 0 && weights[l] < kMostWeight) terms[static_cast<size_t>(kBankLanes * bank + l)].push_back({slot.feature, weights[l]});
      }
    }
  }
  std::vector<LaneProfile> profiles;
  for (auto& lane : terms) profiles.push_back(profile_of(lane));
  return profiles;
}

std::vector<int32_t> halve(std::span<const LaneProfile> profiles, Random& random) {
  TwoMeans means(profiles);
  const auto n = static_cast<uint32_t>(profiles.size());
  double best_fit = -std::numeric_limits<double>::infinity();
  std::vector<int32_t> best;
  for (int start = 0; start < kStarts; ++start) {
    const uint32_t first = random.below(n);
    uint32_t second = random.below(n - 1);
    second += second >= first;
    const double fit = means.run(first, second);
    if (!(fit > best_fit)) continue;
    best_fit = fit;
    best = means.order();
  }
  return best;
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
