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

// Deals the children out to so many parts of equal size (to one): halves of halves, each found by balanced spherical
// 2-means on the profiles, the best of a few starts.
std::vector<std::vector<int32_t>> deal_out(std::span<const LaneProfile> profiles, int32_t parts, Random& random);

// The cosine of two profiles.
double likeness(const LaneProfile& a, const LaneProfile& b);

}  // namespace sapwood
