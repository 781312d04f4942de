// How ScatterElements and ScatterND combine an update with the element that is there already.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/node.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

inline absl::StatusOr<Reduction> ReductionOf(const Node& node) {
  const std::string name = node.attributes.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return absl::InvalidArgumentError(absl::StrCat("unknown reduction '", name, "'"));
}

template <typename T>
T Combine(Reduction reduction, T old, T update) {
  if constexpr (std::is_same_v<T, Bool>) {
    const bool both = old && update;
    switch (reduction) {
      case Reduction::kNone:
        return update;
      case Reduction::kAdd:
      case Reduction::kMax:
        return Bool(old || update);
      default:
        return Bool(both);
    }
  } else {
    using C = std::conditional_t<std::is_integral_v<T>, uint64_t, Compute<T>>;
    switch (reduction) {
      case Reduction::kNone:
        return update;
      case Reduction::kAdd:
        return static_cast<T>(static_cast<C>(old) + static_cast<C>(update));
      case Reduction::kMul:
        return static_cast<T>(static_cast<C>(old) * static_cast<C>(update));
      case Reduction::kMax:
        return static_cast<Compute<T>>(old) < static_cast<Compute<T>>(update) ? update : old;
      case Reduction::kMin:
        return static_cast<Compute<T>>(update) < static_cast<Compute<T>>(old) ? update : old;
    }
    return update;
  }
}

}  // namespace reprise::ops
