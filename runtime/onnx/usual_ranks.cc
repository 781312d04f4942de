#include "runtime/onnx/usual_ranks.h"

#include <cstdint>

namespace reprise {
namespace {

constexpr int64_t kUsualRanks[] = {2, 3, 4, 1, 5, 0};

}  // namespace

absl::Status AtUsualRanks(const std::vector<std::string>& open,
                          absl::FunctionRef<absl::Status(const InputRanks&)> load) {
  if (open.empty()) return load({});
  absl::Status first;
  for (const int64_t rank : kUsualRanks) {
    InputRanks ranks;
    for (const std::string& name : open) ranks[name] = rank;
    absl::Status status = load(ranks);
    if (status.ok()) return status;
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace reprise
