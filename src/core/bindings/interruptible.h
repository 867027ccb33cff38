// Long work that Ctrl-C can stop and that tells of its progress.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "threads/parallel.h"

namespace sapwood::bindings {

namespace nb = nanobind;

// Runs work(monitor) on a thread of its own without the GIL. Meanwhile calls progress(done, total), unless it is None,
// and looks for signals; an exception from either (KeyboardInterrupt among them) stops the work and is thrown on.
template <class Work>
void run_interruptible(const nb::object& progress, Work work) {
  constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
  Monitor monitor;
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  std::exception_ptr failure;

  const auto tell = [&] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(monitor.done.load(), monitor.total.load());
  };
  std::exception_ptr asked_to_stop;
  {
    const nb::gil_scoped_release no_gil;
    std::thread worker([&] {
      try {
        work(monitor);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      finished = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kBetweenLooks, [&] { return finished; })) {
      if (asked_to_stop) continue;
      lock.unlock();
      {
        const nb::gil_scoped_acquire gil;
        try {
          tell();
        } catch (...) {
          asked_to_stop = std::current_exception();
          monitor.request_stop();
        }
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (asked_to_stop) std::rethrow_exception(asked_to_stop);
  if (failure) std::rethrow_exception(failure);
  tell();
}

// Runs predict(monitor) for n rows: a few at once, many so that Ctrl-C can stop them.
template <class Predict>
void answer(size_t n, Predict predict) {
  constexpr size_t kFewRows = 1024;
  if (n > kFewRows) return run_interruptible(nb::none(), predict);
  const nb::gil_scoped_release no_gil;
  Monitor monitor;
  predict(monitor);
}

}  // namespace sapwood::bindings
