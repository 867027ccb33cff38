#include "budgeted/tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

namespace sapwood {

namespace {

struct Range {
  size_t begin = 0, end = 0;
  [[nodiscard]] size_t size() const { return end - begin; }
};

// A node to learn: the rows that the vote sent here; and held-out rows, each sent by the classifiers of its own fold.
struct Task {
  int32_t node;
  Range rows, held_out;
};

struct Side {
  std::vector<LabelShare> labels;
  double examples = 0.0;
  int32_t answer = -1;  // the heaviest label; of several, one that the node meant to send to this side
};

struct Split {
  bool happened = false;
  size_t rows_middle = 0, held_out_middle = 0;  // where those of the right child begin
  std::array<Side, 2> sides;
};

// What a thread works with.
struct Worker {
  BacWorkspace bac;
  std::vector<double> mass;  // by label; all zero between uses
  std::vector<int32_t> touched;
  std::vector<double> scores;  // folds
  std::vector<int32_t> to_right;
};

template <class Rows>
class Grower {
 public:
  Grower(const Rows& X, const TreeProblem& problem, const TreeOptions& options, Monitor& monitor)
      : X_(X), problem_(problem), options_(options), monitor_(monitor),
        n_folds_(options.prune ? options.n_folds : 1),
        workers_(static_cast<size_t>(options.max_features > 0 ? 1 : options.n_threads)) {
    for (Worker& worker : workers_) {
      worker.mass.resize(static_cast<size_t>(problem.labels.n_labels));
      worker.scores.resize(static_cast<size_t>(n_folds_));
    }
  }

  BudgetedTree grow() {
    std::vector<Task> level = start();
    while (!level.empty()) {
      std::vector<Split> splits(level.size());
      parallel_for(static_cast<int64_t>(level.size()), static_cast<int>(workers_.size()), monitor_, [&](int64_t task, int thread) {
        const auto t = static_cast<size_t>(task);
        splits[t] = learn(level[t], workers_[static_cast<size_t>(thread)]);
      });
      level = add_children(level, splits);
    }
    return std::move(tree_);
  }

 private:
  std::vector<Task> start() {
    for (int64_t i = 0; i < problem_.labels.n_rows; ++i) {
      if (problem_.labels.indptr[i] < problem_.labels.indptr[i + 1] && weight(static_cast<int32_t>(i)) > 0) {
        rows_.push_back(static_cast<int32_t>(i));
      }
    }
    if (options_.prune) held_out_ = rows_;
    signs_.resize(rows_.size());
    monitor_.total = static_cast<int64_t>(rows_.size());
    const Range all{0, rows_.size()};
    Side root = side(all, [](int32_t) { return false; }, workers_[0]);
    tree_.nodes.emplace_back();
    tree_.nodes[0].labels = std::move(root.labels);
    tree_.nodes[0].examples = root.examples;
    return {{0, all, {0, held_out_.size()}}};
  }

  // Learns the classifier of a node and parts its rows, or leaves the node a leaf.
  Split learn(const Task& task, Worker& worker) {
    TreeNode& node = tree_.nodes[static_cast<size_t>(task.node)];
    node.own_error = errors(task.held_out, node.labels[0].label);
    Split split;
    if (node.labels.size() > 1 && node.depth != options_.max_depth) {
      const LabelCut cut = cut_of(node);
      const auto beyond_cut = [&](int32_t label) { return problem_.order.rank[static_cast<size_t>(label)] >= cut.place; };
      if (find_signs(task.rows, beyond_cut, cut.second_is_lighter)) {
        split = split_at(task, beyond_cut, worker);
      } else {  // rows of several labels may all lie across the cut
        const int32_t telling = telling_label(node);
        const auto is_telling = [&](int32_t label) { return label == telling; };
        if (telling >= 0 && find_carriers(task.rows, telling)) split = split_at(task, is_telling, worker);
      }
    }
    if (!split.happened) monitor_.done += static_cast<int64_t>(task.rows.size());
    return split;
  }

