// InferRequest: a request as any face of the server decoded it. Views of the transport's memory: no
// byte of a tensor is copied before the engine gathers it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/stop_flag.h"
#include "runtime/batching/work.h"
#include "runtime/engine/types/request.h"
#include "server/access/key_use.h"
#include "server/tracing/request_trace.h"

namespace reprise {

// Where a tensor lies that is not in the message: a range of a region of shared memory.
struct RegionSlice {
  std::string region;  // the name by which its client registered it
  int64_t offset = 0;  // counted from the region's start
  int64_t bytes = 0;
};

struct InputView {
  absl::string_view name;
  absl::string_view datatype;  // "INT64"
  absl::Span<const int64_t> shape;
  absl::string_view bytes;                           // row-major, little-endian
  std::optional<RegionSlice> region = std::nullopt;  // has the bytes in their place
};

// The sequence that a request belongs to, and its place there. It means nothing to a model without
// state.
struct SequenceMark {
  uint64_t number = 0;  // its id; 0: none, or a text
  std::string text;
  bool start = false;
  bool end = false;

  bool any() const { return number != 0 || !text.empty(); }
};

struct InferRequest {
  absl::string_view model;
  absl::string_view version;  // empty: the newest that is ready
  std::vector<InputView> inputs;
  std::vector<absl::string_view> outputs;  // empty: all
  // Where the answer puts them, at the positions of `outputs`; empty: all are in the message.
  std::vector<std::optional<RegionSlice>> output_regions;
  // How many classes an output is answered as, at the positions of `outputs`; empty: all are
  // tensors.
  std::vector<std::optional<int64_t>> classes;
  int64_t deadline_ns = kNoDeadline;    // the transport's, on the server's clock
  std::optional<int64_t> timeout_us;    // how long the request may wait in the queue
  uint64_t priority = 0;                // 0: the model's default
  absl::string_view id;                 // the client's, for reports
  std::shared_ptr<KeyUse> key;          // the client's; null where no key is needed
  std::shared_ptr<RequestTrace> trace;  // null: it is not traced
  bool is_counted = false;              // as a part of one that its key's limits know already
  KeyUse::Ticket counted;  // not null: the key has counted the request, which is begun again
  OnMiss on_miss = OnMiss::kDefault;
  int64_t tokenizer_ns = 0;  // time to tokenize its texts, before the request began
  SequenceMark sequence;
  bool on_text_threads = false;  // it is begun again on a thread where texts become tokens
  // Set once its client has left while it waited; null: it has not waited.
  std::shared_ptr<const StopFlag> left;
};

// CANCELLED once the client of a request that waited has left.
inline absl::Status CheckStays(const InferRequest& request) {
  if (request.left == nullptr || !request.left->stopped()) return absl::OkStatus();
  return absl::CancelledError("the client has left");
}

}  // namespace reprise
