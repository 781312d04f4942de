"""Pictures as files: the input `image`, classes and boxes, whatever a camera or a stranger sends."""

import base64
import io
import json
import struct
import zlib

import huggingface_hub
import numpy as np
import onnxruntime
import pytest
import requests
import tritonclient.grpc
import tritonclient.http
from PIL import Image, ImageDraw
from tritonclient.utils import InferenceServerException

from testing.vision import detectors
from testing.daemon import Daemon, reprise
from testing.metrics import Scrape

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.25]
PREPROCESSOR = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": 48, "width": 32},
                "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                "image_mean": MEAN, "image_std": STD}
COLOURS = {"red": 0, "green": 1, "blue": 2}


def encoded(image, form="PNG", **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def squares(width=640, height=480, **colours):
    """Makes a dark picture with squares: colour=(left, top, side)."""
    image = Image.new("RGB", (width, height), (10, 10, 10))
    for colour, (left, top, side) in colours.items():
        ImageDraw.Draw(image).rectangle([left, top, left + side - 1, top + side - 1], fill=colour)
    return image


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return width * height / (area - width * height)


def middle(objects, label):
    """Returns the mean of an object's boxes by their scores: the boxes of the cells that see it lie around it."""
    boxes = [one for one in objects if one["label"] == label]
    assert boxes, (label, objects)
    return np.average([one["box"] for one in boxes], axis=0, weights=[one["score"] for one in boxes])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("vision")

    def add(name, model, **files):
        folder = root / name
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.onnx").write_bytes(model.SerializeToString())
        for file, content in files.items():
            (folder / file.replace("_json", ".json").replace("_pbtxt", ".pbtxt")).write_text(
                content if isinstance(content, str) else json.dumps(content))

    add("colours", detectors.classifier(), preprocessor_config_json=PREPROCESSOR,
        config_json={"model_type": "vit", "id2label": {str(i): name for name, i in COLOURS.items()}})
    add("sides", detectors.classifier(), preprocessor_config_json=PREPROCESSOR | {"size": {"shortest_edge": 40, "longest_edge": 60},
                                                                                "image_processor_type": "DetrImageProcessor"})
    add("yolo8", detectors.yolo(8))
    add("yolo5", detectors.yolo(5))
    add("detr", detectors.detr(), preprocessor_config_json=PREPROCESSOR | {"size": {"height": 64, "width": 64}, "do_normalize": False},
        config_json={"model_type": "detr", "id2label": {"0": "red", "1": "blue"}})
    add("bare", detectors.classifier())
    add("declared", detectors.classifier(), config_pbtxt="""
        parameters { key: "reprise.image_transforms" value { string_value: "Resize(32), CenterCrop(32), ToTensor" } }""")
    add("strange", detectors.classifier(), preprocessor_config_json=PREPROCESSOR | {"resample": 1})
    with Daemon(root) as daemon:
        daemon.root = root
        yield daemon


def post(daemon, path, body=None, **options):
    return requests.post(daemon.http_url + path, json=body, timeout=60, **options)


def send(daemon, task, model, image, **parameters):
    picture = image if isinstance(image, bytes) else encoded(image)
    reply = post(daemon, f"/v1/vision/{task}",
                 {"model": model, "image": base64.b64encode(picture).decode()} | parameters)
    assert reply.status_code == 200, reply.text
    return reply.json()["images"][0]


def expected(image):
    """Returns transformers' preprocessing of a picture by PREPROCESSOR."""
    small = np.asarray(image.convert("RGB").resize((32, 48), Image.BILINEAR), np.float32) / 255
    return ((small - MEAN) / STD).transpose(2, 0, 1).astype(np.float32)


def noise(width, height, seed=0):
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


def logits_of(daemon, pictures, model="colours", client=None):
    tensor = np.array(pictures, dtype=object)
    if client == "http":
        kit = tritonclient.http
        client = kit.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
    else:
        kit, client = tritonclient.grpc, daemon.client()
    image = kit.InferInput("image", list(tensor.shape), "BYTES")
    image.set_data_from_numpy(tensor)
    return client.infer(model, [image]).as_numpy("logits")


@pytest.mark.parametrize("client", ["grpc", "http"])
def test_an_input_of_pictures_is_what_the_processor_makes_of_them(served, client):
    pictures = [noise(91, 70), noise(300, 200, 1)]
    answers = logits_of(served, [encoded(picture) for picture in pictures], client=client)
    session = onnxruntime.InferenceSession(str(served.root / "colours/1/model.onnx"))
    (right,) = session.run(None, {"pixel_values": np.stack([expected(picture) for picture in pictures])})
    np.testing.assert_allclose(answers, right, rtol=0, atol=1e-4)


def test_pictures_are_classified(served):
    for name, place in COLOURS.items():
        answer = send(served, "classify", "colours", Image.new("RGB", (50, 60), name), top=2)
        assert (answer["width"], answer["height"]) == (50, 60)
        assert answer["classes"][0]["label"] == name and answer["classes"][0]["class"] == place
        assert len(answer["classes"]) == 2 and answer["classes"][0]["score"] > answer["classes"][1]["score"]
    # The file itself as the body, below the model's own address.
    reply = requests.post(f"{served.http_url}/models/colours/v1/vision/classify", timeout=60,
                          data=encoded(Image.new("RGB", (50, 60), "blue"), "JPEG"), headers={"Content-Type": "image/jpeg"})
    assert reply.status_code == 200 and reply.json()["images"][0]["classes"][0]["label"] == "blue"
    shares = send(served, "classify", "colours", noise(20, 20), top=3)["classes"]
    assert sum(one["score"] for one in shares) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("model", ["yolo8", "yolo5", "detr"])
@pytest.mark.parametrize("size", [(64, 64), (640, 480), (300, 640), (640, 640)])
def test_detectors_answer_boxes_of_the_picture(served, model, size):
    width, height = size
    side = max(size) // 4  # an object of 16 pixels in the tensor of 64
    red, blue = (width // 8, height // 2, side), (width // 2, height // 8, side)
    image = squares(width, height, red=red, blue=blue)
    found = send(served, "detect", model, image, iou=1)["objects"]
    for name, (left, top, extent) in {"red": red, "blue": blue}.items():
        box = (left, top, left + extent, top + extent)
        if model == "detr":  # its picture is squeezed into a square: boxes have a quarter of each side
            middles = (left + extent / 2, top + extent / 2)
            box = (middles[0] - width / 8, middles[1] - height / 8, middles[0] + width / 8, middles[1] + height / 8)
        assert overlap(middle(found, name), box) > 0.6, (name, found)
    for one in found:
        assert 0 <= one["box"][0] < one["box"][2] <= width and 0 <= one["box"][1] < one["box"][3] <= height
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)


def test_the_hubs_client_reads_classes_and_boxes(served):
    def client(model):
        return huggingface_hub.InferenceClient(model=f"{served.http_url}/models/{model}")

    file = encoded(Image.new("RGB", (50, 60), "green"), "JPEG")
    own = send(served, "classify", "colours", file)["classes"]
    for found in (client("colours").image_classification(file), client("colours").image_classification(file, top_k=2)):
        assert [(one.label, one.score) for one in found] == [(one["label"], one["score"]) for one in own[:len(found)]]
    assert len(found) == 2
    image = squares(640, 480, red=(80, 240, 160), blue=(320, 60, 160))
    own = send(served, "detect", "yolo8", image, conf=0.4)["objects"]
    found = client("yolo8").object_detection(encoded(image), threshold=0.4)
    assert own and [(one.label, one.score) for one in found] == [(one["label"], one["score"]) for one in own]
    for one, other in zip(found, own):
        sides = [one.box.xmin, one.box.ymin, one.box.xmax, one.box.ymax]
        np.testing.assert_allclose(sides, other["box"], rtol=0, atol=0.51)
    for body, why in (({"inputs": 1}, '\\"inputs\\" must be a string'), ({}, '\\"inputs\\" is missing'),
                      ({"inputs": "", "parameters": {"labels": 1}}, '\\"labels\\"'), ({"image": ""}, '\\"image\\"')):
        reply = post(served, "/models/yolo8", body)
        assert reply.status_code == 400 and why in reply.text, reply.text


def test_lists_of_models_say_what_they_are_for(served):
    tasks = {one["id"]: (one["task"], one.get("pictures", False))
             for one in requests.get(f"{served.http_url}/v1/models", timeout=60).json()["data"]}
    assert tasks["colours"] == ("image classification", True) and tasks["yolo8"] == ("object detection", True)
    assert tasks["bare"] == ("tensors", False)
    overview = requests.get(f"{served.http_url}/v2/overview", timeout=60).json()["models"]
    assert {one["name"]: one["offers"]["task"] for one in overview} == {name: task for name, (task, _) in tasks.items()}


def test_parameters_choose_among_objects(served):
    image = squares(64, 64, red=(16, 16, 16), blue=(40, 8, 8))
    every = send(served, "detect", "yolo8", image, iou=1)["objects"]
    assert len(every) == 5  # four red cells, one blue
    assert len(send(served, "detect", "yolo8", image, iou=0.1)["objects"]) < len(every)
    assert len(send(served, "detect", "yolo8", image, iou=1, max=2)["objects"]) == 2
    faint = Image.new("RGB", (64, 64), (60, 0, 0))  # 0.24 of red
    assert send(served, "detect", "yolo8", faint)["objects"] == []
    assert len(send(served, "detect", "yolo8", faint, conf=0.2, iou=1)["objects"]) == 64
    assert send(served, "detect", "yolo8", faint, conf=0.3)["objects"] == []


def test_parameters_of_a_file_are_in_the_address(served):
    faint = encoded(Image.new("RGB", (64, 64), (60, 0, 0)))
    file = {"data": faint, "headers": {"content-type": "image/png"}}

    def found(query, path="/v1/vision/detect"):
        reply = post(served, path + query, **file)
        assert reply.status_code == 200, reply.text
        return reply.json()
    assert found("", "/models/yolo8/v1/vision/detect")["images"][0]["objects"] == []
    answer = found("?model=yolo8&conf=0.2&iou=1&max=7")
    assert answer["model"] == "yolo8" and len(answer["images"][0]["objects"]) == 7
    assert len(found("?top=1&model=colours", "/v1/vision/classify")["images"][0]["classes"]) == 1
    for query, words in [("cnof=1", "conf, iou, max"), ("conf=2", "from 0 to 1"), ("conf=", "from 0 to 1")]:
        refused = post(served, f"/v1/vision/detect?model=yolo8&{query}", **file)
        assert refused.status_code == 400 and words in refused.json()["error"]["message"], query


def test_several_pictures_share_a_request(served):
    pictures = [squares(640, 480, red=(100, 100, 160)), squares(480, 640, blue=(100, 100, 160))]
    reply = post(served, "/v1/vision/detect", {
        "model": "yolo8", "iou": 0.1,
        "images": [f"data:image/png;base64,{base64.b64encode(encoded(one)).decode()}" for one in pictures]})
    assert reply.status_code == 200, reply.text
    first, second = reply.json()["images"]
    assert {one["label"] for one in first["objects"]} == {"red"} and first["width"] == 640
    assert {one["label"] for one in second["objects"]} == {"blue"} and second["width"] == 480


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_a_picture_is_turned_as_its_camera_was_held(served, orientation, form):
    upright = squares(320, 240, red=(32, 64, 80), blue=(200, 120, 80))
    turns = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
             5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
             8: Image.Transpose.ROTATE_270}
    held = upright.transpose(turns[orientation]) if orientation in turns else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 98, "subsampling": 0} if form == "JPEG" else {}
    answer = send(served, "detect", "yolo8", encoded(held, form, exif=exif, **options), iou=1)
    assert (answer["width"], answer["height"]) == (320, 240)
    assert overlap(middle(answer["objects"], "red"), (32, 64, 112, 144)) > 0.6
    assert overlap(middle(answer["objects"], "blue"), (200, 120, 280, 200)) > 0.6


