#include "server/text_api/text_face.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/rest/json_document.h"

namespace reprise {
namespace {

absl::StatusOr<AskedTexts> ReadTexts(const TextApiContext& context, const TextFace& face,
                                     const HttpExchange& exchange, const std::string& model) {
  JsonDocument document(*context.parsing);
  ASSIGN_OR_RETURN(const simdjson::dom::element json, document.Parse(exchange.request().body));
  ASSIGN_OR_RETURN(const Fields fields, Fields::Of(json));
  std::string named = model;
  if (named.empty()) {
    ASSIGN_OR_RETURN(named, fields.Text("model", ""));
  }
  return face.read(fields, context, named);
}

HttpReply ReplyOf(ErrorForm errors, const AskedTexts& asked, const TextResult& result) {
  if (!result.status.ok()) return TextErrorReply(errors, result.status);
  absl::StatusOr<std::string> body = asked.write(result);
  if (!body.ok()) return TextErrorReply(errors, body.status());
  return {
      .content_type = "application/json", .body = *std::move(body), .compress = !asked.is_dense};
}

// Calls `exchange` with `reply` of the result, or with 503 where there is no memory for
// it.
template <typename Result, typename Reply>
std::function<void(Result)> AnswerWith(std::shared_ptr<HttpExchange> exchange, Reply reply) {
  return [exchange = std::move(exchange), reply = std::move(reply)](Result result) {
    // Each of its texts or pictures has a line, as a request of the model.
    if (result.status.ok()) exchange->SetTold();
    std::function<HttpReply()> make;
    WhereMemoryAllows([&] {
      make = [reply, result = std::make_shared<const Result>(std::move(result))] {
        return reply(*result);
      };
    });
    if (make == nullptr) make = [] { return HttpReply{.status = 503}; };
    exchange->Answer(std::move(make));
  };
}

// Ends the call when the client goes away.
template <typename Call>
void CancelOnLeave(HttpExchange& exchange, const std::shared_ptr<Call>& call) {
  if (call == nullptr) return;
  WhereMemoryAllows([&] {
    exchange.OnLeave([weak = std::weak_ptr<Call>(call)] {
      if (const std::shared_ptr<Call> waiting = weak.lock()) waiting->Cancel();
    });
  });
}

void ServePictures(const TextApiContext& context, const std::shared_ptr<AskedTexts>& asked,
                   const std::shared_ptr<HttpExchange>& exchange, ErrorForm errors) {
  VisionCall::Done done;
  const absl::Status kept = WithinMemory(
      [] { return "the request"; },
      [&] {
        done = AnswerWith<VisionResult>(exchange, [errors, asked](const VisionResult& result) {
          if (!result.status.ok()) return TextErrorReply(errors, result.status);
          absl::StatusOr<std::string> body = asked->pictures->write(result);
          if (!body.ok()) return TextErrorReply(errors, body.status());
          return HttpReply{.content_type = "application/json", .body = *std::move(body)};
        });
        return absl::OkStatus();
      });
  if (!kept.ok()) {
    return exchange->Answer([errors, kept] { return TextErrorReply(errors, kept); });
  }
  VisionRequest request = std::move(asked->pictures->request);
  request.key = exchange->key();
  request.trace = exchange->trace();
  const VisionContext vision = {.repository = context.texts.repository,
                                .inference = context.texts.inference,
                                .clock = context.texts.clock};
  CancelOnLeave(*exchange, VisionCall::Start(vision, std::move(request), std::move(done)));
}

}  // namespace

void ServeTexts(const TextApiContext& context, const TextFace& face,
                std::shared_ptr<HttpExchange> exchange, const std::string& model) {
  const ErrorForm errors = FormAt(exchange->request().path, face.errors);
  const auto refuse = [&](const absl::Status& why) {
    exchange->Answer([errors, why] { return TextErrorReply(errors, why); });
  };
  std::shared_ptr<AskedTexts> asked;
  const absl::Status read =
      WithinMemory([] { return "the request"; },
                   [&]() -> absl::Status {
                     ASSIGN_OR_RETURN(AskedTexts texts, ReadTexts(context, face, *exchange, model));
                     asked = std::make_shared<AskedTexts>(std::move(texts));
                     return absl::OkStatus();
                   });
  if (!read.ok()) return refuse(read);
  if (asked->pictures) return ServePictures(context, asked, exchange, errors);
  TextCall::Done done;
  const absl::Status kept = WithinMemory([] { return "the request"; },
                                         [&] {
                                           done = AnswerWith<TextResult>(
                                               exchange, [errors, asked](const TextResult& result) {
                                                 return ReplyOf(errors, *asked, result);
                                               });
                                           return absl::OkStatus();
                                         });
  if (!kept.ok()) return refuse(kept);
  TextRequest request = std::move(asked->request);
  request.key = exchange->key();
  request.trace = exchange->trace();
  CancelOnLeave(*exchange, TextCall::Start(context.texts, std::move(request), std::move(done)));
}

absl::StatusOr<std::string> ChooseOnly(
    const TextApiContext& context, const std::string& named, const ModelWords& words,
    absl::FunctionRef<bool(const Servable& servable, const TextModel& text)> suits) {
  if (!named.empty()) return named;
  std::vector<std::string> names;
  for (const Repository::Listed& listed : context.texts.repository->List()) {
    if (listed.state != ModelState::kReady || listed.servable == nullptr) continue;
    const auto text = context.texts.models->Find(*listed.servable->model);
    if (!text.ok() || !suits(*listed.servable, **text)) continue;
    if (names.empty() || names.back() != listed.version->name) {
      names.push_back(listed.version->name);
    }
  }
  if (names.size() == 1) return names[0];
  if (names.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("no model that is ready ", words.one));
  }
  const std::string place =
      words.has_place ? absl::StrCat(" (or send to /models/", names[0], "/...)") : "";
  return absl::InvalidArgumentError(absl::StrCat("\"model\" is missing, and ", names.size(),
                                                 " models ", words.many, ": ",
                                                 absl::StrJoin(names, ", "), place));
}

absl::StatusOr<std::string> ChooseModel(const TextApiContext& context, const std::string& named,
                                        TextTask task) {
  const char* what = task == TextTask::kNone ? "texts" : TextTaskName(task);
  const ModelWords words = {absl::StrCat("offers ", what), absl::StrCat("offer ", what), true};
  return ChooseOnly(context, named, words, [task](const Servable&, const TextModel& text) {
    return task == TextTask::kNone || text.offer().task == task;
  });
}

absl::StatusOr<std::string> ChooseGenerator(const TextApiContext& context,
                                            const std::string& named) {
  return ChooseOnly(
      context, named, {"makes texts", "make texts"},
      [](const Servable& servable, const TextModel&) { return servable.generation != nullptr; });
}

absl::StatusOr<std::shared_ptr<const TextModel>> FindTextModel(const TextApiContext& context,
                                                               const std::string& name) {
  ASSIGN_OR_RETURN(const Repository::Found found, context.texts.repository->Find(name, ""));
  return context.texts.models->Find(*found.servable->model);
}

}  // namespace reprise
