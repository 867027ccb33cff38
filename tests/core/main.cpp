#include <cstdio>
#include <exception>

#include "check.h"

namespace {

bool passes(const check::Test& test) {
  try {
    test.run();
    return true;
  } catch (const std::exception& error) {
    std::printf("%s\n  %s\n", test.name, error.what());
  } catch (...) {
    std::printf("%s\n  threw something that is no std::exception\n", test.name);
  }
  return false;
}

}  // namespace

int main() {
  int n_passed = 0;
  int n_failed = 0;
  for (const check::Test& test : check::tests()) ++(passes(test) ? n_passed : n_failed);
  std::printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed == 0 ? 0 : 1;
}
