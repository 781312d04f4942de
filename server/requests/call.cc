#include "server/requests/call.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/requests/shape_columns.h"
#include "server/wire/text_tensor.h"

namespace reprise {

void Part::Drop(const absl::Status& why) { Finish(Response{.status = why}, {}); }

void Part::Finish(Response response, const PhaseTimes& times) {
  call_->FinishPart(index_, std::move(response), times);
}

ModelVersion* Part::model_version() const { return call_->model().version.get(); }

Call::Call(Repository::Found model, std::vector<int> outputs,
           std::shared_ptr<const RequestTexts> texts, std::vector<int64_t> shape, int64_t rows,
           size_t parts, int64_t start_ns, const Clock& clock, Scheduler& scheduler,
           Inference::Done done)
    : model_(std::move(model)),
      outputs_(std::move(outputs)),
      texts_(std::move(texts)),
      shape_(std::move(shape)),
      rows_(rows),
      start_ns_(start_ns),
      clock_(clock),
      scheduler_(scheduler),
      done_(std::move(done)),
      responses_(parts),
      times_(parts),
      unfinished_(parts) {}

void Call::CancelWaiting() {
  for (const std::weak_ptr<Part>& part : parts_) {
    if (auto alive = part.lock()) scheduler_.Cancel(alive);
  }
}

void Call::FinishPart(size_t index, Response response, const PhaseTimes& times) {
  const bool failed = !response.status.ok();
  responses_[index] = std::move(response);
  times_[index] = times;
  if (unfinished_.fetch_sub(1) == 1) {
    Complete();
  } else if (failed && !failed_.exchange(true)) {
    CancelWaiting();  // the answer is an error whatever the other parts say
  }
}

void Call::Complete() {
  InferResult result;
  PhaseTimes times;
  const absl::Status joined = WithinMemory([] { return "the answer"; },
                                           [&] {
                                             Join(result, times);
                                             return WriteTexts(result);
                                           });
  if (!joined.ok()) result = InferResult{.status = joined};
  WhereMemoryAllows([&] { Count(result, times); });
  // It answers whatever happens: see Inference::Start.
  done_(std::move(result));
}

void Call::Join(InferResult& result, PhaseTimes& times) {
  for (size_t i = 0; i < responses_.size(); ++i) {
    result.batches.push_back(responses_[i].info.batch);
    times.queue_ns = std::max(times.queue_ns, times_[i].queue_ns);
    times.compute_input_ns += times_[i].compute_input_ns;
    times.compute_infer_ns += times_[i].compute_infer_ns;
    times.compute_output_ns += times_[i].compute_output_ns;
  }
  std::sort(result.batches.begin(), result.batches.end());
  result.batches.erase(std::unique(result.batches.begin(), result.batches.end()),
                       result.batches.end());
  // A part that was dropped because another one failed must not hide that one's error.
  auto worst = std::find_if(responses_.begin(), responses_.end(), [](const Response& response) {
    return !response.status.ok() && response.status.code() != absl::StatusCode::kCancelled;
  });
  if (worst != responses_.end()) {
    result.response.status = worst->status;
  } else if (responses_.size() == 1) {
    result.response = std::move(responses_[0]);
  } else {
    result.response = JoinRows(*model_.servable->model, std::move(responses_));
    if (!result.batches.empty()) result.response.info.batch = result.batches.back();
  }
  result.status = result.response.status;
  result.outputs = outputs_;
  result.model = model_;
}

absl::Status Call::WriteTexts(InferResult& result) const {
  if (!result.status.ok() || texts_ == nullptr) return absl::OkStatus();
  // No message holds more, and a short text may be answered many times.
  int64_t left = std::numeric_limits<int32_t>::max();
  for (const int position : outputs_) {
    const ModelIo& io = model_.servable->signature.outputs[position];
    if (!io.text) continue;
    std::string& bytes = result.response.outputs[position].bytes;
    const absl::Status written = EncodeTexts(*texts_, left, bytes);
    if (!written.ok()) {
      return absl::Status(written.code(),
                          absl::StrCat("output \"", io.name, "\": ", written.message()));
    }
    left -= static_cast<int64_t>(bytes.size());
  }
  return absl::OkStatus();
}

void Call::Count(const InferResult& result, const PhaseTimes& times) {
  const int64_t total_ns = clock_.NowNs() - start_ns_;
  ModelVersion& version = *model_.version;
  if (result.status.ok()) {
    version.statistics.RecordSuccess(rows_, total_ns, times);
  } else {
    version.statistics.RecordFailure(total_ns);
  }
  version.events->OnRequest(
      {.code = result.status.code(), .rows = rows_, .total_ns = total_ns, .times = times});
  model_.servable->shapes->Record(shape_, ServiceOf(result.response));
}

}  // namespace reprise
