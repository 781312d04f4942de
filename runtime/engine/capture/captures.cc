#include "runtime/engine/capture/captures.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model/model.h"

namespace reprise {

std::shared_ptr<CaptureTicket> Captures::Begin(std::shared_ptr<const Model> model,
                                               CaptureTarget target, CaptureUrgency urgency,
                                               Waiter waiter) {
  if (pool_ == nullptr) return nullptr;
  MutexLock lock(mutex_);
  for (const FlightPtr& flight : flights_) {
    if (flight->target.key == target.key) return JoinLocked(flight, urgency, std::move(waiter));
  }
  auto flight = std::make_shared<Flight>();
  flight->model = std::move(model);
  flight->target = std::move(target);
  flight->behind = urgency == CaptureUrgency::kBehind;
  flight->urgent = urgency == CaptureUrgency::kUrgent;
  AddWaiter(*flight, std::move(waiter));
  // In this order: others can join a flight whose job runs, and one that was not begun leaves
  // nothing to undo.
  flights_.push_back(flight);
  absl::Cleanup forget = [&] { flights_.pop_back(); };
  if (!AddJob(flight, urgency)) return nullptr;
  std::move(forget).Cancel();
  return flight->ticket;
}

std::shared_ptr<CaptureTicket> Captures::Join(const RecipeKey& want,
                                              const std::set<std::string>& paddable,
                                              Waiter waiter) {
  MutexLock lock(mutex_);
  for (const FlightPtr& flight : flights_) {
    const CaptureTarget& target = flight->target;
    if (target.key == want || (target.bucketed && CanServe(target.key, want, paddable))) {
      return JoinLocked(flight, CaptureUrgency::kUrgent, std::move(waiter));
    }
  }
  return nullptr;
}

std::shared_ptr<CaptureTicket> Captures::JoinLocked(const FlightPtr& flight, CaptureUrgency urgency,
                                                    Waiter waiter) {
  if (urgency == CaptureUrgency::kUrgent && !flight->urgent && !flight->started) {
    WhereMemoryAllows([&] { flight->urgent = AddJob(flight, CaptureUrgency::kUrgent); });
  }
  AddWaiter(*flight, std::move(waiter));
  return flight->ticket;
}

void Captures::AddWaiter(Flight& flight, Waiter waiter) {
  if (waiter.request_ids.empty()) flight.ahead = true;
  flight.waiting.push_back({std::move(waiter), options_.clock->NowNs()});
}

bool Captures::AddJob(const FlightPtr& flight, CaptureUrgency urgency) {
  return pool_->Add(urgency, [this, flight](Stream* stream) { Run(flight, stream); });
}

void Captures::Run(const FlightPtr& flight, Stream* stream) {
  {
    MutexLock lock(mutex_);
    if (flight->started) return;
    flight->started = true;
  }
  const int64_t start_ns = options_.clock->NowNs();
  const absl::StatusOr<CaptureResult> result =
      WithinMemory([&] { return absl::StrCat("capturing ", flight->target.bucket); },
                   [&]() -> absl::StatusOr<CaptureResult> {
                     RETURN_IF_ERROR(GoesOn(*flight, start_ns));
                     if (stream == nullptr) {
                       return absl::ResourceExhaustedError(absl::StrCat(
                           "capturing ", flight->target.bucket,
                           ": no addresses or no memory left for an arena to prime it in"));
                     }
                     CaptureTarget target = flight->target;
                     target.go_on = [&] { return GoesOn(*flight, start_ns); };
                     return CaptureRecipe(options_, cache_, *flight->model, target, *stream);
                   });
  const bool given_up = absl::IsCancelled(result.status()) ||
                        (absl::IsUnavailable(result.status()) && !pool_->stopped());
  if (given_up && BeginAnew(flight)) return;
  if (result.ok()) {
    // With a recipe from the store no request captured: all waited.
    flight->ticket->captured = result->record.has_value();
    if (!flight->target.exact) {
      WhereMemoryAllows([&] { on_recipe_(*flight->model, *result->recipe); });
    }
  }
  std::vector<Flight::Waiting> waiting;
  {
    MutexLock lock(mutex_);
    flights_.remove(flight);
    waiting = std::move(flight->waiting);
  }
  if (result.ok() && result->record.has_value()) {
    WhereMemoryAllows([&] { Tell(*flight, *result->record, waiting); });
  }
  // One waiter's exception leaves no other waiter waiting for ever.
  for (Flight::Waiting& one : waiting) {
    if (one.waiter.done) WhereMemoryAllows([&] { one.waiter.done(result.status()); });
  }
}

absl::Status Captures::GoesOn(const Flight& flight, int64_t start_ns) const {
  if (pool_->stopped()) return absl::UnavailableError("the server is stopping");
  if (HasWaiters(flight)) return absl::OkStatus();
  if (flight.model->abandoned()) {
    return absl::UnavailableError(
        absl::StrCat("model '", flight.model->id().name, "' is unloaded"));
  }
  if (flight.behind || flight.ahead) return absl::OkStatus();
  const int64_t taken_ns = options_.clock->NowNs() - start_ns;
  if (!flight.target.exact && taken_ns < kAbandonedNs) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("the capture of ", flight.target.bucket,
                                           " is given up after ", taken_ns / 1'000'000,
                                           " ms: no request waits for it any more"));
}

bool Captures::BeginAnew(const FlightPtr& flight) {
  MutexLock lock(mutex_);
  if (!HasWaiters(*flight)) return false;
  flight->started = false;
  flight->urgent = true;
  bool begun = false;
  WhereMemoryAllows([&] { begun = AddJob(flight, CaptureUrgency::kUrgent); });
  return begun;
}

void Captures::Tell(const Flight& flight, MissRecord record,
                    const std::vector<Flight::Waiting>& waiting) {
  const int64_t now_ns = options_.clock->NowNs();
  record.behind = flight.behind;
  for (const Flight::Waiting& one : waiting) {
    for (const std::string& id : one.waiter.request_ids) {
      record.AddWaiter(id, now_ns - one.since_ns);
    }
  }
  options_.on_capture(record);
  report_.Add(std::move(record));
}

}  // namespace reprise
