#include "trees/label_tree.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "bindings/bind.h"
#include "bindings/forest.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "bindings/targets.h"
#include "solvers/random.h"
#include "trees/predict.h"

namespace sapwood::bindings {

namespace {

constexpr size_t kRowsATask = 4096;

Solver solver_named(const std::string& name) {
  if (name == "dual") return Solver::dual;
  if (name == "adagrad") return Solver::adagrad;
  throw nb::value_error("solver must be 'dual' or 'adagrad'");
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
      std::vector<double> lengths(n_rows / kRowsATask + 1);
      parallel_for(static_cast<int64_t>(lengths.size()), n_threads, monitor, [&](int64_t task, int) {
        const auto begin = static_cast<size_t>(task) * kRowsATask;
        for (size_t i = begin; i < std::min(n_rows, begin + kRowsATask); ++i) {
          const float s = unit_scale(rows.row(static_cast<int64_t>(i)));
          if (normalize) scale[i] = s;
          lengths[static_cast<size_t>(task)] += 1.0 / s;
        }
      });
      const double length = std::accumulate(lengths.begin(), lengths.end(), 0.0);
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
      .def("reached", &Forest::reached, nb::arg("X"), nb::kw_only(), nb::arg("normalize"), nb::arg("n_threads"),
           "The labels that each row comes to through children that all say yes: codes and indptr.")
      .def("node_scores", &Forest::node_scores, nb::arg("X"), nb::arg("row"), nb::arg("node"), nb::arg("normalize"),
           "A node's children and their raw scores for one row.");
}

}  // namespace sapwood::bindings
