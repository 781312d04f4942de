#include "server/pictures/picture_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/images/crops.h"
#include "client/images/decode.h"
#include "client/images/file_header.h"
#include "client/images/pipeline.h"
#include "runtime/base/status_macros.h"
#include "server/pictures/file_metadata.h"
#include "server/pictures/picture_files.h"

namespace reprise {
namespace {

using images::Size;
using images::Transform;
using images::TransformKind;

// Names of a vector of the whole picture, the first that is there counts: CLIP's, then the
// names of encoders without a projection (SigLIP, DINOv2).
constexpr const char* kVectorOutputs[] = {"image_embeds", "image_embedding", "image_features",
                                          "pooler_output"};
constexpr int64_t kChannelCount = 3;
constexpr int kUsualSide = 640;  // the side of a detector whose input says none
// A decoder's own: a JPEG file in several scans is held as coefficients.
constexpr int64_t kBytesPerPixel = 16;

int64_t ConstantOf(const Dim& dim) { return dim.is_constant() ? dim.size : -1; }

const ModelIo* FindIo(absl::Span<const ModelIo> ios, absl::string_view name) {
  const auto it =
      std::find_if(ios.begin(), ios.end(), [&](const ModelIo& io) { return io.name == name; });
  return it == ios.end() ? nullptr : &*it;
}

bool IsFloat(const ModelIo& io) { return io.dtype == DType::kFloat32; }

// Returns whether the input is one of pictures, by its type and channels.
bool TakesPictures(const ModelIo& io) {
  if ((!IsFloat(io) && io.dtype != DType::kUInt8) || io.dims.size() != 4) return false;
  return ConstantOf(io.dims[1]) == kChannelCount || ConstantOf(io.dims[3]) == kChannelCount ||
         (io.name == "pixel_values" && ConstantOf(io.dims[1]) < 0);
}

bool AllowsRandom(TransformKind kind) {
  return kind == TransformKind::kRandomResizedCrop ||
         kind == TransformKind::kRandomHorizontalFlip || kind == TransformKind::kColorJitter ||
         kind == TransformKind::kRandomIoUCrop;
}

// Moves the place of a picture along with one transform; returns the size after it.
absl::StatusOr<Size> Move(const Transform& transform, const Size& size, PicturePlace& place) {
  const auto scale = [&](double across, double down) {
    place.scale_x *= across;
    place.offset_x *= across;
    place.scale_y *= down;
    place.offset_y *= down;
  };
  switch (transform.kind) {
    case TransformKind::kResize: {
      ASSIGN_OR_RETURN(const Size to, images::ResizedSize(transform, size));
      scale(static_cast<double>(to.width) / size.width,
            static_cast<double>(to.height) / size.height);
      return to;
    }
    case TransformKind::kLetterbox: {
      const images::Rect rect = images::LetterboxOf(transform, size);
      scale(static_cast<double>(rect.width) / size.width,
            static_cast<double>(rect.height) / size.height);
      place.offset_x += rect.x;
      place.offset_y += rect.y;
      return Size{static_cast<int>(transform.size.back()),
                  static_cast<int>(transform.size.front())};
    }
    case TransformKind::kCenterCrop: {
      const images::Rect rect = images::CenterCropOf(transform, size);
      place.offset_x -= rect.x;
      place.offset_y -= rect.y;
      return Size{rect.width, rect.height};
    }
    default:
      return size;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PictureModel>> PictureModel::Make(
    const std::filesystem::path& model_file, const PictureSettings& settings,
    absl::Span<const ModelIo> inputs, absl::Span<const ModelIo> outputs) {
  const std::shared_ptr<PictureModel> model(new PictureModel());
  RETURN_IF_ERROR(model->TakeInput(inputs));
  ASSIGN_OR_RETURN(PictureFiles files, ReadPictureFiles(model_file));
  model->max_pixels_ = settings.max_pixels;
  model->labels_ = std::move(files.labels);
  std::map<std::string, std::string> metadata = ReadMetadata(model_file);
  if (model->labels_.empty()) model->labels_ = LabelsOfNames(metadata["names"]);
  const std::vector<int64_t> sides = SidesOfSize(metadata["imgsz"]);
  model->usual_height_ = sides.empty() ? kUsualSide : sides.front();
  model->usual_width_ = sides.empty() ? kUsualSide : sides.back();
  model->TakeTask(settings, files.model_type, outputs);
  RETURN_IF_ERROR(model->TakeTransforms(settings, files.transforms));
  return model;
}

absl::Status PictureModel::TakeInput(absl::Span<const ModelIo> inputs) {
  const auto it = std::find_if(inputs.begin(), inputs.end(), TakesPictures);
  if (it == inputs.end()) {
    return absl::FailedPreconditionError(
        "the model takes no pictures: it has no input of 3 channels, FP32 or UINT8");
  }
  for (const ModelIo& io : inputs) {
    if (&io == &*it || io.optional) continue;
    if (io.name == "pixel_mask" && io.dtype == DType::kInt64 && io.dims.size() == 3) {
      mask_input_ = io.name;
      mask_sides_ = {ConstantOf(io.dims[1]), ConstantOf(io.dims[2])};
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the model takes no pictures: it needs the input \"", io.name, "\" as well"));
  }
  input_ = it->name;
  is_float_ = IsFloat(*it);
  const bool last =
      ConstantOf(it->dims[3]) == kChannelCount && ConstantOf(it->dims[1]) != kChannelCount;
  order_ = last ? images::ChannelOrder::kLast : images::ChannelOrder::kFirst;
  height_ = ConstantOf(it->dims[last ? 1 : 2]);
  width_ = ConstantOf(it->dims[last ? 2 : 3]);
  return absl::OkStatus();
}

void PictureModel::TakeTask(const PictureSettings& settings, const std::string& model_type,
                            absl::Span<const ModelIo> outputs) {
  const ModelIo *logits = FindIo(outputs, "logits"), *boxes = FindIo(outputs, "pred_boxes");
  if (logits != nullptr && boxes != nullptr && IsFloat(*logits) && IsFloat(*boxes)) {
    task_ = PictureTask::kDetect;
    // These have no class of no object: each score is a probability of its own.
    const bool apart = settings.detector == "rt_detr" || model_type == "conditional_detr" ||
                       model_type == "deformable_detr" || absl::StartsWith(model_type, "rt_detr");
    head_ = apart ? DetectorHead::kRtDetr : DetectorHead::kDetr;
    head_is_known_ = true;
    outputs_ = {logits->name, boxes->name};
    return;
  }
  for (const char* name : kVectorOutputs) {
    const ModelIo* vector = FindIo(outputs, name);
    if (logits != nullptr || vector == nullptr || vector->dims.size() != 2 || !IsFloat(*vector)) {
      continue;
    }
    task_ = PictureTask::kEmbed;
    outputs_ = {vector->name};
    return;
  }
  const ModelIo& first = outputs[0];
  const bool declared = absl::StartsWith(settings.detector, "yolo");
  if (first.dims.size() == 3 && IsFloat(first) &&
      (declared || absl::StartsWith(first.name, "output"))) {
    task_ = PictureTask::kDetect;
    head_ = settings.detector == "yolov5" ? DetectorHead::kYoloV5 : DetectorHead::kYoloV8;
    head_is_known_ = declared;
    outputs_ = {first.name};
    return;
  }
  const ModelIo* scores = logits != nullptr ? logits : outputs.size() == 1 ? &first : nullptr;
  if (scores != nullptr && scores->dims.size() == 2 && IsFloat(*scores)) {
    task_ = PictureTask::kClassify;
    outputs_ = {scores->name};
    return;
  }
  no_task_ =
      "the model's outputs are neither scores of classes, FP32 [rows, classes], nor a vector "
      "(image_embeds), nor a detector's (parameter reprise.detector names one)";
}

absl::Status PictureModel::TakeTransforms(const PictureSettings& settings,
                                          const std::string& of_folder) {
  transforms_ = settings.transforms.empty() ? of_folder : settings.transforms;
  if (transforms_.empty() && task_ == PictureTask::kDetect && outputs_.size() == 1) {
    const int64_t high = height_ > 0 ? height_ : usual_height_;
    const int64_t wide = width_ > 0 ? width_ : usual_width_;
    transforms_ =
        absl::StrCat("Letterbox([", high, ", ", wide, "])", is_float_ ? ", ToTensor" : "");
  }
  if (transforms_.empty()) {
    return absl::FailedPreconditionError(
        "the model takes no pictures: its folder has no preprocessor_config.json, and its "
        "config.pbtxt no parameter reprise.image_transforms");
  }
  ASSIGN_OR_RETURN(list_, images::TransformList::Parse(transforms_));
  for (const Transform& transform : list_.transforms()) {
    if (!AllowsRandom(transform.kind)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("transform ", transform.text, ": a server draws no random numbers"));
  }
  if (list_.makes_tensor() != is_float_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the transforms of pictures make ", list_.makes_tensor() ? "FP32" : "UINT8",
                     ", input \"", input_, "\" takes ", is_float_ ? "FP32" : "UINT8"));
  }
  const auto size = list_.ResultSize();
  if (!size.ok()) return absl::OkStatus();  // pictures keep sizes of their own
  const auto [high, wide] = *size;
  if ((height_ > 0 && height_ != high) || (width_ > 0 && width_ != wide)) {
    return absl::InvalidArgumentError(absl::StrCat("the transforms of pictures make ", high, " x ",
                                                   wide, ", input \"", input_, "\" takes ", height_,
                                                   " x ", width_));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PictureModel::BytesToRead(absl::string_view file) const {
  ASSIGN_OR_RETURN(const Size size, images::ToldSize(file));
  RETURN_IF_ERROR(images::CheckPixels(size.width, size.height, {.max_pixels = max_pixels_}));
  return static_cast<int64_t>(size.width) * size.height * kBytesPerPixel;
}

absl::Status PictureModel::Walk(std::vector<Transform>* steps, PicturePlace& place) const {
  Size size = {place.width, place.height};
  for (Transform step : list_.transforms()) {
    ASSIGN_OR_RETURN(size, Move(step, size, place));
    if (steps == nullptr) continue;
    // Resizing by one side makes pictures of any size: here is the one that this picture gets.
    if (step.kind == TransformKind::kResize) {
      step.size = {static_cast<double>(size.height), static_cast<double>(size.width)};
    }
    steps->push_back(std::move(step));
  }
  RETURN_IF_ERROR(images::CheckPixels(size.width, size.height, {.max_pixels = max_pixels_}));
  if ((height_ > 0 && height_ != size.height) || (width_ > 0 && width_ != size.width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the picture of ", place.height, " x ", place.width, " becomes ", size.height,
                     " x ", size.width, ", input \"", input_, "\" takes ", height_, " x ", width_));
  }
  place.tensor_width = size.width;
  place.tensor_height = size.height;
  return absl::OkStatus();
}

absl::StatusOr<PicturePlace> PictureModel::PlaceOf(absl::string_view file) const {
  ASSIGN_OR_RETURN(const Size told, images::ToldSize(file));
  RETURN_IF_ERROR(images::CheckPixels(told.width, told.height, {.max_pixels = max_pixels_}));
  constexpr int kFirstTurned = 5;  // rows become columns from there on
  const bool turns = images::OrientationOf(file) >= kFirstTurned;
  PicturePlace place = {.width = turns ? told.height : told.width,
                        .height = turns ? told.width : told.height};
  RETURN_IF_ERROR(Walk(nullptr, place));
  return place;
}

absl::StatusOr<PictureTensor> PictureModel::Read(absl::string_view file) const {
  ASSIGN_OR_RETURN(images::Decoded decoded, images::DecodeImage(file, {.max_pixels = max_pixels_}));
  decoded.image = images::Upright(std::move(decoded.image), images::OrientationOf(file));
  PictureTensor tensor = {.place = {.width = decoded.image.width, .height = decoded.image.height}};
  std::vector<Transform> steps;
  RETURN_IF_ERROR(Walk(&steps, tensor.place));
  const int height = tensor.place.tensor_height, width = tensor.place.tensor_width;
  ASSIGN_OR_RETURN(const images::Pipeline pipeline,
                   images::Pipeline::Make(list_.With(std::move(steps), height, width), order_));
  tensor.bytes.resize(pipeline.writer().bytes());
  images::RandomStream random(0, 0, 0);
  std::vector<images::Box> boxes;
  RETURN_IF_ERROR(pipeline
                      .Apply(std::move(decoded), random, boxes,
                             reinterpret_cast<std::byte*>(tensor.bytes.data()))
                      .status());
  const int64_t high = height, wide = width;
  tensor.shape = pipeline.writer().channels_first()
                     ? std::vector<int64_t>{1, kChannelCount, high, wide}
                     : std::vector<int64_t>{1, high, wide, kChannelCount};
  return tensor;
}

std::vector<int64_t> PictureModel::MaskShape(const PictureTensor& tensor) const {
  return {1, mask_sides_[0] > 0 ? mask_sides_[0] : tensor.place.tensor_height,
          mask_sides_[1] > 0 ? mask_sides_[1] : tensor.place.tensor_width};
}

std::map<int, int64_t> PictureModel::OpenSides() const {
  std::map<int, int64_t> sides;
  const auto size = list_.ResultSize();
  if (!size.ok()) return sides;
  const int first = order_ == images::ChannelOrder::kFirst ? 2 : 1;
  if (height_ < 0) sides[first] = size->first;
  if (width_ < 0) sides[first + 1] = size->second;
  return sides;
}

std::string PictureModel::Label(int64_t id) const {
  const auto place = static_cast<size_t>(id);
  if (place < labels_.size() && !labels_[place].empty()) return labels_[place];
  return absl::StrCat("LABEL_", id);
}

std::string PictureModel::Describe() const {
  std::string text = absl::StrCat("takes pictures by ", transforms_);
  if (task_ == PictureTask::kClassify) absl::StrAppend(&text, "; classifies them");
  if (task_ == PictureTask::kEmbed) absl::StrAppend(&text, "; makes vectors of them");
  if (task_ == PictureTask::kDetect) {
    absl::StrAppend(&text, "; detects objects (",
                    head_is_known_ ? DetectorHeadName(head_) : absl::string_view("YOLO"), ", ",
                    labels_.size(), " labels)");
  }
  return text;
}

absl::StatusOr<std::vector<Detection>> PictureModel::Detect(absl::Span<const HeadOutput> outputs,
                                                            const PicturePlace& place,
                                                            const DetectOptions& options) const {
  DetectorHead head = head_;
  // There are always more boxes than members of one.
  if (!head_is_known_ && outputs[0].shape.size() == 2 &&
      outputs[0].shape[0] > outputs[0].shape[1]) {
    head = DetectorHead::kYoloV5;
  }
  const bool counts = head == DetectorHead::kYoloV5 || head == DetectorHead::kYoloV8;
  return reprise::Detect(head, outputs, counts ? labels_.size() : 0, place, options);
}

}  // namespace reprise
