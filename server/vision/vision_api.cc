#include "server/vision/vision_api.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/shown_text.h"
#include "runtime/base/status_macros.h"
#include "server/rest/json_document.h"
#include "server/vision/picture_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

using Exchange = std::shared_ptr<HttpExchange>;
using nlohmann::ordered_json;
using simdjson::SUCCESS;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kMostPictures = 256;
constexpr int64_t kUsualTop = 5, kMostObjects = 10'000;

// Whose members a request and its answer have.
enum class Face { kOwn, kHub };

struct Asked {
  VisionRequest request;
  std::optional<double> conf, iou;
  std::optional<int64_t> most, top;
};

HttpReply Refusal(const RequestPath& path, const absl::Status& why) {
  return ErrorReply(path, ErrorRowOf(why.code()).http, ErrorMessage(why));
}

absl::StatusOr<std::string> FileOf(const element& value, const std::string& name) {
  std::string_view text;
  if (value.get(text) == SUCCESS) return PictureFileOf({text.data(), text.size()}, name);
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" must be a string: a picture is base64, or a data: address"));
}

bool ReadNumber(const element& value, double& number) { return value.get(number) == SUCCESS; }
bool ReadNumber(const element& value, int64_t& number) { return value.get(number) == SUCCESS; }
bool ReadNumber(const std::string& value, double& number) {
  return absl::SimpleAtod(value, &number);
}
bool ReadNumber(const std::string& value, int64_t& number) {
  return absl::SimpleAtoi(value, &number);
}

// `value`: a member of JSON, or the text of a parameter of the address.
template <typename Value>
absl::Status TakeNumber(const Value& value, const std::string& name, double most,
                        std::optional<double>& to) {
  double number = 0;
  if (!ReadNumber(value, number) || !(number >= 0 && number <= most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" must be a number from 0 to ", most));
  }
  to = number;
  return absl::OkStatus();
}

template <typename Value>
absl::Status TakeCount(const Value& value, const std::string& name, std::optional<int64_t>& to) {
  int64_t number = 0;
  if (!ReadNumber(value, number) || number < 1 || number > kMostObjects) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" must be an integer from 1 to ", kMostObjects));
  }
  to = number;
  return absl::OkStatus();
}

absl::Status TakeFiles(const element& value, const std::string& name, Asked& asked) {
  simdjson::dom::array list;
  if (value.get(list) != SUCCESS || list.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" must be a list of pictures"));
  }
  for (const element one : list) {
    ASSIGN_OR_RETURN(std::string file,
                     FileOf(one, absl::StrCat(name, "[", asked.request.files.size(), "]")));
    asked.request.files.push_back(std::move(file));
    if (asked.request.files.size() > kMostPictures) break;
  }
  return absl::OkStatus();
}

// Takes a member or a parameter that says how a task is done.
template <typename Value>
absl::Status TakeOption(PictureTask task, const std::string& name, const Value& value, Asked& asked,
                        absl::string_view what, absl::string_view others) {
  const bool detects = task == PictureTask::kDetect;
  if (detects && name == "conf") return TakeNumber(value, name, 1, asked.conf);
  if (detects && name == "iou") return TakeNumber(value, name, 1, asked.iou);
  if (detects && name == "max") return TakeCount(value, name, asked.most);
  if (!detects && name == "top") return TakeCount(value, name, asked.top);
  return absl::InvalidArgumentError(absl::StrCat("the request has a ", what, " ", QuotedText(name),
                                                 "; it takes ", others,
                                                 detects ? "conf, iou, max" : "top"));
}

// Takes a parameter. The body is a picture: the rest is in the address.
absl::Status TakeParameter(PictureTask task, const std::string& name, const std::string& value,
                           Asked& asked) {
  if (name != "model") return TakeOption(task, name, value, asked, "parameter", "model, ");
  if (asked.request.model.empty()) asked.request.model = value;
  return absl::OkStatus();
}

absl::Status TakeMember(PictureTask task, const std::string& name, const element& value,
                        Asked& asked) {
  if (name == "image") {
    ASSIGN_OR_RETURN(std::string file, FileOf(value, name));
    asked.request.files.push_back(std::move(file));
    return absl::OkStatus();
  }
  if (name == "images") return TakeFiles(value, name, asked);
  if (name == "model") {
    std::string_view text;
    if (value.get(text) != SUCCESS) return absl::InvalidArgumentError("\"model\" must be a string");
    if (asked.request.model.empty()) asked.request.model = std::string(text);
    return absl::OkStatus();
  }
  return TakeOption(task, name, value, asked, "member", "model, image, images, ");
}

