// Stream: an execution lane: memory whose addresses never move, and a share of the cores.
//
// The caller's thread leads a replay; idle cores of the pool help where the recipe has enough work
// for them. One replay at a time.
//
// Ownership: borrows the pool, which outlives it. Threads: a stream belongs to one caller at a
// time, but for Touch. Errors: RESOURCE_EXHAUSTED from Create and Reserve.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "runtime/device/launch.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/replay/poison.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/engine/types/memory_budget.h"
#include "runtime/engine/types/run_control.h"
#include "runtime/memory/arena.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

// The source of a recipe's size: the shapes of a request's inputs, which bound it by the bytes that
// the client sent, or their values.
enum class SizedBy { kShapes, kData };

struct StreamOptions {
  HelperPool* cores = nullptr;  // null: replays run on the caller's thread alone, also on an idle
                                // machine
  int max_threads = 1;          // limit for one replay; the pool gives fewer when it is busy
  size_t max_arena_bytes = size_t{16} << 30;
  // See ArenaOptions; not for a stream that uses little of the memory that it reserves.
  bool huge_pages = true;
  // The budget that several streams take their memory from; null: none. Outlives the stream.
  MemoryBudget* memory = nullptr;
  // The same for recipes that data decide; null: none.
  MemoryBudget* data_memory = nullptr;
  // Called where a budget has not enough: others may give back their unused memory.
  std::function<void()> make_room = [] {};
  // A test mode: see poison.h.
  bool poison = PoisonIsWanted();
};

class Stream {
 public:
  ~Stream() { Release(); }
  // Returns RESOURCE_EXHAUSTED when no addresses can be reserved.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(const StreamOptions& options);

  // Makes room for `recipe`: inputs, outputs and arena lie one after another in the stream's block.
  // Call it before every replay: a Release in between requires it again. Errors:
  // RESOURCE_EXHAUSTED; INVALID_ARGUMENT if the limit of memory that data decide is below the size
  // of `recipe`.
  absl::Status Reserve(const Recipe& recipe, SizedBy sized_by = SizedBy::kShapes);
  // Reserves for the request of a client. INVALID_ARGUMENT where no stream could ever hold
  // `recipe`: a retry would fail as well.
  absl::Status ReserveForRequest(const Recipe& recipe, SizedBy sized_by = SizedBy::kShapes);

  // Returns the frame of `recipe` on this stream, after Reserve, until the next one is made.
  // `parameters` is the recipe's slot table. Its inputs lie in `inputs()`, each at its slot's
  // offset.
  Frame MakeFrame(const Recipe& recipe, const void* const* parameters, ReplayErrors* errors);
  std::byte* inputs() const { return arena_.base(); }
  // Returns whether the memory is filled with poison before a replay: see poison.h.
  bool poisons() const { return options_.poison; }
  // Places input or output `slot` of that frame at `data` instead, which outlives the frame's
  // replays.
  void PlaceInput(size_t slot, const std::byte* data) { inputs_[slot] = data; }
  void PlaceOutput(size_t slot, std::byte* data) { outputs_[slot] = data; }

  // Returns the block that Reserve made room for: where inputs, outputs and arena of `recipe` lie.
  absl::Span<std::byte> Block(const Recipe& recipe) const;

  // Runs every launch in order, phase by phase. Between the first and the last: no allocation, no
  // lock, no string, no map. With `end`, which is the frame's, phases that begin after a data error
  // do nothing: for a run whose outputs are not read then. With `control` the replay ends where
  // that says so: between launches, and between the pieces of a long one. Returns the launch that
  // it ended before or within, so that there are no outputs; -1: it ran to its end.
  int Replay(const Recipe& recipe, const Frame& frame, const FirstDataError* end = nullptr,
             const RunControl* control = nullptr);

  // Runs a small part of every launch of some size, so that code, weights and libraries are there
  // when the first request comes. Takes a few milliseconds at most at any size of the recipe; the
  // contents of the outputs mean nothing. `frame` as for Replay. A launch that cannot be cut may
  // take longer: `ends` is asked before each, and true ends it there, which returns false.
  bool Prime(const Recipe& recipe, const Frame& frame,
             const std::function<bool()>& ends = nullptr) const;

  // Replays run on `cores` while it lives, with as many threads as these; null: on the stream's
  // own.
  class OnCores {
   public:
    OnCores(Stream& stream, HelperPool* cores) : stream_(stream) { stream.lent_ = cores; }
    ~OnCores() { stream_.lent_ = nullptr; }
    OnCores(const OnCores&) = delete;
    OnCores& operator=(const OnCores&) = delete;

   private:
    Stream& stream_;
  };

  // Makes the pages of the first `bytes` of the block memory now, so that no replay waits for the
  // system to clear them. From any thread, also during a replay. Does as much as it can.
  void Touch(size_t bytes);

  // Gives the memory back to the system; addresses stay. Never during a replay.
  void Release();

  // Returns the bytes that replays may have made memory since the last Release. From any thread.
  size_t held_bytes() const { return held_; }
  // Returns the part of them that data have decided: see SizedBy.
  size_t data_bytes() const { return data_bytes_; }
  // Returns the most that a replay has needed since the last call.
  size_t TakeNeededBytes() { return std::exchange(needed_, 0); }
  // Returns the same for replays whose size data have decided; 0: none of some size has run.
  size_t TakeNeededDataBytes() { return std::exchange(needed_data_, 0); }

 private:
  // Takes from the budget the part of `bytes` that is not held yet; returns false where it has too
  // little.
  bool Hold(size_t bytes);
  // Does the same for bytes that data decide; returns OK where it is little.
  absl::Status HoldData(const Recipe& recipe);
  Stream(Arena arena, const StreamOptions& options) : options_(options), arena_(std::move(arena)) {}

  const StreamOptions options_;
  Arena arena_;
  HelperPool* lent_ = nullptr;            // see OnCores
  std::vector<const std::byte*> inputs_;  // the frame's inputs
  std::vector<std::byte*> outputs_;       // the frame's outputs
  size_t needed_ = 0;                     // see TakeNeededBytes
  size_t needed_data_ = 0;                // see TakeNeededDataBytes
  Mutex holding_;                         // held to change held_
  std::atomic<size_t> held_{0};
  std::atomic<size_t> data_bytes_{0};
};

}  // namespace reprise
