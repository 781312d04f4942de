// ModelSettings: the settings of one model in config.pbtxt, parsed and checked as far as that goes
// without the model itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/model_config.pb.h"
#include "runtime/bucket/boundaries.h"
#include "runtime/bucket/policy.h"
#include "runtime/bucket/size_range.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/ops/kit/precision.h"
#include "runtime/ops/kit/precision_goal.h"
#include "runtime/passes/kit/node_choice.h"
#include "server/config/config_strictness.h"

namespace reprise {

enum class Overflow { kExact, kReject };
enum class BucketPolicyMode { kApply, kSuggest, kOff };
enum class CaptureMode { kQuick, kInline, kBackground, kOff };

// Buckets that are captured before requests need them. All empty: none is.
struct WarmupSettings {
  bool all = false;                  // every bucket
  std::vector<std::string> buckets;  // labels
  std::vector<AxisSizes> sizes;      // exact ones
  AxisSizes usual;                   // usual sizes of ranges of axes, captured first
  std::string lengths_file;          // lines "LENGTH [COUNT]", in the model's folder
  bool ready_when_all = false;       // false: ready when the largest buckets are
  int64_t max_seconds = 300;         // 0: no limit
  int64_t max_bytes = 0;             // recipes and their arena together; 0: no limit
};

struct ModelSettings {
  ConfigStrictness strictness = ConfigStrictness::kStrict;
  std::vector<std::string> hints;  // fields that were left out, a sentence each
  inference::ModelConfig config;   // the file as written; the default message without one
  // config.pbtxt has the line: 0 written out means no batching, left out means whatever the model
  // supports.
  bool max_batch_size_given = false;
  std::string model_filename = "model.onnx";

  // Shapes. Buckets by axis label: those that stay, and the rules of those that follow the traffic;
  // an axis that is named in neither gets the defaults.
  std::map<std::string, std::vector<int64_t>> buckets;
  std::map<std::string, BoundaryRule> learnt_buckets;
  std::map<std::string, SizeRange> ranges;  // that requests may have, by axis
  BucketPolicyMode bucket_policy = BucketPolicyMode::kApply;
  int64_t bucket_payback_seconds = 600;
  int64_t max_batch_tokens = 4096;
  Overflow overflow = Overflow::kExact;
  int64_t max_exact = 32;
  CaptureMode capture = CaptureMode::kQuick;
  bool tune = true;     // kernels of captured recipes are timed during the traffic
  bool frozen = false;  // nothing is captured for a request
  WarmupSettings warmup;
  // Memory in bytes; 0: the server's limits alone.
  int64_t max_recipe_bytes = 0;
  int64_t max_arena_bytes = 0;
  int64_t max_parameter_bytes = 0;
  int64_t release_after_ms = 0;  // 0: arenas keep their memory, as long as they are small
  // Limits of one request; 0: none.
  int64_t max_request_ms = 60'000;                  // time to compute
  int64_t max_request_bytes = int64_t{2048} << 20;  // made beyond the arena of its recipe
  // Tokens of a decoder whose cache the server owns.
  bool generation = true;
  int64_t cache_bytes = int64_t{1} << 30;  // the most that keys and values take
  ops::CacheDType cache_dtype = ops::CacheDType::kFloat32;
  int64_t context = 0;           // positions of a sequence; 0: as many as the model has
  int64_t max_stall_ms = 20;     // the most time that prompts may add between two tokens
  int64_t max_sequences = 64;    // that are computed side by side
  bool speculation = true;       // several tokens of a sequence in a step
  std::vector<int64_t> eos_ids;  // empty: as in the files next to the model
  // State that is kept between requests (sequence_batching).
  int64_t max_live_sequences = 1024;
  int64_t state_bytes = int64_t{1} << 30;  // the state of all sequences together
  std::optional<bool> packing;  // where the model can be packed; absent: see WantsPacking
  Precision precision = Precision::kExact;
  std::optional<PrecisionGoal> precision_goal;  // set: `precision` is kExact
  std::string calibration;                      // a file of the model's folder
  WeightBits weights = WeightBits::kStored;
  std::vector<std::string> promote;     // constants that requests may send
  bool promote_found = false;           // and those that versions have differently
  std::string precision_ops;            // see PrecisionRules; files are in the model's folder
  NodeChoice cut;                       // nodes that run by themselves
  bool fusion = true;                   // nodes are joined where that is faster
  std::set<std::string> padding_off;    // axis labels
  std::map<std::string, double> fills;  // keyed by input name

  // The queue. 0 or absent: the server's default.
  int64_t max_queue_requests = 0;
  int64_t max_queue_tokens = 0;
  int64_t max_queue_bytes = 0;
  int64_t queue_delay_us = 0;
  int64_t enough_rows = 0;  // a batch of this many rows does not wait for the delay
  int64_t max_running = 0;  // replays at the same time
  std::vector<int> cores;   // CPUs that its replays run on; empty: all
  std::optional<int64_t> default_timeout_us;
  bool allow_timeout_override = true;  // a request's own `timeout` counts
  uint64_t priority_levels = 0;
  uint64_t default_priority = 0;
};

// Returns whether requests lie end to end where the model can be computed so. A config that names
// buckets, and not packing, gets buckets.
inline bool WantsPacking(const ModelSettings& settings) {
  return settings.packing.value_or(settings.buckets.empty() && settings.learnt_buckets.empty());
}

}  // namespace reprise
