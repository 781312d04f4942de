// Programs: graphs as models of the engine, each loaded and bound once.
//
// A graph is known by its canonical text and by the parameters that it reads; the same ops over the
// same shapes are one program, wherever in a program they stand. Recipes are the engine's: they are
// shared with all others that have the same graph, and kept by its recipe store.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/hash_map.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/session.h"

namespace reprise::lazy {

struct OpStreamOptions;
struct TracedGraph;
struct TracedValue;

class Programs {
 public:
  // `options` outlives the programs.
  Programs(Engine& engine, const OpStreamOptions& options) : engine_(engine), options_(options) {}

  // Returns the session of the graph that computes `wanted`, bound now where there is none, and the
  // values that it reads, in the order of its inputs.
  absl::StatusOr<Session*> Find(const std::vector<std::shared_ptr<TracedValue>>& wanted,
                                std::vector<std::shared_ptr<TracedValue>>& inputs);
  // Returns a session of its own.
  absl::StatusOr<std::unique_ptr<Session>> Bind(TracedGraph& traced, SessionOptions options);

  int64_t captures() const { return captures_; }
  int64_t replays = 0;
  int64_t evictions() const { return evictions_; }

 private:
  struct Entry {
    std::string graph;  // the graph's, all numbers as inputs
    std::string key;    // the graph's, and the values of numbers that it holds
    std::unique_ptr<Session> session;
  };
  using Lru = std::list<Entry>;  // most recently used first

  Engine& engine_;
  const OpStreamOptions& options_;
  Lru entries_;
  HashMap<std::string, Lru::iterator> by_key_;
  // Numbers that are constants, by graph; left out for graphs where none is.
  HashMap<std::string, std::vector<bool>> held_;
  int64_t captures_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace reprise::lazy
