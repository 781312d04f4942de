#include "server/tasks/text_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

// Texts of one request that wait or run at a time. Others take their turn between them.
constexpr int64_t kMostInFlight = 256;

// The error of text number `index` of several.
absl::Status AtIndex(const absl::Status& status, size_t index, size_t count) {
  if (count == 1) return status;
  return absl::Status(status.code(), absl::StrCat("text ", index, ": ", status.message()));
}

std::vector<float> FloatsOf(const OutputTensor& output, DType dtype) {
  if (dtype != DType::kFloat32) {
    // Through the tensor, which knows every float type.
    const Tensor tensor = Tensor::Make(dtype, output.shape, [&](void* data) {
      std::memcpy(data, output.bytes.data(), output.bytes.size());
    });
    const std::vector<double> values = tensor.ToDoubles();
    return std::vector<float>(values.begin(), values.end());
  }
  std::vector<float> values(output.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
  return values;
}

}  // namespace

TextCall::TextCall(const TextContext& context, TextRequest request, Done done)
    : context_(context), request_(std::move(request)), done_(std::move(done)) {}

std::shared_ptr<TextCall> TextCall::Start(const TextContext& context, TextRequest request,
                                          Done done) {
  std::shared_ptr<TextCall> call;
  const absl::Status begun =
      WithinMemory([] { return "a request of texts"; },
                   [&] {
                     call.reset(new TextCall(context, std::move(request), done));
                     return call->Begin();
                   });
  if (!begun.ok()) {
    done(TextResult{.status = begun});
    return nullptr;
  }
  if (call->request_.items.empty()) {
    TextResult result{.model = call->model_, .text = call->text_};
    done(std::move(result));
    return nullptr;
  }
  call->Schedule();
  return call;
}

absl::Status TextCall::Begin() {
  ASSIGN_OR_RETURN(ticket_, KeyUse::BeginFor(request_.key, context_.clock->NowNs()));
  ASSIGN_OR_RETURN(model_, context_.repository->Find(request_.model, request_.version));
  const Servable& servable = *model_.servable;
  ASSIGN_OR_RETURN(text_, context_.models->Find(*servable.model));
  RETURN_IF_ERROR(text_->Offers(request_.task));
  const TextPackage& package = text_->package();
  prompt_ = package.default_prompt;
  if (!request_.prompt_name.empty()) {
    const auto prompt = package.prompts.find(request_.prompt_name);
    if (prompt == package.prompts.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the model has no prompt \"", request_.prompt_name, "\"; it has ",
          package.prompts.empty()
              ? "none"
              : absl::StrJoin(package.prompts, ", ", [](std::string* out, const auto& each) {
                  absl::StrAppend(out, each.first);
                })));
    }
    prompt_ = prompt->second;
  }
  const std::vector<ModelIo>& outputs = servable.signature.outputs;
  const auto output = std::find_if(outputs.begin(), outputs.end(), [&](const ModelIo& io) {
    return io.name == text_->offer().output;
  });
  if (output == outputs.end()) {
    return absl::InternalError(
        absl::StrCat("the model has no output \"", text_->offer().output, "\""));
  }
  output_ = static_cast<int>(output - outputs.begin());
  answers_.resize(request_.items.size());
  flights_.resize(request_.items.size());
  return absl::OkStatus();
}

void TextCall::Schedule() {
  {
    MutexLock lock(mutex_);
    if (working_ || finished_) return;
    working_ = true;
  }
  if (context_.threads->Run([self = shared_from_this()] { self->Work(); })) return;
  {
    MutexLock lock(mutex_);
    working_ = false;
    ++in_flight_;
  }
  Fail(absl::UnavailableError("the server is stopping"));
  EndFlight();
}

std::optional<size_t> TextCall::NextToSend() {
  MutexLock lock(mutex_);
  if (failed_.ok() && next_ < request_.items.size() && in_flight_ < kMostInFlight) {
    ++in_flight_;
    return next_++;
  }
  working_ = false;
  return std::nullopt;
}

void TextCall::Work() {
  // Held through the last text: an answer that comes meanwhile does not finish the call.
  {
    MutexLock lock(mutex_);
    ++in_flight_;
  }
  while (const std::optional<size_t> index = NextToSend()) {
    const absl::Status sent = WithinMemory([] { return "a text"; },
                                           [&] {
                                             Send(*index);
                                             return absl::OkStatus();
                                           });
    if (!sent.ok()) {
      Fail(sent);
      EndFlight();
    }
  }
  EndFlight();
}

