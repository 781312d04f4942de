#include "server/tasks/offers.h"

#include "server/hub/text_model.h"
#include "server/pictures/picture_model.h"

namespace reprise {
namespace {

const char* TaskOf(PictureTask task) {
  switch (task) {
    case PictureTask::kClassify:
      return "image classification";
    case PictureTask::kDetect:
      return "object detection";
    case PictureTask::kEmbed:
      return "image embeddings";
    case PictureTask::kNone:
      break;
  }
  return "tensors";
}

bool HearsSound(const TextModel& text) {
  const auto& speech = text.package().speech;
  return speech.ok() && speech->has_value();
}

}  // namespace

Offers OffersOf(const Servable& servable, const TextModels& texts) {
  const auto text = texts.Find(*servable.model);
  Offers offers;
  if (servable.pictures != nullptr) {
    offers.pictures = true;
    offers.task = TaskOf(servable.pictures->task());
  }
  if (servable.generation != nullptr) {
    const bool hears = text.ok() && HearsSound(**text);
    offers.task = hears ? "transcription" : "generation";
    offers.texts = text.ok();
    offers.chats = text.ok() && (*text)->Chat(false).ok();
    offers.context = servable.generation->generator().context();
  } else if (text.ok()) {
    offers.task = TextTaskName((*text)->offer().task);
    offers.context = (*text)->max_tokens();
  }
  return offers;
}

}  // namespace reprise
