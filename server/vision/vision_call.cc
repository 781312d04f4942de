#include "server/vision/vision_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/pictures.h"

namespace reprise {
namespace {

// Returns a file as the one element of a BYTES tensor.
std::string TensorOf(const std::string& file) {
  const auto size = static_cast<uint32_t>(file.size());
  std::string tensor(sizeof(size), '\0');
  std::memcpy(tensor.data(), &size, sizeof(size));
  return tensor + file;
}

}  // namespace

std::shared_ptr<VisionCall> VisionCall::Start(const VisionContext& context, VisionRequest request,
                                              Done done) {
  std::shared_ptr<VisionCall> call;
  const absl::Status begun =
      WithinMemory([] { return "a request of pictures"; },
                   [&] {
                     call.reset(new VisionCall(context, std::move(request), done));
                     return call->Begin();
                   });
  if (!begun.ok()) {
    done(VisionResult{.status = begun});
    return nullptr;
  }
  const size_t count = call->request_.files.size();
  call->left_ = count;
  for (size_t i = 0; i < count; ++i) call->Send(i);
  return call;
}

absl::Status VisionCall::Begin() {
  ASSIGN_OR_RETURN(ticket_, KeyUse::BeginFor(request_.key, context_.clock->NowNs()));
  ASSIGN_OR_RETURN(const Repository::Found found, context_.repository->Find(request_.model, ""));
  if (found.servable->pictures == nullptr) {
    return absl::FailedPreconditionError(found.servable->pictures_refusal);
  }
  result_.model = found.servable->pictures;
  result_.name = found.version->name;
  if (result_.model->task() == PictureTask::kNone) {
    return absl::FailedPreconditionError(result_.model->no_task());
  }
  for (const std::string& output : result_.model->outputs()) outputs_.push_back(output);
  result_.answers.resize(request_.files.size());
  for (const std::string& file : request_.files) tensors_.push_back(TensorOf(file));
  return absl::OkStatus();
}

void VisionCall::Send(size_t index) {
  if (cancelled_) return Fail(absl::CancelledError("the client has disconnected"), index);
  std::shared_ptr<Call> call;
  const absl::Status sent = WithinMemory(
      [] { return "a picture"; },
      [&] {
        InferRequest asked{.model = request_.model,
                           .outputs = outputs_,
                           .key = request_.key,
                           .trace = request_.trace,
                           .is_counted = true};
        static constexpr int64_t kOneRow[] = {1};
        asked.inputs.push_back(
            {.name = kImageInput, .datatype = "BYTES", .shape = kOneRow, .bytes = tensors_[index]});
        const auto kept = std::make_shared<const InferRequest>(std::move(asked));
        call = context_.inference->Start(
            *kept, [self = shared_from_this(), kept, index](InferResult result) {
              self->OnAnswer(index, std::move(result));
            });
        return absl::OkStatus();
      });
  if (!sent.ok()) return Fail(sent, index);
  if (call == nullptr) return;
  bool cancel = false;
  WhereMemoryAllows([&] {
    MutexLock lock(mutex_);
    calls_.push_back(call);
    cancel = cancelled_;
  });
  if (cancel) context_.inference->Cancel(*call);
}

void VisionCall::OnAnswer(size_t index, InferResult result) {
  absl::Status status = result.status;
  if (status.ok()) {
    status =
        WithinMemory([] { return "the answer"; },
                     [&] {
                       PictureAnswer& answer = result_.answers[index];
                       for (const int position : result.outputs) {
                         const OutputTensor& output = result.response.outputs[position];
                         std::vector<float> values(output.bytes.size() / sizeof(float));
                         if (!values.empty()) {
                           std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
                         }
                         answer.values.push_back(std::move(values));
                         answer.shapes.emplace_back(output.shape.begin() + 1, output.shape.end());
                       }
                       return absl::OkStatus();
                     });
  }
  status.ok() ? End() : Fail(status, index);
}

void VisionCall::Fail(const absl::Status& why, size_t index) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = failed_.ok();
    if (first) {
      failed_ = request_.files.size() == 1 ? why : StatusWithoutFail(why.code(), [&] {
        return absl::Status(why.code(), absl::StrCat("picture ", index, ": ", why.message()));
      });
    }
  }
  if (first) Cancel();
  End();
}

void VisionCall::End() {
  if (left_.fetch_sub(1) != 1) return;
  ticket_ = nullptr;
  {
    MutexLock lock(mutex_);
    result_.status = failed_;
  }
  done_(std::move(result_));
}

void VisionCall::Cancel() {
  cancelled_ = true;
  std::vector<std::weak_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  for (const std::weak_ptr<Call>& each : calls) {
    if (const std::shared_ptr<Call> call = each.lock()) context_.inference->Cancel(*call);
  }
}

}  // namespace reprise
