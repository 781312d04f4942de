// Stream: an execution lane, threads and memory whose addresses never move.
//
// The caller's thread leads; a stream of N threads has N-1 helpers of its own, which park between
// replays. One replay at a time.
//
// Threads: a stream belongs to one caller at a time. Errors: RESOURCE_EXHAUSTED from Reserve.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/launch.h"
#include "runtime/engine/thread_team.h"
#include "runtime/memory/arena.h"
#include "runtime/recipe/recipe.h"

namespace reprise {

struct StreamOptions {
  int threads = 1;
  size_t max_arena_bytes = size_t{16} << 30;
};

class Stream {
 public:
  // RESOURCE_EXHAUSTED when no addresses can be reserved.
  static absl::StatusOr<std::unique_ptr<Stream>> Create(const StreamOptions& options);

  // Makes room for `recipe`: inputs, outputs and arena lie one after another in the stream's block.
  absl::Status Reserve(const Recipe& recipe);

  // The frame of `recipe` on this stream, after Reserve. `parameters` is the recipe's slot table.
  Frame MakeFrame(const Recipe& recipe, const void* const* parameters, ReplayErrors* errors) const;

  // Runs every launch in order. No allocation, no lock, no string, no map.
  void Replay(const Recipe& recipe, const Frame& frame);

  // Gives the memory back to the system; addresses stay.
  void Release() { arena_.Release(); }

  int threads() const { return team_.size(); }
  size_t committed_bytes() const { return arena_.bytes(); }

 private:
  Stream(Arena arena, int threads) : arena_(std::move(arena)), team_(threads) {}

  Arena arena_;
  ThreadTeam team_;
};

}  // namespace reprise
