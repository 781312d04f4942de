#include "client/images/pipeline.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/images/jitter.h"
#include "client/images/resample.h"
#include "runtime/base/status_macros.h"

namespace reprise::images {
namespace {

Size SizeOf(const Image& image) { return {image.width, image.height}; }

// Returns the place of a kind in a list that the fast path takes; two of a place do not fit.
int PlaceOf(TransformKind kind) {
  switch (kind) {
    case TransformKind::kRandomIoUCrop:
      return 0;
    case TransformKind::kResize:
    case TransformKind::kLetterbox:
    case TransformKind::kRandomResizedCrop:
      return 1;
    case TransformKind::kCenterCrop:
      return 2;
    case TransformKind::kRandomHorizontalFlip:
      return 3;
    case TransformKind::kColorJitter:
      return 4;
    case TransformKind::kToTensor:
      return 5;
    case TransformKind::kNormalize:
      return 6;
  }
  return 0;
}

// Returns which transform keeps the list off the fast path, and why; empty: none does.
std::string PlainCause(const std::vector<Transform>& transforms) {
  const Transform* former = nullptr;
  for (const Transform& transform : transforms) {
    if (transform.filter != Filter::kBilinear) {
      return absl::StrCat(transform.text,
                          ": interpolation: the fast path resizes by bilinear alone");
    }
    if (transform.kind == TransformKind::kLetterbox) {
      return absl::StrCat(transform.text, ": the fast path has no borders");
    }
    if (former != nullptr && PlaceOf(former->kind) >= PlaceOf(transform.kind)) {
      return absl::StrCat(transform.text, " behind ", former->text,
                          ": the fast path has no such order");
    }
    former = &transform;
  }
  return "";
}

// Returns the part `rect` of the image, black where it lies outside.
Image Cropped(const Image& image, const Rect& rect) {
  Image part(rect.width, rect.height);
  const int left = std::max(0, -rect.x), top = std::max(0, -rect.y);
  const int right = std::min(rect.width, image.width - rect.x);
  const int bottom = std::min(rect.height, image.height - rect.y);
  for (int y = top; y < bottom; ++y) {
    std::memcpy(part.row(y) + static_cast<size_t>(left) * kPixelBytes,
                image.row(rect.y + y) + static_cast<size_t>(rect.x + left) * kPixelBytes,
                static_cast<size_t>(std::max(0, right - left)) * kPixelBytes);
  }
  return part;
}

// Returns the image in the middle of another one, all of whose other pixels have the value `fill`.
Image Letterboxed(const Image& image, const Transform& letterbox, const Rect& rect) {
  Image boxed(static_cast<int>(letterbox.size.back()), static_cast<int>(letterbox.size.front()));
  std::fill(boxed.pixels.begin(), boxed.pixels.end(), static_cast<uint8_t>(letterbox.fill));
  const Image inner = Resample(ViewOf(image), letterbox.filter, rect.width, rect.height);
  for (int y = 0; y < rect.height; ++y) {
    std::memcpy(boxed.row(rect.y + y) + static_cast<size_t>(rect.x) * kPixelBytes, inner.row(y),
                inner.stride());
  }
  return boxed;
}

Image Flipped(const Image& image) {
  Image flipped(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      std::memcpy(flipped.row(y) + static_cast<size_t>(image.width - 1 - x) * kPixelBytes,
                  image.row(y) + static_cast<size_t>(x) * kPixelBytes, kPixelBytes);
    }
  }
  return flipped;
}

bool Contains(const Size& size, const Rect& rect) {
  return rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= size.width &&
         rect.y + rect.height <= size.height;
}

// The sum of all transforms of a list on the fast path.
struct Walk {
  Rect source;  // the image's
  Size size;    // the size after resampling
  Rect window;  // which of that is kept
  bool flip = false;
  const Transform* jitter = nullptr;
};

}  // namespace

absl::StatusOr<Pipeline> Pipeline::Make(TransformList transforms, ChannelOrder order) {
  ASSIGN_OR_RETURN(const auto size, transforms.ResultSize());
  std::string cause = PlainCause(transforms.transforms());
  TensorWriter writer(transforms, order, size.first, size.second);
  return Pipeline(std::move(transforms), std::move(cause), std::move(writer));
}

absl::StatusOr<std::string> Pipeline::Apply(Decoded decoded, RandomStream& random,
                                            std::vector<Box>& boxes, std::byte* element) const {
  std::string cause = plain_cause_.empty() ? std::move(decoded.plain_cause) : plain_cause_;
  if (cause.empty()) {
    ASSIGN_OR_RETURN(cause, ApplyFast(decoded.image, random, boxes, element));
  }
  if (!cause.empty()) {
    RETURN_IF_ERROR(ApplyPlain(std::move(decoded.image), random, boxes, element));
  }
  return cause;
}

