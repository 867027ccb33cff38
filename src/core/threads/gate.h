// What threads need to learn one model at once (docs/online_trees.md, "Several cores"): a gate, locks, shared words.
//
// Threads inside the gate read and learn together. Memory moves, and shapes change, only while one of them is alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>

namespace sapwood {

// A word that one thread writes, under a lock, while others read it without. Builtins: not every standard library has
// std::atomic_ref, and on most machines this is a plain load and a plain store.
template <class T>
[[nodiscard]] inline T load_shared(const T& word) {
  T value;
  __atomic_load(&word, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <class T>
inline void store_shared(T& word, T value) {
  __atomic_store(&word, &value, __ATOMIC_RELEASE);
}

// Between two looks at what another thread is to change. It may not be running: then it is given the processor. It may
// be long: then it may have helpers.
class Patience {
 public:
  void wait() {
    constexpr int kLooks = 200, kMany = 40 * kLooks;
    if (++looks_ > kMany) return std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (looks_ % kLooks == 0) return std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  int looks_ = 0;
};

// A byte, for work of some dozens of instructions. A copy is a lock of its own, free.
class Spinlock {
 public:
  Spinlock() = default;
  Spinlock(const Spinlock&) noexcept {}
  Spinlock& operator=(const Spinlock&) noexcept { return *this; }

  void lock() {
    Patience patience;
    while (held_.exchange(true, std::memory_order_acquire)) {
      while (held_.load(std::memory_order_relaxed)) patience.wait();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

// One that all threads take for every row: apart from what they only read, which would else be taken from them each time.
struct LoneSpinlock {
  std::byte before[64];
  Spinlock lock;
  std::byte after[64];
};

class Gate {
 public:
  // One thread's place.
  class alignas(64) Pass {
   public:
    void enter() {
      Patience patience;
      inside_ = true;
      while (gate_->wanted_) {  // in sequence with alone(): one of the two sees the other
        inside_ = false;
        while (gate_->wanted_) patience.wait();
        inside_ = true;
      }
    }
    void leave() { inside_ = false; }
    // To be called often, and where nothing is remembered that who is alone may change.
    void rest() {
      if (!gate_->wanted_.load(std::memory_order_relaxed)) return;
      leave();
      enter();
    }

    // Runs change() while no other thread is inside; no lock may be held. Others may have been alone before: what
    // was seen is to be looked at again. Within change() it just runs.
    template <class Change>
    void alone(Change change) {
      if (is_alone_) return change();
      leave();
      const std::lock_guard turn(gate_->turn_);
      gate_->wanted_ = true;
      const Leaving leaving{*this};
      for (int i = 0; i < gate_->n_; ++i) {
        Patience patience;
        while (gate_->passes_[static_cast<size_t>(i)].inside_) patience.wait();
      }
      is_alone_ = true;
      change();
    }
    [[nodiscard]] bool is_alone() const { return is_alone_; }

   private:
    friend class Gate;
    struct Leaving {  // the state of being alone, also by an exception
      Pass& pass;
      ~Leaving() {
        pass.is_alone_ = false;
        pass.inside_ = true;
        pass.gate_->wanted_ = false;
      }
    };

    Gate* gate_ = nullptr;
    bool is_alone_ = false;
    std::atomic<bool> inside_{false};
  };

  // Is inside as long as it lives.
  class Visit {
   public:
    explicit Visit(Pass& pass) : pass_(pass) { pass_.enter(); }
    Visit(const Visit&) = delete;
    ~Visit() { pass_.leave(); }

   private:
    Pass& pass_;
  };

  explicit Gate(int n_threads) : n_(n_threads), passes_(std::make_unique<Pass[]>(static_cast<size_t>(n_threads))) {
    for (int i = 0; i < n_; ++i) pass(i).gate_ = this;
  }
  Gate(const Gate&) = delete;
  [[nodiscard]] Pass& pass(int thread) { return passes_[static_cast<size_t>(thread)]; }

 private:
  alignas(64) std::atomic<bool> wanted_{false};
  alignas(64) Spinlock turn_;
  int n_;
  std::unique_ptr<Pass[]> passes_;
};

// A null pass: the thread is the only one.
[[nodiscard]] inline bool is_alone(const Gate::Pass* pass) { return !pass || pass->is_alone(); }

template <class Change>
void run_alone(Gate::Pass* pass, Change change) {
  pass ? pass->alone(change) : change();
}

// Holds a lock, unless the thread is alone.
class Guard {
 public:
  Guard(Spinlock& lock, const Gate::Pass* pass) : lock_(is_alone(pass) ? nullptr : &lock) {
    if (lock_) lock_->lock();
  }
  Guard(const Guard&) = delete;
  ~Guard() {
    if (lock_) lock_->unlock();
  }

 private:
  Spinlock* lock_;
};

}  // namespace sapwood
