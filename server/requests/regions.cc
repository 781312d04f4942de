#include "server/requests/regions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"

namespace reprise {

// Inputs that lie in regions, and the memory that they are read into.
class RegionInputs {
 public:
  explicit RegionInputs(std::shared_ptr<ConnectionBytes> account) : held_(std::move(account)) {}

  // Memory for an input that is not read yet, and is there until this goes.
  absl::StatusOr<absl::string_view> Add(absl::string_view input,
                                        std::shared_ptr<const SharedRegion> region,
                                        const RegionSlice& slice) {
    RETURN_IF_ERROR(held_.Resize(held_.bytes() + slice.bytes));
    const auto size = static_cast<size_t>(slice.bytes);
    inputs_.push_back({.name = input,
                       .region = std::move(region),
                       .offset = slice.offset,
                       .size = size,
                       // Pages of large ones are taken as they are written.
                       .bytes = std::make_unique_for_overwrite<char[]>(size)});
    return absl::string_view(inputs_.back().bytes.get(), size);
  }

  absl::Status Read() {
    if (std::exchange(is_read_, true)) return absl::OkStatus();
    for (const Input& input : inputs_) {
      const absl::Status read =
          input.region->Read(input.offset, absl::MakeSpan(input.bytes.get(), input.size));
      if (!read.ok()) {
        return absl::Status(read.code(),
                            absl::StrCat("input ", QuotedText(input.name), ": ", read.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Input {
    absl::string_view name;
    std::shared_ptr<const SharedRegion> region;
    int64_t offset = 0;
    size_t size = 0;
    std::unique_ptr<char[]> bytes;
  };

  HeldBytes held_;
  std::vector<Input> inputs_;
  bool is_read_ = false;
};

namespace {

// Where the outputs of an answer go, at the positions of those asked for.
struct RegionOutput {
  std::shared_ptr<const SharedRegion> region;  // null: into the message
  RegionSlice slice;
};

absl::Status OfTensor(const char* kind, absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(kind, " ", QuotedText(name), ": ", status.message()));
}

absl::StatusOr<std::shared_ptr<const SharedRegion>> FindRegion(const SharedRegions* regions,
                                                               const RegionSlice& slice) {
  if (regions == nullptr) {
    return absl::UnimplementedError(
        "parameter shared_memory_region is not supported: the server runs without "
        "--system-shared-memory");
  }
  ASSIGN_OR_RETURN(const auto region, regions->Find(slice.region));
  RETURN_IF_ERROR(region->CheckRange(slice.offset, slice.bytes));
  return region;
}

absl::Status WriteOutput(const RegionOutput& output, std::string& bytes) {
  if (static_cast<int64_t>(bytes.size()) > output.slice.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", bytes.size(), " bytes, the request has room for ", output.slice.bytes,
        " in shared memory region ", QuotedText(output.slice.region)));
  }
  RETURN_IF_ERROR(output.region->Write(output.slice.offset, bytes));
  std::string().swap(bytes);
  return absl::OkStatus();
}

absl::Status WriteOutputs(const std::vector<RegionOutput>& outputs, InferResult& result) {
  result.regions.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].region == nullptr) continue;
    const int position = result.outputs[i];
    std::string& bytes = result.response.outputs[position].bytes;
    RegionSlice slice = outputs[i].slice;
    slice.bytes = static_cast<int64_t>(bytes.size());
    const absl::Status written = WriteOutput(outputs[i], bytes);
    if (!written.ok()) {
      return OfTensor("output", result.model.servable->signature.outputs[position].name, written);
    }
    result.regions[i] = std::move(slice);
  }
  return absl::OkStatus();
}

}  // namespace

bool UsesRegions(const InferRequest& request) {
  return !request.output_regions.empty() ||
         std::any_of(request.inputs.begin(), request.inputs.end(),
                     [](const InputView& input) { return input.region.has_value(); });
}

absl::Status PlaceInRegions(const SharedRegions* regions, InferRequest& request,
                            RequestState& state) {
  for (InputView& input : request.inputs) {
    if (!input.region.has_value()) continue;
    const auto region = FindRegion(regions, *input.region);
    if (!region.ok()) return OfTensor("input", input.name, region.status());
    if (state.region_inputs == nullptr) {
      state.region_inputs = std::make_shared<RegionInputs>(regions->account());
    }
    const auto bytes = state.region_inputs->Add(input.name, *region, *input.region);
    if (!bytes.ok()) return OfTensor("input", input.name, bytes.status());
    input.bytes = *bytes;
  }
  if (request.output_regions.empty()) return absl::OkStatus();
  std::vector<RegionOutput> outputs(request.outputs.size());
  for (size_t i = 0; i < request.output_regions.size(); ++i) {
    if (!request.output_regions[i].has_value()) continue;
    outputs[i].slice = *request.output_regions[i];
    auto region = FindRegion(regions, outputs[i].slice);
    if (!region.ok()) return OfTensor("output", request.outputs[i], region.status());
    outputs[i].region = *std::move(region);
  }
  // The first step is taken last: others may still change the outputs.
  state.on_answer.push_back([outputs = std::move(outputs)](InferResult& result) {
    return WriteOutputs(outputs, result);
  });
  return absl::OkStatus();
}

absl::Status ReadRegions(const InferRequest&, RequestState& state) {
  return state.region_inputs == nullptr ? absl::OkStatus() : state.region_inputs->Read();
}

}  // namespace reprise
