#include "trees/label_btree.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <shared_mutex>

#include "bindings/bind.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "bindings/targets.h"

namespace sapwood::bindings {

namespace {

using Node = LabelBTree::Node;

void damaged_if(bool bad) {
  if (bad) throw nb::value_error("the model is damaged: its nodes do not fit together");
}

size_t banks_of(const Node& o) { return (o.children.size() + kBankLanes - 1) / kBankLanes; }

// All nodes as arrays, one after the other; the features of each ascend.
struct NodeArrays {
  std::vector<int32_t> is_leaf, children;
  std::vector<int64_t> children_indptr{0}, features_indptr{0}, n_rows, regroup_at;
  std::vector<uint32_t> features;
  std::vector<uint16_t> banks, lone_lanes;  // banks: 0 where one lane alone has a weight
  std::vector<float> bias, weights, squares, lone_weights;  // of lone ones weight and squared gradients

  void add(const Node& o) {
    is_leaf.push_back(o.is_leaf);
    n_rows.push_back(o.n_rows);
    regroup_at.push_back(o.regroup_at);
    children.insert(children.end(), o.children.begin(), o.children.end());
    children_indptr.push_back(static_cast<int64_t>(children.size()));
    bias.insert(bias.end(), o.group.bias(), o.group.bias() + banks_of(o) * kOnlineLine);
    std::vector<GrowingGroup::Slot> slots;
    for (const GrowingGroup::Slot& slot : o.group.slots()) {
      if (slot.banks) slots.push_back(slot);
    }
    std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) { return a.feature < b.feature; });
    for (const GrowingGroup::Slot& slot : slots) {
      features.push_back(slot.feature);
      banks.push_back(slot.is_lone() ? uint16_t{0} : slot.banks);
      if (slot.is_lone()) {
        lone_lanes.push_back(slot.lane);
        lone_weights.insert(lone_weights.end(), slot.lone, slot.lone + 2);
        continue;
      }
      for (unsigned left = slot.banks; left; left &= left - 1) {
        const float* const line = o.group.weights(slot, std::countr_zero(left));
        weights.insert(weights.end(), line, line + kBankLanes);
        squares.insert(squares.end(), line + GrowingGroup::to_squares(slot), line + GrowingGroup::to_squares(slot) + kBankLanes);
      }
    }
    features_indptr.push_back(static_cast<int64_t>(features.size()));
  }
};

bool all_finite(const Array<float>& values) {
  return std::all_of(values.data(), values.data() + values.shape(0), [](float x) { return std::isfinite(x); });
}

// Reads what NodeArrays wrote; every size and index is checked.
class NodeReader {
 public:
  explicit NodeReader(const nb::dict& arrays)
      : is_leaf_(nb::cast<Array<int32_t>>(arrays["is_leaf"])),
        n_rows_(nb::cast<Array<int64_t>>(arrays["n_rows"])),
        regroup_at_(nb::cast<Array<int64_t>>(arrays["regroup_at"])),
        children_(nb::cast<Array<int32_t>>(arrays["children"])),
        children_indptr_(nb::cast<Array<int64_t>>(arrays["children_indptr"])),
        features_indptr_(nb::cast<Array<int64_t>>(arrays["features_indptr"])),
        features_(nb::cast<Array<uint32_t>>(arrays["features"])),
        banks_(nb::cast<Array<uint16_t>>(arrays["banks"])),
        bias_(nb::cast<Array<float>>(arrays["bias"])),
        weights_(nb::cast<Array<float>>(arrays["weights"])),
        squares_(nb::cast<Array<float>>(arrays["squares"])),
        lone_lanes_(nb::cast<Array<uint16_t>>(arrays["lone_lanes"])),
        lone_weights_(nb::cast<Array<float>>(arrays["lone_weights"])) {
    damaged_if(n_rows_.shape(0) != is_leaf_.shape(0) || regroup_at_.shape(0) != is_leaf_.shape(0));
    check_indptr(children_indptr_, children_.shape(0));
    check_indptr(features_indptr_, features_.shape(0));
    damaged_if(banks_.shape(0) != features_.shape(0));
    size_t lines = 0, lone = 0;
    for (size_t i = 0; i < banks_.shape(0); ++i) {
      lines += static_cast<size_t>(std::popcount(banks_(i)));
      lone += banks_(i) == 0;
    }
    damaged_if(lone_lanes_.shape(0) != lone || lone_weights_.shape(0) != 2 * lone);
    for (size_t i = 0; i < lone; ++i) damaged_if(lone_lanes_(i) >= LabelBTree::kMostLanes || !(lone_weights_(2 * i + 1) > 0));
    damaged_if(weights_.shape(0) != lines * kBankLanes || squares_.shape(0) != lines * kBankLanes);
    damaged_if(!all_finite(lone_weights_) || !all_finite(bias_) || !all_finite(weights_) || !all_finite(squares_));
    damaged_if(std::any_of(squares_.data(), squares_.data() + squares_.shape(0), [](float x) { return x <= 0; }));
  }