absl::Status Pipeline::ApplyPlain(Image image, RandomStream& random, std::vector<Box>& boxes,
                                  std::byte* element) const {
  for (const Transform& transform : transforms_.transforms()) {
    const Size size = SizeOf(image);
    switch (transform.kind) {
      case TransformKind::kRandomIoUCrop: {
        const Rect rect = IouCropOf(transform, size, boxes, random);
        image = Cropped(image, rect);
        CropBoxes(rect, true, boxes);
        break;
      }
      case TransformKind::kResize: {
        ASSIGN_OR_RETURN(const Size to, ResizedSize(transform, size));
        image = Resample(ViewOf(image), transform.filter, to.width, to.height);
        ScaleBoxes(size, to, boxes);
        break;
      }
      case TransformKind::kLetterbox: {
        const Rect rect = LetterboxOf(transform, size);
        image = Letterboxed(image, transform, rect);
        ScaleBoxes(size, {rect.width, rect.height}, boxes);
        MoveBoxes(rect.x, rect.y, boxes);
        break;
      }
      case TransformKind::kRandomResizedCrop: {
        const Rect rect = RandomCropOf(transform, size, random);
        const Size to = {static_cast<int>(transform.size.back()),
                         static_cast<int>(transform.size.front())};
        image = Resample(ViewOf(image, rect), transform.filter, to.width, to.height);
        CropBoxes(rect, false, boxes);
        ScaleBoxes({rect.width, rect.height}, to, boxes);
        break;
      }
      case TransformKind::kCenterCrop: {
        const Rect rect = CenterCropOf(transform, size);
        image = Cropped(image, rect);
        CropBoxes(rect, false, boxes);
        break;
      }
      case TransformKind::kRandomHorizontalFlip:
        if (random.Unit() < transform.probability) {
          image = Flipped(image);
          FlipBoxes(image.width, boxes);
        }
        break;
      case TransformKind::kColorJitter:
        JitterColors(transform, random, image);
        break;
      case TransformKind::kToTensor:
      case TransformKind::kNormalize:
        break;  // the writer does both
    }
  }
  for (int y = 0; y < image.height; ++y) writer_.WriteRow(image.row(y), y, false, element);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Pipeline::ApplyFast(const Image& image, RandomStream& random,
                                                std::vector<Box>& boxes, std::byte* element) const {
  Walk walk = {.source = {0, 0, image.width, image.height}, .size = SizeOf(image)};
  walk.window = walk.source;
  // Numbers are drawn and boxes are moved on copies: nothing is done where it ends before its end.
  RandomStream drawn = random;
  std::vector<Box> moved = boxes;
  for (const Transform& transform : transforms_.transforms()) {
    switch (transform.kind) {
      case TransformKind::kRandomIoUCrop:
        walk.source = IouCropOf(transform, walk.size, moved, drawn);
        walk.size = {walk.source.width, walk.source.height};
        CropBoxes(walk.source, true, moved);
        break;
      case TransformKind::kResize: {
        ASSIGN_OR_RETURN(const Size to, ResizedSize(transform, walk.size));
        ScaleBoxes(std::exchange(walk.size, to), to, moved);
        break;
      }
      case TransformKind::kRandomResizedCrop: {
        const Rect rect = RandomCropOf(transform, walk.size, drawn);
        walk.source = {walk.source.x + rect.x, walk.source.y + rect.y, rect.width, rect.height};
        walk.size = {static_cast<int>(transform.size.back()),
                     static_cast<int>(transform.size.front())};
        CropBoxes(rect, false, moved);
        ScaleBoxes({rect.width, rect.height}, walk.size, moved);
        break;
      }
      case TransformKind::kCenterCrop: {
        const Rect rect = CenterCropOf(transform, walk.size);
        if (!Contains(walk.size, rect)) {
          return absl::StrCat(transform.text, " of an image of ", walk.size.height, " x ",
                              walk.size.width, ": the fast path pads nothing");
        }
        CropBoxes(rect, false, moved);
        walk.window = rect;
        break;
      }
      case TransformKind::kRandomHorizontalFlip:
        walk.flip = drawn.Unit() < transform.probability;
        if (walk.flip) FlipBoxes(writer_.width(), moved);
        break;
      case TransformKind::kColorJitter:
        walk.jitter = &transform;
        break;
      case TransformKind::kLetterbox:
        return PlainCause(transforms_.transforms());
      case TransformKind::kToTensor:
      case TransformKind::kNormalize:
        break;
    }
    if (transform.kind != TransformKind::kCenterCrop && PlaceOf(transform.kind) < 2) {
      walk.window = {0, 0, walk.size.width, walk.size.height};
    }
  }
  Image made = Resample(ViewOf(image, walk.source), Filter::kBilinear, walk.size.width,
                        walk.size.height, walk.window);
  if (walk.jitter != nullptr) JitterColors(*walk.jitter, drawn, made);
  for (int y = 0; y < made.height; ++y) writer_.WriteRow(made.row(y), y, walk.flip, element);
  random = drawn;
  boxes = std::move(moved);
  return "";
}

}  // namespace reprise::images
