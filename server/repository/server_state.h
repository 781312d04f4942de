// ServerState: where the server is in its life.
#pragma once

#include <atomic>

namespace reprise {

// Threads: all methods from any. States only go forward.
class ServerState {
 public:
  enum class State { kStarting, kReady, kDraining };

  // Every model is loaded or refused. Does nothing while draining.
  void SetReady() {
    State expected = State::kStarting;
    state_.compare_exchange_strong(expected, State::kReady);
  }
  void SetDraining() { state_ = State::kDraining; }
  State state() const { return state_; }
  bool ready() const { return state_ == State::kReady; }

 private:
  std::atomic<State> state_{State::kStarting};
};

}  // namespace reprise