  std::vector<std::unique_ptr<Node>> read(LineArena& arena) {
    std::vector<std::unique_ptr<Node>> nodes;
    for (size_t v = 0; v < is_leaf_.shape(0); ++v) nodes.push_back(read_node(v, arena));
    damaged_if(bias_at_ != bias_.shape(0));
    return nodes;
  }

 private:
  void check_indptr(const Array<int64_t>& indptr, size_t n) const {
    damaged_if(indptr.shape(0) != is_leaf_.shape(0) + 1 || indptr(0) != 0);
    for (size_t v = 0; v < is_leaf_.shape(0); ++v) damaged_if(indptr(v) > indptr(v + 1));
    damaged_if(indptr(is_leaf_.shape(0)) != static_cast<int64_t>(n));
  }

  std::unique_ptr<Node> read_node(size_t v, LineArena& arena) {
    auto o = std::make_unique<Node>(arena);
    o->is_leaf = is_leaf_(v) != 0;
    o->n_rows = n_rows_(v);
    o->regroup_at = regroup_at_(v);
    damaged_if(children_indptr_(v + 1) - children_indptr_(v) > LabelBTree::kMostLanes);
    o->children.assign(children_.data() + children_indptr_(v), children_.data() + children_indptr_(v + 1));
    const size_t n_bias = banks_of(*o) * kOnlineLine;
    damaged_if(bias_at_ + n_bias > bias_.shape(0));
    std::copy_n(bias_.data() + bias_at_, n_bias, o->group.bias());
    bias_at_ += n_bias;
    for (auto i = static_cast<size_t>(features_indptr_(v)); i < static_cast<size_t>(features_indptr_(v + 1)); ++i) {
      damaged_if(i > static_cast<size_t>(features_indptr_(v)) && features_(i) <= features_(i - 1));
      if (banks_(i) == 0) {
        o->group.put(features_(i), lone_lanes_(lone_at_), lone_weights_(2 * lone_at_), lone_weights_(2 * lone_at_ + 1));
        ++lone_at_;
        continue;
      }
      const GrowingGroup::Slot slot = o->group.add(features_(i), banks_(i));
      for (unsigned left = banks_(i); left; left &= left - 1, line_at_ += kBankLanes) {
        float* const line = o->group.weights(slot, std::countr_zero(left));
        std::copy_n(weights_.data() + line_at_, kBankLanes, line);
        std::copy_n(squares_.data() + line_at_, kBankLanes, line + GrowingGroup::to_squares(slot));
      }
    }
    return o;
  }

  Array<int32_t> is_leaf_;
  Array<int64_t> n_rows_, regroup_at_;
  Array<int32_t> children_;
  Array<int64_t> children_indptr_, features_indptr_;
  Array<uint32_t> features_;
  Array<uint16_t> banks_;
  Array<float> bias_, weights_, squares_;
  Array<uint16_t> lone_lanes_;
  Array<float> lone_weights_;
  size_t bias_at_ = 0, line_at_ = 0, lone_at_ = 0;
};