  // `means_left` tells which labels the signs send left.
  template <class MeansLeft>
  Split split_at(const Task& task, MeansLeft means_left, Worker& worker) {
    TreeNode& node = tree_.nodes[static_cast<size_t>(task.node)];
    BacProblem bac{of(rows_, task.rows), {signs_.data() + task.rows.begin, task.rows.size()}};
    bac.row_scale = problem_.row_scale;
    bac.row_weight = problem_.row_weight;
    bac.n_folds = n_folds_;
    if (options_.prune) bac.fold = problem_.fold;
    if (!may_take_new_columns()) bac.among = used_;
    BacSolution found = train_bac(X_, bac, options_.bac, worker.bac, monitor_);
    note_columns(found);

    Split split;
    split.rows_middle = part(rows_, task.rows, worker, [&](int32_t row) {
      score(found, row, worker);
      return bac_vote(worker.scores);
    });
    // "Cannot be further split by the induced classifier."
    if (split.rows_middle == task.rows.begin || split.rows_middle == task.rows.end) return split;
    split.happened = true;
    split.held_out_middle = part(held_out_, task.held_out, worker, [&](int32_t row) {
      score(found, row, worker);
      return worker.scores[problem_.fold[row]] > 0;
    });
    split.sides[0] = side({task.rows.begin, split.rows_middle}, means_left, worker);
    split.sides[1] = side({split.rows_middle, task.rows.end}, std::not_fn(means_left), worker);
    node.own_error = errors({task.held_out.begin, split.held_out_middle}, split.sides[0].answer) +
                     errors({split.held_out_middle, task.held_out.end}, split.sides[1].answer);
    node.bac = std::move(found);
    return split;
  }

  std::vector<Task> add_children(const std::vector<Task>& level, std::vector<Split>& splits) {
    std::vector<Task> next;
    for (size_t t = 0; t < level.size(); ++t) {
      Split& split = splits[t];
      if (!split.happened) continue;
      const Task& task = level[t];
      next.push_back({add_child(task.node, split.sides[0]), {task.rows.begin, split.rows_middle}, {task.held_out.begin, split.held_out_middle}});
      next.push_back({add_child(task.node, split.sides[1]), {split.rows_middle, task.rows.end}, {split.held_out_middle, task.held_out.end}});
      TreeNode& node = tree_.nodes[static_cast<size_t>(task.node)];
      node.left = next[next.size() - 2].node;
      node.right = next.back().node;
    }
    return next;
  }

  int32_t add_child(int32_t parent, Side& side) {
    TreeNode child;
    child.parent = parent;
    child.depth = tree_.nodes[static_cast<size_t>(parent)].depth + 1;
    child.labels = std::move(side.labels);
    child.examples = side.examples;
    child.pruned_answer = side.answer;
    tree_.nodes.push_back(std::move(child));
    return static_cast<int32_t>(tree_.nodes.size()) - 1;
  }

  [[nodiscard]] LabelCut cut_of(const TreeNode& node) const {
    std::vector<RankedMass> ranked;
    for (const LabelShare& share : node.labels) {
      ranked.push_back({problem_.order.rank[static_cast<size_t>(share.label)], share.mass});
    }
    std::sort(ranked.begin(), ranked.end(), [](const RankedMass& a, const RankedMass& b) { return a.rank < b.rank; });
    return find_cut(problem_.order, ranked);
  }

  // A row is positive when most of its labels stand beyond the cut. Returns whether there are both signs.
  template <class BeyondCut>
  bool find_signs(Range range, BeyondCut beyond_cut, bool tie_is_positive) {
    return set_signs(range, [&](int32_t row) {
      int64_t balance = 0;
      for (const int32_t label : labels_of(row)) balance += beyond_cut(label) ? 1 : -1;
      return balance > 0 || (balance == 0 && tie_is_positive);
    });
  }

  // A row is positive when it has the label. Returns whether there are both signs.
  bool find_carriers(Range range, int32_t label) {
    return set_signs(range, [&](int32_t row) {
      const auto labels = labels_of(row);
      return std::find(labels.begin(), labels.end(), label) != labels.end();
    });
  }

  template <class IsPositive>
  bool set_signs(Range range, IsPositive is_positive) {
    size_t n_positive = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      const bool positive = is_positive(rows_[i]);
      signs_[i] = positive ? 1 : -1;
      n_positive += positive;
    }
    return n_positive > 0 && n_positive < range.size();
  }

