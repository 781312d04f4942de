#include "server/tasks/text_call.h"

#include <algorithm>
#include <cstring>
#include <iterator>
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

// The time of a call's turn on a thread of texts: other calls go on between its turns.
constexpr int64_t kTurnNs = 50'000'000;
// The bytes of an item next to its text: its answer's place, and its own.
constexpr int64_t kItemBytes = 512;
// A token of the first text of pairs, with its text and place.
constexpr int64_t kBytesPerFirstToken = 192;
// An answer's number as float32, and as the digits of its JSON.
constexpr int64_t kBytesPerNumber = 16;
// The JSON of a word's place and weight.
constexpr int64_t kBytesPerWord = 48;

int64_t BytesOf(const std::vector<TextItem>& items) {
  int64_t bytes = 0;
  const std::string* shared = nullptr;
  for (const TextItem& item : items) {
    bytes += kItemBytes + static_cast<int64_t>(item.ids.size() * sizeof(uint32_t));
    if (item.pair != nullptr) bytes += static_cast<int64_t>(item.pair->size());
    if (item.text == nullptr || item.text.get() == shared) continue;
    shared = item.text.get();
    bytes += static_cast<int64_t>(item.text->size());
  }
  return bytes;
}

// Returns the error of text number `index` of several.
absl::Status AtIndex(const absl::Status& status, size_t index, size_t count) noexcept {
  if (count == 1) return status;
  return StatusWithoutFail(status.code(), [&] {
    return absl::Status(status.code(), absl::StrCat("text ", index, ": ", status.message()));
  });
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

TextCall::~TextCall() {
  if (context_.held != nullptr) context_.held->Give(held_bytes_);
}

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
  RETURN_IF_ERROR(ChoosePrompt());
  const std::vector<ModelIo>& outputs = servable.signature.outputs;
  const auto output = std::find_if(outputs.begin(), outputs.end(), [&](const ModelIo& io) {
    return io.name == text_->offer().output;
  });
  if (output == outputs.end()) {
    return absl::InternalError(
        absl::StrCat("the model has no output \"", text_->offer().output, "\""));
  }
  output_ = static_cast<int>(output - outputs.begin());
  RETURN_IF_ERROR(CheckTextCount(std::ssize(request_.items)));
  RETURN_IF_ERROR(Hold(BytesOf(request_.items)));
  answers_.resize(request_.items.size());
  return absl::OkStatus();
}

absl::Status TextCall::ChoosePrompt() {
  const TextPackage& package = text_->package();
  const auto named = [&](const std::string& name) -> std::string {
    const auto found = package.prompts.find(name);
    return found == package.prompts.end() ? "" : found->second;
  };
  prompt_ = package.default_prompt;
  if (package.late) {
    query_prompt_ = named("query");
    if (prompt_.empty()) prompt_ = named("document");
  }
  const std::string& name = request_.prompt_name;
  if (name.empty() || (package.late && (name == "query" || name == "document"))) {
    return absl::OkStatus();
  }
  if (!package.prompts.contains(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has no prompt \"", name, "\"; it has ",
        package.prompts.empty()
            ? "none"
            : absl::StrJoin(package.prompts, ", ", [](std::string* out, const auto& each) {
                absl::StrAppend(out, each.first);
              })));
  }
  prompt_ = named(name);
  return absl::OkStatus();
}

std::optional<TextSide> TextCall::SideOf(const TextItem& item) const {
  if (!text_->package().late) return std::nullopt;
  const bool queries = item.is_query || request_.prompt_name == "query";
  return queries ? TextSide::kQuery : TextSide::kDocument;
}

absl::string_view TextCall::PromptOf(const TextItem& item) const {
  return SideOf(item) == TextSide::kQuery ? query_prompt_ : prompt_;
}

absl::Status TextCall::Hold(int64_t bytes) {
  if (context_.held == nullptr) return absl::OkStatus();
  MemoryBudget& all = *context_.held;
  if (all.Take(bytes)) {
    held_bytes_ += bytes;
    return absl::OkStatus();
  }
  const int64_t own = held_bytes_ + bytes;
  if (own > all.max_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the texts of the request and their answers take ", own,
                     " bytes, those for all requests may take ", all.max_bytes(), "; send fewer"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the texts of the request and their answers take ", own,
                   " bytes, those for all requests take ", all.used(), " of ", all.max_bytes()));
}

