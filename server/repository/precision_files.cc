#include "server/repository/precision_files.h"

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/numbers.h"
#include "runtime/engine/types/input_signature.h"
#include "server/hub/json_file.h"
#include "server/hub/text_model.h"

namespace reprise {
namespace {

using Json = nlohmann::json;
using CalibrationRequest = std::vector<Tensor>;

constexpr int64_t kMostFileBytes = 64 << 20;
constexpr size_t kMostRequests = 256;
constexpr size_t kShownBytes = 40;

// Texts of many kinds and lengths, a line each: requests by which nodes are chosen that may round,
// where a model's folder names no requests of its own.
constexpr char kUsualTexts[] = R"(
a
no
?
42
hello
Paris
thank you
invoice 2041
Where are my keys?
Open the door.
Best pizza near me
HTTP 500
C'est la vie.
SELECT name FROM users;
The dog chased its own tail.
how to boil an egg
Guten Morgen, wie geht es Ihnen?
The meeting was moved to Thursday afternoon.
What is the difference between a virus and a bacterium?
ERROR: connection to database lost, retrying in 30 seconds
El tren sale a las ocho de la noche.
She opened the letter, read it twice, and put it back without a word.
if (count > limit) { throw std::runtime_error("too many"); }
Shares of the company fell by 7 % after it cut its forecast for the year.
The patient reports mild pain in the left knee, which gets worse when climbing stairs.
Ingredients: flour, water, salt, yeast, olive oil; may contain traces of nuts and sesame.
My order arrived damaged and the support line never answers, so I would like a full refund today.
The river rises in the northern hills, passes three towns and an old mill, and reaches the sea after ninety miles.
Photosynthesis turns light, water and carbon dioxide into sugar and oxygen; most of it takes place in the leaves of plants.
The court held that the contract was void, because neither party had disclosed that the building stood on land which the city had already claimed for a road.
In this paper we study how small errors in the weights of a network grow from layer to layer, and we show that a few large activations account for nearly all of the loss; rounding these apart from the others restores the accuracy at little cost.
Dear all, please find attached the notes of yesterday's call. We agreed to ship the new version by the end of the month, to test it with two customers first, and to keep the old one available until nobody uses it any more. If anything is missing or wrong, tell me before Friday, since I will be away for the two weeks after that.
)";

// Returns the text of a file of the model's own folder.
absl::StatusOr<std::string> ReadOwnFile(const PrecisionFolders& folders, const std::string& name) {
  const std::filesystem::path file(name);
  if (file.is_absolute() || file.has_parent_path()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not a file of the model's own folder"));
  }
  for (const auto& folder : {folders.version, folders.model}) {
    ASSIGN_OR_RETURN(const auto text, ReadFileIfThere(folder / file, kMostFileBytes));
    if (text.has_value()) return *text;
  }
  return absl::NotFoundError(absl::StrCat("cannot read '", (folders.model / file).string(), "'"));
}

absl::Status AtInput(const std::string& input, absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("input '", input, "' ", fault));
}

// Takes the sizes of lists in lists, and their numbers in order.
absl::Status TakeLists(const Json& json, size_t depth, Numbers& numbers) {
  if (!json.is_array()) {
    if (depth != numbers.shape.size()) return absl::InvalidArgumentError("has uneven lists");
    if (json.is_boolean()) {
      numbers.values.push_back(json.get<bool>() ? 1 : 0);
    } else if (json.is_number()) {
      numbers.values.push_back(json.get<double>());
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", ShownText(json.dump(), kShownBytes), ", no number"));
    }
    return absl::OkStatus();
  }
  const auto size = static_cast<int64_t>(json.size());
  if (depth == numbers.shape.size()) {
    if (!numbers.values.empty()) return absl::InvalidArgumentError("has uneven lists");
    numbers.shape.push_back(size);
  }
  if (numbers.shape[depth] != size) return absl::InvalidArgumentError("has uneven lists");
  for (const Json& one : json) RETURN_IF_ERROR(TakeLists(one, depth + 1, numbers));
  return absl::OkStatus();
}

absl::StatusOr<CalibrationRequest> RequestOfJson(absl::string_view line,
                                                 const std::vector<ModelIo>& inputs) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is no JSON object");
  for (auto member = json.begin(); member != json.end(); ++member) {
    const bool known =
        absl::c_any_of(inputs, [&](const ModelIo& input) { return input.name == member.key(); });
    if (!known) return AtInput(member.key(), "is none of the model's");
  }
  CalibrationRequest request;
  for (const ModelIo& input : inputs) {
    if (!json.contains(input.name)) return AtInput(input.name, "is missing");
    Numbers numbers = {.dtype = input.dtype};
    if (const absl::Status taken = TakeLists(json[input.name], 0, numbers); !taken.ok()) {
      return AtInput(input.name, taken.message());
    }
    request.push_back(ToTensor(numbers));
  }
  return request;
}

