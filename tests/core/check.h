#pragma once

#include <stdexcept>
#include <string>
#include <vector>

/// TEST(name) { ... } registers a test that main.cpp runs. The first check that fails ends it.
#define TEST(name)                                                \
  static void name();                                             \
  static const check::Registration registration_##name(#name, name); \
  static void name()

#define CHECK(...)                                                    \
  do {                                                                \
    if (!(__VA_ARGS__)) check::fail(__FILE__, __LINE__, #__VA_ARGS__); \
  } while (false)

#define CHECK_THROWS(expression, Exception)                                                  \
  do {                                                                                       \
    bool check_has_thrown = false;                                                           \
    try {                                                                                    \
      static_cast<void>(expression);                                                         \
    } catch (const Exception&) {                                                             \
      check_has_thrown = true;                                                               \
    }                                                                                        \
    if (!check_has_thrown) check::fail(__FILE__, __LINE__, #expression " throws " #Exception); \
  } while (false)

namespace check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

[[noreturn]] inline void fail(const char* file, int line, const char* condition) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": not so: " + condition);
}

}  // namespace check
