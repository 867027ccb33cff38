#include "trees/label_tree.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "aligned.h"
#include "solvers/random.h"

namespace sapwood {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What a thread needs to train banks, kept from one bank to the next.
struct Workspace {
  WorkBuffer<float> weights, per_row, per_feature;
  std::vector<float> norm;
  std::vector<int32_t> order;
  std::vector<uint16_t> positive;
  std::vector<int32_t> place;     // by row of X: its place among a node's rows, or -1
  std::vector<int32_t> local_of;  // by column of X: its place among a node's features, or -1
};

// A node's own copy of its rows, scaled, with only the features that occur in them, numbered anew: what the solver
// visits again and again then lies close together.
struct NodeRows {
  std::vector<int32_t> rows;      // their numbers in X, ascending
  std::vector<int32_t> features;  // their numbers in X
  std::vector<int32_t> indptr{0};
  std::vector<int32_t> indices;
  std::vector<float> values;

  [[nodiscard]] CsrRows<int32_t> view() const {
    return {indptr.data(), indices.data(), values.data(), static_cast<int64_t>(rows.size()), static_cast<int64_t>(features.size())};
  }
};

template <class Rows>
class ForestTrainer {
 public:
  ForestTrainer(const Rows& X, const LabelRows& label_rows, const std::vector<TreeShape>& shapes,
                const Importance& importance, const TrainOptions& options, Monitor& monitor)
      : X_(X), label_rows_(label_rows), shapes_(shapes), importance_(importance), options_(options), monitor_(monitor),
        work_(static_cast<size_t>(options.n_threads)) {}

  ForestArrays train() {
    make_tasks();
    parallel_for(static_cast<int64_t>(tasks_.size()), options_.n_threads, monitor_, [&](int64_t i, int thread) {
      const Task& task = tasks_[static_cast<size_t>(i)];
      Workspace& work = work_[static_cast<size_t>(thread)];
      if (task.node == 0) {
        train_on_all_rows(task, work);
      } else {
        train_on_own_rows(task, work);
      }
      pack_what_is_complete(task);
      monitor_.done += task.cost;
    });
    work_.clear();
    return join();
  }

 private:
  // Banks [begin, end) of a node.
  struct Task {
    size_t tree, node;
    int64_t begin, end;
    int64_t cost;
  };

  // What becomes of a node: its rows, gathered by the first of its tasks and let go by the last; its banks as they are
  // trained, then its groups. A group is packed, and its banks let go, by the task that completes it.
  struct Progress {
    std::once_flag gathered;
    std::unique_ptr<const NodeRows> rows;
    std::atomic<int64_t> banks_left;
    std::vector<BankLines> banks;
    std::vector<std::atomic<int64_t>> left;  // by group: banks still to train
    std::vector<PackedGroup> groups;

    explicit Progress(int64_t n_banks)
        : banks_left(n_banks), banks(static_cast<size_t>(n_banks)), left(static_cast<size_t>(ceil_div(n_banks, kGroupBanks))),
          groups(left.size()) {
      for (size_t g = 0; g < left.size(); ++g) left[g] = static_cast<int64_t>(group(g).size());
    }
    std::span<BankLines> group(size_t g) {
      return std::span(banks).subspan(g * kGroupBanks, std::min<size_t>(kGroupBanks, banks.size() - g * kGroupBanks));
    }
  };

