#include "client/images/batch_stream.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"

namespace reprise::images {

namespace {

absl::Status Unread() {
  return absl::UnavailableError("the batches cannot be written: their pipe has no reader any more");
}

}  // namespace

absl::Status BatchStream::WriteBytes(const void* bytes, size_t count) {
  return std::fwrite(bytes, 1, count, file_) == count ? absl::OkStatus() : Unread();
}

absl::Status BatchStream::WriteLine(const std::string& line) {
  const std::string ended = line + "\n";
  return WriteBytes(ended.data(), ended.size());
}

absl::Status BatchStream::Begin() {
  nlohmann::json head = {{"images", set_.images.size()}, {"classes", set_.classes}};
  nlohmann::json& paths = head["paths"] = nlohmann::json::array();
  for (const ImageEntry& entry : set_.images) paths.push_back(entry.path);
  RETURN_IF_ERROR(WriteLine(head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return std::fflush(file_) == 0 ? absl::OkStatus() : Unread();
}

absl::Status BatchStream::Write(const ImageBatch& batch) {
  const auto rows = static_cast<size_t>(batch.rows());
  std::vector<int64_t> shape = batch.shape;
  shape[0] = batch.rows();
  nlohmann::json head = {{"shape", shape}, {"dtype", batch.is_float ? "float32" : "uint8"}};
  nlohmann::json &index = head["index"] = nlohmann::json::array(),
                 &labels = head["label"] = nlohmann::json::array(),
                 &boxes = head["boxes"] = nlohmann::json::array();
  // Boxes are pixels of the element.
  const bool channels_first = batch.shape[1] == kChannels;
  const auto height = static_cast<double>(batch.shape[channels_first ? 2 : 1]);
  const auto width = static_cast<double>(batch.shape[channels_first ? 3 : 2]);
  std::vector<BoxTargets> targets;
  for (const ImageSample& sample : batch.samples) {
    index.push_back(sample.entry - set_.images.data());
    labels.push_back(sample.entry->label.has_value() ? nlohmann::json(*sample.entry->label)
                                                     : nlohmann::json());
    nlohmann::json own = nlohmann::json::array();
    for (const Box& box : sample.boxes) {
      own.push_back({box.label, box.left, box.top, box.right, box.bottom});
    }
    boxes.push_back(std::move(own));
    if (targets_ != nullptr) targets.push_back(targets_->Match(sample.boxes, width, height));
  }
  if (targets_ != nullptr) head["targets"] = targets_->size();
  RETURN_IF_ERROR(WriteLine(head.dump()));
  const size_t element = batch.data.size() / static_cast<size_t>(batch.shape[0]);
  RETURN_IF_ERROR(WriteBytes(batch.data.data(), element * rows));
  for (const BoxTargets& one : targets) {
    RETURN_IF_ERROR(WriteBytes(one.boxes.data(), one.boxes.size() * sizeof(float)));
  }
  for (const BoxTargets& one : targets) {
    RETURN_IF_ERROR(WriteBytes(one.labels.data(), one.labels.size() * sizeof(int64_t)));
  }
  return std::fflush(file_) == 0 ? absl::OkStatus() : Unread();
}

absl::Status BatchStream::EndEpoch(int64_t epoch) {
  RETURN_IF_ERROR(WriteLine(nlohmann::json({{"epoch", epoch}}).dump()));
  return std::fflush(file_) == 0 ? absl::OkStatus() : Unread();
}

std::function<std::vector<int64_t>(uint64_t)> OrdersFrom(std::FILE* file) {
  return [file](uint64_t) {
    std::string line;
    for (int c = std::fgetc(file); c != EOF && c != '\n'; c = std::fgetc(file)) {
      line.push_back(static_cast<char>(c));
    }
    std::vector<int64_t> order;
    for (const absl::string_view part : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      int64_t image = -1;
      if (!absl::SimpleAtoi(part, &image)) image = -1;  // which is refused as no image
      order.push_back(image);
    }
    return order;
  };
}

}  // namespace reprise::images
