// A B-tree of banks: a label tree that learns from a stream, with labels that nobody announced.
//
// A node has up to `arity` children, a leaf up to `max_leaf` labels, and a regressor (a lane) for each. Every node but the
// root is at least half full and all leaves have the same depth, whatever the stream.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "regressors/growing_group.h"
#include "solvers/random.h"
#include "threads/parallel.h"
#include "trees/lane_halves.h"
#include "trees/progressive.h"
#include "trees/row_queue.h"

namespace sapwood {

class LabelBTree {
 public:
  static constexpr int32_t kMostLanes = kGroupBanks * kBankLanes;
  static constexpr int64_t kFirstRegroup = 3;

  struct Options {
    int32_t arity;     // most children of an inner node: even, 4 to kMostLanes
    int32_t max_leaf;  // most labels of a leaf: likewise
    float step;
    bool normalize;
    float decay;         // share of the squared gradients forgotten when a line is learned
    int64_t max_memory;  // bytes, or 0: as much as it takes
    int64_t second_look;  // rows after which a mistaken row of a young label is learned once more, or 0: never
  };
  struct Search {
    int32_t beam;
    float min_log_share;  // nodes whose log score is below the best's by more than this are dropped
  };
  struct Node {
    int32_t parent = -1, lane = -1;  // where it hangs
    bool is_leaf = true;
    int64_t n_labels = 0;           // below it
    int64_t n_rows = 0;             // learned; of those of nodes dealt out anew, its share
    int64_t regroup_at = kFirstRegroup;  // rows a label
    std::vector<int32_t> children;  // by lane: nodes, or labels of a leaf
    GrowingGroup group;

    explicit Node(LineArena& arena) : group(arena) {}
  };
  struct Place {
    int32_t node = -1, lane = -1;
  };
  struct PathStep {
    int32_t node, n_children, rank;
    float score;
    int64_t n_labels;
  };

  LabelBTree(const Options& options, uint64_t seed);

  // Learns the rows in order. With `predict_first` each row is predicted before it is learned: see progressive().
  template <class Rows>
  void learn(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int32_t n_labels, const float* row_weight,
             bool predict_first, const Search& search, Monitor& monitor);

  // labels, scores: rows x top, best first; -1 and 0 where fewer labels were met.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, const Search& search, int n_threads, int32_t* labels, float* scores,
                   Monitor& monitor) const;

  // From the root to a label, what the regressors say of one row.
  template <class Rows>
  [[nodiscard]] std::vector<PathStep> path(const Rows& X, int64_t row, int32_t label) const;

  // Withdraws a label; nodes that are less than half full afterwards take from a sibling or merge with it.
  void remove(int32_t label);

  // What the state of a model is, beside its nodes: for files.
  struct Figures {
    Progressive progressive;
    int64_t rows = 0, row_labels = 0;  // learned: for the step size
    int64_t dropped_lines = 0;
    uint64_t random_state = 0;
  };
  [[nodiscard]] Figures figures() const;
  // Where the lines of nodes must lie that are to be taken back.
  [[nodiscard]] LineArena& arena() { return arena_; }
  // Rows that wait for their second look.
  [[nodiscard]] RowQueue::Arrays waiting() const { return waiting_.arrays(); }
  // Takes back nodes, figures and rows; false if they are no B-tree of labels below n_labels.
  [[nodiscard]] bool restore(std::vector<std::unique_ptr<Node>> nodes, int32_t root, std::vector<int64_t> counts,
                             const Figures& figures, RowQueue::Arrays waiting);

  [[nodiscard]] int32_t root() const { return root_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] const std::vector<int64_t>& counts() const { return counts_; }
  [[nodiscard]] int64_t n_placed() const { return node(root_).n_labels; }
  [[nodiscard]] int64_t memory() const;
  [[nodiscard]] double labels_a_row() const;  // mean of those learned, 1 at least
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  struct Source {  // a child to be moved
    int32_t node, lane;
  };
  // One node on the way of an example, and which of its lanes are right.
  struct Visit {
    int32_t node;
    std::array<uint16_t, kGroupBanks> positive;
  };

  [[nodiscard]] Node& node(int32_t v) { return *nodes_[static_cast<size_t>(v)]; }
  [[nodiscard]] const Node& node(int32_t v) const { return *nodes_[static_cast<size_t>(v)]; }
  [[nodiscard]] int32_t size(int32_t v) const { return static_cast<int32_t>(node(v).children.size()); }
  [[nodiscard]] int32_t most(int32_t v) const { return node(v).is_leaf ? options_.max_leaf : options_.arity; }

  // learning (label_btree.cpp)
  template <class Rows>
  void fetch(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int64_t i, bool lines) const;
  template <class Index>
  void learn_row(Row<Index> row, std::span<const int32_t> labels, float weight);
  template <class Index>
  void learn_node(Node& o, Row<Index> row, float scale, const uint16_t* positive, float weight);
  template <class Index>
  bool learn_ways(Row<Index> row, float scale, float weight, bool asks);
  template <class Index>
  void learn_astray(Row<Index> row, float scale, float weight);
  [[nodiscard]] bool any_young(std::span<const int32_t> labels) const;
  [[nodiscard]] int32_t mistake(const Visit& visit) const;
  void look_again();
  void regroup_where_due();
  void collect_visits(std::span<const int32_t> labels);
  template <class Index>
  void insert(int32_t label, Row<Index> row, float scale);
  template <class Index>
  [[nodiscard]] int32_t route(Row<Index> row, float scale);
  [[nodiscard]] float step(const Node& o) const;
  void trim();

  // shape (label_btree_shape.cpp)
  int32_t new_node(bool is_leaf);
  void drop_node(int32_t v);
  void attach(int32_t v, int32_t lane, int32_t child);
  void count_labels(int32_t v, int64_t change);
  void split(int32_t v);
  void regroup(int32_t v);
  void deal(std::span<const int32_t> siblings, size_t n_to);
  void join(int32_t v, int32_t w);
  void mend(int32_t v);
  void remove_lane(int32_t v, int32_t lane);
  void rehearse(int32_t parent, std::span<const LaneProfile> profiles, std::span<const std::vector<int32_t>> parts,
                std::span<const int> lanes);
  void rehearse(int32_t parent, const LaneProfile& profile, int lane);
  [[nodiscard]] int32_t nearest_sibling(int32_t v) const;
  std::vector<std::unique_ptr<Node>> gather(std::span<const std::vector<Source>> parts);
  [[nodiscard]] std::vector<uint32_t> features_of(std::span<const int32_t> siblings) const;
  static std::vector<GrowingGroup::Heir> heirs_of(std::span<const uint32_t> features,
                                                  std::span<const std::unique_ptr<Node>> made);
  void share_out_rows(std::span<const int32_t> siblings, std::span<const std::unique_ptr<Node>> made) const;
  void put(int32_t v, std::unique_ptr<Node> made);

  Options options_;
  Random random_;
  Figures figures_;
  LineArena arena_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int32_t root_ = 0;
  std::vector<Place> places_;    // by label
  std::vector<int64_t> counts_;  // by label: rows learned
  RowQueue waiting_;
  // for the row at hand
  std::vector<GroupLines> found_;
  std::vector<Visit> visits_;
  std::vector<int32_t> placed_, astray_;
  CacheLineVector<float> scores_, gradients_;
};

}  // namespace sapwood