@pytest.mark.parametrize("mode", ["CMYK", "L", "P", "1", "RGBA", "I;16"])
def test_pictures_in_other_colours_are_read_as_pillow_reads_them(served, mode):
    image = noise(60, 60, 7)
    if mode == "I;16":
        grey = np.asarray(image.convert("L"), np.uint16) * 257
        file, seen = encoded(Image.fromarray(grey)), image.convert("L")
    else:
        converted = image.convert(mode)
        file = encoded(converted, "JPEG" if mode == "CMYK" else "PNG", **({"quality": 95} if mode == "CMYK" else {}))
        seen = Image.open(io.BytesIO(file))
    session = onnxruntime.InferenceSession(str(served.root / "colours/1/model.onnx"))
    (right,) = session.run(None, {"pixel_values": expected(seen)[None]})
    np.testing.assert_allclose(logits_of(served, [file]), right, rtol=0, atol=1e-4)


def bomb(width, height):
    """Makes a PNG file of a few bytes that says it is large."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""))


HOSTILE = {
    "bomb": (bomb(50_000, 50_000), "pixels"),
    "endless": (bomb(2**31 - 1, 2**31 - 1), "PNG"),
    "empty picture": (bomb(0, 5), "PNG"),
    "cut JPEG": (encoded(noise(200, 200), "JPEG")[:3000], "JPEG file is damaged"),
    "cut PNG": (encoded(noise(200, 200))[:3000], "PNG file is damaged"),
    "header alone": (encoded(noise(200, 200), "JPEG")[:20], "JPEG"),
    "GIF": (encoded(noise(20, 20), "GIF"), "neither a JPEG nor a PNG"),
    "text": (b"GET / HTTP/1.1", "neither a JPEG nor a PNG"),
    "nothing": (b"", "neither a JPEG nor a PNG"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_pictures_are_refused_by_name(served, kind):
    file, why = HOSTILE[kind]
    reply = post(served, "/v1/vision/classify", {"model": "colours", "image": base64.b64encode(file).decode()})
    assert reply.status_code in (400, 413, 429), reply.text
    assert why in reply.json()["error"]["message"], reply.text
    with pytest.raises(InferenceServerException, match=why):
        logits_of(served, [file])
    assert logits_of(served, [encoded(noise(20, 20))]).shape == (1, 3)


@pytest.mark.parametrize("path, body, why", [
    ("/v1/vision/classify", {"model": "colours"}, "\"image\" or \"images\" is missing"),
    ("/v1/vision/classify", {"model": "colours", "image": "!!"}, "not base64"),
    ("/v1/vision/classify", {"model": "colours", "image": "https://example.com/a.png"}, "fetches no pictures"),
    ("/v1/vision/detect", {"model": "colours", "image": ""}, "offers no detection"),
    ("/v1/vision/detect", {"model": "yolo8", "image": "", "conf": 2}, "\"conf\" must be a number from 0 to 1"),
    ("/v1/vision/detect", {"model": "yolo8", "image": "", "top": 2}, "conf, iou, max"),
    ("/v1/vision/detect", {"image": ""}, "3 models offer detection of objects: detr, yolo5, yolo8"),
    ("/v1/vision/classify", {"model": "bare", "image": ""}, "no preprocessor_config.json"),
    ("/v1/vision/classify", {"model": "strange", "image": ""}, "\"resample\" is 1"),
    ("/v1/vision/classify", {"model": "gone", "image": ""}, "gone")])
def test_wrong_requests_name_the_culprit(served, path, body, why):
    reply = post(served, path, body)
    assert 400 <= reply.status_code < 500 and why in reply.json()["error"]["message"], reply.text


def test_transforms_may_be_declared_in_the_config(served):
    answers = logits_of(served, [encoded(noise(91, 70))], model="declared")
    assert answers.shape == (1, 3)
    image = noise(91, 70)
    small = image.resize((int(32 * 91 / 70), 32), Image.BILINEAR)
    left = round((small.width - 32) / 2)
    part = np.asarray(small.crop((left, 0, left + 32, 32)), np.float32) / 255
    np.testing.assert_allclose(answers[0], part.mean((0, 1)) * 10, rtol=0, atol=1e-3)


def test_pictures_of_several_sides_keep_them_and_go_one_by_one(served):
    wide, tall = encoded(noise(120, 60)), encoded(noise(60, 80))
    for file, sides in [(wide, (60, 30)), (tall, (40, 53))]:
        image = Image.open(io.BytesIO(file)).convert("RGB").resize(sides, Image.BILINEAR)
        right = (((np.asarray(image, np.float32) / 255 - MEAN) / STD).mean((0, 1)) * 10)
        np.testing.assert_allclose(logits_of(served, [file], model="sides")[0], right, rtol=0, atol=1e-3)
    with pytest.raises(InferenceServerException, match="picture 1.*one by one"):
        logits_of(served, [wide, tall], model="sides")


def test_pictures_land_in_a_bucket_of_their_own_sides_and_share_it(served):
    """Not in the next usual one, and in one replay. (This model pools over all: its sizes are exact.)"""
    client = served.client()
    pictures = np.array([encoded(noise(20, 20, seed)) for seed in range(2)], dtype=object)
    tensor = tritonclient.grpc.InferInput("image", [2], "BYTES")
    tensor.set_data_from_numpy(pictures)
    answer = client.infer("colours", [tensor]).get_response().parameters
    assert answer["reprise.bucket"].string_param in ("exact", "b2_height_48_width_32"), answer
    assert answer["reprise.batch_size"].int64_param == 2


def test_one_image_by_feed_costs_one_row(served, tmp_path):
    noise(50, 40).save(tmp_path / "one.png")
    before = Scrape(served.metrics_url)
    reprise("feed", "colours", tmp_path, "--server", served.grpc_address, "--transforms",
            f"Resize([48, 32]), ToTensor, Normalize({MEAN}, {STD})")
    after = Scrape(served.metrics_url)
    assert after.total("nv_inference_count", model="colours") - before.total("nv_inference_count", model="colours") == 1
