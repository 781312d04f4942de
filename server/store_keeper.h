// StoreKeeper: the recipe store of the daemon, and the thread that writes to it.
//
// The thread has a lower priority than those that answer requests. Records that are queued when the
// keeper goes are written first.
//
// Threads: made and destroyed by one thread; store() from any.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "runtime/recipe/store.h"
#include "server/config/options.h"
#include "server/server_events.h"

namespace reprise {

class StoreKeeper {
 public:
  // Opens the folder of --recipe-cache. One that cannot be used is warned of: the daemon serves
  // without it.
  // `debug` is called for writes; may be null.
  StoreKeeper(const Options& options, const LogFunction& log, DebugLog* debug = nullptr);
  ~StoreKeeper();
  StoreKeeper(const StoreKeeper&) = delete;
  StoreKeeper& operator=(const StoreKeeper&) = delete;

  // Returns nullptr where none was asked for, or it cannot be used.
  RecipeStore* store() const { return store_.get(); }
  // Begins to write; calls `tick` every few seconds, on the thread that writes, until Finish().
  void Start(std::function<void()> tick);
  // Writes queued recipes and ends the thread.
  void Finish();

 private:
  std::unique_ptr<RecipeStore> store_;
  std::thread writer_;
};

}  // namespace reprise
