#include "trees/label_tree.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "bindings/bind.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "solvers/random.h"
#include "trees/predict.h"

namespace sapwood::bindings {

namespace {

Loss loss_named(const std::string& name) {
  if (name == "squared_hinge") return Loss::squared_hinge;
  if (name == "logistic") return Loss::logistic;
  throw nb::value_error("loss must be 'squared_hinge' or 'logistic'");
}

Solver solver_named(const std::string& name) {
  if (name == "dual") return Solver::dual;
  if (name == "adagrad") return Solver::adagrad;
  throw nb::value_error("solver must be 'dual' or 'adagrad'");
}

LabelSets label_sets(const Array<int64_t>& indptr, const Array<int32_t>& labels, int32_t n_labels) {
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  if (n < 0 || indptr(0) != 0 || indptr(static_cast<size_t>(n)) != static_cast<int64_t>(labels.shape(0))) {
    throw nb::value_error("the labels' indptr does not fit the labels");
  }
  for (int64_t i = 0; i < n; ++i) {
    if (indptr(static_cast<size_t>(i)) > indptr(static_cast<size_t>(i) + 1)) throw nb::value_error("the labels' indptr must ascend");
  }
  for (size_t k = 0; k < labels.shape(0); ++k) {
    if (labels(k) < 0 || labels(k) >= n_labels) throw nb::value_error("a label code is out of range");
  }
  return {indptr.data(), labels.data(), n, n_labels};
}

template <class T>
const T* data_or_null(const std::optional<Array<T>>& array, size_t n, const char* name) {
  if (!array) return nullptr;
  if (array->shape(0) != n) throw nb::value_error((std::string(name) + " has the wrong length").c_str());
  return array->data();
}

nb::dict to_dict(ForestArrays&& a) {
  nb::dict out;
  out["roots"] = to_numpy(std::move(a.roots));
  out["node_groups"] = to_numpy(std::move(a.node_groups));
  out["node_labels"] = to_numpy(std::move(a.node_labels));
  out["group_banks"] = to_numpy(std::move(a.group_banks));
  out["group_buckets"] = to_numpy(std::move(a.group_buckets));
  out["group_pool"] = to_numpy(std::move(a.group_pool));
  out["keys"] = to_numpy(std::move(a.keys));
  out["lines"] = to_numpy(std::move(a.lines));
  out["pool"] = to_numpy(std::move(a.pool));
  out["bias"] = to_numpy(std::move(a.bias));
  out["targets"] = to_numpy(std::move(a.targets));
  return out;
}

// Trains the trees of a label tree or, with max_leaf at the number of labels, one-against-all. `children`, if given,
// is the one shape to use: for each node its children (node numbers, or ~label), as CSR.
nb::dict train_label_forest(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& labels,
                            int32_t n_labels, std::optional<Array<float>> row_weight,
                            std::optional<Array<float>> label_weight, std::optional<Array<int64_t>> shape_indptr,
                            std::optional<Array<int32_t>> shape_children, int32_t n_trees, int32_t arity, int32_t max_leaf,
                            bool balanced, const std::string& solver, const std::string& loss, float C, float tolerance,
                            float step, int32_t passes, float prune, bool half, bool normalize, uint64_t seed,
                            int n_threads, const nb::object& progress) {
  const LabelSets sets = label_sets(label_indptr, labels, n_labels);
  const auto n_rows = static_cast<size_t>(X.n_rows());
  if (sets.n_rows != X.n_rows()) throw nb::value_error("X and the labels differ in length");
  if (X.n_rows() > INT32_MAX) throw nb::value_error("more than 2^31 - 1 rows are not supported");
  if (X.n_columns() >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 columns are not supported");
  Importance importance{nullptr, data_or_null(row_weight, n_rows, "sample_weight"),
                        data_or_null(label_weight, static_cast<size_t>(n_labels), "label_weight")};
  TrainOptions options{solver_named(solver), loss_named(loss), C, tolerance, step, passes, prune, half, seed, n_threads};
  const bool given = shape_indptr && shape_children;

  ForestArrays arrays;
  run_interruptible(progress, [&](Monitor& monitor) {
    const LabelRows label_rows(sets);
    X.visit([&](const auto& rows) {
      std::vector<float> scale(normalize ? n_rows : 0);
      double length = 0;
      for (size_t i = 0; i < n_rows; ++i) {
        const float s = unit_scale(rows.row(static_cast<int64_t>(i)));
        if (normalize) scale[i] = s;
        length += 1.0 / s;
      }
      if (normalize) importance.row_scale = scale.data();
      // A weight matters by what it adds to a typical row's score: the threshold follows the rows' length.
      if (!normalize && length > 0) options.prune = static_cast<float>(prune * static_cast<double>(n_rows) / length);
      std::vector<TreeShape> shapes;
      if (given) {
        shapes.push_back(given_shape({shape_indptr->data(), shape_indptr->shape(0)}, {shape_children->data(), shape_children->shape(0)}));
      } else {
        Random seeds(seed);
        for (int32_t t = 0; t < n_trees; ++t) {
          shapes.push_back(cluster_labels(rows, importance.row_scale, label_rows, {arity, max_leaf, balanced, seeds.next()},
                                          n_threads, monitor));
        }
      }
      arrays = train_forest(rows, label_rows, shapes, importance, options, monitor);
    });
  });
  return to_dict(std::move(arrays));
}

// A trained model over arrays that Python holds (its own, or mapped from a file).
class Forest {
 public:
  Forest(const nb::dict& arrays, int32_t n_labels, bool half, const std::string& loss) {
    const auto get = [&]<class T>(const char* name, size_t& size) {
      const auto array = nb::cast<Array<T>>(arrays[name]);
      owners_.append(array);
      size = array.shape(0);
      return array.data();
    };
    size_t trees, node_groups, node_labels, group_banks, group_buckets, group_pool, keys, lines, pool, bias, targets;
    forest_.roots = get.template operator()<int32_t>("roots", trees);
    forest_.node_groups = get.template operator()<int32_t>("node_groups", node_groups);
    forest_.node_labels = get.template operator()<int32_t>("node_labels", node_labels);
    forest_.group_banks = get.template operator()<int32_t>("group_banks", group_banks);
    forest_.group_buckets = get.template operator()<int64_t>("group_buckets", group_buckets);
    forest_.group_pool = get.template operator()<int64_t>("group_pool", group_pool);
    forest_.keys = get.template operator()<uint32_t>("keys", keys);
    forest_.lines = get.template operator()<uint32_t>("lines", lines);
    forest_.pool = get.template operator()<uint16_t>("pool", pool);
    forest_.bias = get.template operator()<float>("bias", bias);
    forest_.targets = get.template operator()<int32_t>("targets", targets);
    if (node_groups != node_labels + 1 || group_banks == 0 || group_buckets != group_banks || group_pool != group_banks ||
        keys != lines || keys % 16 || bias != targets || bias % 16 || std::max({bias, node_groups, group_banks}) > INT32_MAX) {
      throw nb::value_error("the model is damaged: its arrays do not fit together");
    }
    forest_.n_trees = static_cast<int32_t>(trees);
    forest_.n_nodes = static_cast<int32_t>(node_labels);
    forest_.n_groups = static_cast<int32_t>(group_banks) - 1;
    forest_.n_banks = static_cast<int32_t>(bias / 16);
    forest_.n_labels = n_labels;
    forest_.half = half;
    forest_.loss = loss_named(loss);
    try {
      const nb::gil_scoped_release no_gil;
      check_forest(forest_, static_cast<int64_t>(keys / 16), static_cast<int64_t>(pool));
    } catch (const std::invalid_argument& e) {
      throw nb::value_error(e.what());
    }
    forest_.fewest_labels = n_labels;
    for (int32_t v = 0; v < forest_.n_nodes; ++v) {
      const bool root = std::find(forest_.roots, forest_.roots + trees, v) != forest_.roots + trees;
      if (!root) forest_.fewest_labels = std::min(forest_.fewest_labels, forest_.node_labels[v]);
    }
  }

  nb::tuple top(const RowsView& X, int32_t k, int32_t beam, float min_beam_share, bool normalize, int n_threads) const {
    const auto n = static_cast<size_t>(X.n_rows());
    const auto width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    const PredictOptions options{beam, k, min_beam_share, normalize, n_threads};
    const auto predict = [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { predict_top(forest_, rows, options, labels.data(), scores.data(), monitor); });
    };
    if (n <= kFewRows) {
      const nb::gil_scoped_release no_gil;
      Monitor monitor;
      predict(monitor);
    } else {
      run_interruptible(nb::none(), predict);
    }
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  // Raw scores of the children of a node, and what they are: node numbers, or ~label.
  nb::tuple node_scores(const RowsView& X, int64_t row, int32_t node, bool normalize) const {
    if (node < 0 || node >= forest_.n_nodes || row < 0 || row >= X.n_rows()) throw nb::index_error("no such node or row");
    const int32_t first = forest_.group_banks[forest_.node_groups[node]];
    const int32_t last = forest_.group_banks[forest_.node_groups[node + 1]];
    std::vector<float> scores(static_cast<size_t>(last - first) * 16);
    X.visit([&](const auto& rows) { score_node(forest_, rows, row, node, normalize, scores.data()); });
    std::vector<int32_t> children;
    std::vector<float> child_scores;
    for (size_t i = 0; i < scores.size(); ++i) {
      const int32_t target = forest_.targets[static_cast<size_t>(first) * 16 + i];
      if (target == kNoTarget) continue;
      children.push_back(target);
      child_scores.push_back(scores[i]);
    }
    return nb::make_tuple(to_numpy(std::move(children)), to_numpy(std::move(child_scores)));
  }

 private:
  static constexpr size_t kFewRows = 1024;  // answered at once: not worth a thread that watches for Ctrl-C

  PackedForest forest_{};
  nb::list owners_;
};

}  // namespace

void bind_label_tree(nb::module_& m) {
  m.def("train_label_forest", &train_label_forest, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(),
        nb::arg("n_labels"), nb::arg("row_weight").none(), nb::arg("label_weight").none(), nb::arg("shape_indptr").none(),
        nb::arg("shape_children").none(), nb::arg("n_trees"), nb::arg("arity"), nb::arg("max_leaf"), nb::arg("balanced"),
        nb::arg("solver"), nb::arg("loss"), nb::arg("C"), nb::arg("tolerance"), nb::arg("step"), nb::arg("passes"),
        nb::arg("prune"), nb::arg("half"), nb::arg("normalize"), nb::arg("seed"), nb::arg("n_threads"),
        nb::arg("progress").none(), "Train label trees; returns the arrays of a Forest.");
  nb::class_<Forest>(m, "Forest", "Trained label trees, read only.")
      .def(nb::init<const nb::dict&, int32_t, bool, const std::string&>(), nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"),
           nb::arg("half"), nb::arg("loss"))
      .def("top", &Forest::top, nb::arg("X"), nb::arg("k"), nb::arg("beam"), nb::arg("min_beam_share"), nb::arg("normalize"),
           nb::arg("n_threads"), "The k best labels of each row: codes and scores, best first.")
      .def("node_scores", &Forest::node_scores, nb::arg("X"), nb::arg("row"), nb::arg("node"), nb::arg("normalize"),
           "A node's children and their raw scores for one row.");
}

}  // namespace sapwood::bindings
