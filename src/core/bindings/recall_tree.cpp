#include "trees/recall_tree.h"

#include <cmath>

#include "bindings/bind.h"
#include "bindings/online_tree.h"

namespace sapwood::bindings {

namespace {

template <class Choice>
Choice choice_named(const std::string& name, std::initializer_list<std::pair<const char*, Choice>> choices) {
  for (const auto& [known, choice] : choices) {
    if (name == known) return choice;
  }
  throw nb::value_error(("unknown option '" + name + "'").c_str());
}

RecallTreeOptions options_of(const Rule& router_rule, const Rule& score_rule, int32_t max_candidates, double coverage, int32_t max_depth,
                             double bound, bool early_stop, const std::string& router_weight, bool randomized_routing,
                             const std::string& path_features, bool cross_path, int32_t arity, bool normalize) {
  if (arity < 2 || arity > 16 || max_candidates < 0 || !(coverage > 0) || max_depth < -1 || !(bound >= 0)) {
    throw nb::value_error("an option is out of range");
  }
  return {.max_candidates = max_candidates,
          .coverage = coverage,
          .max_depth = max_depth,
          .bound = bound,
          .early_stop = early_stop,
          .router_weight = choice_named<RouterWeight>(
              router_weight, {{"mean", RouterWeight::mean}, {"total", RouterWeight::total}, {"none", RouterWeight::none}}),
          .randomized_routing = randomized_routing,
          .path_features = choice_named<PathFeatures>(
              path_features, {{"none", PathFeatures::none}, {"path", PathFeatures::path}, {"leaf", PathFeatures::leaf}}),
          .cross_path = cross_path,
          .arity = arity,
          .normalize = normalize,
          .router_rule = router_rule,
          .score_rule = score_rule};
}

class RecallTreeBinding : public OnlineTree<RecallTree> {
 public:
  RecallTreeBinding(bool dense, int64_t n_columns, const std::string& loss, const std::string& method, float step, float initial,
                    double tolerance, float router_step, double router_tolerance, int32_t max_candidates, double coverage, int32_t max_depth, double bound, bool early_stop,
                    const std::string& router_weight, bool randomized_routing, const std::string& path_features, bool cross_path,
                    int32_t arity, bool normalize, uint64_t random_state)
      : OnlineTree(n_columns,
                   options_of(rule_of(loss, method, router_step, initial, router_tolerance), rule_of(loss, method, step, initial, tolerance), max_candidates, coverage, max_depth,
                              bound, early_stop, router_weight, randomized_routing, path_features, cross_path, arity, normalize),
                   dense, n_columns, random_state) {}

  void set_threads(int n) {
    const std::unique_lock alone(mutex_);
    model_.set_threads(n);
  }

  // The way of one row: nodes, children, margins (steps x lanes), the node where it ended, why, candidates and scores.
  [[nodiscard]] nb::tuple explain(const RowsView& X, int64_t row) const {
    static constexpr const char* kStopped[] = {"leaf", "recall", "empty child"};
    if (row < 0 || row >= X.n_rows()) throw nb::index_error("no such row");
    check_columns(X);
    const std::shared_lock shared(mutex_);
    if (model_.n_labels() == 0) throw nb::value_error("the tree has learned nothing");
    RecallTree::Explanation told = X.visit([&](const auto& rows) { return model_.explain(rows.row(row)); });
    std::vector<int32_t> nodes, children;
    for (const RecallTree::Step& step : told.steps) {
      nodes.push_back(step.node);
      children.push_back(step.child);
    }
    const auto lanes = static_cast<size_t>(model_.lanes());
    const size_t n = nodes.size();
    return nb::make_tuple(to_numpy(std::move(nodes)), to_numpy(std::move(children)), to_numpy(std::move(told.margins), {n, lanes}),
                          told.ending.node, kStopped[static_cast<int>(told.ending.stopped)], to_numpy(std::move(told.labels)),
                          to_numpy(std::move(told.scores)));
  }

