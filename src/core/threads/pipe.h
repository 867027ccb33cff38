// Work that one thread prepares and another carries out, in order. Items are used again: a pipe allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace sapwood {

template <class Item>
class Pipe {
 public:
  // Calls carry_out(item) for each item pushed, on a thread of its own.
  template <class CarryOut>
  Pipe(size_t room, CarryOut carry_out) : items_(room), thread_([this, carry_out] { run(carry_out); }) {}
  Pipe(const Pipe&) = delete;
  ~Pipe() { close(); }

  // The item to fill next; waits while all are under way. Then push() hands it over.
  Item& next() {
    uint64_t done = done_.load(std::memory_order_acquire);
    while (pushed_.load(std::memory_order_relaxed) - done == items_.size()) {
      done_.wait(done, std::memory_order_acquire);
      done = done_.load(std::memory_order_acquire);
    }
    return items_[pushed_.load(std::memory_order_relaxed) % items_.size()];
  }
  void push() {
    pushed_.fetch_add(1, std::memory_order_release);
    pushed_.notify_one();
  }

  // Waits until all is carried out; throws what went wrong there.
  void finish() {
    close();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  void close() {
    if (!thread_.joinable()) return;
    pushed_.fetch_or(kClosed, std::memory_order_release);
    pushed_.notify_one();
    thread_.join();
  }

  template <class CarryOut>
  void run(CarryOut carry_out) {
    for (uint64_t at = 0;; ++at) {
      uint64_t pushed = pushed_.load(std::memory_order_acquire);
      while (pushed == at) {
        pushed_.wait(at, std::memory_order_acquire);
        pushed = pushed_.load(std::memory_order_acquire);
      }
      if ((pushed & ~kClosed) == at) return;
      try {
        if (!failure_) carry_out(items_[at % items_.size()]);
      } catch (...) {
        failure_ = std::current_exception();  // what follows is dropped
      }
      done_.store(at + 1, std::memory_order_release);
      done_.notify_one();
    }
  }

  std::vector<Item> items_;
  std::atomic<uint64_t> pushed_{0}, done_{0};
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace sapwood