absl::Status TextCall::GoOn() const {
  RETURN_IF_ERROR(context_.threads->GoOn());
  if (ended_) return absl::CancelledError("the request has ended");
  if (request_.deadline_ns == kNoDeadline || context_.clock->NowNs() < request_.deadline_ns) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError("the deadline has passed");
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
  Fail(StatusWithoutFail(absl::StatusCode::kUnavailable,
                         [] { return absl::UnavailableError("the server is stopping"); }));
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
  const int64_t turn_ends_ns = context_.clock->NowNs() + kTurnNs;
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
    if (context_.clock->NowNs() < turn_ends_ns) continue;
    {
      MutexLock lock(mutex_);
      working_ = false;
    }
    Schedule();
    break;
  }
  EndFlight();
}

absl::StatusOr<EncodedText> TextCall::Encode(size_t index) {
  const TextItem& item = request_.items[index];
  TextSource source{.ids = item.ids};
  if (item.text != nullptr) source.text = *item.text;
  if (item.pair != nullptr) source.pair = *item.pair;
  if (item.pair != nullptr && !request_.offsets) {
    if (first_text_ != item.text) first_ = nullptr;
    first_text_ = item.text;
    source.first = &first_;
  }
  ASSIGN_OR_RETURN(EncodedText encoded, EncodeItem(item, source));
  if (first_ == nullptr) return encoded;
  const int64_t bytes = kBytesPerFirstToken * Tokenizer::KeptTokens(first_);
  if (bytes > first_bytes_) {
    RETURN_IF_ERROR(Hold(bytes - first_bytes_));
    first_bytes_ = bytes;
  }
  return encoded;
}

absl::StatusOr<EncodedText> TextCall::EncodeItem(const TextItem& item,
                                                 const TextSource& source) const {
  return EncodeText({.model = *text_,
                     .threads = context_.threads,
                     .events = model_.version->events.get(),
                     .trace = request_.trace.get(),
                     .prompt = PromptOf(item),
                     .question = {.truncation = request_.truncation,
                                  .offsets = request_.offsets ? Offsets::kChars : Offsets::kNone,
                                  .side = SideOf(item),
                                  .go_on = [this] { return GoOn(); }}},
                    source);
}

void TextCall::Send(size_t index) {
  absl::StatusOr<EncodedText> encoded = Encode(index);
  if (!encoded.ok()) {
    Fail(AtIndex(encoded.status(), index, request_.items.size()));
    return EndFlight();
  }
  TextAnswer& answer = answers_[index];
  answer.tokens = std::move(encoded->tokens);
  InferRequest asked{.model = request_.model,
                     .version = model_.version->version,
                     .outputs = {text_->offer().output},
                     .deadline_ns = request_.deadline_ns,
                     .key = request_.key,
                     .trace = request_.trace,
                     .is_counted = true,
                     .tokenizer_ns = encoded->took_ns};
  const auto inputs = std::make_shared<TokenInputs>();
  inputs->Fill(*text_, {&answer.tokens}, asked);
  const std::shared_ptr<Call> call = context_.inference->Start(
      asked, [self = shared_from_this(), inputs, index](InferResult result) {
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
    status = WithinMemory([] { return "the answer"; }, [&] { return TakeAnswer(index, result); });
  }
  if (!status.ok()) Fail(AtIndex(status, index, request_.items.size()));
  EndFlight();
}

absl::Status TextCall::TakeAnswer(size_t index, const InferResult& result) {
  const ModelIo& io = model_.servable->signature.outputs[output_];
  const TextTask task = text_->offer().task;
  TextAnswer& answer = answers_[index];
  answer.values = FloatsOf(result.response.outputs[output_], io.dtype);
  if (task == TextTask::kTag) answer.rows = std::ssize(answer.tokens.ids);
  if (task == TextTask::kTokens) {
    const TextItem& item = request_.items[index];
    answer.rows = text_->KeepRows(SideOf(item).value_or(TextSide::kDocument), answer.tokens.ids,
                                  answer.values);
  }
  if (task != TextTask::kSparse) return Hold(kBytesPerNumber * std::ssize(answer.values));
  // Most weights are 0 and are no part of an answer, but all of them are held.
  const auto words = static_cast<int64_t>(
      std::count_if(answer.values.begin(), answer.values.end(), [](float x) { return x != 0; }));
  return Hold(std::ssize(answer.values) * static_cast<int64_t>(sizeof(float)) +
              kBytesPerWord * words);
}

void TextCall::Fail(absl::Status status) {
  std::vector<std::weak_ptr<Call>> calls;
  {
    MutexLock lock(mutex_);
    if (!failed_.ok()) return;
    failed_ = std::move(status);
    ended_ = true;
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

void TextCall::Cancel() { Fail(absl::CancelledError("the client has disconnected")); }

}  // namespace reprise