  // Figures of all nodes; majority is -1 and recall NaN where no example has come.
  [[nodiscard]] nb::dict figures() const {
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> parent, first_child, n_labels, majority;
    std::vector<double> examples, entropy, recall, recall_bound;
    for (const RecallTree::Node& v : model_.nodes()) {
      parent.push_back(v.parent);
      first_child.push_back(v.first_child);
      n_labels.push_back(v.hist.n_labels());
      majority.push_back(v.hist.top().empty() ? -1 : v.hist.top().front().label);
      examples.push_back(v.hist.total());
      entropy.push_back(v.hist.entropy());
      recall.push_back(v.hist.total() > 0 ? v.hist.recall() : std::nan(""));
      recall_bound.push_back(v.bound);
    }
    nb::dict out;
    out["parent"] = to_numpy(std::move(parent));
    out["first_child"] = to_numpy(std::move(first_child));
    out["n_labels"] = to_numpy(std::move(n_labels));
    out["majority"] = to_numpy(std::move(majority));
    out["examples"] = to_numpy(std::move(examples));
    out["entropy"] = to_numpy(std::move(entropy));
    out["recall"] = to_numpy(std::move(recall));
    out["recall_bound"] = to_numpy(std::move(recall_bound));
    return out;
  }

  // Labels and their counts at all nodes: where those of each node begin, and the end of the last; labels ascend.
  [[nodiscard]] nb::tuple counts() const {
    const std::shared_lock shared(mutex_);
    std::vector<int64_t> node_labels{0};
    std::vector<int32_t> labels;
    std::vector<double> weights;
    for (const RecallTree::Node& v : model_.nodes()) {
      std::vector<LabelCount> all = v.hist.all();
      std::sort(all.begin(), all.end(), [](const LabelCount& a, const LabelCount& b) { return a.label < b.label; });
      for (const LabelCount& entry : all) {
        labels.push_back(entry.label);
        weights.push_back(entry.count);
      }
      node_labels.push_back(static_cast<int64_t>(labels.size()));
    }
    return nb::make_tuple(to_numpy(std::move(node_labels)), to_numpy(std::move(labels)), to_numpy(std::move(weights)));
  }

  [[nodiscard]] nb::dict state() {
    nb::dict out;
    const nb::tuple counted = counts();
    const std::shared_lock shared(mutex_);
    out["node_labels"] = counted[0];
    out["labels"] = counted[1];
    out["counts"] = counted[2];
    std::vector<int32_t> parent, first_child;
    std::vector<int64_t> endings;
    std::vector<double> total, sum_phi;
    for (const RecallTree::Node& v : model_.nodes()) {
      endings.push_back(v.endings);
      parent.push_back(v.parent);
      first_child.push_back(v.first_child);
      total.push_back(v.hist.total());
      sum_phi.push_back(v.hist.sum_phi());
    }
    out["parent"] = to_numpy(std::move(parent));
    out["first_child"] = to_numpy(std::move(first_child));
    out["endings"] = to_numpy(std::move(endings));
    out["n_examples"] = to_numpy(std::vector<int64_t>{model_.n_examples()});
    out["total"] = to_numpy(std::move(total));
    out["sum_phi"] = to_numpy(std::move(sum_phi));
    auto labels = model_.labels().arrays();
    out["places"] = to_numpy(std::move(labels.places));
    out["line_keys"] = to_numpy(std::move(labels.keys));
    out["line_banks"] = to_numpy(std::move(labels.banks));
    out["line_weights"] = to_numpy(std::move(labels.weights));
    out["line_squares"] = to_numpy(std::move(labels.squares));
    out["dense_weights"] = to_numpy(std::move(labels.dense_weights));
    out["dense_squares"] = to_numpy(std::move(labels.dense_squares));
    out["random_state"] = to_numpy(std::vector<uint64_t>{model_.random().state()});
    out["progressive"] = to_numpy(std::vector<double>{model_.progressive().wrong, model_.progressive().seen});
    put_routers(out, model_.regressors());
    return out;
  }

