// ModelOptions: which file a model is loaded from, and its configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bucket/advisor.h"
#include "runtime/bucket/policy.h"
#include "runtime/bucket/size_range.h"
#include "runtime/engine/model/freeze_switch.h"
#include "runtime/engine/types/bucket_report.h"
#include "runtime/engine/types/observer.h"
#include "runtime/graph/tensor.h"
#include "runtime/onnx/model_io.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/kit/precision_goal.h"
#include "runtime/passes/kit/node_choice.h"
#include "runtime/passes/kit/precision_rules.h"

namespace reprise {

// Says how a request runs when no recipe of its bucket is ready.
enum class CapturePolicy {
  kQuick,       // a larger ready recipe serves; else the request waits for a capture of its bucket
  kInline,      // the request waits for a capture of its bucket, also when others are ready
  kBackground,  // no request waits: a larger ready recipe serves, else the request runs eagerly
  kOff,         // nothing is captured: every request runs op by op, at its own sizes
};

// Whether the kernels of captured recipes are timed while the model serves.
enum class TuneMode {
  kAuto,  // kernels that were not timed before, unless nothing may be captured
  kOff,
};

// Whether requests lie one after another in a replay, or side by side, padded to one length.
enum class PackingMode {
  kAuto,  // packed where the model can be
  kOff,
};

struct ImportedModel;
class HelperPool;

struct ModelOptions {
  ModelId id;
  std::string path;  // the file model.onnx
  // Reads the model in place of the file at `path`: several files as one, or one with other
  // weights. Engine::Load calls it once and forgets it.
  std::function<absl::StatusOr<ImportedModel>()> import;
  // The cores that its replays run on; null: those of the stream.
  std::shared_ptr<HelperPool> cores;
  // Ranks of inputs whose shape the file leaves open, by name. Each choice of them makes a model of
  // its own: its specialisation, certificates and buckets depend on them.
  InputRanks ranks;

  // Axes go by their labels ("batch", "sequence", a symbol) or by their names in the file; a loaded
  // model has the labels alone.
  //
  // Buckets by axis, which stay.
  std::map<std::string, std::vector<int64_t>> buckets;
  // Axes whose buckets follow the traffic, beginning with the defaults; one that is named in
  // neither (but the batch, which does not follow it) has `auto`.
  std::map<std::string, BoundaryRule> learnt_buckets;
  // Sizes that requests may have, by axis; others are refused. Buckets of lengths end with them.
  std::map<std::string, SizeRange> ranges;
  BucketMode bucket_mode = BucketMode::kApply;
  // Payback time: a bucket change must recoup its capture cost within this time.
  int64_t bucket_payback_ns = int64_t{600} * 1'000'000'000;
  int64_t max_batch_tokens = 4096;
  // The largest number of rows in one replay; 0: the largest batch bucket.
  int64_t max_batch_size = 0;
  BucketPolicy::Overflow overflow = BucketPolicy::Overflow::kExact;
  int64_t max_exact = 32;  // exact recipes kept at once
  // Limits on memory in bytes; 0: only the limits of all models together.
  int64_t max_recipe_bytes = 0;     // limits its recipes in the cache
  int64_t max_arena_bytes = 0;      // limits the bytes that a stream holds for one recipe
  int64_t max_parameter_bytes = 0;  // limits its parameters, as stored and as prepared
  // Limits of one request; 0: none.
  int64_t max_request_ns = 60'000'000'000;          // time to compute
  int64_t max_request_bytes = int64_t{2048} << 20;  // limits the bytes whose number data decide
  // Axis labels along which nothing is ever padded or batched, in spite of any certificate.
  std::set<std::string> no_padding;
  PackingMode packing = PackingMode::kOff;
  // The precision of its answers. The certificate and the packing are always measured exactly:
  // rounding acts on each element by itself, so that it opens no path from padding to an answer,
  // and the measurement need not tell such a path from a value that was rounded the other way.
  Precision precision = Precision::kExact;
  // Nodes that have another precision.
  PrecisionRules precision_ops;
  // Set: while the model is loaded, the nodes that round are chosen; `precision` is kExact.
  std::optional<PrecisionGoal> precision_goal;
  // Returns the requests that they are chosen by, each with a tensor for each of `inputs`, or why
  // there are none; empty: requests are made up.
  std::function<absl::StatusOr<std::vector<std::vector<Tensor>>>(
      const std::vector<ModelIo>& inputs)>
      calibration;
  WeightBits weights = WeightBits::kStored;
  // Nodes that run by themselves, between recipes: the model is cut there.
  NodeChoice cut;
  // False: each node is computed as the file has it, by the first kernel that its device offers, so
  // that a node's bits depend on the node alone. Slow: for testing the effect of joining nodes.
  bool fusion = true;
  // A row gives the same bits at any number of rows, timed or not (Device::one_order): tokens are
  // made of its answers.
  bool one_order = false;
  // The values that padding is filled with, by input name; 0 where not named.
  std::map<std::string, double> fills;
  CapturePolicy capture = CapturePolicy::kQuick;
  bool frozen = false;  // nothing is captured for a request, nor tuned, until `freeze` is set
  FreezeSwitch freeze;
  TuneMode tune = TuneMode::kAuto;
  // Labels of the buckets that are captured before requests need them, so that a suggestion of more
  // names them as well.
  std::vector<std::string> warmup;
  // Constants that requests may send, by name, see engine/load/promotion.h; `promote_found`: also
  // constants that differ in other versions of the model, or in the one that was served under its
  // name.
  std::vector<std::string> promote;
  bool promote_found = false;
  std::vector<std::string> other_versions;  // their files
  // Changes the model between its file and all its readers, by the other files of its folder;
  // empty: nothing is changed. Engine::Load calls it once, on its own thread, and forgets it: its
  // changes are part of every recipe.
  std::function<absl::Status(ImportedModel& imported)> extend;
};

// Returns whether any product of the model may round.
inline bool MayRound(const ModelOptions& options) {
  return options.precision != Precision::kExact || !options.precision_ops.empty() ||
         options.precision_goal.has_value();
}

// Returns "exact", "bf16", "int8" or the goal.
inline std::string PrecisionWords(const ModelOptions& options) {
  return options.precision_goal.has_value() ? options.precision_goal->ToString()
                                            : std::string(PrecisionName(options.precision));
}

}  // namespace reprise