  // What takes longest starts first. A node that would keep one thread busy while the others wait is shared among several: what
  // a bank learns does not depend on who trains it. As many nodes as there are threads are begun side by side, each by
  // one thread that gathers its rows, before their other parts follow: so no thread waits for rows, and few nodes' rows
  // are held at a time.
  void make_tasks() {
    std::vector<Task> whole;
    int64_t total = 0;
    for (size_t t = 0; t < shapes_.size(); ++t) {
      const auto& nodes = shapes_[t].nodes;
      progress_.emplace_back();
      for (size_t v = 0; v < nodes.size(); ++v) {
        const int64_t n_banks = ceil_div(static_cast<int64_t>(nodes[v].children.size()), kBankLanes);
        const int64_t n_rows = v == 0 ? X_.n_rows : examples_below(shapes_[t], nodes[v]);
        whole.push_back({t, v, 0, n_banks, n_banks * n_rows});
        progress_[t].emplace_back(n_banks);
        total += whole.back().cost;
      }
    }
    const int64_t most = options_.n_threads > 1 ? total / (16 * options_.n_threads) + 1 : total + 1;
    const auto parts_of = [&](const Task& node) {
      return std::clamp<int64_t>(ceil_div(node.cost, most), 1, std::max<int64_t>(node.end, 1));
    };
    std::stable_sort(whole.begin(), whole.end(), [&](const Task& a, const Task& b) { return a.cost / parts_of(a) > b.cost / parts_of(b); });
    const auto together = static_cast<size_t>(options_.n_threads);
    for (size_t first = 0; first < whole.size(); first += together) {
      const std::span<const Task> begun = std::span(whole).subspan(first, std::min(together, whole.size() - first));
      int64_t most_parts = 0;
      for (const Task& node : begun) most_parts = std::max(most_parts, parts_of(node));
      for (int64_t part = 0; part < most_parts; ++part) {
        for (const Task& node : begun) add_part(node, part, parts_of(node));
      }
    }
    monitor_.total = total;
  }

  void add_part(const Task& node, int64_t part, int64_t parts) {
    if (part >= parts) return;
    const auto share = [&](int64_t whole) { return std::pair(whole * part / parts, whole * (part + 1) / parts); };
    const auto [begin, end] = share(node.end);
    const auto [cost_before, cost_after] = share(node.cost);  // the costs of the parts add up to the node's
    tasks_.push_back({node.tree, node.node, begin, end, cost_after - cost_before});
  }

  int64_t examples_below(const TreeShape& shape, const ShapeNode& node) const {
    int64_t n = 0;
    for (int64_t i = node.begin; i < node.end; ++i) n += label_rows_.count(shape.order[static_cast<size_t>(i)]);
    return n;
  }

  // Calls visit(row) for every row of every label below a child.
  template <class Visit>
  void for_each_row(const TreeShape& shape, int32_t child, Visit visit) const {
    const auto of_label = [&](int32_t label) {
      for (int64_t k = label_rows_.indptr[static_cast<size_t>(label)]; k < label_rows_.indptr[static_cast<size_t>(label) + 1]; ++k) {
        visit(label_rows_.rows[static_cast<size_t>(k)]);
      }
    };
    if (child < 0) return of_label(~child);
    const ShapeNode& node = shape.nodes[static_cast<size_t>(child)];
    for (int64_t i = node.begin; i < node.end; ++i) of_label(shape.order[static_cast<size_t>(i)]);
  }

  // Trains the bank of children [first, first + 16) on rows whose place in the problem is place(row).
  template <class Problem, class Place>
  BankLines train_bank(const Problem& rows, const Task& task, int64_t bank, std::span<const int32_t> features,
                       const BankProblem& base, Place place, Workspace& work) {
    const TreeShape& shape = shapes_[task.tree];
    const auto& children = shape.nodes[task.node].children;
    const auto first = static_cast<size_t>(bank) * kBankLanes;
    const size_t n_lanes = std::min<size_t>(kBankLanes, children.size() - first);
    BankProblem p = base;
    p.lanes = static_cast<uint16_t>((1u << n_lanes) - 1);
    work.positive.assign(static_cast<size_t>(p.n), 0);
    std::array<float, kBankLanes> lane_weight{};
    lane_weight.fill(1.0f);
    for (size_t l = 0; l < n_lanes; ++l) {
      const int32_t child = children[first + l];
      if (child == kNoTarget) {
        p.lanes &= static_cast<uint16_t>(~(1u << l));
        continue;
      }
      for_each_row(shape, child, [&](int32_t row) { work.positive[static_cast<size_t>(place(row))] |= static_cast<uint16_t>(1u << l); });
      if (importance_.label_weight) lane_weight[l] = mean_label_weight(shape, child);
    }
    if (importance_.label_weight) p.lane_weight = lane_weight.data();
    p.positive = work.positive.data();
    p.seed = Random(options_.seed + (static_cast<uint64_t>(task.tree) << 48) + (static_cast<uint64_t>(task.node) << 16) +
                    static_cast<uint64_t>(bank)).next();

    const auto lines = static_cast<size_t>(p.n_features + 1);
    const auto n = static_cast<size_t>(p.n);
    work.norm.resize(n);
    work.order.resize(n);
    const bool dual = options_.solver == Solver::dual;
    const BankWork memory{work.weights.ensure(lines * kBankLanes), dual ? work.per_row.ensure(n * kBankLanes) : nullptr,
                          dual ? nullptr : work.per_feature.ensure(lines * kBankLanes), work.norm.data(), work.order.data()};
    if (dual) {
      kernels().dual(rows, p, memory);
    } else {
      kernels().adagrad(rows, p, memory);
    }
    return pack_bank(memory.weights, p.n_features, features, p.lanes, options_.prune, options_.half);
  }

