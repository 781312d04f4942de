// InferResult: the answer to a request, as any face of the server encodes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/engine/types/request.h"
#include "server/repository/repository.h"
#include "server/requests/request.h"

namespace reprise {

struct InferResult {
  absl::Status status;  // the others are valid only if OK
  Repository::Found model;
  std::vector<int> outputs;  // positions in Model::outputs(), in the order asked for
  Response response;         // text is in the bytes of the protocol's BYTES
  // The outputs that lie in shared memory, at the positions of `outputs`; empty: none does. Their
  // bytes are there and not in the response.
  std::vector<std::optional<RegionSlice>> regions;
  std::vector<bool> classified;  // which are texts of classes, at the same positions
  int64_t text_tokens = 0;       // tokens of the texts that the request was sent as
  std::vector<int64_t> batches;  // ids of all replays that served the request, ascending
};

}  // namespace reprise
