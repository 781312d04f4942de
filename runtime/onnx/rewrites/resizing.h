// Older forms of ops that change the sizes of pictures.
//
// Each brings `draft` to its newest form and adds the other nodes to `graph`.
#pragma once

#include "runtime/onnx/kit/node_draft.h"

namespace reprise {

NodeRewrite ResizeAtCorner, UpsampleIsResize, CenterCropPadIsPad, RegionsAtCorner;

}  // namespace reprise
