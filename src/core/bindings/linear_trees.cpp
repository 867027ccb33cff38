#include "bindings/linear_trees.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "bindings/bind.h"
#include "bindings/budgeted.h"
#include "bindings/targets.h"
#include "trees/fastxml.h"

namespace sapwood::bindings {

namespace {

std::vector<float> unit_scales(const RowsView& X) {
  std::vector<float> scale(static_cast<size_t>(X.n_rows()));
  X.visit([&](const auto& rows) {
    for (size_t i = 0; i < scale.size(); ++i) scale[i] = unit_scale(rows.row(static_cast<int64_t>(i)));
  });
  return scale;
}

void check_size(const RowsView& X, const LabelSets& sets) {
  if (sets.n_rows != X.n_rows()) throw nb::value_error("X and the labels differ in length");
  if (X.n_rows() > INT32_MAX) throw nb::value_error("more than 2^31 - 1 rows are not supported");
  if (X.n_columns() >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 columns are not supported");
}

nb::dict fastxml(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& labels, int32_t n_labels,
                 std::optional<Array<float>> row_weight, int32_t n_trees, int32_t max_leaf, int32_t leaf_labels, float C,
                 int32_t passes, bool normalize, uint64_t seed, int n_threads, const nb::object& progress) {
  const LabelSets sets = label_sets(label_indptr, labels, n_labels);
  check_size(X, sets);
  const float* const weight = data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight");
  const FastXmlOptions options{n_trees, max_leaf, leaf_labels, C, passes, seed, n_threads};
  LinearTreeArrays arrays;
  run_interruptible(progress, [&](Monitor& monitor) {
    const std::vector<float> scale = normalize ? unit_scales(X) : std::vector<float>();
    X.visit([&](const auto& rows) {
      arrays = train_fastxml(rows, sets, normalize ? scale.data() : nullptr, weight, options, monitor);
    });
  });
  return to_dict(std::move(arrays));
}

CodingShape shape_named(const std::string& rule, const DistinctSets& sets, int64_t min_examples) {
  if (rule == "powerset") return powerset_shape(sets);
  if (rule == "frequent" || rule == "balanced") return annotation_shape(sets, rule == "balanced", min_examples);
  throw nb::value_error("rule must be 'powerset', 'frequent' or 'balanced'");
}

nb::dict coding_tree(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& labels, int32_t n_labels,
                     std::optional<Array<float>> row_weight, const std::string& rule, int64_t min_examples,
                     const nb::dict& options_named, bool normalize, int n_threads, const nb::object& progress) {
  const LabelSets sets = label_sets(label_indptr, labels, n_labels);
  check_size(X, sets);
  const float* const weight = data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight");
  const BacOptions options = bac_options(options_named);
  LinearTreeArrays arrays;
  CodingShape shape;
  std::vector<double> set_mass;
  run_interruptible(progress, [&](Monitor& monitor) {
    const std::vector<float> scale = normalize ? unit_scales(X) : std::vector<float>();
    {
      DistinctSets distinct = distinct_sets(sets, weight);
      shape = shape_named(rule, distinct, min_examples);
      set_mass = std::move(distinct.mass);
    }
    X.visit([&](const auto& rows) {
      arrays = train_coding_tree(rows, shape, normalize ? scale.data() : nullptr, weight, options, n_threads, monitor);
    });
  });
  nb::dict out = to_dict(std::move(arrays));
  out["leaf_mass"] = to_numpy(std::move(shape.leaf_mass));
  if (rule != "powerset") {
    out["question_begin"] = to_numpy(std::move(shape.question_begin));
    out["question"] = to_numpy(std::move(shape.question));
  }
  out["set_mass"] = to_numpy(std::move(set_mass));
  return out;
}

nb::tuple distinct(const Array<int64_t>& label_indptr, const Array<int32_t>& labels, int32_t n_labels) {
  const LabelSets sets = label_sets(label_indptr, labels, n_labels);
  if (sets.n_rows > INT32_MAX) throw nb::value_error("more than 2^31 - 1 rows are not supported");
  DistinctSets found;
  {
    const nb::gil_scoped_release no_gil;
    found = distinct_sets(sets, nullptr);
  }
  return nb::make_tuple(to_numpy(std::move(found.set_of_row)), to_numpy(std::move(found.begin)), to_numpy(std::move(found.labels)));
}

}  // namespace

void bind_linear_trees(nb::module_& m) {
  m.def("train_fastxml", &fastxml, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(), nb::arg("n_labels"),
        nb::arg("row_weight").none(), nb::arg("n_trees"), nb::arg("max_leaf"), nb::arg("leaf_labels"), nb::arg("C"),
        nb::arg("passes"), nb::arg("normalize"), nb::arg("seed"), nb::arg("n_threads"), nb::arg("progress").none(),
        "Train FastXML's trees; returns the arrays of Trees.");
  m.def("train_coding_tree", &coding_tree, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(),
        nb::arg("n_labels"), nb::arg("row_weight").none(), nb::arg("rule"), nb::arg("min_examples"), nb::arg("options"),
        nb::arg("normalize"), nb::arg("n_threads"), nb::arg("progress").none(),
        "Train a powerset tree or an annotation tree; returns the arrays of Trees, and what is known of the leaves and questions.");
  m.def("distinct_label_sets", &distinct, nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(), nb::arg("n_labels"),
        "The number of each row's label set in lexicographic order, and the sets as CSR.");
  nb::class_<Trees>(m, "Trees", "Trees of sparse linear classifiers, read only.")
      .def(nb::init<const nb::dict&, int32_t, int64_t>(), nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"), nb::arg("n_features"))
      .def("leaves", &Trees::leaves, nb::arg("X"), nb::kw_only(), nb::arg("normalize"), nb::arg("n_threads"),
           "The leaf that each row comes to in each tree.")
      .def("top_by_mean", &Trees::top_by_mean, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("others"), nb::arg("normalize"),
           nb::arg("n_threads"), "The k best labels by the mean over the trees: codes and scores, best first.")
      .def("top_by_search", &Trees::top_by_search, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("beam"), nb::arg("slope"), nb::arg("normalize"),
           nb::arg("n_threads"), "The k best labels of one tree by a search for its likely leaves.")
      .def("sets_by_search", &Trees::sets_by_search, nb::arg("X"), nb::kw_only(), nb::arg("beam"), nb::arg("slope"), nb::arg("normalize"),
           nb::arg("n_threads"), "The label set of each row: codes and indptr.")
      .def("node_score", &Trees::node_score, nb::arg("X"), nb::kw_only(), nb::arg("row"), nb::arg("node"), nb::arg("normalize"),
           "What a node says of one row.");
}

}  // namespace sapwood::bindings
