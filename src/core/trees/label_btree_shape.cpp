// The shape of a label B-tree: how full nodes split, and emptied ones mend.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "trees/label_btree.h"

namespace sapwood {

namespace {

constexpr int kRehearsals = 2;

// Deals lanes of groups out to lanes of others. Only weights that say something are copied: the others, were they kept,
// would spread over the banks.
class Carrier {
 public:
  explicit Carrier(std::span<GrowingGroup* const> to) : to_(to), banks_(to.size()), has_several_(to.size()) {}

  // Where a lane of the next group goes.
  void add(int from, size_t part, int to) {
    wanted_[static_cast<size_t>(from / kBankLanes)] |= static_cast<uint16_t>(1u << (from % kBankLanes));
    moves_[static_cast<size_t>(from)] = {static_cast<uint32_t>(part), to};
  }

  void run(const GrowingGroup& from) {
    from.each_slot([&](const GrowingGroup::Slot& slot) { carry(from, slot); });
    const auto place = [](int lane) { return kOnlineLine * (lane / kBankLanes) + lane % kBankLanes; };
    for (int lane = 0; lane < kGroupBanks * kBankLanes; ++lane) {
      if (!goes(lane)) continue;
      const Move& move = moves_[static_cast<size_t>(lane)];
      for (const int half : {0, kBankLanes}) to_[move.part]->bias()[place(move.to) + half] = from.bias()[place(lane) + half];
    }
    wanted_ = {};
  }

 private:
  struct Move {
    uint32_t part;
    int to;
  };
  struct Weight {
    Move move;
    float weight, square;
  };

  void carry(const GrowingGroup& from, const GrowingGroup::Slot& slot) {
    weights_.clear();
    parts_.clear();
    if (slot.is_lone()) note(slot.lane, slot.lone[0], slot.lone[1]);
    for (unsigned left = slot.is_lone() ? 0 : slot.banks; left; left &= left - 1) {
      const int bank = std::countr_zero(left);
      const float* const line = from.weights(slot, bank);
      for (unsigned lanes = lanes_where(line, says_something); lanes; lanes &= lanes - 1) {
        const int l = std::countr_zero(lanes);
        note(kBankLanes * bank + l, line[l], line[l + GrowingGroup::to_squares(slot)]);
      }
    }
    for (const uint32_t part : parts_) {
      if (has_several_[part]) to_[part]->add(slot.feature, banks_[part]);  // else it may stay alone
      banks_[part] = has_several_[part] = 0;
    }
    for (const auto& [move, weight, square] : weights_) to_[move.part]->put(slot.feature, move.to, weight, square);
  }

  void note(int lane, float weight, float square) {
    if (!goes(lane) || !says_something(weight)) return;
    const Move& move = moves_[static_cast<size_t>(lane)];
    weights_.push_back({move, weight, square});
    if (banks_[move.part]) has_several_[move.part] = true;
    else parts_.push_back(move.part);
    banks_[move.part] |= static_cast<uint16_t>(1u << (move.to / kBankLanes));
  }

  static bool says_something(float weight) { return std::abs(weight) > GrowingGroup::kNegligibleWeight; }
  [[nodiscard]] bool goes(int lane) const { return (wanted_[static_cast<size_t>(lane / kBankLanes)] >> (lane % kBankLanes) & 1) != 0; }