void add(RowQueue::Arrays waiting, nb::dict& out) {
  out["waiting_indptr"] = to_numpy(std::move(waiting.indptr));
  out["waiting_features"] = to_numpy(std::move(waiting.features));
  out["waiting_values"] = to_numpy(std::move(waiting.values));
  out["waiting_label_indptr"] = to_numpy(std::move(waiting.label_indptr));
  out["waiting_labels"] = to_numpy(std::move(waiting.labels));
  out["waiting_weight"] = to_numpy(std::move(waiting.weight));
  out["waiting_learned"] = to_numpy(std::move(waiting.learned));
}

template <class T>
std::vector<T> to_vector(const nb::handle& array) {
  const auto a = nb::cast<Array<T>>(array);
  return {a.data(), a.data() + a.shape(0)};
}

void check_pointers(const std::vector<int64_t>& indptr, size_t n_rows, size_t n_entries) {
  damaged_if(indptr.size() != n_rows + 1 || indptr.front() != 0 || indptr.back() != static_cast<int64_t>(n_entries));
  damaged_if(!std::is_sorted(indptr.begin(), indptr.end()));
}

// What add() wrote; whether the labels are known is for the tree to check.
RowQueue::Arrays read_waiting(const nb::dict& arrays, int64_t n_rows) {
  RowQueue::Arrays w;
  w.indptr = to_vector<int64_t>(arrays["waiting_indptr"]);
  w.features = to_vector<uint32_t>(arrays["waiting_features"]);
  w.values = to_vector<float>(arrays["waiting_values"]);
  w.label_indptr = to_vector<int64_t>(arrays["waiting_label_indptr"]);
  w.labels = to_vector<int32_t>(arrays["waiting_labels"]);
  w.weight = to_vector<float>(arrays["waiting_weight"]);
  w.learned = to_vector<int64_t>(arrays["waiting_learned"]);
  damaged_if(w.values.size() != w.features.size() || w.learned.size() != w.weight.size());
  check_pointers(w.indptr, w.weight.size(), w.features.size());
  check_pointers(w.label_indptr, w.weight.size(), w.labels.size());
  const auto is_finite = [](float x) { return std::isfinite(x); };
  damaged_if(!std::all_of(w.values.begin(), w.values.end(), is_finite));
  damaged_if(!std::all_of(w.weight.begin(), w.weight.end(), [](float x) { return std::isfinite(x) && x > 0; }));
  damaged_if(std::any_of(w.learned.begin(), w.learned.end(), [&](int64_t row) { return row < 0 || row > n_rows; }));
  return w;
}

LabelBTree::Options checked(const LabelBTree::Options& o) {
  for (const int32_t most : {o.arity, o.max_leaf}) {
    if (most < 4 || most > LabelBTree::kMostLanes || most % 2) throw nb::value_error("arity and max_leaf must be even, 4 to 256");
  }
  return o;
}

class BTree {
 public:
  BTree(int32_t arity, int32_t max_leaf, float step, bool normalize, float decay, int64_t max_memory, int64_t second_look,
        uint64_t random_state)
      : tree_(checked({arity, max_leaf, step, normalize, decay, max_memory, second_look}), random_state) {}
  BTree(const BTree&) = delete;

  void learn(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& labels, int32_t n_labels,
             std::optional<Array<float>> row_weight, int32_t passes, bool predict_first, int32_t beam, float min_beam_share,
             const nb::object& progress) {
    const LabelSets sets = label_sets(label_indptr, labels, n_labels);
    if (sets.n_rows != X.n_rows()) throw nb::value_error("X and the labels differ in length");
    const float* const weight = data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight");
    run_interruptible(progress, [&](Monitor& monitor) {
      const std::unique_lock alone(mutex_);
      monitor.total = X.n_rows() * passes;
      for (int32_t pass = 0; pass < passes; ++pass) {
        X.visit([&](const auto& rows) {
          tree_.learn(rows, sets.indptr, sets.labels, n_labels, weight, predict_first, {beam, std::log(min_beam_share)}, monitor);
        });
      }
    });
  }

