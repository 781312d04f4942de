#include "runtime/ops/weights/block_weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/floats.h"
#include "runtime/ops/weights/bits_op.h"

namespace reprise::ops {
namespace {

constexpr uint32_t kScales =
    TypeBit(DType::kFloat32) | TypeBit(DType::kFloat16) | TypeBit(DType::kBFloat16);

struct BlockLayout {
  int64_t rows, k, bits, block, blocks;

  int64_t BytesOf(int64_t values) const { return (values * bits + 7) / 8; }
};

absl::StatusOr<BlockLayout> LayoutOf(const Node& node, const Shape& scales) {
  BlockLayout l = {};
  l.k = DequantizeBitsOp::From(node.attributes).k;
  l.bits = DequantizeBitsOp::From(node.attributes).bits;
  l.block = DequantizeBitsOp::From(node.attributes).block_size;
  constexpr int64_t kLimit = 1 << 24;  // Products of them do not overflow.
  if (l.k <= 0 || l.k > kLimit || l.block <= 0 || l.block > kLimit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attributes 'K' = ", l.k, " and 'block_size' = ", l.block, " are not from 1 to ", kLimit));
  }
  if (l.bits != 2 && l.bits != 4 && l.bits != 8) {
    return absl::UnimplementedError(absl::StrCat(l.bits, " bits are not supported"));
  }
  if (l.block * l.bits % 8 != 0) {
    return absl::UnimplementedError(
        absl::StrCat("blocks of ", l.block, " times ", l.bits, " bits end inside a byte"));
  }
  l.blocks = (l.k + l.block - 1) / l.block;
  if (scales.empty() || scales.back() != l.blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("the scales have the shape ", ShapeToString(scales),
                     ", their last dim is not ", l.blocks, " blocks"));
  }
  l.rows = NumElements(scales) / l.blocks;
  return l;
}

// Returns value number `i` of the values packed from `bytes` on.
int Unpack(const uint8_t* bytes, int64_t i, int64_t bits) {
  const int64_t at = i * bits;
  return bytes[at / 8] >> (at % 8) & ((1 << bits) - 1);
}

// Returns the zero point of each block.
std::vector<float> ZeroPoints(const KernelContext& context, const BlockLayout& l) {
  if (!HasInput(context, 2)) {
    return std::vector<float>(l.rows * l.blocks, static_cast<float>(1 << (l.bits - 1)));
  }
  if (context.inputs[2].dtype != DType::kUInt8) return FloatsOf(context.inputs[2]);
  std::vector<float> points;
  const uint8_t* bytes = context.inputs[2].as<uint8_t>();
  for (int64_t row = 0; row < l.rows; ++row, bytes += l.BytesOf(l.blocks)) {
    for (int64_t i = 0; i < l.blocks; ++i) {
      points.push_back(static_cast<float>(Unpack(bytes, i, l.bits)));
    }
  }
  return points;
}

}  // namespace

absl::Status DequantizeBitsRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kUInt8)));
  RETURN_IF_ERROR(CheckType(context, 1, kScales));
  ASSIGN_OR_RETURN(const BlockLayout l, LayoutOf(context.node(), context.pinned_shape(1)));
  const int64_t bytes = NumElements(context.pinned_shape(0));
  const int64_t least = l.rows * l.BytesOf(l.k), most = l.rows * l.BytesOf(l.blocks * l.block);
  if (bytes != least && bytes != most) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes, " bytes of values for ", l.rows, " rows of ", l.k, " values of ",
                     l.bits, " bits in blocks of ", l.block, ", expected ", most));
  }
  if (context.has_input(2)) {
    RETURN_IF_ERROR(CheckType(context, 2, kScales | TypeBit(DType::kUInt8)));
    const bool packed = context.dtype(2) == DType::kUInt8;
    const int64_t expected = l.rows * (packed ? l.BytesOf(l.blocks) : l.blocks);
    if (const int64_t given = NumElements(context.pinned_shape(2)); given != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat(given, packed ? " bytes of" : "", " zero points, expected ", expected));
    }
  }
  Shape shape = context.pinned_shape(1);
  shape.back() = l.k;
  context.SetOutput(0, context.dtype(1), SizesOf(shape));
  return absl::OkStatus();
}

absl::Status DequantizeBitsKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const BlockLayout l, LayoutOf(context.node, context.inputs[1].shape));
  if (l.rows == 0) return absl::OkStatus();
  const std::vector<float> scales = FloatsOf(context.inputs[1]), zeros = ZeroPoints(context, l);
  const int64_t row_bytes = context.inputs[0].num_elements() / l.rows;
  return Dispatch(FloatList{}, context.outputs[0].dtype, [&]<typename T>() {
    T* y = context.outputs[0].as<T>();
    for (int64_t row = 0; row < l.rows; ++row) {
      const uint8_t* values = context.inputs[0].as<uint8_t>() + row * row_bytes;
      for (int64_t block = 0; block < l.blocks; ++block) {
        const float scale = scales[row * l.blocks + block], zero = zeros[row * l.blocks + block];
        const int64_t end = std::min(l.k, (block + 1) * l.block);
        for (int64_t i = block * l.block; i < end; ++i) {
          const float value = (static_cast<float>(Unpack(values, i, l.bits)) - zero) * scale;
          *y++ = static_cast<T>(static_cast<Compute<T>>(value));
        }
      }
    }
  });
}

absl::Status UnpackNibblesRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kUInt8)));
  const std::vector<int64_t> dims = context.attributes().Ints("shape");
  Shape shape(dims.begin(), dims.end());
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  if (const int64_t bytes = NumElements(context.pinned_shape(0)); bytes != (count + 1) / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes, " bytes for ", count, " numbers of four bits"));
  }
  const bool is_signed = context.attributes().Int("signed", 0) != 0;
  context.SetOutput(0, is_signed ? DType::kInt8 : DType::kUInt8, SizesOf(shape));
  return absl::OkStatus();
}

absl::Status UnpackNibblesKernel(const KernelContext& context) {
  const uint8_t* bytes = context.inputs[0].as<uint8_t>();
  // 8 to 15 stand for -8 to -1.
  const int sign = context.node.attributes.Int("signed", 0) != 0 ? 8 : 0;
  auto* y = static_cast<uint8_t*>(context.outputs[0].data);
  const int64_t count = context.outputs[0].num_elements();
  for (int64_t i = 0; i < count; ++i) {
    y[i] = static_cast<uint8_t>((Unpack(bytes, i, 4) ^ sign) - sign);
  }
  return absl::OkStatus();
}

}  // namespace reprise::ops
