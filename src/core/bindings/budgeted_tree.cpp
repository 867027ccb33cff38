#include "budgeted/tree.h"

#include <nanobind/stl/optional.h>

#include <optional>
#include <span>

#include "bindings/bind.h"
#include "bindings/budgeted.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "budgeted/tree_predict.h"

namespace sapwood::bindings {

namespace {

nb::dict to_dict(const BudgetedTree& tree, size_t n_folds) {
  std::vector<int32_t> parent, depth, children, columns, labels, n_planes;
  std::vector<int64_t> bac_begin{0}, label_begin{0};
  std::vector<double> weights, offsets, examples, objective, bound;
  std::vector<float> shares;
  for (const TreeNode& node : tree.nodes) {
    parent.push_back(node.parent);
    depth.push_back(node.depth);
    children.insert(children.end(), {node.left, node.right});
    columns.insert(columns.end(), node.bac.columns.begin(), node.bac.columns.end());
    weights.insert(weights.end(), node.bac.weights.begin(), node.bac.weights.end());
    bac_begin.push_back(static_cast<int64_t>(columns.size()));
    offsets.insert(offsets.end(), node.bac.offset.begin(), node.bac.offset.end());
    offsets.resize(parent.size() * n_folds, 0.0);  // leaves have none
    examples.push_back(node.examples);
    objective.push_back(node.has_children() ? node.bac.objective.back() : 0.0);
    bound.push_back(node.has_children() ? node.bac.bound.back() : 0.0);
    n_planes.push_back(static_cast<int32_t>(node.bac.planes.size()));
    float last = 1.0f;  // rounding must not make a share larger than the one before
    for (const LabelShare& share : node.labels) {
      labels.push_back(share.label);
      shares.push_back(last = std::min(last, static_cast<float>(share.mass / node.examples)));
    }
    label_begin.push_back(static_cast<int64_t>(labels.size()));
  }
  nb::dict out;
  out["parent"] = to_numpy(std::move(parent));
  out["depth"] = to_numpy(std::move(depth));
  out["children"] = to_numpy(std::move(children));
  out["bac_begin"] = to_numpy(std::move(bac_begin));
  out["columns"] = to_numpy(std::move(columns));
  out["weights"] = to_numpy(std::move(weights));
  out["offsets"] = to_numpy(std::move(offsets));
  out["label_begin"] = to_numpy(std::move(label_begin));
  out["labels"] = to_numpy(std::move(labels));
  out["shares"] = to_numpy(std::move(shares));
  out["examples"] = to_numpy(std::move(examples));
  out["objective"] = to_numpy(std::move(objective));
  out["bound"] = to_numpy(std::move(bound));
  out["n_planes"] = to_numpy(std::move(n_planes));
  return out;
}

// Grows a tree, and prunes it where `fold` is given. Returns the arrays of a BudgetedTree, the error when held out after
// and before pruning, and how many nodes there were before.
nb::tuple train_budgeted_tree(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& label_codes,
                              int32_t n_labels, std::optional<Array<float>> row_weight, std::optional<Array<uint8_t>> fold,
                              int32_t n_folds, int32_t max_depth, int64_t max_features, const nb::dict& options_named,
                              bool normalize, uint64_t seed, int n_threads, const nb::object& progress) {
  TreeOptions options;
  options.bac = bac_options(options_named);
  options.prune = fold.has_value();
  options.n_folds = n_folds;
  options.max_depth = max_depth;
  options.max_features = max_features;
  options.n_threads = std::max(1, n_threads);
  const uint8_t* const folds = data_or_null(fold, static_cast<size_t>(X.n_rows()), "fold");
  if (n_folds < 1 || n_folds > 255) throw nb::value_error("there may be 1 to 255 folds");
  for (int64_t i = 0; folds && i < X.n_rows(); ++i) {
    if (folds[i] >= n_folds) throw nb::value_error("a fold is out of range");
  }
  BudgetedTree tree;
  run_interruptible(progress, [&](Monitor& monitor) {
    const TrainingSet given(X, label_indptr, label_codes, n_labels, row_weight, normalize);
    X.visit([&](const auto& rows) {
      const bool two = n_labels <= 2;  // whatever the rows, there is one way to part two labels
      const TreeShape shape = two ? TreeShape{} : cluster_labels(rows, given.scale(), LabelRows(given.labels), {2, 1, true, seed}, options.n_threads, monitor);
      const LabelOrder order = two ? LabelOrder{{0, 1}, {0, 0}} : order_of(shape, n_labels);
      monitor.done = 0;
      tree = grow_budgeted_tree(rows, {given.labels, given.scale(), given.row_weight, folds, order}, options, monitor);
    });
  });
  const size_t n_weights = options.prune ? static_cast<size_t>(n_folds) : 1;
  return nb::make_tuple(to_dict(tree, n_weights), tree.cv_error, tree.unpruned_cv_error, tree.unpruned_nodes);
}

// A trained tree over arrays that Python holds.
class TreeModel {
 public:
  TreeModel(const nb::dict& arrays, int32_t n_folds, int32_t n_labels, int64_t n_columns) : n_labels_(n_labels) {
    tree_.n_folds = n_folds;
    tree_.children = model_array<int32_t>(arrays, "children", owners_);
    tree_.bac_begin = model_array<int64_t>(arrays, "bac_begin", owners_);
    tree_.columns = model_array<int32_t>(arrays, "columns", owners_);
    tree_.weights = model_array<double>(arrays, "weights", owners_);
    tree_.offsets = model_array<double>(arrays, "offsets", owners_);
    tree_.label_begin = model_array<int64_t>(arrays, "label_begin", owners_);
    tree_.labels = model_array<int32_t>(arrays, "labels", owners_);
    tree_.shares = model_array<float>(arrays, "shares", owners_);
    tree_.examples = model_array<double>(arrays, "examples", owners_);
    try {
      check_tree(tree_, n_labels, n_columns);
    } catch (const std::invalid_argument& e) {
      throw nb::value_error(e.what());
    }
  }