  std::span<GrowingGroup* const> to_;
  std::array<uint16_t, kGroupBanks> wanted_{};           // bit l: lane l of the bank goes somewhere
  std::array<Move, kGroupBanks * kBankLanes> moves_{};
  // Of the feature at hand: its weights, the parts they go to, and by part their banks and whether it gets several.
  std::vector<Weight> weights_;
  std::vector<uint32_t> parts_;
  std::vector<uint16_t> banks_;
  std::vector<uint8_t> has_several_;
};

}  // namespace

int32_t LabelBTree::new_node(bool is_leaf) {
  nodes_.push_back(std::make_unique<Node>(arena_));
  nodes_.back()->is_leaf = is_leaf;
  return static_cast<int32_t>(nodes_.size()) - 1;
}

void LabelBTree::attach(int32_t v, int32_t lane, int32_t child) {
  node(v).children[static_cast<size_t>(lane)] = child;
  if (node(v).is_leaf) {
    places_[static_cast<size_t>(child)] = {v, lane};
  } else {
    node(child).parent = v;
    node(child).lane = lane;
  }
}

// Takes a node out; the last of them gets its number.
void LabelBTree::drop_node(int32_t v) {
  const auto last = static_cast<int32_t>(nodes_.size()) - 1;
  if (v != last) {
    std::swap(nodes_[static_cast<size_t>(v)], nodes_[static_cast<size_t>(last)]);
    if (node(v).parent >= 0) attach(node(v).parent, node(v).lane, v);
    for (int32_t lane = 0; lane < size(v); ++lane) attach(v, lane, node(v).children[static_cast<size_t>(lane)]);
    if (root_ == last) root_ = v;
  }
  nodes_.pop_back();
}

void LabelBTree::count_labels(int32_t v, int64_t change) {
  for (; v >= 0; v = node(v).parent) node(v).n_labels += change;
}

// New nodes of the given children: each old one is walked through but once.
std::vector<std::unique_ptr<LabelBTree::Node>> LabelBTree::gather(std::span<const std::vector<Source>> parts) {
  std::vector<std::unique_ptr<Node>> made;
  std::vector<GrowingGroup*> groups;
  std::map<int32_t, std::vector<std::array<int, 3>>> moves;  // by old node: lane, part, lane there
  for (const auto& sources : parts) {
    made.push_back(std::make_unique<Node>(arena_));
    groups.push_back(&made.back()->group);
    made.back()->is_leaf = node(sources.front().node).is_leaf;
    for (const Source& source : sources) {
      moves[source.node].push_back({source.lane, static_cast<int>(made.size()) - 1, static_cast<int>(made.back()->children.size())});
      made.back()->children.push_back(node(source.node).children[static_cast<size_t>(source.lane)]);
    }
  }
  size_t most_features = 0;
  for (const auto& [v, own] : moves) most_features = std::max(most_features, static_cast<size_t>(node(v).group.n_features()));
  for (GrowingGroup* group : groups) group->reserve(most_features);
  Carrier carrier(groups);
  for (const auto& [v, own] : moves) {
    for (const auto& [lane, part, to] : own) carrier.add(lane, static_cast<size_t>(part), to);
    carrier.run(node(v).group);
  }
  for (GrowingGroup* group : groups) group->fit_index();
  return made;
}

// Puts a new node in the place of v.
void LabelBTree::put(int32_t v, std::unique_ptr<Node> made) {
  made->parent = node(v).parent;
  made->lane = node(v).lane;
  nodes_[static_cast<size_t>(v)] = std::move(made);
  node(v).n_labels = node(v).is_leaf ? size(v) : 0;
  for (int32_t lane = 0; lane < size(v); ++lane) {
    const int32_t child = node(v).children[static_cast<size_t>(lane)];
    attach(v, lane, child);
    if (!node(v).is_leaf) node(v).n_labels += node(child).n_labels;
  }
}

// Nodes dealt out anew have learned as many rows as the old ones, and were regrouped as they were.
void LabelBTree::share_out_rows(std::span<const int32_t> siblings, std::span<const std::unique_ptr<Node>> made) const {
  int64_t n_rows = 0, n_children = 0, regroup_at = std::numeric_limits<int64_t>::max();
  for (const int32_t v : siblings) {
    if (size(v) == 0) continue;  // new
    n_rows += node(v).n_rows;
    n_children += size(v);
    regroup_at = std::min(regroup_at, node(v).regroup_at);
  }
  for (const auto& o : made) {
    o->n_rows = n_rows * static_cast<int64_t>(o->children.size()) / n_children;
    o->regroup_at = regroup_at;
  }
}

// What the nodes know of. The features of one alone are in the order of its index, which is that of every other.
std::vector<uint32_t> LabelBTree::features_of(std::span<const int32_t> siblings) const {
  std::vector<uint32_t> features;
  for (const int32_t v : siblings) {
    const bool is_first = features.empty();
    for (const GrowingGroup::Slot& slot : node(v).group.slots()) {
      if (slot.banks) features.push_back(slot.feature);
    }
    if (!is_first) std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
  }
  return features;
}

// Which of the nodes alone knows each feature.
std::vector<GrowingGroup::Heir> LabelBTree::heirs_of(std::span<const uint32_t> features,
                                                     std::span<const std::unique_ptr<Node>> made) {
  using Heir = GrowingGroup::Heir;
  std::vector<Heir> heirs;
  for (const uint32_t feature : features) {
    Heir heir{feature, Heir::kNone};
    for (size_t p = 0; p < made.size() && heir.number != Heir::kSeveral; ++p) {
      if (!made[p]->group.knows(feature)) continue;
      heir.number = heir.number == Heir::kNone ? static_cast<int>(p) : Heir::kSeveral;
    }
    heirs.push_back(heir);
  }
  return heirs;
}

// Deals the children of siblings out to the first `n_to` of them anew, so that those are together that belong together.
void LabelBTree::deal(std::span<const int32_t> siblings, size_t n_to) {
  std::vector<LaneProfile> profiles;
  std::vector<Source> sources;
  std::vector<int> lanes;       // of the siblings
  std::vector<size_t> sibling;  // by child: whose it was
  for (const int32_t v : siblings) {
    for (LaneProfile& profile : lane_profiles(node(v).group, size(v))) profiles.push_back(std::move(profile));
    for (int32_t lane = 0; lane < size(v); ++lane) sources.push_back({v, lane});
    sibling.resize(sources.size(), lanes.size());
    lanes.push_back(node(v).lane);
  }
  const auto parts = deal_out(profiles, static_cast<int32_t>(n_to), random_);
  std::vector<std::vector<Source>> chosen(n_to);
  std::vector<float> shares(lanes.size() * lanes.size());
  for (size_t p = 0; p < n_to; ++p) {
    for (const int32_t i : parts[p]) {
      chosen[p].push_back(sources[static_cast<size_t>(i)]);
      shares[p * lanes.size() + sibling[static_cast<size_t>(i)]] += 1.0f / static_cast<float>(parts[p].size());
    }
  }
  std::vector<std::unique_ptr<Node>> made = gather(chosen);
  const std::vector<GrowingGroup::Heir> heirs = heirs_of(features_of(siblings), made);
  share_out_rows(siblings, made);
  for (size_t p = 0; p < n_to; ++p) put(siblings[p], std::move(made[p]));
  const int32_t parent = node(siblings[0]).parent;
  node(parent).group.mix_lanes(lanes, shares, heirs);
  for (size_t p = n_to; p < lanes.size(); ++p) node(parent).group.reset_lane(lanes[p]);
  rehearse(parent, profiles, parts, lanes);
}

// The parent learns where children hang now, from what speaks for each: no row needs to be kept.
void LabelBTree::rehearse(int32_t parent, std::span<const LaneProfile> profiles,
                          std::span<const std::vector<int32_t>> parts, std::span<const int> lanes) {
  for (int round = 0; round < kRehearsals; ++round) {
    for (size_t k = 0; k <= profiles.size(); ++k) {  // the first of each part, the second of each, ...
      for (size_t p = 0; p < parts.size(); ++p) {
        if (k < parts[p].size()) rehearse(parent, profiles[static_cast<size_t>(parts[p][k])], lanes[p]);
      }
    }
  }
}

// One step of the parent on the profile of a child below one of its lanes.
void LabelBTree::rehearse(int32_t parent, const LaneProfile& profile, int lane) {
  if (profile.features.empty()) return;
  std::array<uint16_t, kGroupBanks> positive{};
  positive[static_cast<size_t>(lane / kBankLanes)] = static_cast<uint16_t>(1u << (lane % kBankLanes));
  const Row<uint32_t> row{profile.features.data(), profile.weights.data(), static_cast<int64_t>(profile.features.size())};
  learn_node(node(parent), row, 1.0f, positive.data(), 1.0f);
}

void LabelBTree::split(int32_t v) {
  if (v == root_) {
    root_ = new_node(false);
    node(root_).n_labels = node(v).n_labels;
    node(root_).children.resize(1);
    attach(root_, 0, v);
  }
  if (size(node(v).parent) == options_.arity) split(node(v).parent);
  const int32_t parent = node(v).parent, lane = size(parent), w = new_node(node(v).is_leaf);
  node(parent).children.push_back(w);
  attach(parent, lane, w);
  deal(std::array{v, w}, 2);
}

// Deals the labels below a node out to its leaves anew: what was placed by its first row may be better off elsewhere.
void LabelBTree::regroup(int32_t v) {
  const std::vector<int32_t> leaves = node(v).children;
  deal(leaves, leaves.size());
}

// Takes a child out; the last child gets its lane.
void LabelBTree::remove_lane(int32_t v, int32_t lane) {
  const int32_t last = size(v) - 1;
  if (lane != last) {
    node(v).group.move_lane(last, lane);
    attach(v, lane, node(v).children.back());
  } else {
    node(v).group.reset_lane(last);
  }
  node(v).children.pop_back();
}

void LabelBTree::remove(int32_t label) {
  const Place place = places_[static_cast<size_t>(label)];
  if (place.node < 0) return;
  remove_lane(place.node, place.lane);
  places_[static_cast<size_t>(label)] = {};
  counts_[static_cast<size_t>(label)] = 0;
  count_labels(place.node, -1);
  mend(place.node);
}

// Restores that a node is at least half full.
void LabelBTree::mend(int32_t v) {
  if (v == root_) {
    if (node(v).is_leaf || size(v) > 1) return;
    root_ = node(v).children.front();
    node(root_).parent = node(root_).lane = -1;
    node(v).children.clear();
    return drop_node(v);
  }
  if (2 * size(v) >= most(v)) return;
  const int32_t w = nearest_sibling(v);
  if (size(v) + size(w) > most(v)) return deal(std::array{v, w}, 2);
  join(v, w);
}

// Moves the children of w to its sibling v.
void LabelBTree::join(int32_t v, int32_t w) {
  const int32_t parent = node(v).parent;
  deal(std::array{v, w}, 1);
  remove_lane(parent, node(w).lane);
  node(w).children.clear();
  node(w).parent = -1;
  const auto last = static_cast<int32_t>(nodes_.size()) - 1;
  drop_node(w);
  mend(parent == last ? w : parent);
}

// The sibling whose regressor looks for the same features.
int32_t LabelBTree::nearest_sibling(int32_t v) const {
  const Node& parent = node(node(v).parent);
  const std::vector<LaneProfile> profiles = lane_profiles(parent.group, static_cast<int>(parent.children.size()));
  const LaneProfile& own = profiles[static_cast<size_t>(node(v).lane)];
  int32_t nearest = -1;
  double best = -1;
  for (size_t lane = 0; lane < profiles.size(); ++lane) {
    if (static_cast<int32_t>(lane) == node(v).lane) continue;
    const double now = likeness(own, profiles[lane]);
    if (!(now > best)) continue;
    best = now;
    nearest = parent.children[lane];
  }
  return nearest;
}

}  // namespace sapwood
