#include "threads/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sapwood {

void parallel_for(int64_t n_tasks, int n_threads, Monitor& monitor,
                  const std::function<void(int64_t, int)>& work) {
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  const auto run = [&](int thread) {
    try {
      while (!failed && !monitor.stopped()) {
        const int64_t task = next++;
        if (task >= n_tasks) return;
        work(task, thread);
      }
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };

  const int n = static_cast<int>(std::min<int64_t>(std::max(n_threads, 1), std::max<int64_t>(n_tasks, 1)));
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<size_t>(n - 1));
  try {
    for (int thread = 1; thread < n; ++thread) helpers.emplace_back(run, thread);
  } catch (const std::system_error&) {  // there are no more to be had: those that there are do the work
  }
  run(0);
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
  if (monitor.stopped()) throw Interrupted{};
}

}  // namespace sapwood
