#include "server/requests/inference.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/admission.h"
#include "server/requests/call.h"
#include "server/requests/plan_builder.h"
#include "server/requests/shape_columns.h"

namespace reprise {

Inference::Inference(Repository& repository, Scheduler& scheduler, Engine& engine,
                     const Clock& clock, ServerEvents& events)
    : repository_(repository),
      scheduler_(scheduler),
      engine_(engine),
      clock_(clock),
      events_(events) {}

std::shared_ptr<Call> Inference::Start(const InferRequest& request, Done done) {
  const int64_t start_ns = clock_.NowNs();
  auto call =
      WithinMemory([&] { return absl::StrCat("a request for model '", request.model, "'"); },
                   [&] { return Queue(request, done, start_ns); });
  if (call.ok()) return *std::move(call);
  WhereMemoryAllows([&] { CountRefused(request, call.status(), start_ns); });
  done(InferResult{.status = call.status()});
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Call>> Inference::Queue(const InferRequest& request, Done& done,
                                                       int64_t start_ns) {
  ASSIGN_OR_RETURN(Repository::Found found, repository_.Find(request.model, request.version));
  const Servable& servable = *found.servable;
  const Model& model = *servable.model;
  ASSIGN_OR_RETURN(Admitted admitted, Admit(servable.signature.inputs, servable.signature.outputs,
                                            model.vocabulary(), request));
  ASSIGN_OR_RETURN(const int64_t deadline_ns, StartDeadline(servable.settings, request, start_ns));
  ASSIGN_OR_RETURN(const uint64_t priority, Priority(servable.settings, request));
  model.SpreadRows(admitted.request);
  ASSIGN_OR_RETURN(RequestShape shape, model.Measure(admitted.request));

  const int64_t rows = shape.rows;
  const int64_t tokens = shape.tokens;
  std::vector<int64_t> columns = ShapeOf(model, shape);
  const std::shared_ptr<const RequestTexts> texts = admitted.request.texts;
  std::vector<std::pair<Request, RequestShape>> pieces;
  if (const int64_t most = model.MaxRows(shape); rows > most) {
    for (Request& piece : SplitRows(model, admitted.request, rows, most)) {
      ASSIGN_OR_RETURN(RequestShape piece_shape, model.Measure(piece));
      piece_shape.buckets = shape.buckets;  // that it was split for
      pieces.emplace_back(std::move(piece), std::move(piece_shape));
    }
  } else {
    pieces.emplace_back(std::move(admitted.request), std::move(shape));
  }

  for (auto& [piece, piece_shape] : pieces) {
    piece_shape.on_miss = request.on_miss;
    piece_shape.id = std::string(request.id);
    if (!BatchPlan(model).TryAdd(piece_shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the request has ", rows, " rows of ", tokens / rows,
                       " tokens: no bucket holds it, and reprise.overflow is reject"));
    }
  }

  auto call =
      std::make_shared<Call>(found, std::move(admitted.wanted_outputs), texts, std::move(columns),
                             rows, pieces.size(), start_ns, clock_, scheduler_, done);
  std::vector<std::shared_ptr<WorkItem>> items;
  std::vector<std::weak_ptr<Part>> parts;
  for (auto& [piece, measured] : pieces) {
    auto part = std::make_shared<Part>(call, items.size(), std::move(piece), std::move(measured));
    part->shape = {.rows = part->measured.rows,
                   .tokens = part->measured.tokens,
                   .bytes = part->measured.bytes,
                   .deadline_ns = deadline_ns,
                   .priority = priority};
    parts.push_back(part);
    items.push_back(std::move(part));
  }
  call->SetParts(std::move(parts));
  RETURN_IF_ERROR(scheduler_.Submit(servable.queue, items));
  return call;
}

void Inference::CountRefused(const InferRequest& request, const absl::Status& status,
                             int64_t start_ns) {
  const RequestRecord record = {.code = status.code(),
                                .queue_full = status.code() == absl::StatusCode::kResourceExhausted,
                                .total_ns = clock_.NowNs() - start_ns};
  if (auto version = repository_.FindListed(request.model, request.version)) {
    version->statistics.RecordFailure(record.total_ns);
    version->events->OnRequest(record);
  } else {
    events_.OnUnknownModel(record);
  }
}

void Inference::Cancel(Call& call) { call.CancelWaiting(); }

void Inference::Execute(Scheduler::Batch& batch, Stream& stream) {
  size_t finished = 0;
  const absl::Status executed = WithinMemory([&] { return batch.queue->options().name; },
                                             [&] {
                                               ExecuteUntilFailure(batch, stream, finished);
                                               return absl::OkStatus();
                                             });
  while (finished < batch.items.size()) batch.items[finished++]->Drop(executed);
}

void Inference::ExecuteUntilFailure(Scheduler::Batch& batch, Stream& stream, size_t& finished) {
  const BatchPlan& plan = static_cast<const PlanBuilder&>(*batch.builder).plan();
  std::vector<const Request*> requests;
  int64_t rows = 0;
  for (const auto& item : batch.items) {
    requests.push_back(&static_cast<const Part&>(*item).request);
    rows += item->shape.rows;
  }
  std::vector<Response> responses = engine_.Run(plan, requests, stream);
  REPRISE_CHECK(responses.size() == batch.items.size());

  // What is neither gather nor scatter is the capture, the wait for one, and the replay.
  const ReplayInfo& info = responses[0].info;
  const int64_t run_ns = clock_.NowNs() - batch.taken_ns;
  PhaseTimes times = {.compute_input_ns = info.gather_ns,
                      .compute_infer_ns = run_ns - info.gather_ns - info.scatter_ns,
                      .compute_output_ns = info.scatter_ns};
  // A batch whose capture failed was not executed.
  if (std::any_of(responses.begin(), responses.end(),
                  [](const Response& response) { return response.info.batch > 0; })) {
    WhereMemoryAllows([&] {
      ModelVersion& version = *static_cast<Part&>(*batch.items[0]).model_version();
      version.statistics.RecordBatch(rows, times);
      version.events->OnBatch();
    });
  }
  for (size_t i = 0; i < responses.size(); ++i) {
    auto& part = static_cast<Part&>(*batch.items[i]);
    PhaseTimes own = times;
    own.queue_ns = batch.taken_ns - part.place.enqueued_ns;
    ++finished;
    part.Finish(std::move(responses[i]), own);
  }
}

}  // namespace reprise
