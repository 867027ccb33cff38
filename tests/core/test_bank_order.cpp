#include "trees/bank_order.h"

#include <algorithm>
#include <vector>

#include "check.h"

using namespace sapwood;

TEST(bank_order_names_every_label_once) {
  std::vector<LabelList> lists;
  for (int32_t i = 0; i < 100; ++i) lists.push_back({{i, (7 * i + 3) % 150, 149 - i}, 1 + i % 5});
  std::vector<int32_t> order = bank_order(lists);
  std::sort(order.begin(), order.end());
  CHECK(std::adjacent_find(order.begin(), order.end()) == order.end());
  std::vector<int32_t> wanted;
  for (const LabelList& list : lists) wanted.insert(wanted.end(), list.labels.begin(), list.labels.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  CHECK(order == wanted);
}

TEST(bank_order_puts_labels_of_a_list_together) {
  std::vector<LabelList> lists(4);  // of 16 labels each, dealt out in turns
  for (int32_t label = 0; label < 64; ++label) lists[static_cast<size_t>(label % 4)].labels.push_back(label);
  for (size_t i = 0; i < lists.size(); ++i) lists[i].times = static_cast<int64_t>(i) + 1;
  const std::vector<int32_t> order = bank_order(lists);
  CHECK(order.size() == 64);
  for (size_t place = 0; place < order.size(); ++place) CHECK(order[place] % 4 == 3 - static_cast<int32_t>(place / 16));
}
