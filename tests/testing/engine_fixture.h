// An engine for tests: one core pool, one stream, and an observer that remembers its events.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"

namespace reprise {

// Events that a model's observer was told. Read it when nothing runs.
struct Observed {
  Mutex mutex;
  std::vector<std::string> compiles;  // "b1_s16 first_request"
  std::vector<std::string> replays;   // bucket labels
  int64_t hits = 0;
  int64_t misses = 0;
  std::vector<AxisElements> elements;
  std::vector<std::string> reference_kernels;  // ops
  std::vector<EvictionReason> evictions;
  std::vector<std::string> tunes;  // bucket labels
  std::vector<BucketReport> buckets;
  std::vector<std::string> eager;  // ops of nodes at cuts
  int64_t eager_hits = 0;          // hits in the cache of eager runs
  int64_t eager_misses = 0;
  int64_t eager_evictions = 0;
  int64_t eager_bytes = 0;
  int64_t withheld = 0;  // answers that were not as their sizes promise
};

class RememberingObserver final : public Observer {
 public:
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec& spec) override {
    auto observed = std::make_shared<Observed>();
    observed->elements.resize(spec.axes.size());
    by_model_[spec.id.name] = observed;
    return std::make_unique<ForOne>(observed);
  }
  Observed& of(const std::string& model) { return *by_model_.at(model); }
  int64_t withheld() const {
    int64_t sum = 0;
    for (const auto& [model, observed] : by_model_) sum += observed->withheld;
    return sum;
  }

 private:
  class ForOne final : public ModelObserver {
   public:
    explicit ForOne(std::shared_ptr<Observed> observed) : observed_(std::move(observed)) {}
    void On(const ModelEvent& event) override {
      MutexLock lock(observed_->mutex);
      Observed& to = *observed_;
      std::visit(
          OfEvent{
              [&](const CompileRecord& record) {
                to.compiles.push_back(std::string(record.bucket) + " " +
                                      std::string(CompileReasonName(record.reason)));
              },
              [&](const ReplayRecord& record) {
                to.replays.push_back(std::string(record.bucket));
                for (size_t i = 0; i < record.axes.size(); ++i) {
                  to.elements[i].valid += record.axes[i].valid;
                  to.elements[i].padded += record.axes[i].padded;
                }
              },
              [&](const CacheLookup& lookup) { ++(lookup.hit ? to.hits : to.misses); },
              [&](const RecipeEviction& eviction) { to.evictions.push_back(eviction.reason); },
              [&](const TunedRecipe& tuned) { to.tunes.emplace_back(tuned.bucket); },
              [&](const BucketsInForce& buckets) { to.buckets.push_back(buckets.report); },
              [&](const EagerNodeRun& run) { to.eager.emplace_back(run.op); },
              [&](const EagerCacheLookup& lookup) {
                ++(lookup.hit ? to.eager_hits : to.eager_misses);
              },
              [&](const EagerCacheSize& size) { to.eager_bytes = size.bytes; },
              [&](const EagerEviction&) { ++to.eager_evictions; },
              [&](const WithheldAnswer&) { ++to.withheld; },
              [&](const ReferenceLaunch& launch) { to.reference_kernels.emplace_back(launch.op); },
              [](const auto&) {}},
          event);
    }

   private:
    std::shared_ptr<Observed> observed_;
  };
  std::map<std::string, std::shared_ptr<Observed>> by_model_;
};

struct EngineFixture {
  explicit EngineFixture(int threads = 1, Isa isa = DetectIsa(), int64_t cache_bytes = 1 << 30,
                         int64_t eager_cache_bytes = 64 << 20)
      : cores(threads),
        device(isa),
        engine({.device = &device,
                .clock = &clock,
                .cores = &cores,
                .cache_bytes = cache_bytes,
                .eager_cache_bytes = eager_cache_bytes},
               observer) {
    // Answers are written where they are to be: a byte that no kernel has written is no number.
    mallopt(M_PERTURB, 0x01);
    MakeStream(threads, /*poison=*/true);
  }
  // `poison`: the stream tells written bytes from unwritten ones (runtime/engine/replay/poison.h).
  // A test that looks for writes in the stream's memory itself does without.
  void MakeStream(int threads, bool poison) {
    stream = *Stream::Create({.cores = &cores, .max_threads = threads, .poison = poison});
  }

  ~EngineFixture() { EXPECT_EQ(observer.withheld(), expected_withheld); }

  SteadyClock clock;
  HelperPool cores;
  CpuDevice device;
  RememberingObserver observer;
  int64_t expected_withheld = 0;
  Engine engine;
  std::unique_ptr<Stream> stream;
};

// The three inputs of a BERT-like encoder for `rows` sentences of `length` tokens; row r has its
// last `r % length` positions masked out, so that masks are ragged.
struct TokenRequest {
  TokenRequest(int64_t rows, int64_t length, int64_t seed = 1, size_t inputs = 3) {
    const Shape shape = {rows, length};
    for (size_t i = 0; i < inputs; ++i) columns.emplace_back(rows * length, 0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t p = 0; p < length; ++p) {
        columns[0][r * length + p] = 1000 + (seed * 7919 + r * 104729 + p * 1299709) % 20000;
        columns[1][r * length + p] = p < length - r % length ? 1 : 0;
      }
    }
    for (const std::vector<int64_t>& column : columns) {
      request.inputs.push_back({shape, column.data()});
    }
  }
  TokenRequest(const TokenRequest&) = delete;

  std::vector<std::vector<int64_t>> columns;
  Request request;
};

}  // namespace reprise
