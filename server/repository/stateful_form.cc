#include "server/repository/stateful_form.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/shape.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using inference::ModelSequenceBatching;
using Control = ModelSequenceBatching::Control;

// The idle time of sequences where config.pbtxt names none, as in Triton.
constexpr int64_t kUsualIdleUs = 1'000'000;

absl::Status Invalid(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: sequence_batching: ", what));
}

size_t PositionOf(const std::vector<ModelIo>& ios, const std::string& name) {
  const auto found =
      std::find_if(ios.begin(), ios.end(), [&](const ModelIo& io) { return io.name == name; });
  return static_cast<size_t>(found - ios.begin());
}

absl::Status CheckType(const std::string& what, const ModelIo& io, inference::DataType type) {
  if (ConfigType(io) == type) return absl::OkStatus();
  return Invalid(absl::StrCat(what, " is ", inference::DataType_Name(type), ", the model has ",
                              inference::DataType_Name(ConfigType(io))));
}

template <class T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
}

// Reads the bytes for false and true, from the one list that is given.
absl::Status ReadFlag(const Control& control, const std::string& what, const ModelIo& io,
                      ControlTensor& tensor) {
  const auto take = [&](const auto& list, inference::DataType type) -> absl::Status {
    if (list.size() != 2) {
      return Invalid(absl::StrCat(what, " has ", list.size(), " values, false and true are two"));
    }
    using Value = std::decay_t<decltype(list[0])>;
    using Stored = std::conditional_t<std::is_same_v<Value, bool>, uint8_t, Value>;
    tensor.no = BytesOf(static_cast<Stored>(list[0]));
    tensor.yes = BytesOf(static_cast<Stored>(list[1]));
    return CheckType(what, io, type);
  };
  const int given = !control.int32_false_true().empty() + !control.fp32_false_true().empty() +
                    !control.bool_false_true().empty();
  if (given != 1) {
    return Invalid(absl::StrCat(what, " has ", given,
                                " lists of values, it must have one of int32_false_true, "
                                "fp32_false_true and bool_false_true"));
  }
  if (!control.int32_false_true().empty()) {
    return take(control.int32_false_true(), inference::TYPE_INT32);
  }
  if (!control.fp32_false_true().empty()) {
    return take(control.fp32_false_true(), inference::TYPE_FP32);
  }
  return take(control.bool_false_true(), inference::TYPE_BOOL);
}

absl::StatusOr<ControlTensor> ReadControl(const ModelSequenceBatching::ControlInput& input,
                                          const Signature& signature) {
  const std::string what = absl::StrCat("control_input \"", input.name(), "\"");
  if (input.control_size() != 1) {
    return Invalid(
        absl::StrCat(what, " has ", input.control_size(), " controls, it must have one"));
  }
  const Control& control = input.control(0);
  ControlTensor tensor = {.input = PositionOf(signature.inputs, input.name())};
  const ModelIo& io = signature.inputs[tensor.input];
  switch (control.kind()) {
    case Control::CONTROL_SEQUENCE_CORRID: {
      constexpr inference::DataType kIds[] = {inference::TYPE_UINT64, inference::TYPE_INT64,
                                              inference::TYPE_UINT32, inference::TYPE_INT32,
                                              inference::TYPE_STRING};
      if (std::find(std::begin(kIds), std::end(kIds), control.data_type()) == std::end(kIds)) {
        return Invalid(absl::StrCat(what, ".data_type is ",
                                    inference::DataType_Name(control.data_type()),
                                    ", ids are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 "
                                    "or TYPE_STRING"));
      }
      tensor.kind = ControlTensor::Kind::kId;
      RETURN_IF_ERROR(CheckType(what + ".data_type", io, control.data_type()));
      return tensor;
    }
    case Control::CONTROL_SEQUENCE_START:
      tensor.kind = ControlTensor::Kind::kStart;
      break;
    case Control::CONTROL_SEQUENCE_END:
      tensor.kind = ControlTensor::Kind::kEnd;
      break;
    case Control::CONTROL_SEQUENCE_READY:
      tensor.kind = ControlTensor::Kind::kReady;
      break;
    default:
      return Invalid(absl::StrCat(what, ".kind is ", static_cast<int>(control.kind())));
  }
  RETURN_IF_ERROR(ReadFlag(control, what, io, tensor));
  return tensor;
}

// Returns whether a client's input has a dim with `symbol`.
bool IsSent(const Signature& signature, const std::string& symbol) {
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (signature.hidden.input(i) || signature.inputs[i].optional) continue;
    for (const Dim& dim : signature.inputs[i].dims) {
      if (!dim.is_constant() && dim.symbol == symbol) return true;
    }
  }
  return false;
}

// Entry `dim` of `list`, whose entries stand for the last dims of `rank`; -1: it says nothing.
template <class List>
int64_t SizeIn(const List& list, size_t rank, size_t dim) {
  const size_t listed = static_cast<size_t>(list.size());
  if (listed > rank || dim < rank - listed) return -1;
  return std::max<int64_t>(-1, list[static_cast<int>(dim - (rank - listed))]);
}

