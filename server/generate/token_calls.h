// TokenCalls: requests for new tokens, whatever the transport.
//
// A request asks for tokens where its model makes them and its ids are all that it sends: a client
// that carries its own cache sends that as well. Tokens are told one after another, as they come.
//
//   if (calls.Takes(request)) {
//     ASSIGN_OR_RETURN(auto call, calls.Start(request, parameters, on_tokens));
//   }
//
// Threads: all methods from any; tokens are told on the model's own thread, which must not wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/generate/generation.h"
#include "server/generate/sampling_parameters.h"
#include "server/repository/repository.h"
#include "server/repository/server_state.h"
#include "server/requests/request.h"

namespace reprise {

// The names of inputs and outputs that are not the model's.
inline constexpr char kSamplingInput[] = "sampling_parameters";
inline constexpr char kTokensOutput[] = "token_ids";
inline constexpr char kLogprobsOutput[] = "logprobs";
inline constexpr char kTopIdsOutput[] = "top_ids";
inline constexpr char kTopLogprobsOutput[] = "top_logprobs";

// The call that an event belongs to.
struct TokenCallInfo {
  std::string model, version, id;
  int64_t prompt_tokens = 0;
  bool logprobs = false;
  int64_t alternatives = 0;  // that are told with each token
};

// A request for tokens whose ids came by another way than a tensor. Views of the transport's
// memory.
struct TokenRequest {
  absl::string_view model;
  absl::string_view version;  // empty: the newest that is ready
  absl::string_view id;       // the client's, for reports
  std::shared_ptr<KeyUse> key;
  int64_t deadline_ns = kNoDeadline;  // the transport's, on the server's clock
  std::vector<int64_t> ids;
  // The prompt of an encoder that takes no ids: float32 [1, ...].
  std::string numbers;
  std::vector<int64_t> numbers_shape;
  SamplingParameters parameters;
};

class TokenCall {
 public:
  TokenCall(Repository::Found model, std::shared_ptr<Generation> handle)
      : model_(std::move(model)), handle_(std::move(handle)) {}

  void Cancel();
  // The client took so many of the events that were told.
  void Took(int64_t events);

 private:
  const Repository::Found model_;
  const std::shared_ptr<Generation> handle_;
};

class TokenCalls {
 public:
  using OnTokens = std::function<void(const TokenCallInfo& info, const GenerationEvent& event)>;

  TokenCalls(const Repository& repository, const ServerState& state, const Clock& clock)
      : repository_(repository), state_(state), clock_(clock) {}

  bool Takes(const InferRequest& request) const;
  // With `counts_unread` events that are told count as not taken until the call hears of them
  // (TokenCall::Took): with too many the sequence waits. `parameters` has what came one by one;
  // those of the input sampling_parameters are added.
  absl::StatusOr<std::shared_ptr<TokenCall>> Start(const InferRequest& request,
                                                   SamplingParameters parameters,
                                                   bool counts_unread, OnTokens on_tokens) const;
  absl::StatusOr<std::shared_ptr<TokenCall>> Start(TokenRequest request, bool counts_unread,
                                                   OnTokens on_tokens) const;

 private:
  const Repository& repository_;
  const ServerState& state_;
  const Clock& clock_;
};

}  // namespace reprise
