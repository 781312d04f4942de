// An engine with a store of recipes and threads that capture, for proofs that are finished while it
// serves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {

class ProofFixture : public testing::Test {
 protected:
  ProofFixture() {
    store_ = *RecipeStore::Open({.folder = folder_.File("store")});
    engine_.emplace(EngineOptions{.device = &device_,
                                  .clock = &clock_,
                                  .cores = &cores_,
                                  .store = store_.get(),
                                  .captures = &captures_},
                    observer_);
    stream_ = *Stream::Create({.cores = &cores_});
  }
  ~ProofFixture() override {
    captures_.Stop();
    store_.reset();
  }

  SteadyClock clock_;
  HelperPool cores_{1};
  CpuDevice device_{DetectIsa()};
  RememberingObserver observer_;
  CapturePool captures_{{.urgent_threads = 1, .behind_threads = 1}};
  const TempFolder folder_;
  std::unique_ptr<RecipeStore> store_;
  std::optional<Engine> engine_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace reprise
