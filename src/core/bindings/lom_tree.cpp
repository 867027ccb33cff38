#include "trees/lom_tree.h"

#include <cmath>

#include "bindings/bind.h"
#include "bindings/online_tree.h"

namespace sapwood::bindings {

namespace {

class LomTreeBinding : public OnlineTree<LomTree> {
 public:
  LomTreeBinding(bool dense, int64_t n_columns, const std::string& loss, const std::string& method, float step, float initial, double tolerance,
                 int64_t max_internal, int64_t internal_per_label, double swap_resistance, bool normalize)
      : OnlineTree(n_columns, LomTree::Options{rule_of(loss, method, step, initial, tolerance), max_internal, internal_per_label,
                                               swap_resistance, normalize},
                   dense, n_columns) {
    if (!(swap_resistance >= 1) || internal_per_label < 1 || max_internal < -1) throw nb::value_error("an option is out of range");
  }

  // A leaf's labels and their shares, heaviest first.
  [[nodiscard]] nb::tuple ranking(int32_t leaf, int32_t top) const {
    if (leaf < 0 || leaf >= std::ssize(model_.nodes())) throw nb::index_error("no such node");
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> labels;
    std::vector<double> shares;
    for (const auto& [label, share] : model_.ranking(leaf, top)) {
      labels.push_back(label);
      shares.push_back(share);
    }
    return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(shares)));
  }

  // Its nodes, without their routers.
  [[nodiscard]] nb::dict tree() const {
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> parent, left, right, recycles, labels;
    std::vector<int64_t> node_labels{0};
    std::vector<double> total, m_sum, n_sum, C, floor, l, n, m, sent_right;
    for (const LomTree::Node& v : model_.nodes()) {
      parent.push_back(v.parent);
      left.push_back(v.left);
      right.push_back(v.right);
      recycles.push_back(v.recycles);
      total.push_back(v.total);
      m_sum.push_back(v.m_sum);
      n_sum.push_back(v.n_sum);
      C.push_back(v.C);
      floor.push_back(v.floor);
      for (const LomCount& count : v.counts.sorted()) {
        labels.push_back(count.label);
        l.push_back(count.l);
        n.push_back(count.n);
        m.push_back(count.m);
        sent_right.push_back(count.sent_right);
      }
      node_labels.push_back(static_cast<int64_t>(labels.size()));
    }
    nb::dict out;
    out["parent"] = to_numpy(std::move(parent));
    out["left"] = to_numpy(std::move(left));
    out["right"] = to_numpy(std::move(right));
    out["recycles"] = to_numpy(std::move(recycles));
    out["total"] = to_numpy(std::move(total));
    out["m_sum"] = to_numpy(std::move(m_sum));
    out["n_sum"] = to_numpy(std::move(n_sum));
    out["C"] = to_numpy(std::move(C));
    out["floor"] = to_numpy(std::move(floor));
    out["node_labels"] = to_numpy(std::move(node_labels));
    out["labels"] = to_numpy(std::move(labels));
    out["l"] = to_numpy(std::move(l));
    out["n"] = to_numpy(std::move(n));
    out["m"] = to_numpy(std::move(m));
    out["sent_right"] = to_numpy(std::move(sent_right));
    return out;
  }

  [[nodiscard]] nb::dict state() const {
    nb::dict out = tree();
    put_common_state(out);
    return out;
  }

