#include "trees/balanced_tree.h"

#include "bindings/bind.h"
#include "bindings/online_tree.h"

namespace sapwood::bindings {

namespace {

class BalancedTreeBinding : public OnlineTree<BalancedTree> {
 public:
  BalancedTreeBinding(bool dense, int64_t n_columns, const std::string& loss, const std::string& method, float step, float initial, double tolerance,
                      bool filter, bool normalize, uint64_t random_state)
      : OnlineTree(n_columns, BalancedTree::Options{rule_of(loss, method, step, initial, tolerance), filter, normalize}, dense, n_columns,
                   random_state) {}

  // Its nodes, without their routers.
  [[nodiscard]] nb::dict tree() const {
    const std::shared_lock shared(mutex_);
    std::vector<int32_t> parent, left, right, label;
    std::vector<double> examples, sent_right, agreed;
    for (const BalancedTree::Node& v : model_.nodes()) {
      parent.push_back(v.parent);
      left.push_back(v.left);
      right.push_back(v.right);
      label.push_back(v.label);
      examples.push_back(v.examples);
      sent_right.push_back(v.sent_right);
      agreed.push_back(v.agreed);
    }
    nb::dict out;
    out["parent"] = to_numpy(std::move(parent));
    out["left"] = to_numpy(std::move(left));
    out["right"] = to_numpy(std::move(right));
    out["label"] = to_numpy(std::move(label));
    out["examples"] = to_numpy(std::move(examples));
    out["sent_right"] = to_numpy(std::move(sent_right));
    out["agreed"] = to_numpy(std::move(agreed));
    out["shallow"] = to_numpy(std::vector<int32_t>(model_.shallow()));
    out["deep"] = to_numpy(std::vector<int32_t>(model_.deep()));
    out["random_state"] = to_numpy(std::vector<uint64_t>{model_.random_state()});
    return out;
  }

  [[nodiscard]] nb::dict state() const {
    nb::dict out = tree();
    put_common_state(out);
    return out;
  }

  void restore(const nb::dict& arrays, int32_t n_labels) {
    const auto parent = array_of<int32_t>(arrays, "parent"), left = array_of<int32_t>(arrays, "left"),
               right = array_of<int32_t>(arrays, "right"), label = array_of<int32_t>(arrays, "label");
    const auto examples = array_of<double>(arrays, "examples"), sent_right = array_of<double>(arrays, "sent_right"),
               agreed = array_of<double>(arrays, "agreed");
    const size_t n = parent.size();
    for (const size_t size : {left.size(), right.size(), label.size(), examples.size(), sent_right.size(), agreed.size()}) {
      if (size != n) damaged("its nodes' arrays differ in length");
    }
    std::vector<BalancedTree::Node> nodes(n);
    for (size_t v = 0; v < n; ++v) {
      if (label[v] >= n_labels) damaged("a leaf has a label that it does not have");
      nodes[v] = {parent[v], left[v], right[v], label[v], examples[v], sent_right[v], agreed[v]};
    }
    if (!model_.restore(std::move(nodes), copy_of<int32_t>(arrays, "shallow"), copy_of<int32_t>(arrays, "deep"), routers_of(arrays))) {
      damaged("its nodes and routers are no balanced tree");
    }
    const auto random_state = array_of<uint64_t>(arrays, "random_state");
    if (random_state.size() != 1) damaged("its random state is none");
    model_.set_random_state(random_state[0]);
    restore_progressive(arrays);
  }
};

}  // namespace

void bind_balanced_tree(nb::module_& m) {
  nb::class_<BalancedTreeBinding> c(m, "BalancedTree", "A random tree or a filter tree.");
  c.def(nb::init<bool, int64_t, const std::string&, const std::string&, float, float, double, bool, bool, uint64_t>(), nb::kw_only(),
        nb::arg("dense"), nb::arg("n_columns"), nb::arg("loss"), nb::arg("method"), nb::arg("step"), nb::arg("initial"), nb::arg("tolerance"),
        nb::arg("filter"), nb::arg("normalize"), nb::arg("random_state"));
  bind_online_tree(c);
  c.def("tree", &BalancedTreeBinding::tree, "Its nodes as arrays.");
}

}  // namespace sapwood::bindings
