#include "runtime/passes/paged/decoder.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"

namespace reprise {
namespace {

bool IsSymbol(const Dim& dim) { return !dim.is_constant(); }

// Returns whether it is a batch of any size, or one that an exporter has fixed at 1.
bool IsBatch(const Dim& dim) { return IsSymbol(dim) || dim.size == 1; }

bool IsCache(const Value& input) {
  const bool floats = input.dtype == DType::kFloat32 || input.dtype == DType::kFloat16 ||
                      input.dtype == DType::kBFloat16;
  return floats && input.dims.size() == 4 && IsBatch(input.dims[0]) && !IsSymbol(input.dims[1]) &&
         IsSymbol(input.dims[2]) && !IsSymbol(input.dims[3]);
}

bool IsStates(const Value& input) {
  return input.dims.size() == 3 && absl::StrContains(input.name, "encoder") &&
         (input.dtype == DType::kFloat32 || input.dtype == DType::kFloat16 ||
          input.dtype == DType::kBFloat16);
}

bool IsWhole(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

absl::Status Refuse(absl::string_view what, absl::string_view name, absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat(what, " '", name, "' ", why));
}

// The role of an integer input [batch, symbol].
enum class Role { kIds, kPositions, kMask, kStatesMask };

Role RoleOf(const Value& input) {
  if (absl::StrContains(input.name, "encoder") && absl::StrContains(input.name, "mask")) {
    return Role::kStatesMask;
  }
  if (absl::StrContains(input.name, "mask")) return Role::kMask;
  if (absl::StrContains(input.name, "position")) return Role::kPositions;
  return Role::kIds;
}

absl::Status Take(const Value& input, std::string& role) {
  if (!role.empty()) {
    return Refuse("input", input.name, absl::StrCat("may be the same as '", role, "'"));
  }
  role = input.name;
  return absl::OkStatus();
}

absl::Status TakeInput(const Value& input, Decoder& decoder) {
  const size_t rank = input.dims.size();
  if (IsCache(input)) {
    decoder.caches.push_back({.input = input.name,
                              .heads = input.dims[1].size,
                              .size = input.dims[3].size,
                              .cross = IsCrossName(input.name)});
    return absl::OkStatus();
  }
  if (IsStates(input)) return Take(input, decoder.states);
  const bool one = rank == 0 || (rank == 1 && input.dims[0].size == 1);
  if (input.dtype == DType::kBool && one) return Take(input, decoder.cache_branch);
  if (!IsWhole(input.dtype)) return Refuse("input", input.name, "has no known part in a decoder");
  if (rank == 1 && absl::StrContains(input.name, "position")) return Take(input, decoder.place);
  if (rank == 1 && (!one || absl::StrContains(input.name, "seqlens"))) {
    return Take(input, decoder.last_keys);
  }
  if (one) return Take(input, decoder.length);
  if (rank != 2) return Refuse("input", input.name, "has no known part in a decoder");
  switch (RoleOf(input)) {
    case Role::kMask:
      return Take(input, decoder.mask);
    case Role::kStatesMask:
      return Take(input, decoder.states_mask);
    case Role::kPositions:
      return Take(input, decoder.positions);
    case Role::kIds:
      return Take(input, decoder.ids);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCrossName(absl::string_view name) {
  return absl::StrContains(name, "encoder") || absl::StrContains(name, "cross");
}

absl::StatusOr<Decoder> FindDecoder(const Graph& symbolic,
                                    const std::vector<std::string>& outputs) {
  const auto is_cache = [&](ValueId id) { return IsCache(symbolic.value(id)); };
  if (absl::c_none_of(symbolic.inputs(), is_cache)) {
    for (const ValueId id : symbolic.inputs()) {
      const Value& input = symbolic.value(id);
      const bool cells = input.dtype == DType::kInt8 || input.dtype == DType::kUInt8;
      if (input.dims.size() == 3 && absl::StartsWith(input.name, "past_key_values")) {
        return Refuse(
            "cache", input.name,
            "has three dims, and is not [batch * heads, past, size] or [batch * heads, size, past] "
            "to which a Concat joins new rows");
      }
      if (cells && input.dims.size() == 4 && absl::StrContains(input.name, "past")) {
        return Refuse("cache", input.name, "holds integers, which pages do not take from a model");
      }
    }
    return absl::NotFoundError("it has no cache of keys and values");
  }
  Decoder decoder;
  for (const ValueId id : symbolic.inputs()) {
    if (const absl::Status taken = TakeInput(symbolic.value(id), decoder); !taken.ok()) {
      return taken;
    }
  }
  if (absl::c_all_of(decoder.caches, [](const DecoderCache& one) { return one.cross; })) {
    return absl::UnimplementedError("no cache holds its own tokens");
  }
  if (decoder.ids.empty()) return absl::UnimplementedError("no input holds token ids");
  std::optional<size_t> logits;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == "logits") logits = i;
  }
  // Otherwise the first that is no cache, which an exporter names after "present".
  for (size_t i = 0; i < outputs.size() && !logits.has_value(); ++i) {
    if (!absl::StrContains(outputs[i], "present") && !absl::StrContains(outputs[i], "past")) {
      logits = i;
    }
  }
  if (!logits.has_value()) return absl::UnimplementedError("no output holds scores of tokens");
  decoder.logits = *logits;
  return decoder;
}

}  // namespace reprise
