// A request over HTTP, its reply, and the exchange of the two.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/access/key_use.h"
#include "server/http/request_path.h"
#include "server/tracing/request_trace.h"
#include "server/transport/peer.h"

namespace reprise {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"
  RequestPath path;
  HttpFields fields;  // headers; names in lower case
  std::string body;
  std::shared_ptr<const Peer> peer;  // the client
  bool is_spare = false;             // its connection is above the limit: see ConnectionPlace

  // Returns the first value of the header `name` (in lower case); "" where there is none.
  absl::string_view Field(absl::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  HttpFields fields = {};  // besides type and length
  std::string body;
  bool compress = true;  // false: it would not pay
  std::string why;       // an error's words, which the log gets
};

// The header of an answer of tokens: how many of its prompt's were computed before.
inline constexpr char kCachedTokens[] = "x-reprise-cached-tokens";

// {"error": why}, as the inference protocol has it.
HttpReply ErrorReply(int status, absl::string_view why, HttpFields fields = {});

// Does the same in the form of the protocol of `path`: below /v1 errors are OpenAI's.
HttpReply ErrorReply(const RequestPath& path, int status, absl::string_view why,
                     HttpFields fields = {});

// One request, until it is answered. Ownership: shared by the connection and by the code that
// answers.
class HttpExchange {
 public:
  explicit HttpExchange(HttpRequest request) : request_(std::move(request)) {}
  virtual ~HttpExchange() = default;

  const HttpRequest& request() const { return request_; }

  // Set before the request is handled, if at all. The key that counts; null where none is needed.
  void SetKey(std::shared_ptr<KeyUse> key) { key_ = std::move(key); }
  const std::shared_ptr<KeyUse>& key() const { return key_; }
  // Set in the same place. Null: the request is not traced.
  void SetTrace(std::shared_ptr<RequestTrace> trace) { trace_ = std::move(trace); }
  const std::shared_ptr<RequestTrace>& trace() const { return trace_; }
  // Set by code that counts requests of models and writes the log line of this one.
  void SetTold() { told_ = true; }
  bool told() const { return told_; }
  // Adds a header that every answer to the request has.
  void AddReplyField(std::string name, std::string value) {
    reply_fields_.emplace_back(std::move(name), std::move(value));
  }

  // Sends the result of `make`, which is called on a thread of the server, once, whether the client
  // is still there or not. Called from any thread, exactly once; throws nothing: without memory the
  // connection is closed.
  virtual void Answer(std::function<HttpReply()> make) noexcept = 0;

  // In the place of Answer, a reply whose body comes in pieces: Begin once, then Send, from one
  // thread at a time, until `last`. `sent` is called on a thread of the server when the piece has
  // left, or when it never will.
  virtual void Begin(HttpReply head) noexcept {}
  virtual void Send(std::string piece, bool last, std::function<void()> sent) noexcept {}

  // Calls `leave` when the client disconnects before it was answered; on a thread of the
  // server, at most once, maybe before this returns.
  virtual void OnLeave(std::function<void()> leave) = 0;

 protected:
  const HttpFields& reply_fields() const { return reply_fields_; }

 private:
  const HttpRequest request_;
  std::shared_ptr<KeyUse> key_;
  std::shared_ptr<RequestTrace> trace_;
  std::atomic<bool> told_{false};
  HttpFields reply_fields_;
};

}  // namespace reprise
