// ServerState: where the server is in its life.
#pragma once

#include <atomic>

namespace reprise {

// Threads: all methods from any. States only go forward; streams may be stuck and come back.
class ServerState {
 public:
  enum class State {
    kStarting,  // models of the start are loaded
    kServing,   // each of them is loaded or refused
    kLeaving,   // requests are served, and no more should be sent
    kDraining,  // requests are refused; those that were accepted are answered
  };

  // Does nothing where the server leaves already.
  void SetServing() {
    State expected = State::kStarting;
    state_.compare_exchange_strong(expected, State::kServing);
  }
  void SetLeaving() { state_ = State::kLeaving; }
  void SetDraining() { state_ = State::kDraining; }

  State state() const { return state_; }
  // "starting", "serving", "leaving", "draining".
  const char* name() const {
    constexpr const char* kNames[] = {"starting", "serving", "leaving", "draining"};
    return kNames[static_cast<int>(state())];
  }
  bool leaves() const { return state() >= State::kLeaving; }
  // Counts streams that do not end a launch when told to: others are preferred until they do.
  // Returns how many there are now.
  int AddStuck(int more) { return stuck_ += more; }
  int stuck() const { return stuck_; }

 private:
  std::atomic<State> state_{State::kStarting};
  std::atomic<int> stuck_{0};
};

}  // namespace reprise