  void restore(const nb::dict& arrays, int32_t n_labels) {
    const auto parent = array_of<int32_t>(arrays, "parent"), left = array_of<int32_t>(arrays, "left"),
               right = array_of<int32_t>(arrays, "right"), recycles = array_of<int32_t>(arrays, "recycles");
    const auto total = array_of<double>(arrays, "total"), m_sum = array_of<double>(arrays, "m_sum"),
               n_sum = array_of<double>(arrays, "n_sum"), C = array_of<double>(arrays, "C"), floor = array_of<double>(arrays, "floor");
    const auto bounds = array_of<int64_t>(arrays, "node_labels");
    const size_t n = parent.size();
    for (const size_t size : {left.size(), right.size(), recycles.size(), total.size(), m_sum.size(), n_sum.size(), C.size(), floor.size()}) {
      if (size != n) damaged("its nodes' arrays differ in length");
    }
    if (bounds.size() != n + 1 || bounds[0] != 0) damaged("its label counts do not fit its nodes");
    check_weights({total, n_sum, C, floor});
    std::vector<LomTree::Node> nodes(n);
    for (size_t v = 0; v < n; ++v) {
      if (parent[v] < -1 || parent[v] >= std::ssize(parent)) damaged("a node has no such parent");
      if (recycles[v] < 0 || recycles[v] > kMostRecycles) damaged("a node was not recycled so often");
      nodes[v] = {.parent = parent[v], .left = left[v], .right = right[v], .recycles = recycles[v], .heaviest_label = -1, .heaviest = 0,
                  .total = total[v], .m_sum = m_sum[v], .n_sum = n_sum[v], .C = C[v], .floor = floor[v], .counts = {}};
    }
    restore_counts(arrays, bounds, n_labels, nodes);
    if (!model_.restore(std::move(nodes), routers_of(arrays))) damaged("its nodes and routers are no tree");
    restore_progressive(arrays);
  }

 private:
  static constexpr int32_t kMostRecycles = 1 << 20;

  // Sums of weights: that none is negative keeps a leaf from being its own orphan.
  static void check_weights(std::initializer_list<std::span<const double>> arrays) {
    for (const auto& array : arrays) {
      for (const double x : array) {
        if (!std::isfinite(x) || x < 0) damaged("a sum of weights is negative or not finite");
      }
    }
  }

  static void restore_counts(const nb::dict& arrays, std::span<const int64_t> bounds, int32_t n_labels, std::vector<LomTree::Node>& nodes) {
    const auto labels = array_of<int32_t>(arrays, "labels");
    const auto l = array_of<double>(arrays, "l"), n = array_of<double>(arrays, "n"), m = array_of<double>(arrays, "m"),
               sent_right = array_of<double>(arrays, "sent_right");
    const size_t size = labels.size();
    if (l.size() != size || n.size() != size || m.size() != size || sent_right.size() != size ||
        bounds.back() != std::ssize(labels)) {
      damaged("its label counts differ in length");
    }
    check_weights({l, n, sent_right});
    for (size_t v = 0; v < nodes.size(); ++v) {
      if (bounds[v] > bounds[v + 1] || bounds[v + 1] > std::ssize(labels)) damaged("its label counts do not ascend");
      for (auto k = static_cast<size_t>(bounds[v]); k < static_cast<size_t>(bounds[v + 1]); ++k) {
        if (labels[k] < 0 || labels[k] >= n_labels) damaged("it counts a label that it does not have");
        nodes[v].counts.of(labels[k]) = {labels[k], l[k], n[k], m[k], sent_right[k]};
      }
    }
  }
};

}  // namespace

void bind_lom_tree(nb::module_& m) {
  nb::class_<LomTreeBinding> c(m, "LomTree", "A LOMtree.");
  c.def(nb::init<bool, int64_t, const std::string&, const std::string&, float, float, double, int64_t, int64_t, double, bool>(), nb::kw_only(),
        nb::arg("dense"), nb::arg("n_columns"), nb::arg("loss"), nb::arg("method"), nb::arg("step"), nb::arg("initial"), nb::arg("tolerance"),
        nb::arg("max_internal"), nb::arg("internal_per_label"), nb::arg("swap_resistance"), nb::arg("normalize"));
  bind_online_tree(c);
  c.def("tree", &LomTreeBinding::tree, "Its nodes as arrays.");
  c.def("ranking", &LomTreeBinding::ranking, nb::arg("leaf"), nb::kw_only(), nb::arg("top"), "A leaf's labels and shares.");
}

}  // namespace sapwood::bindings
