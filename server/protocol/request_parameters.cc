#include "server/protocol/request_parameters.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

std::string Text(const ParameterValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::string* text = std::get_if<std::string>(&value)) {
    return QuotedText(*text);
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) return absl::StrCat(*number);
  if (const uint64_t* number = std::get_if<uint64_t>(&value)) return absl::StrCat(*number);
  return absl::StrCat(std::get<double>(value));
}

absl::StatusOr<bool> Flag(const std::string& name, const ParameterValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag;
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " must be true or false, it is ", Text(value)));
}

absl::Status TakeSequenceId(const std::string& name, const ParameterValue& value,
                            SequenceMark& sequence) {
  constexpr size_t kMostBytes = 4096;
  if (const std::string* text = std::get_if<std::string>(&value)) {
    if (text->size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " has ", text->size(),
                                                     " bytes, the most is ", kMostBytes));
    }
    sequence.text = *text;
  } else if (const uint64_t* large = std::get_if<uint64_t>(&value)) {
    sequence.number = *large;
  } else if (const int64_t* number = std::get_if<int64_t>(&value);
             number != nullptr && *number >= 0) {
    sequence.number = static_cast<uint64_t>(*number);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", name,
                     " must be an unsigned integer of 64 bits or a text, it is ", Text(value)));
  }
  return absl::OkStatus();
}

absl::StatusOr<OnMiss> OnMissOf(const std::string& name, const ParameterValue& value) {
  const std::pair<const char*, OnMiss> choices[] = {{"pad", OnMiss::kPad},
                                                    {"wait", OnMiss::kWait},
                                                    {"eager", OnMiss::kEager},
                                                    {"reject", OnMiss::kReject},
                                                    {"frozen", OnMiss::kFrozen}};
  const std::string* text = std::get_if<std::string>(&value);
  for (const auto& [choice, on_miss] : choices) {
    if (text != nullptr && *text == choice) return on_miss;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter ", name, " must be pad, wait, eager, reject or frozen, it is ", Text(value)));
}

}  // namespace

absl::StatusOr<int64_t> IntegerParameter(const std::string& name, const ParameterValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " must be an integer of 64 bits, it is ", Text(value)));
}

absl::StatusOr<std::string> TextParameter(const std::string& name, const ParameterValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " must be a text, it is ", Text(value)));
}

bool IsOwnParameter(absl::string_view name) {
  for (const absl::string_view own : {"timeout", "priority", kSequenceId, "sequence_start",
                                      "sequence_end", "binary_data_output"}) {
    if (name == own) return true;
  }
  return absl::StartsWith(name, "reprise.") || absl::StartsWith(name, "triton_");
}

absl::Status SetParameter(const std::string& name, const ParameterValue& value,
                          InferRequest& request) {
  if (name == "timeout") {
    ASSIGN_OR_RETURN(request.timeout_us, IntegerParameter(name, value));
  } else if (name == "priority") {
    ASSIGN_OR_RETURN(const int64_t priority, IntegerParameter(name, value));
    if (priority < 0) {
      return absl::InvalidArgumentError(absl::StrCat("parameter priority is ", priority));
    }
    request.priority = static_cast<uint64_t>(priority);
  } else if (name == "reprise.on_miss") {
    ASSIGN_OR_RETURN(request.on_miss, OnMissOf(name, value));
  } else if (name == kSequenceId) {
    RETURN_IF_ERROR(TakeSequenceId(name, value, request.sequence));
  } else if (name == "sequence_start") {
    ASSIGN_OR_RETURN(request.sequence.start, Flag(name, value));
  } else if (name == "sequence_end") {
    ASSIGN_OR_RETURN(request.sequence.end, Flag(name, value));
  } else if (absl::StartsWith(name, "triton_") && name != "triton_enable_empty_final_response") {
    return absl::InvalidArgumentError(absl::StrCat("parameter ", ShownText(name), " is not known"));
  }
  return absl::OkStatus();
}

}  // namespace reprise
