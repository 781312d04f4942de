// Observers that ignore all events: for programs that need none of them, and as a base of observers
// that need few.
#pragma once

#include <memory>

#include "runtime/engine/types/observer.h"

namespace reprise {

class SilentModelObserver : public ModelObserver {
 public:
  void OnCompile(const CompileRecord&) override {}
  void OnReplay(const ReplayRecord&) override {}
  void OnRequestLengths(absl::Span<const int64_t>) override {}
  void OnCacheRequest(bool) override {}
  void OnCacheSize(int64_t, int64_t) override {}
  void OnEviction(EvictionReason) override {}
  void OnReferenceKernel(absl::string_view, absl::string_view) override {}
};

class SilentObserver final : public Observer {
 public:
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec&) override {
    return std::make_unique<SilentModelObserver>();
  }
};

}  // namespace reprise