  float mean_label_weight(const TreeShape& shape, int32_t child) const {
    if (child < 0) return importance_.label_weight[~child];
    double sum = 0, count = 0;
    const ShapeNode& node = shape.nodes[static_cast<size_t>(child)];
    for (int64_t i = node.begin; i < node.end; ++i) {
      const int32_t label = shape.order[static_cast<size_t>(i)];
      const auto rows = static_cast<double>(label_rows_.count(label));
      sum += rows * importance_.label_weight[label];
      count += rows;
    }
    return static_cast<float>(sum / std::max(count, 1.0));
  }

  BankProblem problem() const {
    BankProblem p{};
    p.stop = &monitor_.stop;
    p.loss = options_.loss;
    p.passes = options_.passes;
    p.C = options_.C;
    p.tolerance = options_.tolerance;
    p.step = options_.step;
    return p;
  }

  // The root's banks see all rows, as they are.
  void train_on_all_rows(const Task& task, Workspace& work) {
    BankProblem p = problem();
    p.n = X_.n_rows;
    p.n_features = X_.n_columns;
    p.row_scale = importance_.row_scale;
    p.row_weight = importance_.row_weight;
    for (int64_t b = task.begin; b < task.end && !monitor_.stopped(); ++b) {
      progress(task).banks[static_cast<size_t>(b)] = train_bank(X_, task, b, {}, p, [](int32_t row) { return row; }, work);
    }
  }

  // Any other node's banks see the rows below it, gathered and copied once for all of them.
  void train_on_own_rows(const Task& task, Workspace& work) {
    Progress& node = progress(task);
    std::call_once(node.gathered, [&] { node.rows = std::make_unique<const NodeRows>(gather(task, work)); });
    const NodeRows& own = *node.rows;
    if (work.place.empty()) work.place.assign(static_cast<size_t>(X_.n_rows), -1);
    for (size_t i = 0; i < own.rows.size(); ++i) work.place[static_cast<size_t>(own.rows[i])] = static_cast<int32_t>(i);
    const CsrRows<int32_t> local = own.view();
    BankProblem p = problem();
    p.n = local.n_rows;
    p.n_features = local.n_columns;
    std::vector<float> weights;
    if (importance_.row_weight) {
      for (const int32_t row : own.rows) weights.push_back(importance_.row_weight[row]);
      p.row_weight = weights.data();
    }
    const auto place = [&](int32_t row) { return work.place[static_cast<size_t>(row)]; };
    for (int64_t b = task.begin; b < task.end && !monitor_.stopped(); ++b) {
      node.banks[static_cast<size_t>(b)] = train_bank(local, task, b, own.features, p, place, work);
    }
    for (const int32_t row : own.rows) work.place[static_cast<size_t>(row)] = -1;
    if ((node.banks_left -= task.end - task.begin) == 0) node.rows.reset();
  }

  void pack_what_is_complete(const Task& task) {
    if (monitor_.stopped()) return;
    Progress& node = progress(task);
    for (int64_t b = task.begin; b < task.end; ++b) {
      const auto g = static_cast<size_t>(b / kGroupBanks);
      if (--node.left[g] > 0) continue;
      node.groups[g] = pack_group(node.group(g), options_.half);
      for (BankLines& bank : node.group(g)) bank = {};
    }
  }