  nb::tuple top(const RowsView& X, int32_t k, int32_t beam, float min_beam_share, int n_threads) const {
    if (k < 1 || k > n_placed()) throw nb::value_error("k is out of range");
    const auto n = static_cast<size_t>(X.n_rows()), width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    answer(n, [&](Monitor& monitor) {
      const std::shared_lock shared(mutex_);
      X.visit([&](const auto& rows) {
        tree_.predict_top(rows, k, {beam, std::log(min_beam_share)}, n_threads, labels.data(), scores.data(), monitor);
      });
    });
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  // For each node from the root to the label: its number, its children, the rank and score of the right one, labels below.
  nb::list path(const RowsView& X, int64_t row, int32_t label) const {
    const std::shared_lock shared(mutex_);
    const bool known = label >= 0 && static_cast<size_t>(label) < tree_.places().size();
    if (row < 0 || row >= X.n_rows() || !known) throw nb::index_error("no such row or label");
    nb::list steps;
    for (const auto& s : X.visit([&](const auto& rows) { return tree_.path(rows, row, label); })) {
      steps.append(nb::make_tuple(s.node, s.n_children, s.rank, s.score, s.n_labels));
    }
    return steps;
  }

  void remove(const std::vector<int32_t>& labels) {
    const std::unique_lock alone(mutex_);
    for (const int32_t label : labels) {
      if (label < 0 || static_cast<size_t>(label) >= tree_.places().size()) throw nb::index_error("no such label");
    }
    for (const int32_t label : labels) tree_.remove(label);
  }

  nb::dict state() const {
    const std::shared_lock shared(mutex_);
    NodeArrays a;
    for (const auto& o : tree_.nodes()) a.add(*o);
    const LabelBTree::Figures f = tree_.figures();
    nb::dict out;
    out["is_leaf"] = to_numpy(std::move(a.is_leaf));
    out["n_rows"] = to_numpy(std::move(a.n_rows));
    out["regroup_at"] = to_numpy(std::move(a.regroup_at));
    out["children"] = to_numpy(std::move(a.children));
    out["children_indptr"] = to_numpy(std::move(a.children_indptr));
    out["features_indptr"] = to_numpy(std::move(a.features_indptr));
    out["features"] = to_numpy(std::move(a.features));
    out["banks"] = to_numpy(std::move(a.banks));
    out["bias"] = to_numpy(std::move(a.bias));
    out["weights"] = to_numpy(std::move(a.weights));
    out["squares"] = to_numpy(std::move(a.squares));
    out["lone_lanes"] = to_numpy(std::move(a.lone_lanes));
    out["lone_weights"] = to_numpy(std::move(a.lone_weights));
    add(tree_.waiting(), out);
    out["counts"] = to_numpy(std::vector<int64_t>(tree_.counts()));
    out["figures"] = to_numpy(std::vector<int64_t>{tree_.root(), f.rows, f.row_labels, f.dropped_lines});
    out["progressive"] = to_numpy(std::vector<double>{f.progressive.wrong, f.progressive.seen});
    out["random_state"] = to_numpy(std::vector<uint64_t>{f.random_state});
    return out;
  }

  void restore(const nb::dict& arrays, int32_t n_labels) {
    const auto counts = nb::cast<Array<int64_t>>(arrays["counts"]);
    const auto figures = nb::cast<Array<int64_t>>(arrays["figures"]);
    const auto progressive = nb::cast<Array<double>>(arrays["progressive"]);
    const auto random_state = nb::cast<Array<uint64_t>>(arrays["random_state"]);
    damaged_if(n_labels < 0 || counts.shape(0) > static_cast<size_t>(n_labels) || figures.shape(0) != 4);
    damaged_if(progressive.shape(0) != 2 || random_state.shape(0) != 1);
    damaged_if(figures(0) < 0 || figures(0) > INT32_MAX);
    const LabelBTree::Figures f{{progressive(0), progressive(1)}, figures(1), figures(2), figures(3), random_state(0)};
    std::vector<int64_t> all(counts.data(), counts.data() + counts.shape(0));
    damaged_if(!tree_.restore(NodeReader(arrays).read(tree_.arena()), static_cast<int32_t>(figures(0)), std::move(all), f, read_waiting(arrays, f.rows)));
  }

  // Labels and nodes: who is the child of whom, and how many labels are below.
  nb::dict shape() const {
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> parent, children;
    std::vector<int64_t> indptr{0}, n_labels;
    for (const auto& o : tree_.nodes()) {
      parent.push_back(o->parent);
      n_labels.push_back(o->n_labels);
      if (!o->is_leaf) children.insert(children.end(), o->children.begin(), o->children.end());
      indptr.push_back(static_cast<int64_t>(children.size()));
    }
    nb::dict out;
    out["parent"] = to_numpy(std::move(parent));
    out["children"] = to_numpy(std::move(children));
    out["indptr"] = to_numpy(std::move(indptr));
    out["n_labels"] = to_numpy(std::move(n_labels));
    return out;
  }

  // By label: its leaf, or -1 where it has none.
  nb::object leaves() const {
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> leaf;
    for (const auto& place : tree_.places()) leaf.push_back(place.node);
    return to_numpy(std::move(leaf));
  }
  nb::object counts() const {
    const std::shared_lock shared(mutex_);
    return to_numpy(std::vector<int64_t>(tree_.counts()));
  }
  nb::tuple progressive() const {
    const std::shared_lock shared(mutex_);
    const Progressive p = tree_.figures().progressive;
    return nb::make_tuple(p.wrong, p.seen);
  }
  int64_t dropped_lines() const {
    const std::shared_lock shared(mutex_);
    return tree_.figures().dropped_lines;
  }
  int64_t memory() const {
    const std::shared_lock shared(mutex_);
    return tree_.memory();
  }
  int64_t n_placed() const {
    const std::shared_lock shared(mutex_);
    return tree_.n_placed();
  }

 private:
  LabelBTree tree_;
  mutable std::shared_mutex mutex_;  // who learns has the model alone; who predicts shares it
};

}  // namespace

