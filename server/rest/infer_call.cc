#include "server/rest/infer_call.h"

#include <functional>
#include <utility>

#include "runtime/base/memory_net.h"
#include "server/rest/infer_json.h"
#include "server/rest/predict_json.h"
#include "server/rest/reply.h"

namespace reprise {
namespace {

// Everything that the core's views point into, from the start to the answer. `Body`: InferJson or
// PredictJson.
template <typename Body>
struct InferState {
  template <typename... Arguments>
  explicit InferState(const Arguments&... arguments) : json(arguments...) {}

  std::shared_ptr<HttpExchange> exchange;
  std::string model, version;
  Body json;
};

// `arguments`: of the body's constructor.
template <typename Body, typename... Arguments>
void Start(Inference& inference, MemoryBudget& parsing,
           const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
           const std::string& version, const Arguments&... arguments) {
  using State = InferState<Body>;
  exchange->SetTold();
  const auto refuse = [exchange](const absl::Status& why) {
    exchange->Answer([why] { return StatusReply(why); });
  };
  std::shared_ptr<State> state;
  const absl::Status decoded = WithinMemory(
      [] { return "the request"; },
      [&] {
        state = std::make_shared<State>(arguments...);
        state->exchange = exchange;
        state->model = model;
        state->version = version;
        state->json.view().key = exchange->key();
        state->json.view().trace = exchange->trace();
        return state->json.Decode(exchange->request(), state->model, state->version, parsing);
      });
  if (!decoded.ok()) {
    if (state != nullptr) {
      WhereMemoryAllows([&] { inference.Refuse(state->json.view(), decoded); });
    }
    return refuse(decoded);
  }
  // The answer is written on a thread of the server: the core's threads compute.
  Inference::Done done;
  const absl::Status kept = WithinMemory(
      [] { return "the request"; },
      [&] {
        done = [state](InferResult result) {
          std::function<HttpReply()> make;
          WhereMemoryAllows([&] {
            make = [state, result = std::make_shared<const InferResult>(std::move(result))] {
              return result->status.ok() ? state->json.Encode(*result)
                                         : StatusReply(result->status);
            };
          });
          if (make == nullptr) make = [] { return HttpReply{.status = 503}; };
          state->exchange->Answer(std::move(make));
        };
        return absl::OkStatus();
      });
  if (!kept.ok()) return refuse(kept);
  const std::shared_ptr<Call> call = inference.Start(state->json.view(), std::move(done));
  if (call == nullptr) return;
  WhereMemoryAllows([&] {
    exchange->OnLeave([&inference, weak = std::weak_ptr<Call>(call)] {
      if (const std::shared_ptr<Call> waiting = weak.lock()) inference.Cancel(*waiting);
    });
  });
}

}  // namespace

void StartInferOverHttp(Inference& inference, MemoryBudget& parsing,
                        const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                        const std::string& version) {
  Start<InferJson>(inference, parsing, exchange, model, version);
}

void StartPredictOverHttp(Inference& inference, const Repository& repository, MemoryBudget& parsing,
                          const std::shared_ptr<HttpExchange>& exchange, const std::string& model,
                          const std::string& version) {
  Start<PredictJson>(inference, parsing, exchange, model, version, std::cref(repository));
}

}  // namespace reprise