  // The label that parts the rows most evenly into those that have it and those that have not; -1 if all have all.
  [[nodiscard]] static int32_t telling_label(const TreeNode& node) {
    int32_t best = -1;
    double least = 0.5 * node.examples;
    for (const LabelShare& share : node.labels) {
      const double off = std::abs(share.mass - 0.5 * node.examples);
      if (off < least) least = off, best = share.label;
    }
    return best;
  }

  // Puts the rows that go left first, both in their order, and returns where the others begin.
  template <class GoesLeft>
  size_t part(std::vector<int32_t>& rows, Range range, Worker& worker, GoesLeft goes_left) {
    worker.to_right.clear();
    size_t left = range.begin;
    for (size_t i = range.begin; i < range.end; ++i) {
      const int32_t row = rows[i];
      if (goes_left(row)) rows[left++] = row;
      else worker.to_right.push_back(row);
    }
    std::copy(worker.to_right.begin(), worker.to_right.end(), rows.begin() + static_cast<std::ptrdiff_t>(left));
    return left;
  }

  void score(const BacSolution& bac, int32_t row, Worker& worker) const {
    bac_scores(bac, X_.row(row), problem_.row_scale ? problem_.row_scale[row] : 1.0f, worker.scores.data());
  }

  // The labels of some rows, heaviest first, the smaller code of those that tie.
  template <class IsMeant>
  Side side(Range range, IsMeant is_meant, Worker& worker) const {
    Side side;
    for (const int32_t row : of(rows_, range)) {
      const double w = weight(row);
      side.examples += w;
      for (const int32_t label : labels_of(row)) {
        double& mass = worker.mass[static_cast<size_t>(label)];
        if (mass == 0) worker.touched.push_back(label);
        mass += w;
      }
    }
    for (const int32_t label : worker.touched) side.labels.push_back({label, std::exchange(worker.mass[static_cast<size_t>(label)], 0.0)});
    worker.touched.clear();
    std::sort(side.labels.begin(), side.labels.end(), [](const LabelShare& a, const LabelShare& b) {
      return a.mass != b.mass ? a.mass > b.mass : a.label < b.label;
    });
    const auto ties_end = std::find_if(side.labels.begin(), side.labels.end(), [&](const LabelShare& share) {
      return share.mass < side.labels[0].mass;
    });
    const auto meant = std::find_if(side.labels.begin(), ties_end, [&](const LabelShare& share) { return is_meant(share.label); });
    side.answer = (meant != ties_end ? meant : side.labels.begin())->label;
    return side;
  }

  double errors(Range held_out, int32_t answer) const {
    double errors = 0.0;
    for (const int32_t row : of(held_out_, held_out)) {
      const auto labels = labels_of(row);
      if (std::find(labels.begin(), labels.end(), answer) == labels.end()) errors += weight(row);
    }
    return errors;
  }

  // Whether a node's planes fit into what is left of max_features.
  [[nodiscard]] bool may_take_new_columns() const {
    const int64_t most = options_.bac.budget * options_.bac.max_planes;
    return options_.max_features == 0 || static_cast<int64_t>(used_.size()) + most <= options_.max_features;
  }

  void note_columns(const BacSolution& found) {
    if (options_.max_features == 0) return;
    std::vector<int32_t> both;
    std::set_union(used_.begin(), used_.end(), found.columns.begin(), found.columns.end(), std::back_inserter(both));
    used_.swap(both);
  }

  [[nodiscard]] std::span<const int32_t> labels_of(int32_t row) const {
    const int64_t begin = problem_.labels.indptr[row], end = problem_.labels.indptr[row + 1];
    return {problem_.labels.labels + begin, static_cast<size_t>(end - begin)};
  }
  [[nodiscard]] double weight(int32_t row) const { return problem_.row_weight ? problem_.row_weight[row] : 1.0; }
  [[nodiscard]] static std::span<const int32_t> of(const std::vector<int32_t>& rows, Range range) {
    return {rows.data() + range.begin, range.size()};
  }

