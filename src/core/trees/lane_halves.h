// Halves of the children of a node, so that those stay together whose regressors look for the same features.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regressors/growing_group.h"
#include "solvers/random.h"

namespace sapwood {

// What speaks for a child: the positive weights of its lane, the largest of them, of unit length, by feature ascending.
struct LaneProfile {
  std::vector<uint32_t> features;
  std::vector<float> weights;
};

std::vector<LaneProfile> lane_profiles(const GrowingGroup& group, int n_lanes);

// The order in which the first half of the children, and then the second, stand (n / 2 are the first half): balanced
// spherical 2-means on their profiles, the best of a few starts.
std::vector<int32_t> halve(std::span<const LaneProfile> profiles, Random& random);

// The cosine of two profiles.
double likeness(const LaneProfile& a, const LaneProfile& b);

}  // namespace sapwood
