// TextFace: how one path takes texts and answers them. A face reads the JSON of a request into a
// TextRequest and a function that writes its answer; ServeTexts does all else, the same for every
// face.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/engine/types/memory_budget.h"
#include "server/generate/token_calls.h"
#include "server/http/http_message.h"
#include "server/repository/repository.h"
#include "server/tasks/text_call.h"
#include "server/text_api/error_form.h"
#include "server/text_api/fields.h"
#include "server/vision/vision_call.h"

namespace reprise {

struct TextApiContext {
  TextContext texts;
  const TokenCalls* tokens = nullptr;
  // How many recipes the model has captured since it was loaded.
  std::function<int64_t(const std::string& model)> captures = [](const std::string&) {
    return int64_t{0};
  };
  MemoryBudget* parsing = nullptr;  // see JsonDocument
  std::string version;              // the server's
};

// Pictures in the place of texts, of a model that makes vectors of them.
struct AskedPictures {
  VisionRequest request;
  std::function<absl::StatusOr<std::string>(const VisionResult& result)> write;
};

// A request that was read.
struct AskedTexts {
  TextRequest request;
  std::optional<AskedPictures> pictures;  // there are some: `request` and `write` do not count
  // The JSON of the answer; `result` is OK. Called once, on a thread of the server.
  std::function<absl::StatusOr<std::string>(const TextResult& result)> write;
  // The answer is digits of vectors: compression takes more time than a half of them saves.
  bool is_dense = false;
};

struct TextFace {
  ErrorForm errors = ErrorForm::kInference;
  // `model`: from the path, or from the JSON; empty: neither names one.
  std::function<absl::StatusOr<AskedTexts>(const Fields& fields, const TextApiContext& context,
                                           const std::string& model)>
      read;
};

// Answers `exchange` once, whatever happens. A client that goes away takes its texts out of the
// queue.
void ServeTexts(const TextApiContext& context, const TextFace& face,
                std::shared_ptr<HttpExchange> exchange, const std::string& model);

// The words of errors for models that suit: "offers texts", "offer texts".
struct ModelWords {
  std::string one, many;
  bool has_place = false;  // requests may be sent to a path of the model
};

// Returns the model that is named, else the only one that is ready and `suits`.
// Errors: FAILED_PRECONDITION where none does, INVALID_ARGUMENT naming those that do.
absl::StatusOr<std::string> ChooseOnly(
    const TextApiContext& context, const std::string& named, const ModelWords& words,
    absl::FunctionRef<bool(const Servable& servable, const TextModel& text)> suits);

// Returns the same for a model that offers `task`.
absl::StatusOr<std::string> ChooseModel(const TextApiContext& context, const std::string& named,
                                        TextTask task);

// Returns the same for a model that makes tokens of texts.
absl::StatusOr<std::string> ChooseGenerator(const TextApiContext& context,
                                            const std::string& named);

// Returns the text side of the ready model `name`. Errors as of Repository::Find, and why it
// takes no texts.
absl::StatusOr<std::shared_ptr<const TextModel>> FindTextModel(const TextApiContext& context,
                                                               const std::string& name);

}  // namespace reprise