void bind_label_btree(nb::module_& m) {
  nb::class_<BTree>(m, "LabelBTree", "A B-tree of banks that learns online.")
      .def(nb::init<int32_t, int32_t, float, bool, float, int64_t, int64_t, uint64_t>(), nb::kw_only(), nb::arg("arity"),
           nb::arg("max_leaf"), nb::arg("step"), nb::arg("normalize"), nb::arg("decay"), nb::arg("max_memory"),
           nb::arg("second_look"), nb::arg("random_state"))
      .def("learn", &BTree::learn, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(),
           nb::arg("n_labels"), nb::arg("row_weight").none(), nb::arg("passes"), nb::arg("predict_first"), nb::arg("beam"),
           nb::arg("min_beam_share"), nb::arg("progress").none(), "Learn rows in their order.")
      .def("top", &BTree::top, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("beam"), nb::arg("min_beam_share"),
           nb::arg("n_threads"), "The k best labels of each row: codes and scores, best first; -1 where fewer were met.")
      .def("path", &BTree::path, nb::arg("X"), nb::kw_only(), nb::arg("row"), nb::arg("label"),
           "What the regressors say of one row, from the root to a label.")
      .def("remove", &BTree::remove, nb::arg("labels"), "Withdraw labels.")
      .def("state", &BTree::state, "The model as arrays.")
      .def("restore", &BTree::restore, nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"), "Take back what state() gave.")
      .def("shape", &BTree::shape, "Parents, children and labels below of every node.")
      .def("leaves", &BTree::leaves, "The leaf of each label, or -1.")
      .def("counts", &BTree::counts, "Rows learned of each label.")
      .def("progressive", &BTree::progressive, "Weight of the rows predicted wrongly before they were learned, and of all.")
      .def_prop_ro("dropped_lines", &BTree::dropped_lines, "Lines of weights dropped to keep within max_memory.")
      .def_prop_ro("memory", &BTree::memory, "Bytes of weights and their index.")
      .def_prop_ro("n_placed", &BTree::n_placed, "Labels that have a place in the tree.");
}

}  // namespace sapwood::bindings