absl::StatusOr<TextTokens> TextCall::TokensOf(size_t index) const {
  const TextModel& text = *text_;
  const TextItem& item = request_.items[index];
  TextQuestion question{.truncation = request_.truncation,
                        .offsets = request_.offsets ? Offsets::kChars : Offsets::kNone};
  if (!item.ids.empty()) return text.Take(item.ids, question);
  question.go_on = [this] {
    return request_.deadline_ns == kNoDeadline || context_.clock->NowNs() < request_.deadline_ns
               ? absl::OkStatus()
               : absl::DeadlineExceededError("the deadline has passed");
  };
  RETURN_IF_ERROR(question.go_on());
  if (prompt_.empty()) return text.Encode(item.text, item.pair, question);
  return text.Encode(absl::StrCat(prompt_, item.text), item.pair, question);
}

void TextCall::Send(size_t index) {
  const int64_t start_ns = context_.clock->NowNs();
  absl::StatusOr<TextTokens> tokens = TokensOf(index);
  const int64_t took_ns = context_.clock->NowNs() - start_ns;
  if (!tokens.ok()) {
    Fail(AtIndex(tokens.status(), index, request_.items.size()));
    return EndFlight();
  }
  TextAnswer& answer = answers_[index];
  answer.tokens = *std::move(tokens);
  const TextTokens& row = answer.tokens;
  if (model_.version->events != nullptr) {
    WhereMemoryAllows([&] {
      model_.version->events->OnText(
          {.tokens = std::ssize(row.ids), .truncated = row.truncated(), .tokenizer_ns = took_ns});
    });
  }
  Flight& flight = flights_[index];
  const TextModel& text = *text_;
  flight.shape = {1, static_cast<int64_t>(row.ids.size())};
  InferRequest asked{.model = request_.model,
                     .version = model_.version->version,
                     .outputs = {text.offer().output},
                     .deadline_ns = request_.deadline_ns,
                     .key = request_.key,
                     .is_counted = true,
                     .tokenizer_ns = took_ns};
  for (const TokenInput& input : text.inputs()) {
    flight.bytes.push_back(TextModel::Values(input, {&row}, flight.shape[1]));
  }
  for (size_t i = 0; i < text.inputs().size(); ++i) {
    asked.inputs.push_back({.name = text.inputs()[i].name,
                            .datatype = text.inputs()[i].dtype == DType::kInt32 ? "INT32" : "INT64",
                            .shape = flight.shape,
                            .bytes = flight.bytes[i]});
  }
  const std::shared_ptr<Call> call =
      context_.inference->Start(asked, [self = shared_from_this(), index](InferResult result) {
        self->OnAnswer(index, std::move(result));
      });
  if (call == nullptr) return;
  WhereMemoryAllows([&] {
    MutexLock lock(mutex_);
    calls_.push_back(call);
    if (calls_.size() < most_calls_) return;
    std::erase_if(calls_, [](const std::weak_ptr<Call>& each) { return each.expired(); });
    most_calls_ = std::max(most_calls_, 2 * calls_.size());
  });
}

void TextCall::OnAnswer(size_t index, InferResult result) {
  absl::Status status = result.status;
  if (status.ok()) {
    status = WithinMemory([] { return "the answer"; },
                          [&] {
                            const ModelIo& io = model_.servable->signature.outputs[output_];
                            answers_[index].values =
                                FloatsOf(result.response.outputs[output_], io.dtype);
                            return absl::OkStatus();
                          });
  }
  flights_[index] = Flight();
  if (!status.ok()) Fail(AtIndex(status, index, request_.items.size()));
  EndFlight();
}

void TextCall::Fail(absl::Status status) {
  std::vector<std::weak_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    failed_ = std::move(status);
    calls.swap(calls_);
  }
  for (const std::weak_ptr<Call>& each : calls) {
    if (const std::shared_ptr<Call> call = each.lock()) context_.inference->Cancel(*call);
  }
}

void TextCall::EndFlight() {
  bool schedule = false;
  TextResult result;
  {
    MutexLock lock(mutex_);
    --in_flight_;
    const bool all = next_ == request_.items.size() || !failed_.ok();
    if (finished_ || (!all && (in_flight_ > kMostInFlight / 2 || working_))) return;
    schedule = !all;
    if (all) {
      if (in_flight_ > 0 || working_) return;
      finished_ = true;
      result.status = failed_;
    }
  }
  if (schedule) return Schedule();
  ticket_ = nullptr;
  result.model = model_;
  result.text = text_;
  if (result.status.ok()) {
    result.answers = std::move(answers_);
    for (const TextAnswer& answer : result.answers) result.tokens += std::ssize(answer.tokens.ids);
  }
  done_(std::move(result));
}

void TextCall::Cancel() { Fail(absl::CancelledError("the client has gone")); }

}  // namespace reprise
