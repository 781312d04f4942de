// Request and Response: the input and the output of the engine. No transport in sight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/stop_flag.h"
#include "runtime/bucket/policy.h"
#include "runtime/engine/types/own_value.h"
#include "runtime/graph/tensor.h"
#include "runtime/graph/vocabulary.h"

namespace reprise {

// One input as the client sent it. The bytes belong to the caller and must outlive the call.
struct InputTensor {
  Shape shape;
  const void* data =
      nullptr;  // row-major, of the model input's dtype; nullptr: left out (optional)
};

struct Request {
  std::vector<InputTensor> inputs;   // ordered like Model::inputs()
  std::vector<bool> wanted_outputs;  // ordered like Model::outputs(); empty: all
  // The texts that places in inputs stand for, and their memory; null where the caller has none.
  std::shared_ptr<const RequestTexts> texts;
  // Set when no client waits for the answer any more: it may be any then. Null: one always does.
  const StopFlag* gone = nullptr;
  // The memory of inputs that Model::SpreadRows has repeated.
  std::vector<std::shared_ptr<const std::string>> spread;
};

// Says how a request runs when no recipe of its own bucket is ready (`reprise.on_miss`).
enum class OnMiss {
  kDefault,  // as the model's capture policy says
  kPad,      // a larger recipe that is ready, else an error
  kWait,     // its own bucket, captured now
  kEager,    // no recipe: its preparations are kept apart from recipes, see EagerCache
  kReject,   // an error
  kFrozen,   // as on a frozen model: one that is ready, its own or a larger, else an error
};

// A request as one model sees it: computed once at admission, read by the scheduler.
struct RequestShape {
  std::vector<int64_t> sizes;  // ordered like Model::axes()
  int64_t rows = 1;            // size of the batch axis, 1 where the model has none
  int64_t tokens = 1;          // elements: Model::measure() of the sizes
  int64_t bytes = 0;           // all inputs together
  std::map<std::string, Tensor> shape_inputs;
  std::vector<int> overrides;  // positions of the initialisers that the request has values for
  // How its sizes differ from the sizes that the axes expect, though the model may take them (see
  // SplitAxes): `sizes` has the largest of each axis. Empty: they fit.
  std::string misfit;
  // The sizes of the variant that the request needs, by symbol.
  std::map<std::string, int64_t> own_sizes;
  std::vector<OwnValue> own_values;  // values of promoted constants: the same in all of a batch
  bool exact = false;                // must not be padded, in spite of all certificates
  // In force when it was measured: the buckets under which it was admitted hold for it.
  std::shared_ptr<const BucketPolicy> buckets;
  bool quarantined = false;  // exact only because an audit took a certificate away
  // Exact only because the decisions of its sizes have not been examined yet: see SizeSlices.
  bool in_new_slice = false;
  // Set by the caller.
  OnMiss on_miss = OnMiss::kDefault;
  std::string id;  // the client's, for reports
  // Made up before requests come, so that the recipes that they will need are captured: it is not
  // counted, and captures for it also where the model is frozen.
  bool rehearsal = false;
  // Answered already, and computed again (engine/audit): that is counted and kept nowhere.
  bool audit = false;

  // Returns whether it is served by a variant of the model, not by the model itself.
  bool needs_variant() const { return splits_axes() || !overrides.empty(); }
  bool splits_axes() const { return !misfit.empty(); }
};

struct OutputTensor {
  Shape shape;
  std::string bytes;  // row-major; shape and bytes are empty for an output that was not requested
};

// How a request came by its recipe.
enum class CaptureOutcome { kReplayed, kCaptured, kWaited, kLarger, kEager };
absl::string_view CaptureOutcomeName(CaptureOutcome outcome);  // "replayed", "captured", ...
// Returns the outcome that cost more, where two parts of one answer have two.
CaptureOutcome Harder(CaptureOutcome a, CaptureOutcome b);

struct ReplayInfo {
  std::string bucket;  // "b8_s128", "exact"
  std::string recipe;  // hex key
  CaptureOutcome capture = CaptureOutcome::kReplayed;
  int64_t batch = 0;       // id of the replay, unique in the process
  int64_t batch_size = 0;  // rows of requests in the replay
  // Nanoseconds, shared by the whole batch. A capture or a wait for one is in none of them.
  int64_t gather_ns = 0;
  int64_t replay_ns = 0;
  int64_t scatter_ns = 0;
};

struct Response {
  absl::Status status;                // the others are valid only if OK
  std::vector<OutputTensor> outputs;  // ordered like Model::outputs()
  ReplayInfo info;
};

}  // namespace reprise