absl::StatusOr<std::vector<int64_t>> FirstSizes(const ModelSequenceBatching::State& state,
                                                const std::string& what, const ModelIo& io,
                                                const Signature& signature) {
  const size_t rank = io.dims.size();
  const int most = std::max(
      state.dims_size(), state.initial_state_size() > 0 ? state.initial_state(0).dims_size() : 0);
  if (static_cast<size_t>(most) > rank) {
    return Invalid(absl::StrCat(what, " has ", most, " dims, the model has ", rank));
  }
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rank; ++i) {
    int64_t wanted =
        state.initial_state_size() > 0 ? SizeIn(state.initial_state(0).dims(), rank, i) : -1;
    if (wanted < 0) wanted = SizeIn(state.dims(), rank, i);
    if (io.dims[i].is_constant()) {
      if (wanted >= 0 && wanted != io.dims[i].size) {
        return Invalid(
            absl::StrCat(what, ": dim ", i, " is ", wanted, ", the model has ", io.dims[i].size));
      }
      wanted = io.dims[i].size;
    } else if (wanted < 0 && !IsSent(signature, io.dims[i].symbol)) {
      return Invalid(absl::StrCat(what, ": dim ", i, " (", io.dims[i].symbol,
                                  ") has no size at the start; initial_state.dims says it"));
    }
    sizes.push_back(wanted);
  }
  return sizes;
}

// Returns the bytes of one row in the file `name` of the folder initial_state.
absl::StatusOr<std::string> ReadFirstRow(const std::string& name, const std::string& what,
                                         const ModelIo& io, const std::vector<int64_t>& sizes,
                                         const std::string& model_folder) {
  if (name.empty() || absl::StrContains(name, '/') || name == "..") {
    return Invalid(absl::StrCat(what, ".data_file is \"", name,
                                "\", it must be a file of the folder initial_state"));
  }
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 && i > 0) {
      return Invalid(absl::StrCat(what, ".data_file: dim ", i, " (", io.dims[i].symbol,
                                  ") has no size; initial_state.dims says it"));
    }
    if (sizes[i] >= 0 && __builtin_mul_overflow(elements, sizes[i], &elements)) {
      return Invalid(absl::StrCat(what, " has more than 2^63 elements"));
    }
  }
  const auto path = std::filesystem::path(model_folder) / "initial_state" / name;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) {
    return Invalid(absl::StrCat(what, ".data_file: ", path.string(), ": ", error.message()));
  }
  const auto wanted = static_cast<uintmax_t>(elements) * DTypeSize(io.dtype);
  if (bytes != wanted) {
    return Invalid(absl::StrCat(what, ".data_file: ", path.string(), " has ", bytes,
                                " bytes, a row of the state has ", wanted));
  }
  std::string row(static_cast<size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(row.data(), static_cast<std::streamsize>(row.size()))) {
    return Invalid(absl::StrCat(what, ".data_file: ", path.string(), " cannot be read"));
  }
  return row;
}

absl::StatusOr<StateTensor> ReadState(const ModelSequenceBatching::State& state,
                                      const Signature& signature, const std::string& model_folder) {
  const std::string what = absl::StrCat("state \"", state.input_name(), "\"");
  StateTensor tensor = {.input = PositionOf(signature.inputs, state.input_name()),
                        .output = PositionOf(signature.outputs, state.output_name())};
  const ModelIo& input = signature.inputs[tensor.input];
  const ModelIo& output = signature.outputs[tensor.output];
  if (input.text || output.text) {
    return absl::UnimplementedError(
        absl::StrCat("config.pbtxt: sequence_batching: ", what, " is text"));
  }
  if (input.dtype != output.dtype) {
    return Invalid(absl::StrCat(what, " is ", ProtocolName(input), ", and output \"",
                                state.output_name(), "\" is ", ProtocolName(output)));
  }
  if (state.data_type() != inference::TYPE_INVALID) {
    RETURN_IF_ERROR(CheckType(what + ".data_type", input, state.data_type()));
  }
  if (state.initial_state_size() > 1) {
    return Invalid(absl::StrCat(what, " has ", state.initial_state_size(),
                                " initial states, it must have one"));
  }
  ASSIGN_OR_RETURN(tensor.sizes, FirstSizes(state, what, input, signature));
  if (state.initial_state_size() == 0) return tensor;
  const ModelSequenceBatching::InitialState& initial = state.initial_state(0);
  if (initial.data_type() != inference::TYPE_INVALID) {
    RETURN_IF_ERROR(CheckType(what + ".initial_state.data_type", input, initial.data_type()));
  }
  if (initial.has_data_file()) {
    ASSIGN_OR_RETURN(tensor.first_row, ReadFirstRow(initial.data_file(), what + ".initial_state",
                                                    input, tensor.sizes, model_folder));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<StatefulForm> MakeStatefulForm(const ModelSettings& settings,
                                              const Signature& signature,
                                              const std::string& model_folder) {
  const ModelSequenceBatching& batching = settings.config.sequence_batching();
  const auto idle_us = static_cast<int64_t>(batching.max_sequence_idle_microseconds());
  StatefulForm form = {.max_idle_ns = (idle_us == 0 ? kUsualIdleUs : idle_us) * 1000,
                       .max_candidates = batching.oldest().max_candidate_sequences()};
  for (const auto& input : batching.control_input()) {
    ASSIGN_OR_RETURN(form.controls.emplace_back(), ReadControl(input, signature));
  }
  for (const auto& state : batching.state()) {
    ASSIGN_OR_RETURN(form.states.emplace_back(), ReadState(state, signature, model_folder));
  }
  return form;
}

}  // namespace reprise