// Returns the input of a request that has no past: a cache without a position.
absl::StatusOr<Tensor> EmptyCache(const ModelIo& input) {
  Shape shape;
  bool is_empty = false;
  for (size_t i = 0; i < input.dims.size(); ++i) {
    const Dim& dim = input.dims[i];
    shape.push_back(dim.is_constant() ? dim.size : i == 0 ? 1 : 0);
    is_empty = is_empty || shape.back() == 0;
  }
  if (!IsFloating(input.dtype) || !is_empty) {
    return AtInput(input.name, "is not made of a text: give a JSON object instead");
  }
  return Tensor::Make(input.dtype, std::move(shape), [](void*) {});
}

absl::StatusOr<CalibrationRequest> RequestOfText(absl::string_view line,
                                                 const std::vector<ModelIo>& inputs,
                                                 const TextModel& model) {
  TextQuestion question = {.truncation = Truncation::kRight};
  if (model.package().late) question.side = TextSide::kDocument;
  ASSIGN_OR_RETURN(
      const TextTokens tokens,
      model.Encode(absl::StrCat(model.package().default_prompt, line), std::nullopt, question));
  const auto length = static_cast<int64_t>(tokens.ids.size());
  CalibrationRequest request;
  for (const ModelIo& input : inputs) {
    const auto made = absl::c_find_if(
        model.inputs(), [&](const TokenInput& one) { return one.name == input.name; });
    if (made == model.inputs().end()) {
      ASSIGN_OR_RETURN(request.emplace_back(), EmptyCache(input));
      continue;
    }
    const std::string values = TextModel::Values(*made, {&tokens}, length);
    request.push_back(Tensor::Make(input.dtype, {1, length}, [&](void* data) {
      std::memcpy(data, values.data(), values.size());
    }));
  }
  return request;
}

// Returns whether the request's shapes agree with the model's inputs.
absl::Status CheckShapes(const CalibrationRequest& request, const InputSignature& signature) {
  std::vector<const Shape*> shapes;
  for (const Tensor& tensor : request) shapes.push_back(&tensor.shape());
  return signature.Match(shapes).status();
}

absl::StatusOr<std::vector<CalibrationRequest>> RequestsOf(absl::string_view text,
                                                           const std::vector<ModelIo>& inputs,
                                                           const TextLoad& texts) {
  const InputSignature signature(inputs);
  std::vector<CalibrationRequest> requests;
  std::shared_ptr<const TextModel> model;  // made for the first text
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const auto at_line = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    };
    if (requests.size() >= kMostRequests) {
      return absl::InvalidArgumentError(absl::StrCat("has more than ", kMostRequests, " requests"));
    }
    const bool is_json = absl::StartsWith(line, "{");
    if (!is_json && model == nullptr) {
      if (!texts.package().tokenizer.has_value()) return at_line(texts.refusal());
      auto made = TextModel::Make(texts.package(), texts.offer(), inputs, {});
      if (!made.ok()) return at_line(made.status());
      model = *std::move(made);
    }
    absl::StatusOr<CalibrationRequest> request =
        is_json ? RequestOfJson(line, inputs) : RequestOfText(line, inputs, *model);
    if (!request.ok()) return at_line(request.status());
    if (const absl::Status fits = CheckShapes(*request, signature); !fits.ok()) {
      return at_line(fits);
    }
    requests.push_back(*std::move(request));
  }
  if (requests.empty()) return absl::InvalidArgumentError("has no request");
  return requests;
}

}  // namespace

absl::StatusOr<PrecisionRules> PrecisionRulesOf(const PrecisionFolders& folders,
                                                const ModelSettings& settings) {
  absl::StatusOr<PrecisionRules> rules = PrecisionRules::Parse(
      settings.precision_ops, [&](const std::string& name) { return ReadOwnFile(folders, name); });
  if (rules.ok()) return rules;
  return absl::InvalidArgumentError(
      absl::StrCat("parameter reprise.precision_ops: ", rules.status().message()));
}

std::vector<std::vector<Tensor>> UsualRequests(const std::vector<ModelIo>& inputs,
                                               const TextLoad& texts) {
  if (!texts.package().tokenizer.has_value()) return {};
  auto requests = RequestsOf(kUsualTexts, inputs, texts);
  return requests.ok() ? *std::move(requests) : std::vector<std::vector<Tensor>>();
}

absl::StatusOr<std::vector<std::vector<Tensor>>> CalibrationRequests(
    const PrecisionFolders& folders, const std::string& file, const std::vector<ModelIo>& inputs,
    const TextLoad& texts) {
  const auto of_parameter = [](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("parameter reprise.calibration: ", status.message()));
  };
  const absl::StatusOr<std::string> text = ReadOwnFile(folders, file);
  if (!text.ok()) return of_parameter(text.status());
  auto requests = RequestsOf(*text, inputs, texts);
  if (requests.ok()) return requests;
  return of_parameter(absl::Status(requests.status().code(),
                                   absl::StrCat("'", file, "': ", requests.status().message())));
}

}  // namespace reprise
