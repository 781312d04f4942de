// RpcCall: one call of a client, as the methods of our services see it: the client, and the ways to
// answer it. RpcHandler: a method's work for it.
//
// A handler receives one message; it asks for the next with Read. It ends the call with Reply or
// Finish, once. Calls that end otherwise (the client cancels, or disconnects) end with OnCancel.
//
// Ownership: the call and its handler hold each other until the call is over.
// Threads:   the methods of a call from any thread; methods of a handler one at a time, on a
//            thread of the server, which they must not block.
// Memory:    the methods of a call throw nothing: where there is no memory, the connection ends.
#pragma once

#include <google/protobuf/message_lite.h>

#include <memory>

#include "absl/status/status.h"
#include "server/http2/call_head.h"
#include "server/http2/message_reader.h"

namespace reprise {

class RpcCall {
 public:
  using Message = std::shared_ptr<const google::protobuf::MessageLite>;

  virtual ~RpcCall() = default;
  virtual const CallHead& head() const = 0;
  // Lets the next message, or the end of the client's messages, come to the handler.
  virtual void Read() noexcept = 0;
  // Sends a message; OnSent follows.
  virtual void Send(Message message) noexcept = 0;
  // Sends a message and ends the call well.
  virtual void Reply(Message message) noexcept = 0;
  // Ends the call.
  virtual void Finish(const absl::Status& status) noexcept = 0;
};

class RpcHandler {
 public:
  virtual ~RpcHandler() = default;
  // Takes a message that is whole and not compressed. The first one comes without being asked for.
  virtual void OnMessage(RpcMessage message) = 0;
  // Called when the client sends no more, where a message was asked for.
  virtual void OnHalfClose() {}
  // Called when the oldest sent message has left, as far as HTTP/2 lets it.
  virtual void OnSent() {}
  // Called at most once, when the call ended before it was finished.
  virtual void OnCancel() {}
  // Called once and last: the call is over, its answer has left or never will.
  virtual void OnDone() {}
};

}  // namespace reprise
