// Readiness: may requests be sent to this server?
//
// A server is ready once each model of its start is loaded or refused, until it leaves, and while
// each model that was asked for can be served (the strict rule). A model that was unloaded on
// purpose is not asked for any more. A server with a stuck stream is not ready until that ends. One
// that was served and whose successor cannot be loaded is served as before, so it counts as ready.
// Where models are not loaded by request, a server that can serve none at all is not ready either.
//
// Threads: all methods from any.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/mutex.h"
#include "server/config/options.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"

namespace reprise {

struct ReadinessRule {
  bool strict = true;        // --strict-readiness
  bool allow_empty = false;  // --allow-empty
  ModelControl control = ModelControl::kNone;
};

struct Readiness {
  bool ready = false;
  std::string why;  // where not: the first reason
  // Models that were asked for and are not served, each with its reason: "\"bert\" is loading".
  std::vector<std::string> missing;
};

// Applies the rule to the models that are listed. Pure.
Readiness Judge(const ReadinessRule& rule, ServerState::State state,
                absl::Span<const Repository::Listed> models);

// Judges the server as it is now, and tells when that has changed.
class ReadinessProbe {
 public:
  using OnChange = std::function<void(const Readiness&)>;

  // `repository` and `state` outlive the probe.
  ReadinessProbe(const ReadinessRule& rule, const Repository& repository, const ServerState& state)
      : rule_(rule), repository_(repository), state_(state) {}

  // `on_change` is called by Now, one call at a time, beginning with the first that is ready.
  void Watch(OnChange on_change) EXCLUDES(mutex_);

  // Looks at the files of all models as well: one that has changed is not served any more.
  Readiness Now() EXCLUDES(mutex_);
  // Updates readiness, and does nothing else, where the models of the start are not yet loaded.
  void Update() {
    if (state_.state() != ServerState::State::kStarting) Now();
  }

 private:
  // Constant after construction.
  const ReadinessRule rule_;
  const Repository& repository_;
  const ServerState& state_;
  // Guarded.
  Mutex mutex_;
  OnChange on_change_ GUARDED_BY(mutex_);
  bool was_ready_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