  nb::tuple top(const RowsView& X, int32_t k, bool normalize, int n_threads) const {
    if (k < 1 || k > n_labels_) throw nb::value_error("k is out of range");
    const auto n = static_cast<size_t>(X.n_rows()), width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    answer(n, [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { predict_top(tree_, rows, normalize, k, n_threads, labels.data(), scores.data(), monitor); });
    });
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  nb::object leaves(const RowsView& X, bool normalize, int n_threads) const {
    std::vector<int32_t> leaves(static_cast<size_t>(X.n_rows()));
    answer(leaves.size(), [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { find_leaves(tree_, rows, normalize, n_threads, leaves.data(), monitor); });
    });
    return to_numpy(std::move(leaves));
  }

 private:
  BudgetedTreeView tree_{};
  int32_t n_labels_;
  nb::list owners_;
};

}  // namespace

void bind_budgeted_tree(nb::module_& m) {
  m.def("train_budgeted_tree", &train_budgeted_tree, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(),
        nb::arg("n_labels"), nb::arg("row_weight").none(), nb::arg("fold").none(), nb::arg("n_folds"), nb::arg("max_depth"),
        nb::arg("max_features"), nb::arg("options"), nb::arg("normalize"), nb::arg("seed"), nb::arg("n_threads"),
        nb::arg("progress").none(), "Grow a budgeted tree; returns its arrays, its held-out error after and before pruning, its nodes before.");
  nb::class_<TreeModel>(m, "BudgetedTree", "A budgeted tree, read only.")
      .def(nb::init<const nb::dict&, int32_t, int32_t, int64_t>(), nb::arg("arrays"), nb::kw_only(), nb::arg("n_folds"),
           nb::arg("n_labels"), nb::arg("n_columns"))
      .def("top", &TreeModel::top, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("normalize"), nb::arg("n_threads"),
           "The k best labels of each row: codes and scores, best first.")
      .def("leaves", &TreeModel::leaves, nb::arg("X"), nb::kw_only(), nb::arg("normalize"), nb::arg("n_threads"), "The leaf of each row.");
}

}  // namespace sapwood::bindings
