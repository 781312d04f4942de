// LaunchWorkers: threads that run a sequence of steps together.
//
// Every step is cut into parts, one for each thread, and begins when the one before is done. Part p
// is meant for thread p, so that the results of a step are in the core's cache for the next one.
// But the system may have other plans for a core: a thread that is done with its own part takes
// parts that no thread has begun. So a thread that does not come, comes late or is stopped between
// two parts costs nothing; one that is stopped within a part costs the time until it goes on.
//
// A thread touches the context of a sequence within parts only, and there is none left when Lead
// returns: a thread that comes after that, however late, finds nothing to do and leaves.
//
// Waits spin for up to 50 us, about as long as a parked thread needs to wake, and then park: a
// thread that had to be woken must not find that the others have parked meanwhile, step after step.
// Spinning for 100 us gains nothing more, and takes more from others where CPUs are scarce.
//
// Ownership: borrows function and context of a sequence until Lead returns. Threads: one sequence
// at a time; Lead on one thread, Help on any others and at any time, also after the sequence.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace reprise {

class LaunchWorkers {
 public:
  // Called once for every part of a step, or once with part 0 of 1.
  using Function = void (*)(void* context, int step, int part, int parts);

  struct Sequence {
    Function function = nullptr;
    void* context = nullptr;
    uint32_t steps = 0;
    int parts = 1;       // the parts of each step
    uint32_t first = 0;  // number of the first step, counted over all sequences
  };

  explicit LaunchWorkers(int max_parts) : claims_(static_cast<size_t>(max_parts)) {}

  // Makes the next sequence, to be given to Lead and Help. The one before has been led to its end.
  // `parts` in [1, max_parts].
  Sequence Begin(Function function, void* context, int steps, int parts);
  // Returns when all steps are done, if necessary by this thread alone. Allocates nothing.
  void Lead(const Sequence& sequence);
  // Helps until all steps are done. `thread` in [1, parts).
  void Help(const Sequence& sequence, int thread);

  // For tests to see: threads that are parked, and how often parked ones were woken.
  uint32_t parked() const { return parked_.load(std::memory_order_relaxed); }
  uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Claim {
    std::atomic<uint32_t> next{0};  // the first step whose part of this number no thread has begun
  };

  bool Take(int part, uint32_t step);
  // Returns when `step` is done.
  void Await(uint32_t step);
  // Notes that a helper looks at `step`.
  void Appear(uint32_t step);
  void Finish(const Sequence& sequence, int parts, uint32_t step);
  void RunParts(const Sequence& sequence, int thread, uint32_t step);
  // Runs the whole step at once; returns false if another thread takes part, then perhaps after a
  // few of its parts.
  bool RunWhole(const Sequence& sequence, uint32_t step);

  // All self-synchronised; a step's results are published by done_.
  std::vector<Claim> claims_;                  // one per part
  alignas(64) std::atomic<int> finished_{0};   // parts of the step under way
  alignas(64) std::atomic<uint32_t> done_{0};  // steps of all sequences
  std::atomic<uint32_t> parked_{0};            // threads that wait for done_ without spinning
  std::atomic<uint64_t> wakes_{0};
  // A step that a helper looked at recently. A stopped helper may store an old number: the leader
  // checks its age.
  alignas(64) std::atomic<uint32_t> seen_{0};
};

// Spins until `value` is no longer `old`, for at most `spin_us`; returns whether it has changed.
bool SpinWhile(const std::atomic<uint32_t>& value, uint32_t old, int spin_us);

}  // namespace reprise
