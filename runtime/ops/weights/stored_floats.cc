#include "runtime/ops/weights/stored_floats.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/weights/block_formats.h"
#include "runtime/ops/weights/stored_op.h"

namespace reprise::ops {
namespace {

absl::StatusOr<const BlockFormat*> FormatOf(const std::string& name) {
  const BlockFormat* const format = FindBlockFormat(name);
  if (format != nullptr) return format;
  return absl::UnimplementedError(absl::StrCat(
      "format '", name, "' is not one of ",
      absl::StrJoin(BlockFormats(), ", ", [](std::string* out, const BlockFormat& known) {
        absl::StrAppend(out, known.name);
      })));
}

// Returns the blocks of a row of input 0.
absl::StatusOr<Size> BlocksOfRow(const InferContext& context, const BlockFormat& format) {
  RETURN_IF_ERROR(CheckType(context, 0, TypeBit(DType::kUInt8)));
  if (context.rank(0) == 0) return absl::InvalidArgumentError("input 0 is a scalar");
  const Size bytes = context.shape(0).back();
  if (bytes % format.bytes == 0) return bytes / format.bytes;
  return absl::InvalidArgumentError(absl::StrCat("rows of ", bytes,
                                                 " bytes are not whole blocks of ", format.bytes,
                                                 " bytes of ", format.name));
}

void SetLastDim(InferContext& context, DType dtype, Size size) {
  SizeList shape = context.shape(0);
  shape.back() = size;
  context.SetOutput(0, dtype, std::move(shape));
}

// Calls `use` with each block of input 0, taken apart.
template <typename Use>
void EachBlock(const KernelContext& context, const BlockFormat& format, Use use) {
  const auto* const bytes = context.inputs[0].as<uint8_t>();
  const int64_t count = context.inputs[0].num_elements() / format.bytes;
  BlockParts parts;
  for (int64_t i = 0; i < count; ++i) {
    format.take_apart(bytes + i * format.bytes, parts);
    use(i, parts);
  }
}

// Writes the numbers of a block as kernels keep them.
void KeepNumbers(const BlockFormat& format, const BlockParts& parts, uint8_t* to) {
  const auto middle = static_cast<uint8_t>(format.middle);
  if (format.kept_bits == 8) {
    for (int64_t i = 0; i < format.numbers; ++i) {
      to[i] = static_cast<uint8_t>(parts.numbers[i] + middle);
    }
    return;
  }
  for (int64_t i = 0; i < format.numbers / 2; ++i) {
    const auto low = static_cast<uint8_t>(parts.numbers[2 * i] + middle);
    const auto high = static_cast<uint8_t>(parts.numbers[2 * i + 1] + middle);
    to[i] = static_cast<uint8_t>(low | high << 4);
  }
}

}  // namespace

absl::Status StoredFloatsRule(InferContext& context) {
  ASSIGN_OR_RETURN(const BlockFormat* format,
                   FormatOf(StoredFloatsOp::From(context.attributes()).format));
  ASSIGN_OR_RETURN(const Size blocks, BlocksOfRow(context, *format));
  SetLastDim(context, DType::kFloat32, blocks * format->numbers);
  return absl::OkStatus();
}

absl::Status StoredFloatsKernel(const KernelContext& context) {
  ASSIGN_OR_RETURN(const BlockFormat* format, FormatOf(StoredFloatsOp::From(context.node).format));
  auto* const y = context.outputs[0].as<float>();
  EachBlock(context, *format, [&](int64_t block, const BlockParts& parts) {
    float* to = y + block * format->numbers;
    const int8_t* from = parts.numbers;
    for (int64_t group = 0; group < format->groups(); ++group) {
      const float scale = parts.scales[group];
      const float offset = format->offsets ? parts.offsets[group] : 0;
      for (int64_t i = 0; i < format->group; ++i) {
        const float value = static_cast<float>(*from++) * scale;
        // A sum with 0 would lose the sign of another.
        *to++ = format->offsets ? value + offset : value;
      }
    }
  });
  return absl::OkStatus();
}

absl::Status StoredPartRule(InferContext& context) {
  const StoredPartOp op = StoredPartOp::From(context.attributes());
  ASSIGN_OR_RETURN(const BlockFormat* format, FormatOf(op.format));
  ASSIGN_OR_RETURN(const Size blocks, BlocksOfRow(context, *format));
  if (op.part == StoredPartOp::kNumbers) {
    SetLastDim(context, DType::kUInt8, blocks * format->numbers * format->kept_bits / 8);
  } else if (op.part == StoredPartOp::kScales ||
             (op.part == StoredPartOp::kOffsets && format->offsets)) {
    SetLastDim(context, DType::kFloat32, blocks * format->groups());
  } else {
    return absl::InvalidArgumentError(absl::StrCat(format->name, " has no part '", op.part, "'"));
  }
  return absl::OkStatus();
}

absl::Status StoredPartKernel(const KernelContext& context) {
  const StoredPartOp op = StoredPartOp::From(context.node);
  ASSIGN_OR_RETURN(const BlockFormat* format, FormatOf(op.format));
  if (op.part == StoredPartOp::kNumbers) {
    auto* const y = context.outputs[0].as<uint8_t>();
    const int64_t bytes = format->numbers * format->kept_bits / 8;
    EachBlock(context, *format, [&](int64_t block, const BlockParts& parts) {
      KeepNumbers(*format, parts, y + block * bytes);
    });
    return absl::OkStatus();
  }
  auto* const y = context.outputs[0].as<float>();
  const bool scales = op.part == StoredPartOp::kScales;
  EachBlock(context, *format, [&](int64_t block, const BlockParts& parts) {
    const float* const from = scales ? parts.scales : parts.offsets;
    std::copy_n(from, format->groups(), y + block * format->groups());
  });
  return absl::OkStatus();
}

}  // namespace reprise::ops