absl::Status TakeHubMember(PictureTask task, const std::string& name, const element& value,
                           Asked& asked) {
  if (name == "inputs") {
    ASSIGN_OR_RETURN(std::string file, FileOf(value, name));
    asked.request.files.push_back(std::move(file));
    return absl::OkStatus();
  }
  object parameters;
  if (name != "parameters" || value.get(parameters) != SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has a member ", QuotedText(name),
                     "; it takes \"inputs\", a string, and \"parameters\", an object"));
  }
  for (const auto& [key, setting] : parameters) {
    const std::string parameter(key);
    if (setting.is_null()) continue;
    if (task == PictureTask::kDetect && parameter == "threshold") {
      RETURN_IF_ERROR(TakeNumber(setting, parameter, 1, asked.conf));
    } else if (task == PictureTask::kClassify && parameter == "top_k") {
      RETURN_IF_ERROR(TakeCount(setting, parameter, asked.top));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("\"parameters\" has a member ", QuotedText(parameter), "; ",
                       task == PictureTask::kDetect ? "threshold" : "top_k", " is supported"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Asked> Read(PictureTask task, Face face, const HttpRequest& http,
                           const std::string& model, MemoryBudget& parsing) {
  Asked asked;
  asked.request.model = model;
  const absl::string_view type = http.Field("content-type");
  // Clients of a hub send files without their type.
  const bool is_untyped =
      face == Face::kHub && !absl::StartsWithIgnoreCase(type, "application/json");
  if (is_untyped || absl::StartsWithIgnoreCase(type, "image/") ||
      absl::StartsWithIgnoreCase(type, "application/octet-stream")) {
    asked.request.files.push_back(http.body);
    if (face == Face::kHub) return asked;
    for (const auto& [name, value] : http.path.query()) {
      RETURN_IF_ERROR(TakeParameter(task, name, value, asked));
    }
    return asked;
  }
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const element json, document.Parse(http.body));
  object root;
  if (json.get(root) != SUCCESS) {
    return absl::InvalidArgumentError(
        "the request body must be a JSON object, or a picture with Content-Type: image/jpeg or "
        "image/png");
  }
  for (const auto& [name, value] : root) {
    if (value.is_null()) continue;
    const auto take = face == Face::kHub ? TakeHubMember : TakeMember;
    RETURN_IF_ERROR(take(task, std::string(name), value, asked));
  }
  if (asked.request.files.empty()) {
    return absl::InvalidArgumentError(face == Face::kHub ? "\"inputs\" is missing"
                                                         : "\"image\" or \"images\" is missing");
  }
  if (asked.request.files.size() > kMostPictures) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has more than ", kMostPictures, " pictures"));
  }
  return asked;
}

// Pixels to a hundredth.
double Rounded(double pixels) { return std::round(pixels * 100) / 100; }

absl::StatusOr<ordered_json> ObjectsOf(const PictureModel& model, const PictureAnswer& answer,
                                       const PicturePlace& place, const Asked& asked) {
  DetectOptions options = DefaultOptions(model.head());
  options.conf = asked.conf.value_or(options.conf);
  options.iou = asked.iou.value_or(options.iou);
  options.most = asked.most.value_or(options.most);
  std::vector<HeadOutput> outputs;
  for (size_t i = 0; i < answer.values.size(); ++i) {
    outputs.push_back({.values = answer.values[i], .shape = answer.shapes[i]});
  }
  ASSIGN_OR_RETURN(const std::vector<Detection> found, model.Detect(outputs, place, options));
  ordered_json objects = ordered_json::array();
  for (const Detection& one : found) {
    objects.push_back(
        {{"label", model.Label(one.label)},
         {"class", one.label},
         {"score", one.score},
         {"box", {Rounded(one.left), Rounded(one.top), Rounded(one.right), Rounded(one.bottom)}}});
  }
  return objects;
}

absl::StatusOr<ordered_json> ClassesOf(const PictureModel& model, const PictureAnswer& answer,
                                       const Asked& asked) {
  const std::vector<float>& scores = answer.values[0];
  if (scores.empty() || std::any_of(scores.begin(), scores.end(),
                                    [](float score) { return !std::isfinite(score); })) {
    return absl::InvalidArgumentError("the model's scores are not finite");
  }
  const float top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - top);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t kept = std::min(order.size(), static_cast<size_t>(asked.top.value_or(kUsualTop)));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
      [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  ordered_json classes = ordered_json::array();
  for (size_t i = 0; i < kept; ++i) {
    const double share = std::exp(static_cast<double>(scores[order[i]]) - top) / sum;
    classes.push_back({{"label", model.Label(static_cast<int64_t>(order[i]))},
                       {"class", order[i]},
                       {"score", static_cast<float>(share)}});
  }
  return classes;
}

// Returns objects or classes as clients of a model hub read them.
ordered_json HubList(const ordered_json& told) {
  ordered_json list = ordered_json::array();
  for (const ordered_json& one : told) {
    ordered_json item = {{"label", one["label"]}, {"score", one["score"]}};
    if (const auto box = one.find("box"); box != one.end()) {
      constexpr const char* kSides[] = {"xmin", "ymin", "xmax", "ymax"};
      for (size_t i = 0; i < std::size(kSides); ++i) {
        item["box"][kSides[i]] = std::lround((*box)[i].get<double>());
      }
    }
    list.push_back(std::move(item));
  }
  return list;
}

HttpReply JsonReply(const ordered_json& body) {
  return {.content_type = "application/json",
          .body = body.dump(-1, ' ', false, ordered_json::error_handler_t::replace)};
}

HttpReply ReplyOf(PictureTask task, Face face, const RequestPath& path, const Asked& asked,
                  const std::vector<PicturePlace>& places, const VisionResult& result) {
  if (!result.status.ok()) return Refusal(path, result.status);
  ordered_json pictures = ordered_json::array();
  for (size_t i = 0; i < result.answers.size(); ++i) {
    const bool detects = task == PictureTask::kDetect;
    const absl::StatusOr<ordered_json> told =
        detects ? ObjectsOf(*result.model, result.answers[i], places[i], asked)
                : ClassesOf(*result.model, result.answers[i], asked);
    if (!told.ok()) return Refusal(path, told.status());
    if (face == Face::kHub) return JsonReply(HubList(*told));
    pictures.push_back({{"width", places[i].width},
                        {"height", places[i].height},
                        {detects ? "objects" : "classes", *told}});
  }
  return JsonReply({{"model", result.name}, {"images", std::move(pictures)}});
}

// Returns the places of the pictures in their tensors, by their headers alone.
absl::StatusOr<std::vector<PicturePlace>> PlacesOf(const Repository& repository,
                                                   const VisionRequest& request) {
  ASSIGN_OR_RETURN(const Repository::Found found, repository.Find(request.model, ""));
  std::vector<PicturePlace> places;
  for (size_t i = 0; i < request.files.size(); ++i) {
    absl::StatusOr<PicturePlace> place = found.servable->pictures->PlaceOf(request.files[i]);
    if (!place.ok()) {
      if (request.files.size() == 1) return place.status();
      return absl::Status(place.status().code(),
                          absl::StrCat("picture ", i, ": ", place.status().message()));
    }
    places.push_back(*std::move(place));
  }
  return places;
}

void Serve(const VisionContext& context, MemoryBudget& parsing, PictureTask task, Face face,
           const Exchange& exchange, const std::string& model) {
  const RequestPath& path = exchange->request().path;
  const auto asked = std::make_shared<Asked>();
  std::vector<PicturePlace> places;
  const absl::Status read = WithinMemory(
      [] { return "the request"; },
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(*asked, Read(task, face, exchange->request(), model, parsing));
        RETURN_IF_ERROR(ChoosePictureModel(*context.repository, task, asked->request.model));
        ASSIGN_OR_RETURN(places, PlacesOf(*context.repository, asked->request));
        return absl::OkStatus();
      });
  if (!read.ok()) return exchange->Answer([path, read] { return Refusal(path, read); });
  VisionRequest request = std::move(asked->request);
  request.key = exchange->key();
  request.trace = exchange->trace();
  const std::shared_ptr<VisionCall> call = VisionCall::Start(
      context, std::move(request),
      [task, face, exchange, asked, path, places = std::move(places)](VisionResult result) {
        // Each picture has a line, as a request of the model.
        if (result.status.ok()) exchange->SetTold();
        std::function<HttpReply()> make;
        WhereMemoryAllows([&] {
          make = [task, face, path, asked, places,
                  result = std::make_shared<const VisionResult>(std::move(result))] {
            return ReplyOf(task, face, path, *asked, places, *result);
          };
        });
        if (make == nullptr) make = [] { return HttpReply{.status = 503}; };
        exchange->Answer(std::move(make));
      });
  if (call == nullptr) return;
  WhereMemoryAllows([&] {
    exchange->OnLeave([weak = std::weak_ptr<VisionCall>(call)] {
      if (const std::shared_ptr<VisionCall> waiting = weak.lock()) waiting->Cancel();
    });
  });
}

}  // namespace

void AddVisionApi(const VisionContext& context, MemoryBudget& parsing, Router& router) {
  for (const auto& [path, task] : {std::pair("/v1/vision/classify", PictureTask::kClassify),
                                   std::pair("/v1/vision/detect", PictureTask::kDetect)}) {
    const auto handler = [context, &parsing, task = task](const Exchange& exchange,
                                                          const PathParts& parts) {
      const auto model = parts.find("model");
      Serve(context, parsing, task, Face::kOwn, exchange,
            model == parts.end() ? "" : model->second);
    };
    router.Add("POST", path, Right::kInfer, handler);
    router.Add("POST", absl::StrCat("/models/{model}", path), Right::kInfer, handler);
  }
}

void ServeHubPicture(const VisionContext& context, MemoryBudget& parsing, PictureTask task,
                     const Exchange& exchange, const std::string& model) {
  Serve(context, parsing, task, Face::kHub, exchange, model);
}

}  // namespace reprise