  const Rows& X_;
  const TreeProblem& problem_;
  const TreeOptions& options_;
  Monitor& monitor_;
  int32_t n_folds_;
  BudgetedTree tree_;
  std::vector<int32_t> rows_, held_out_;  // those of a node stand together
  std::vector<int8_t> signs_;             // of rows_
  std::vector<int32_t> used_;             // columns that earlier nodes look at, where max_features bounds them
  std::vector<Worker> workers_;
};

double subtree_error(const BudgetedTree& tree) {
  std::vector<double> error(tree.nodes.size());
  for (size_t v = tree.nodes.size(); v-- > 0;) {  // children come after their parent
    const TreeNode& node = tree.nodes[v];
    error[v] = node.has_children() ? error[static_cast<size_t>(node.left)] + error[static_cast<size_t>(node.right)] : node.own_error;
  }
  return error.empty() ? 0.0 : error[0];
}

// `answer` is one of the node's heaviest labels.
void make_leaf(TreeNode& node, int32_t answer) {
  node.left = node.right = -1;
  node.bac = {};
  const auto at = std::find_if(node.labels.begin(), node.labels.end(), [&](const LabelShare& share) { return share.label == answer; });
  std::rotate(node.labels.begin(), at, at + 1);
}

// Two leaves side by side that answer the same are one: nothing is decided there.
void merge_equal_leaves(BudgetedTree& tree) {
  for (size_t v = tree.nodes.size(); v-- > 0;) {
    TreeNode& node = tree.nodes[v];
    if (!node.has_children()) continue;
    const TreeNode &left = tree.nodes[static_cast<size_t>(node.left)], &right = tree.nodes[static_cast<size_t>(node.right)];
    const bool are_leaves = !left.has_children() && !right.has_children();
    if (are_leaves && left.labels[0].label == right.labels[0].label) make_leaf(node, left.labels[0].label);
  }
}

// Leaves out what no path from the root reaches, and keeps the order of the rest.
void drop_unreachable(BudgetedTree& tree) {
  std::vector<int32_t> place(tree.nodes.size(), -1);
  std::vector<TreeNode> kept;
  for (size_t v = 0; v < tree.nodes.size(); ++v) {
    TreeNode& node = tree.nodes[v];
    if (node.parent >= 0) {
      const TreeNode& parent = tree.nodes[static_cast<size_t>(node.parent)];
      if (place[static_cast<size_t>(node.parent)] < 0 || (parent.left != static_cast<int32_t>(v) && parent.right != static_cast<int32_t>(v))) continue;
    }
    place[v] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(node));  // its links stay
  }
  for (TreeNode& node : kept) {
    for (int32_t* link : {&node.parent, &node.left, &node.right}) {
      if (*link >= 0) *link = place[static_cast<size_t>(*link)];
    }
  }
  tree.nodes = std::move(kept);
}

}  // namespace

template <class Rows>
BudgetedTree grow_budgeted_tree(const Rows& X, const TreeProblem& problem, const TreeOptions& options, Monitor& monitor) {
  BudgetedTree tree = Grower<Rows>(X, problem, options, monitor).grow();
  tree.cv_error = tree.unpruned_cv_error = subtree_error(tree);
  tree.unpruned_nodes = static_cast<int64_t>(tree.nodes.size());
  if (options.prune) prune_tree(tree);
  return tree;
}

void prune_tree(BudgetedTree& tree) {
  std::vector<double> error(tree.nodes.size());
  for (size_t v = tree.nodes.size(); v-- > 0;) {
    const TreeNode& node = tree.nodes[v];
    error[v] = node.own_error;
    if (!node.has_children()) continue;
    TreeNode &left = tree.nodes[static_cast<size_t>(node.left)], &right = tree.nodes[static_cast<size_t>(node.right)];
    const double of_children = error[static_cast<size_t>(node.left)] + error[static_cast<size_t>(node.right)];
    if (of_children > node.own_error) {
      make_leaf(left, left.pruned_answer);
      make_leaf(right, right.pruned_answer);
    } else {
      error[v] = of_children;
    }
  }
  merge_equal_leaves(tree);
  drop_unreachable(tree);
  tree.cv_error = error.empty() ? 0.0 : error[0];
}

template BudgetedTree grow_budgeted_tree(const CsrRows<int32_t>&, const TreeProblem&, const TreeOptions&, Monitor&);
template BudgetedTree grow_budgeted_tree(const CsrRows<int64_t>&, const TreeProblem&, const TreeOptions&, Monitor&);
template BudgetedTree grow_budgeted_tree(const DenseRows&, const TreeProblem&, const TreeOptions&, Monitor&);

}  // namespace sapwood
