#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"
#include "threads/parallel.h"

using namespace sapwood;

TEST(parallel_for_does_every_task_once) {
  for (const int n_threads : {-1, 0, 1, 2, 7}) {
    for (const int64_t n_tasks : {0, 1, 2, 100}) {
      Monitor monitor;
      std::vector<std::atomic<int>> done(static_cast<size_t>(n_tasks));
      std::atomic<int> highest{0};
      parallel_for(n_tasks, n_threads, monitor, [&](int64_t task, int thread) {
        ++done[static_cast<size_t>(task)];
        int seen = highest;
        while (thread > seen && !highest.compare_exchange_weak(seen, thread)) {}
      });
      for (const auto& n : done) CHECK(n == 1);
      CHECK(highest < std::max(n_threads, 1));
    }
  }
}

TEST(one_thread_takes_tasks_in_order_on_the_caller) {
  Monitor monitor;
  std::vector<int64_t> order;
  const auto caller = std::this_thread::get_id();
  parallel_for(50, 1, monitor, [&](int64_t task, int thread) {
    CHECK(thread == 0);
    CHECK(std::this_thread::get_id() == caller);
    order.push_back(task);
  });
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<int64_t>(i));
}

TEST(each_thread_has_a_number_of_its_own) {
  Monitor monitor;
  std::mutex mutex;
  std::vector<std::thread::id> id_of(4);
  parallel_for(200, 4, monitor, [&](int64_t, int thread) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex);
    auto& id = id_of[static_cast<size_t>(thread)];
    if (id == std::thread::id()) id = std::this_thread::get_id();
    CHECK(id == std::this_thread::get_id());
  });
}

TEST(an_exception_ends_the_rest_and_is_thrown_on) {
  for (const int n_threads : {1, 3}) {
    Monitor monitor;
    std::atomic<int> started{0};
    bool caught = false;
    try {
      parallel_for(1000000, n_threads, monitor, [&](int64_t task, int) {
        ++started;
        if (task == 10) throw std::out_of_range("ten");
      });
    } catch (const std::out_of_range& error) {
      caught = std::string(error.what()) == "ten";
    }
    CHECK(caught);
    CHECK(started < 1000000);
  }
}

TEST(of_many_exceptions_one_is_thrown_on) {
  Monitor monitor;
  CHECK_THROWS(parallel_for(100, 4, monitor, [](int64_t, int) { throw std::runtime_error("each"); }), std::runtime_error);
}

TEST(stop_ends_the_work) {
  for (const int n_threads : {1, 3}) {
    Monitor monitor;
    std::atomic<int> started{0};
    CHECK_THROWS(parallel_for(1000000, n_threads, monitor,
                              [&](int64_t, int) {
                                if (++started == 10) monitor.request_stop();
                              }),
                 Interrupted);
    CHECK(started < 1000);
    CHECK_THROWS(parallel_for(10, n_threads, monitor, [&](int64_t, int) { started = 0; }), Interrupted);
    CHECK(started != 0);
  }
}

TEST(parallel_for_within_parallel_for) {
  Monitor monitor;
  std::atomic<int> n{0};
  parallel_for(8, 3, monitor, [&](int64_t, int) { parallel_for(8, 3, monitor, [&](int64_t, int) { ++n; }); });
  CHECK(n == 64);
}
