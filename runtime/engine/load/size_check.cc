#include "runtime/engine/load/size_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/graph/rank_error.h"

namespace reprise {
namespace {

// 1 because it broadcasts and is squeezed away; the others have nothing in common.
constexpr int64_t kCheckedSizes[] = {1, 7, 12};

std::string Declared(absl::Span<const ModelIo> inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const ModelIo& input) {
    absl::StrAppend(out, input.name, " [",
                    absl::StrJoin(input.dims, ", ",
                                  [](std::string* dims, const Dim& dim) {
                                    absl::StrAppend(dims, dim.is_constant() ? absl::StrCat(dim.size)
                                                                            : dim.symbol);
                                  }),
                    "]");
  });
}

}  // namespace

absl::Status CheckSomeSizes(
    absl::Span<const ModelIo> inputs,
    const std::function<absl::Status(const std::map<std::string, int64_t>&)>& specialize) {
  std::map<std::string, int64_t> sizes;
  for (const ModelIo& input : inputs) {
    for (const Dim& dim : input.dims) {
      if (!dim.is_constant()) sizes.emplace(dim.symbol, 0);
    }
  }
  absl::Status first;
  bool always_rank = true, always_same = true;
  for (const int64_t size : kCheckedSizes) {
    for (auto& [symbol, value] : sizes) value = size;
    const absl::Status status = specialize(sizes);
    if (!absl::IsInvalidArgument(status)) return absl::OkStatus();
    if (first.ok()) first = status;
    always_rank &= IsRankError(status);
    // The message has the shapes of the operands: where they move with the sizes, it differs.
    always_same &= status.message() == first.message();
  }
  if (!always_rank && !always_same) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      first.message(),
      "; so it is at all sizes of the inputs that the file declares: ", Declared(inputs)));
}

}  // namespace reprise
