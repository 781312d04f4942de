#include "server/requests/pictures.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/clock.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/pictures/picture_model.h"
#include "server/requests/admit.h"
#include "server/wire/text_tensor.h"

namespace reprise {
namespace {

constexpr int64_t kMostPictures = 4096;

// Owns the tensors that the request points into, until it is answered.
struct ReadPictures {
  std::string bytes;
  std::vector<int64_t> shape;
  std::string mask;
  std::vector<int64_t> mask_shape;
};

// Returns the files of a BYTES tensor.
absl::StatusOr<std::vector<absl::string_view>> FilesOf(const InputView& view) {
  const bool fits = (view.shape.size() == 1 || (view.shape.size() == 2 && view.shape[1] == 1)) &&
                    view.shape[0] > 0 && view.shape[0] <= kMostPictures;
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", view.name, "\" has shape ", ShapeToString(view.shape),
                     ", pictures are BYTES of shape [rows], at most ", kMostPictures, " rows"));
  }
  return TextsOfInput(view.name, view.bytes, view.shape[0]);
}

absl::StatusOr<PictureTensor> ReadOne(const PictureModel& model, absl::string_view file,
                                      TextThreads* threads,
                                      const std::function<absl::Status()>& go_on,
                                      RequestTrace* trace) {
  RETURN_IF_ERROR(go_on());
  const int64_t start_ns = SteadyClock().NowNs();
  ASSIGN_OR_RETURN(const int64_t bytes, model.BytesToRead(file));
  std::optional<TextMemory::Share> share;
  if (threads != nullptr) {
    ASSIGN_OR_RETURN(TextMemory::Share taken, threads->memory().Wait(bytes, go_on));
    share.emplace(std::move(taken));
  }
  ASSIGN_OR_RETURN(PictureTensor tensor, model.Read(file));
  if (trace != nullptr) {
    trace->Add({.name = "picture",
                .start_ns = start_ns,
                .end_ns = SteadyClock().NowNs(),
                .attributes = {{"reprise.width", int64_t{tensor.place.width}},
                               {"reprise.height", int64_t{tensor.place.height}}}});
  }
  return tensor;
}

// Adds a row, which has the shape of those before it.
absl::Status AddRow(const PictureModel& model, PictureTensor tensor, ReadPictures& made) {
  if (made.shape.empty()) {
    made.shape = tensor.shape;
    made.bytes = std::move(tensor.bytes);
    if (!model.mask_input().empty()) made.mask_shape = model.MaskShape(tensor);
    return absl::OkStatus();
  }
  const int64_t rows = std::exchange(made.shape[0], 1);
  if (made.shape != tensor.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it becomes a tensor of shape ", ShapeToString(tensor.shape), ", row 0 one of ",
        ShapeToString(made.shape), "; send pictures of several sizes one by one"));
  }
  made.shape[0] = rows + 1;
  made.bytes += tensor.bytes;
  return absl::OkStatus();
}

void MakeMask(ReadPictures& made) {
  if (made.mask_shape.empty()) return;
  made.mask_shape[0] = made.shape[0];
  const std::vector<int64_t> ones(static_cast<size_t>(NumElements(made.mask_shape)), 1);
  made.mask.assign(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(int64_t));
}

absl::Status ReadAll(const PictureModel& model, TextThreads* threads, const InferRequest& asked,
                     ReadPictures& made) {
  const auto go_on = [threads, &asked]() -> absl::Status {
    if (threads != nullptr) RETURN_IF_ERROR(threads->GoOn());
    RETURN_IF_ERROR(CheckStays(asked));
    if (asked.deadline_ns == kNoDeadline || SteadyClock().NowNs() < asked.deadline_ns) {
      return absl::OkStatus();
    }
    return absl::DeadlineExceededError("the deadline has passed");
  };
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> files, FilesOf(asked.inputs[0]));
  for (size_t i = 0; i < files.size(); ++i) {
    absl::StatusOr<PictureTensor> tensor =
        ReadOne(model, files[i], threads, go_on, asked.trace.get());
    absl::Status status = tensor.status();
    if (status.ok()) status = AddRow(model, *std::move(tensor), made);
    if (status.ok()) continue;
    if (files.size() == 1) return status;
    return absl::Status(status.code(), absl::StrCat("picture ", i, ": ", status.message()));
  }
  MakeMask(made);
  return absl::OkStatus();
}

}  // namespace

bool SendsPictures(const InferRequest& asked) {
  return asked.inputs.size() == 1 && asked.inputs[0].name == kImageInput &&
         asked.inputs[0].datatype == "BYTES";
}

absl::Status AdmitPictures(const Repository& repository, TextThreads* threads,
                           const InferRequest& asked, RequestState& state) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(asked.model, asked.version));
  const std::vector<ModelIo>& inputs = found.servable->signature.inputs;
  const auto own = [](const ModelIo& input) { return input.name == kImageInput && input.text; };
  if (std::any_of(inputs.begin(), inputs.end(), own)) return Admit(repository, asked, state);
  const std::shared_ptr<const PictureModel> model = found.servable->pictures;
  if (model == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("input \"", kImageInput, "\": ", found.servable->pictures_refusal));
  }
  if (threads != nullptr && state.resumer != nullptr && !asked.on_text_threads) {
    state.to_text_threads = true;
    state.waits = threads->Run(state.resumer->Resume(state));
    if (state.waits) return absl::OkStatus();
    RETURN_IF_ERROR(threads->GoOn());
    return NoMemoryStatus("a request of pictures", 0);
  }
  const auto made = std::make_shared<ReadPictures>();
  RETURN_IF_ERROR(ReadAll(*model, threads, asked, *made));
  InferRequest tensors = asked;
  tensors.inputs = {{.name = model->input(),
                     .datatype = model->datatype(),
                     .shape = made->shape,
                     .bytes = made->bytes}};
  if (!made->mask.empty()) {
    tensors.inputs.push_back({.name = model->mask_input(),
                              .datatype = "INT64",
                              .shape = made->mask_shape,
                              .bytes = made->mask});
  }
  RETURN_IF_ERROR(Admit(repository, tensors, state));
  // Held until the answer: the request points into it.
  state.on_answer.push_back([made](InferResult&) { return absl::OkStatus(); });
  return absl::OkStatus();
}

}  // namespace reprise
