// Work shared among threads that live for one call: nothing outlasts it, so a forked child can work on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace sapwood {

// How a long call tells of its progress, and is told to stop.
struct Monitor {
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> total{0};
  int stop = 0;  // read and written with atomic builtins: kernels take its address

  void request_stop() { __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); }
  [[nodiscard]] bool stopped() const { return __atomic_load_n(&stop, __ATOMIC_RELAXED) != 0; }
};

// A call that was told to stop ends with this.
struct Interrupted {};

// Calls work(task, thread) for every task in [0, n_tasks), in that order of starting, on n_threads threads.
// The first exception stops the rest and is thrown on; so does monitor's stop, as Interrupted.
void parallel_for(int64_t n_tasks, int n_threads, Monitor& monitor,
                  const std::function<void(int64_t task, int thread)>& work);

}  // namespace sapwood
