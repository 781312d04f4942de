// Methods that take one message and answer with one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/http2/rpc_call.h"
#include "server/http2/rpc_routes.h"

namespace reprise {

// `message`, read from the bytes of a client. INVALID_ARGUMENT where they are no such message.
template <typename Message>
absl::Status ParseMessage(const std::string& bytes, Message& message) {
  return WithinMemory(
      [] { return "the request"; },
      [&] {
        if (message.ParseFromString(bytes)) return absl::OkStatus();
        return absl::InvalidArgumentError(
            absl::StrCat("the message is not a ", message.GetTypeName(), ": it cannot be parsed"));
      });
}

template <typename Request, typename Response>
class UnaryCall final : public RpcHandler,
                        public std::enable_shared_from_this<UnaryCall<Request, Response>> {
 public:
  // Answers by Finish, now or later.
  using Body = std::function<void(std::shared_ptr<UnaryCall>)>;

  UnaryCall(std::shared_ptr<RpcCall> call, const Body& body)
      : call_(std::move(call)), body_(body), response_(std::make_shared<Response>()) {}

  const Request& request() const { return request_; }
  Response& response() { return *response_; }
  const CallHead& head() const { return call_->head(); }
  // Sends the response, or the error. Any thread. The response is the call's from then on: while
  // the client does not read, its bytes alone are kept.
  void Finish(const absl::Status& status) {
    status.ok() ? call_->Reply(std::move(response_)) : call_->Finish(status);
  }

  void OnMessage(RpcMessage message) override {
    const absl::Status parsed = ParseMessage(message.bytes, request_);
    if (!parsed.ok()) return call_->Finish(parsed);
    held_ = std::move(message.held);
    body_(this->shared_from_this());
  }

 private:
  const std::shared_ptr<RpcCall> call_;
  const Body& body_;  // the route's
  HeldBytes held_;
  Request request_;
  std::shared_ptr<Response> response_;
};

// Adds a method that answers later: `body(std::shared_ptr<UnaryCall<Request, Response>>)`.
template <typename Request, typename Response>
void AddLateMethod(RpcRoutes& routes, std::string path,
                   typename UnaryCall<Request, Response>::Body body) {
  auto kept = std::make_shared<const typename UnaryCall<Request, Response>::Body>(std::move(body));
  routes.Add(std::move(path), {.start = [kept](std::shared_ptr<RpcCall> call) {
               return std::make_shared<UnaryCall<Request, Response>>(std::move(call), *kept);
             }});
}

// Adds a method that answers at once: `body(const Request&, Response&) -> absl::Status`.
template <typename Request, typename Response>
void AddMethod(RpcRoutes& routes, std::string path,
               std::function<absl::Status(const Request&, Response&)> body) {
  AddLateMethod<Request, Response>(
      routes, std::move(path),
      [body = std::move(body)](const std::shared_ptr<UnaryCall<Request, Response>>& call) {
        call->Finish(WithinMemory([] { return "the answer"; },
                                  [&] { return body(call->request(), call->response()); }));
      });
}

}  // namespace reprise