  void restore(const nb::dict& arrays, int32_t n_labels) {
    const auto parent = array_of<int32_t>(arrays, "parent"), first_child = array_of<int32_t>(arrays, "first_child");
    const auto total = array_of<double>(arrays, "total"), sum_phi = array_of<double>(arrays, "sum_phi");
    const auto bounds = array_of<int64_t>(arrays, "node_labels");
    const auto endings = array_of<int64_t>(arrays, "endings"), n_examples = array_of<int64_t>(arrays, "n_examples");
    const auto random_state = array_of<uint64_t>(arrays, "random_state");
    const size_t n = parent.size();
    if (first_child.size() != n || total.size() != n || sum_phi.size() != n || random_state.size() != 1 ||
        endings.size() != n || n_examples.size() != 1) {
      damaged("its nodes' arrays differ in length");
    }
    if (bounds.size() != n + 1 || bounds[0] != 0) damaged("its label counts do not fit its nodes");
    std::vector<RecallTree::Node> nodes(n);
    for (size_t v = 0; v < n; ++v) {
      nodes[v].parent = parent[v];
      nodes[v].first_child = first_child[v];
      nodes[v].endings = endings[v];
    }
    restore_counts(arrays, bounds, total, sum_phi, nodes);
    const auto places = array_of<int32_t>(arrays, "places");
    if (std::ssize(places) > n_labels) damaged("it has more regressors than labels");
    const LabelRegressors::Arrays<LabelRegressors::View> labels{
        places,
        array_of<uint64_t>(arrays, "line_keys"),
        array_of<int32_t>(arrays, "line_banks"),
        array_of<float>(arrays, "line_weights"),
        array_of<float>(arrays, "line_squares"),
        array_of<float>(arrays, "dense_weights"),
        array_of<float>(arrays, "dense_squares")};
    if (!model_.restore(std::move(nodes), routers_of(arrays), labels, n_examples[0])) damaged("its nodes and regressors are no Recall Tree");
    model_.random() = Random(random_state[0]);
    restore_progressive(arrays);
  }

  [[nodiscard]] size_t label_bytes() const {
    const std::shared_lock shared(mutex_);
    return model_.labels().bytes();
  }
  [[nodiscard]] int32_t n_candidates() const {
    const std::shared_lock shared(mutex_);
    return model_.n_candidates();
  }

 private:
  static void restore_counts(const nb::dict& arrays, std::span<const int64_t> bounds, std::span<const double> total,
                             std::span<const double> sum_phi, std::vector<RecallTree::Node>& nodes) {
    const auto labels = array_of<int32_t>(arrays, "labels");
    const auto counts = array_of<double>(arrays, "counts");
    if (counts.size() != labels.size() || bounds.back() != std::ssize(labels)) damaged("its label counts differ in length");
    for (size_t v = 0; v < nodes.size(); ++v) {
      if (bounds[v] > bounds[v + 1] || bounds[v + 1] > std::ssize(labels)) damaged("its label counts do not ascend");
      std::vector<LabelCount> own;
      for (auto k = static_cast<size_t>(bounds[v]); k < static_cast<size_t>(bounds[v + 1]); ++k) {
        if (labels[k] < 0 || !std::isfinite(counts[k])) damaged("a label's count is none");
        own.push_back({counts[k], labels[k]});
      }
      if (!std::isfinite(total[v]) || !std::isfinite(sum_phi[v]) || (total[v] > 0) == own.empty()) damaged("a node's total is none");
      if (!nodes[v].hist.restore(own, total[v], sum_phi[v])) damaged("a node counts a label twice, or not at all");
    }
  }
};

}  // namespace

void bind_recall_tree(nb::module_& m) {
  nb::class_<RecallTreeBinding> c(m, "RecallTree", "A Recall Tree.");
  c.def(nb::init<bool, int64_t, const std::string&, const std::string&, float, float, double, float, double, int32_t, double, int32_t, double, bool,
                 const std::string&, bool, const std::string&, bool, int32_t, bool, uint64_t>(),
        nb::kw_only(), nb::arg("dense"), nb::arg("n_columns"), nb::arg("loss"), nb::arg("method"), nb::arg("step"),
        nb::arg("initial"), nb::arg("tolerance"), nb::arg("router_step"), nb::arg("router_tolerance"), nb::arg("max_candidates"), nb::arg("coverage"), nb::arg("max_depth"), nb::arg("bound"),
        nb::arg("early_stop"), nb::arg("router_weight"), nb::arg("randomized_routing"), nb::arg("path_features"),
        nb::arg("cross_path"), nb::arg("arity"), nb::arg("normalize"), nb::arg("random_state"))
      .def("explain", &RecallTreeBinding::explain, nb::arg("X"), nb::kw_only(), nb::arg("row"), "How one row is answered.")
      .def("set_threads", &RecallTreeBinding::set_threads, "How many threads learning may use.")
      .def("figures", &RecallTreeBinding::figures, "What is known of every node.")
      .def("counts", &RecallTreeBinding::counts, "Labels and their counts at every node.")
      .def_prop_ro("label_bytes", &RecallTreeBinding::label_bytes)
      .def_prop_ro("n_candidates", &RecallTreeBinding::n_candidates);
  bind_online_tree(c);
}

}  // namespace sapwood::bindings
