// InferRequest: a request as any face of the server decoded it. Views of the transport's memory: no
// byte of a tensor is copied before the engine gathers it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/engine/types/request.h"
#include "server/access/key_use.h"
#include "server/batching/work.h"

namespace reprise {

struct InputView {
  absl::string_view name;
  absl::string_view datatype;  // "INT64"
  absl::Span<const int64_t> shape;
  absl::string_view bytes;  // row-major, little-endian
};

struct InferRequest {
  absl::string_view model;
  absl::string_view version;  // empty: the newest that is ready
  std::vector<InputView> inputs;
  std::vector<absl::string_view> outputs;  // empty: all
  int64_t deadline_ns = kNoDeadline;       // the transport's, on the server's clock
  std::optional<int64_t> timeout_us;       // how long the request may wait in the queue
  uint64_t priority = 0;                   // 0: the model's default
  absl::string_view id;                    // the client's, for reports
  std::shared_ptr<KeyUse> key;             // the client's; null where no key is needed
  bool is_counted = false;                 // as a part of one that its key's limits know already
  OnMiss on_miss = OnMiss::kDefault;
};

}  // namespace reprise