  Progress& progress(const Task& task) { return progress_[task.tree][task.node]; }

  // The rows that have a label below the node.
  NodeRows gather(const Task& task, Workspace& work) const {
    const TreeShape& shape = shapes_[task.tree];
    if (work.place.empty()) work.place.assign(static_cast<size_t>(X_.n_rows), -1);
    NodeRows own;
    for (const int32_t child : shape.nodes[task.node].children) {
      if (child == kNoTarget) continue;
      for_each_row(shape, child, [&](int32_t row) {
        int32_t& place = work.place[static_cast<size_t>(row)];
        if (place < 0) own.rows.push_back(row);
        place = 0;
      });
    }
    std::sort(own.rows.begin(), own.rows.end());
    copy_rows(own, work);
    return own;
  }

  void copy_rows(NodeRows& own, Workspace& work) const {
    if (work.local_of.empty()) work.local_of.assign(static_cast<size_t>(X_.n_columns), -1);
    size_t entries = 0;
    for (const int32_t number : own.rows) entries += static_cast<size_t>(X_.row(number).count);
    if (entries > INT32_MAX) throw std::length_error("a node below the root has more than 2^31 - 1 entries of X: raise arity");
    own.indices.reserve(entries);
    own.values.reserve(entries);
    for (const int32_t number : own.rows) {
      const auto row = X_.row(number);
      const float scale = importance_.row_scale ? importance_.row_scale[number] : 1.0f;
      for (int64_t k = 0; k < row.count; ++k) {
        if (row.value[k] == 0.0f) continue;
        int32_t& local = work.local_of[static_cast<size_t>(row.index[k])];
        if (local < 0) {
          local = static_cast<int32_t>(own.features.size());
          own.features.push_back(static_cast<int32_t>(row.index[k]));
        }
        own.indices.push_back(local);
        own.values.push_back(scale * row.value[k]);
      }
      own.indptr.push_back(static_cast<int32_t>(own.indices.size()));
    }
    for (const int32_t f : own.features) work.local_of[static_cast<size_t>(f)] = -1;
  }

  ForestArrays join() {
    ForestArrays out;
    for (const auto& tree : progress_) {
      for (const Progress& node : tree) out.expect(node.groups);
    }
    out.reserve();
    for (size_t t = 0; t < shapes_.size(); ++t) {
      const auto& nodes = shapes_[t].nodes;
      const auto root = static_cast<int32_t>(out.node_labels.size());
      out.roots.push_back(root);
      for (size_t v = 0; v < nodes.size(); ++v) {
        std::vector<int32_t> children = nodes[v].children;
        for (int32_t& child : children) child += child >= 0 ? root : 0;
        out.add_node(progress_[t][v].groups, children, static_cast<int32_t>(nodes[v].end - nodes[v].begin));
        progress_[t][v].groups = {};
      }
    }
    out.finish();
    return out;
  }

  const Rows& X_;
  const LabelRows& label_rows_;
  const std::vector<TreeShape>& shapes_;
  const Importance& importance_;
  const TrainOptions& options_;
  Monitor& monitor_;
  std::vector<Workspace> work_;
  std::vector<Task> tasks_;
  std::vector<std::deque<Progress>> progress_;  // by tree, node
};

}  // namespace

template <class Rows>
ForestArrays train_forest(const Rows& X, const LabelRows& label_rows, const std::vector<TreeShape>& shapes,
                          const Importance& importance, const TrainOptions& options, Monitor& monitor) {
  return ForestTrainer<Rows>(X, label_rows, shapes, importance, options, monitor).train();
}

template ForestArrays train_forest(const CsrRows<int32_t>&, const LabelRows&, const std::vector<TreeShape>&, const Importance&, const TrainOptions&, Monitor&);
template ForestArrays train_forest(const CsrRows<int64_t>&, const LabelRows&, const std::vector<TreeShape>&, const Importance&, const TrainOptions&, Monitor&);
template ForestArrays train_forest(const DenseRows&, const LabelRows&, const std::vector<TreeShape>&, const Importance&, const TrainOptions&, Monitor&);

}  // namespace sapwood
