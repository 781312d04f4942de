#include "server/text/chat_template.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "server/text/library_call.h"

namespace reprise {
namespace {

// A template of some kilobytes becomes a list of steps.
constexpr int64_t kTemplateBytes = int64_t{64} << 20;
// A conversation is held as JSON, as values, and as the text that it becomes.
constexpr int64_t kRenderBytesPerByte = 64;
constexpr int64_t kLeastRenderBytes = int64_t{64} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Load(absl::string_view source) {
  const std::function<absl::Status()> no_end;
  const LibraryWatch watch(kTemplateBytes, no_end);
  reprise_chat* chat = nullptr;
  LibraryText error;
  const int32_t code =
      reprise_chat_load(source.data(), source.size(), watch.get(), &chat, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(chat));
}

ChatTemplate::~ChatTemplate() { reprise_chat_free(chat_); }

absl::StatusOr<std::string> ChatTemplate::Render(absl::string_view context, int64_t now_s,
                                                 const std::function<absl::Status()>& go_on) const {
  const auto bytes = static_cast<int64_t>(context.size());
  const LibraryWatch watch(std::max(kLeastRenderBytes, kRenderBytesPerByte * bytes), go_on);
  LibraryText text, error;
  const int32_t code = reprise_chat_render(chat_, context.data(), context.size(), now_s,
                                           watch.get(), &text.text, &error.text);
  RETURN_IF_ERROR(watch.StatusOf(code, error));
  return text.ToString();
}

}  // namespace reprise
