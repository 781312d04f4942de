#include "server/text_api/picture_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/vision/picture_text.h"

namespace reprise {
namespace {

using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr size_t kMostPictures = 256;
// Cohere's member, whose texts are pictures.
constexpr absl::string_view kImages = "images";

// The pictures and texts of a request, before a model is chosen for it.
struct Parts {
  std::vector<std::pair<std::string, std::string>> pictures;  // the member's name, and its text
  std::vector<std::pair<std::string, std::string>> texts;
};

std::optional<std::string> TextAt(const object& of, const char* name) {
  std::string_view text;
  element member;
  if (of.at_key(name).get(member) != SUCCESS) return std::nullopt;
  if (member.get(text) == SUCCESS) return std::string(text);
  // OpenAI's form: {"image_url": {"url": "data:..."}}.
  object nested;
  if (member.get(nested) == SUCCESS && nested.at_key("url").get(text) == SUCCESS) {
    return std::string(text);
  }
  return std::nullopt;
}

void TakePart(const element& part, const std::string& name, Parts& parts) {
  std::string_view text;
  if (part.get(text) == SUCCESS) {
    parts.texts.emplace_back(name, std::string(text));
    return;
  }
  array list;
  if (part.get(list) == SUCCESS) {
    size_t index = 0;
    for (const element& each : list) TakePart(each, absl::StrCat(name, "[", index++, "]"), parts);
    return;
  }
  object of;
  if (part.get(of) != SUCCESS) return;
  for (const char* member : {"image_url", "image"}) {
    if (auto picture = TextAt(of, member)) {
      parts.pictures.emplace_back(name, *std::move(picture));
      return;
    }
  }
  if (auto words = TextAt(of, "text")) parts.texts.emplace_back(name, *std::move(words));
  element content;
  if (of.at_key("content").get(content) == SUCCESS) {
    TakePart(content, absl::StrCat(name, ".content"), parts);
  }
}

// Returns whether there may be a picture in `member`: texts and ids are no objects.
bool HasObjects(const element& member) {
  if (member.is<object>()) return true;
  array list;
  if (member.get(list) != SUCCESS) return false;
  for (const element& each : list) {
    if (each.is<object>()) return true;
  }
  return false;
}

// Returns whether the model that is named makes vectors of pictures alone.
bool IsOfPictures(const TextApiContext& context, const std::string& model) {
  if (model.empty()) return false;
  const auto found = context.texts.repository->Find(model, "");
  if (!found.ok() || found->servable->pictures == nullptr) return false;
  // It may lie next to a model of texts, with the tokenizer of both.
  const auto text = context.texts.models->Find(*found->servable->model);
  return found->servable->pictures->task() == PictureTask::kEmbed &&
         (!text.ok() || (*text)->offer().task == TextTask::kNone);
}

}  // namespace

absl::StatusOr<std::optional<PictureInputs>> ReadPictures(const Fields& fields,
                                                          const TextApiContext& context,
                                                          const std::string& model,
                                                          absl::Span<const char* const> members) {
  const bool of_pictures = IsOfPictures(context, model);
  Parts parts;
  for (const char* name : members) {
    const auto member = fields.Find(name);
    if (!member) continue;
    if (of_pictures || HasObjects(*member)) {
      TakePart(*member, name, parts);
    } else if (name == kImages) {
      Parts images;
      TakePart(*member, name, images);
      parts.pictures = std::move(images.texts);
    }
  }
  if (const auto messages = fields.Find("messages")) TakePart(*messages, "messages", parts);
  if (of_pictures) {
    // A text for such a model can be nothing but a picture.
    parts.pictures.insert(parts.pictures.end(), std::make_move_iterator(parts.texts.begin()),
                          std::make_move_iterator(parts.texts.end()));
    parts.texts.clear();
    if (parts.pictures.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", members[0], "\" has no picture, and the model takes nothing else"));
    }
  }
  if (parts.pictures.empty()) return std::optional<PictureInputs>();
  if (!parts.texts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", parts.texts[0].first, "\" is a text, \"", parts.pictures[0].first,
        "\" a picture: a request has one kind, since a model makes vectors of one kind"));
  }
  if (parts.pictures.size() > kMostPictures) {
    return absl::InvalidArgumentError(absl::StrCat("the request has ", parts.pictures.size(),
                                                   " pictures, the limit is ", kMostPictures));
  }
  PictureInputs inputs = {.model = model};
  RETURN_IF_ERROR(ChoosePictureModel(*context.texts.repository, PictureTask::kEmbed, inputs.model));
  for (const auto& [name, text] : parts.pictures) {
    ASSIGN_OR_RETURN(std::string file, PictureFileOf(text, name));
    inputs.files.push_back(std::move(file));
  }
  return std::optional<PictureInputs>(std::move(inputs));
}

}  // namespace reprise
