#include "threads/pipe.h"

#include <stdexcept>
#include <vector>

#include "check.h"

using namespace sapwood;

TEST(pipe_carries_out_all_in_order) {
  std::vector<int> seen;
  Pipe<int> pipe(3, [&](int& item) { seen.push_back(item); });
  for (int i = 0; i < 10000; ++i) {
    pipe.next() = i;
    pipe.push();
  }
  pipe.finish();
  CHECK(seen.size() == 10000);
  for (int i = 0; i < 10000; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
}

TEST(pipe_throws_what_went_wrong) {
  int done = 0;
  Pipe<int> pipe(2, [&](int& item) {
    if (item == 5) throw std::runtime_error("five");
    ++done;
  });
  for (int i = 0; i < 100; ++i) {
    pipe.next() = i;
    pipe.push();
  }
  bool thrown = false;
  try {
    pipe.finish();
  } catch (const std::runtime_error&) {
    thrown = true;
  }
  CHECK(thrown);
  CHECK(done == 5);
}
