// Parameters of a request to infer, whatever face they come by.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/requests/request.h"

namespace reprise {

// uint64 holds numbers beyond int64.
using ParameterValue = std::variant<bool, int64_t, uint64_t, double, std::string>;

// Returns the value of a parameter that is a whole number, or a text. Errors: INVALID_ARGUMENT
// naming the parameter and its value.
absl::StatusOr<int64_t> IntegerParameter(const std::string& name, const ParameterValue& value);
absl::StatusOr<std::string> TextParameter(const std::string& name, const ParameterValue& value);

inline constexpr char kSequenceId[] = "sequence_id";

// Sets in `request` the parameter `name`; parameters other than the protocol's and ours mean
// nothing to a model without state. Errors: INVALID_ARGUMENT naming the parameter and its value.
absl::Status SetParameter(const std::string& name, const ParameterValue& value,
                          InferRequest& request);

// The parameter of an output that asks for its best classes.
inline constexpr char kClassification[] = "classification";

// Returns whether SetParameter gives the name a meaning, or refuses unknown names of its family.
bool IsOwnParameter(absl::string_view name);

}  // namespace reprise
