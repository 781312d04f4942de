// PictureModel: the tasks of one model with pictures.
//
//   ASSIGN_OR_RETURN(const PictureTensor tensor, model.Read(jpeg));
//   // ... one row of input model.input() ...
//   ASSIGN_OR_RETURN(const auto objects, model.Detect(outputs, tensor.place, options));
//
// Threads: const methods from any; Read computes.
// Memory:  Read may throw for want of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/images/tensor_writer.h"
#include "client/images/transform.h"
#include "runtime/onnx/model_io.h"
#include "server/pictures/detections.h"

namespace reprise {

enum class PictureTask { kNone, kClassify, kDetect, kEmbed };

// Settings that config.pbtxt has of pictures.
struct PictureSettings {
  std::string transforms;  // counts instead of the folder's
  std::string detector;    // "yolov5", "yolov8", "detr", "rt_detr"; empty: outputs decide
  int64_t max_pixels = int64_t{64} << 20;
};

// A picture as one row of the model's input.
struct PictureTensor {
  std::string bytes;
  std::vector<int64_t> shape;  // [1, 3, height, width] or [1, height, width, 3]
  PicturePlace place;
};

class PictureModel {
 public:
  // FAILED_PRECONDITION says why the model takes no pictures; INVALID_ARGUMENT names a
  // contradiction, with both sides.
  static absl::StatusOr<std::shared_ptr<const PictureModel>> Make(
      const std::filesystem::path& model_file, const PictureSettings& settings,
      absl::Span<const ModelIo> inputs, absl::Span<const ModelIo> outputs);

  // Decodes a JPEG or PNG file, turns it as EXIF says and applies the transforms. INVALID_ARGUMENT
  // for another, a damaged or a too large file.
  absl::StatusOr<PictureTensor> Read(absl::string_view file) const;
  // Returns the place of a file's picture in its tensor, by its header alone.
  absl::StatusOr<PicturePlace> PlaceOf(absl::string_view file) const;
  // Returns the most memory that Read takes for the file, by its header.
  absl::StatusOr<int64_t> BytesToRead(absl::string_view file) const;

  const std::string& input() const { return input_; }
  const char* datatype() const { return list_.makes_tensor() ? "FP32" : "UINT8"; }
  // Returns the input of the pixels that count, which DETR's exports may have; empty: there is
  // none.
  const std::string& mask_input() const { return mask_input_; }
  // Returns the shape of its one row: [1, height, width].
  std::vector<int64_t> MaskShape(const PictureTensor& tensor) const;

  // Sizes that the transforms give to every picture along dims of the input that are open, by the
  // dim's position; empty: pictures keep sizes of their own, or the input is fixed.
  std::map<int, int64_t> OpenSides() const;

  PictureTask task() const { return task_; }
  // Returns why the model offers no task besides its tensors.
  const std::string& no_task() const { return no_task_; }
  DetectorHead head() const { return head_; }
  // Names of the outputs that the task reads: scores; the boxes of a YOLO; logits and boxes; a
  // vector.
  const std::vector<std::string>& outputs() const { return outputs_; }
  const std::vector<std::string>& labels() const { return labels_; }
  // "a" or, without labels, "LABEL_3".
  std::string Label(int64_t id) const;
  // Returns a sentence for the log.
  std::string Describe() const;

  absl::StatusOr<std::vector<Detection>> Detect(absl::Span<const HeadOutput> outputs,
                                                const PicturePlace& place,
                                                const DetectOptions& options) const;

 private:
  PictureModel() = default;
  // Fills the place of a picture whose size it has; `steps`, where not null, become those for a
  // picture of that size.
  absl::Status Walk(std::vector<images::Transform>* steps, PicturePlace& place) const;
  absl::Status TakeInput(absl::Span<const ModelIo> inputs);
  void TakeTask(const PictureSettings& settings, const std::string& model_type,
                absl::Span<const ModelIo> outputs);
  absl::Status TakeTransforms(const PictureSettings& settings, const std::string& of_folder);

  std::string input_, mask_input_;
  std::vector<int64_t> mask_sides_;  // those that are constant; -1: the picture's
  bool is_float_ = true;
  images::ChannelOrder order_ = images::ChannelOrder::kFirst;
  int64_t height_ = -1, width_ = -1;            // that the input is fixed at; -1: it is not
  int64_t usual_height_ = 0, usual_width_ = 0;  // sides for a detector whose input is not fixed
  images::TransformList list_;
  std::string transforms_;
  int64_t max_pixels_ = 0;
  PictureTask task_ = PictureTask::kNone;
  std::string no_task_;
  DetectorHead head_ = DetectorHead::kYoloV8;
  bool head_is_known_ = false;  // else the shapes of outputs decide between YOLO v5 and v8
  std::vector<std::string> outputs_;
  std::vector<std::string> labels_;
};

}  // namespace reprise
